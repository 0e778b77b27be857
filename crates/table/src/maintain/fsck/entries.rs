//! Checks the entries of a manifest against themselves and the metadata.

use icefield_format::FormatVersion;
use icefield_format::manifest::{DataFile, FileContent, FileFormat, ManifestContent, ManifestEntry, Status};

use super::context::{At, Check};
use super::listed::Listed;
use super::metrics;

pub(super) fn check(check: &Check<'_>, manifest: &Listed, entry: &ManifestEntry) {
    let file = &entry.file;
    let at = check.at(&file.file_path, &manifest.file.manifest_path);
    let is_delete = file.content != FileContent::Data;
    if is_delete != (manifest.file.content == ManifestContent::Deletes) {
        at.error("entry-content", "content", format!("{:?}", manifest.file.content), format!("{:?}", file.content));
    }
    if file.file_path.is_empty() {
        at.error("entry-path", "file_path", "a location", "nothing");
    }
    if file.format().is_none() {
        at.error("entry-format", "file_format", "avro, orc, parquet or puffin", &file.file_format);
    }
    // Old imports wrote -1 for an unknown number.
    if file.record_count < -1 {
        at.error("entry-record-count", "record_count", "at least 0", file.record_count);
    }
    if file.file_size_in_bytes < 0 {
        at.error("entry-file-size", "file_size_in_bytes", "at least 0", file.file_size_in_bytes);
    }
    if entry.status == Status::Deleted {
        return;
    }
    check_numbers(at, check, manifest, entry);
    check_split_offsets(at, file);
    if let Some(id) = file.sort_order_id.filter(|id| *id != 0 && check.metadata.sort_order(*id).is_none()) {
        at.warning("entry-sort-order", "sort_order_id", "a sort order of the table", id);
    }
    check_deletes(at, check, file);
    if let Some(first) = file.first_row_id.filter(|_| !is_delete) {
        let end = first.saturating_add(file.record_count);
        if first < 0 || end > check.metadata.next_row_id() {
            let expected = format!("a range below {}", check.metadata.next_row_id());
            at.error("entry-row-ids", "first_row_id", expected, format!("{first} to {end}"));
        }
    }
    metrics::check(at, check, file);
}

fn check_numbers(at: At<'_>, check: &Check<'_>, manifest: &Listed, entry: &ManifestEntry) {
    if check.metadata.format_version() == FormatVersion::V1 || !manifest.is_described {
        return;
    }
    let most = manifest.file.sequence_number;
    match entry.sequence_number {
        None => at.error("entry-sequence-number", "sequence_number", "a number", "none"),
        Some(number) if number < 0 || number > most => {
            at.error("entry-sequence-number", "sequence_number", format!("0 to {most}"), number);
        }
        Some(number) => {
            if let Some(of_file) = entry.file_sequence_number.filter(|of_file| *of_file < number) {
                let expected = format!("at least {number}, the data sequence number");
                at.error("entry-sequence-number", "file_sequence_number", expected, of_file);
            }
        }
    }
    if entry.status == Status::Added
        && let Some(id) = entry.snapshot_id
        && id != manifest.file.added_snapshot_id
    {
        at.error("entry-snapshot-id", "snapshot_id", manifest.file.added_snapshot_id, id);
    }
}

fn check_split_offsets(at: At<'_>, file: &DataFile) {
    let Some(offsets) = file.split_offsets.as_ref().filter(|offsets| !offsets.is_empty()) else { return };
    let ascends = offsets.windows(2).all(|pair| pair.first() < pair.last());
    let within = offsets.iter().all(|offset| (0..file.file_size_in_bytes.max(1)).contains(offset));
    if !ascends || !within {
        let expected = format!("ascending offsets below {}", file.file_size_in_bytes);
        at.error("entry-split-offsets", "split_offsets", expected, format!("{offsets:?}"));
    }
}

fn check_deletes(at: At<'_>, check: &Check<'_>, file: &DataFile) {
    if file.content == FileContent::EqualityDeletes {
        let known = |id: &i32| check.metadata.schemas().iter().any(|schema| schema.find_field(*id).is_some());
        match file.equality_ids.as_deref() {
            None | Some([]) => at.error("entry-equality-ids", "equality_ids", "field ids", "none"),
            Some(ids) if !ids.iter().all(known) => {
                at.error("entry-equality-ids", "equality_ids", "ids of columns", format!("{ids:?}"));
            }
            Some(_) => {}
        }
    }
    if file.format() != Some(FileFormat::Puffin) {
        return;
    }
    if file.content != FileContent::PositionDeletes {
        return at.error(
            "entry-content",
            "content",
            "position deletes in a Puffin file",
            format!("{:?}", file.content),
        );
    }
    if file.referenced_data_file.is_none() {
        at.error("vector-fields", "referenced_data_file", "the data file of the vector", "none");
    }
    match (file.content_offset, file.content_size_in_bytes) {
        (Some(offset), Some(size))
            if offset >= 0 && size > 0 && offset.saturating_add(size) <= file.file_size_in_bytes => {}
        (offset, size) => {
            let shown = |value: Option<i64>| value.map_or("none".to_owned(), |value| value.to_string());
            let found = format!("offset {}, size {}", shown(offset), shown(size));
            let expected = format!("a range within {} bytes", file.file_size_in_bytes);
            at.error("vector-fields", "content_offset", expected, found);
        }
    }
}
