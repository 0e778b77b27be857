//! Why a repair leaves a finding as it is.

/// The value of an optional field that is left out.
pub(super) const LEFT_OUT: &str = "left out";

/// Of all findings of a manifest.
pub(super) const UNWRITABLE: &str = "another entry of the manifest keeps it from being written again";

/// The reason, by the name of the check.
pub(super) fn of(check: &str, is_data: bool) -> &'static str {
    match check {
        "file-missing" if is_data => {
            "the rows of the file are lost: remove_missing_files=True removes it from the table"
        }
        "file-missing" => {
            "the rows that it deletes would come back: remove_missing_deletes=True removes it from the table"
        }
        "file-unreadable" | "vector-unreadable" => "the file is damaged",
        "file-size" | "entry-file-size" => "the file may have been cut or replaced",
        "file-record-count" | "rows-record-count" => {
            "the row ids of rows that are not counted are those of other files"
        }
        "entry-partition" | "rows-partition" | "vector-partition" => "the rows may belong to either partition",
        "entry-sequence-number" | "vector-sequence-number" | "manifest-sequence-number" => {
            "the deletes that apply depend on it"
        }
        "entry-row-ids" | "row-ids-overlap" | "manifest-first-row-id" => "row ids must not change",
        "file-listed-twice" | "manifest-listed-twice" | "vector-twice" => "either one may be the right one",
        "vector-dangling" => "maintenance.remove_dangling_deletes() removes it",
        "vector-data-file" => "the Puffin file and the manifest name different data files",
        "manifest-list-missing" | "manifest-list-unreadable" | "manifest-missing" | "manifest-unreadable" => {
            "the files that it lists are not known"
        }
        "summary-total" => "not all files of the snapshot are known",
        "manifest-length" | "manifest-files-count" | "manifest-rows-count" => {
            "it may be another manifest than the listed one"
        }
        "entry-equality-ids" | "entry-content" | "entry-path" | "entry-format" | "manifest-content"
        | "manifest-spec" => "nothing else says what it was",
        _ if check.starts_with("statistics-") => "maintenance.compute_table_stats() writes it again",
        _ if check.starts_with("snapshot-") => "it is in the table metadata, which a snapshot does not change",
        _ => "more than one correction is possible",
    }
}
