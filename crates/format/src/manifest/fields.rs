//! Ids and names of the fields of manifest lists and manifests ("Manifest List Files", "Manifest Entry Fields", "Data File Fields").

/// A field: its id, and its names, the one we write first.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Iceberg's id.
    pub id: i32,
    /// Names by which it is found in files without ids.
    pub names: &'static [&'static str],
}

impl Known {
    /// The name that is written.
    pub fn name(self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

const fn known(id: i32, names: &'static [&'static str]) -> Known {
    Known { id, names }
}

/// Fields of a manifest list.
pub mod list {
    use super::{Known, known};

    /// Location of the manifest.
    pub const PATH: Known = known(500, &["manifest_path"]);
    /// Its length in bytes.
    pub const LENGTH: Known = known(501, &["manifest_length"]);
    /// The partition spec it was written with.
    pub const SPEC_ID: Known = known(502, &["partition_spec_id"]);
    /// Data or deletes.
    pub const CONTENT: Known = known(517, &["content"]);
    /// Sequence number of the snapshot that added it.
    pub const SEQUENCE_NUMBER: Known = known(515, &["sequence_number"]);
    /// Smallest data sequence number of its live files.
    pub const MIN_SEQUENCE_NUMBER: Known = known(516, &["min_sequence_number"]);
    /// The snapshot that added it.
    pub const SNAPSHOT_ID: Known = known(503, &["added_snapshot_id"]);
    /// Entries with status added.
    pub const ADDED_FILES: Known = known(504, &["added_files_count", "added_data_files_count"]);
    /// Entries with status existing.
    pub const EXISTING_FILES: Known = known(505, &["existing_files_count", "existing_data_files_count"]);
    /// Entries with status deleted.
    pub const DELETED_FILES: Known = known(506, &["deleted_files_count", "deleted_data_files_count"]);
    /// Rows of added files.
    pub const ADDED_ROWS: Known = known(512, &["added_rows_count"]);
    /// Rows of existing files.
    pub const EXISTING_ROWS: Known = known(513, &["existing_rows_count"]);
    /// Rows of deleted files.
    pub const DELETED_ROWS: Known = known(514, &["deleted_rows_count"]);
    /// Summaries of the partition fields.
    pub const PARTITIONS: Known = known(507, &["partitions"]);
    /// Whether a partition value is null.
    pub const CONTAINS_NULL: Known = known(509, &["contains_null"]);
    /// Whether a partition value is NaN.
    pub const CONTAINS_NAN: Known = known(518, &["contains_nan"]);
    /// Smallest partition value.
    pub const LOWER_BOUND: Known = known(510, &["lower_bound"]);
    /// Largest partition value.
    pub const UPPER_BOUND: Known = known(511, &["upper_bound"]);
    /// How the manifest is encrypted.
    pub const KEY_METADATA: Known = known(519, &["key_metadata"]);
    /// v3: first row id for its new rows.
    pub const FIRST_ROW_ID: Known = known(520, &["first_row_id"]);
}

/// Fields of a manifest entry.
pub mod entry {
    use super::{Known, known};

    /// Existing, added or deleted.
    pub const STATUS: Known = known(0, &["status"]);
    /// The snapshot of the status.
    pub const SNAPSHOT_ID: Known = known(1, &["snapshot_id"]);
    /// Data sequence number.
    pub const SEQUENCE_NUMBER: Known = known(3, &["sequence_number"]);
    /// File sequence number.
    pub const FILE_SEQUENCE_NUMBER: Known = known(4, &["file_sequence_number"]);
    /// The file.
    pub const DATA_FILE: Known = known(2, &["data_file"]);
}

/// Fields of a data file.
pub mod file {
    use super::{Known, known};

    /// Data or which kind of deletes.
    pub const CONTENT: Known = known(134, &["content"]);
    /// Location.
    pub const FILE_PATH: Known = known(100, &["file_path"]);
    /// Format.
    pub const FILE_FORMAT: Known = known(101, &["file_format"]);
    /// The partition tuple.
    pub const PARTITION: Known = known(102, &["partition"]);
    /// Rows.
    pub const RECORD_COUNT: Known = known(103, &["record_count"]);
    /// Bytes.
    pub const FILE_SIZE: Known = known(104, &["file_size_in_bytes"]);
    /// v1: written as 64 MiB, never read.
    pub const BLOCK_SIZE: Known = known(105, &["block_size_in_bytes"]);
    /// Bytes of each column.
    pub const COLUMN_SIZES: Known = known(108, &["column_sizes"]);
    /// Values of each column, nulls included.
    pub const VALUE_COUNTS: Known = known(109, &["value_counts"]);
    /// Nulls of each column.
    pub const NULL_VALUE_COUNTS: Known = known(110, &["null_value_counts"]);
    /// NaNs of each column.
    pub const NAN_VALUE_COUNTS: Known = known(137, &["nan_value_counts"]);
    /// Lower bound of each column.
    pub const LOWER_BOUNDS: Known = known(125, &["lower_bounds"]);
    /// Upper bound of each column.
    pub const UPPER_BOUNDS: Known = known(128, &["upper_bounds"]);
    /// How the file is encrypted.
    pub const KEY_METADATA: Known = known(131, &["key_metadata"]);
    /// Where the file may be split.
    pub const SPLIT_OFFSETS: Known = known(132, &["split_offsets"]);
    /// Columns of an equality delete file.
    pub const EQUALITY_IDS: Known = known(135, &["equality_ids"]);
    /// The sort order of the file's rows.
    pub const SORT_ORDER_ID: Known = known(140, &["sort_order_id"]);
    /// v3: row id of the first row.
    pub const FIRST_ROW_ID: Known = known(142, &["first_row_id"]);
    /// The one data file that a delete file is about.
    pub const REFERENCED_DATA_FILE: Known = known(143, &["referenced_data_file"]);
    /// v3: where a deletion vector begins.
    pub const CONTENT_OFFSET: Known = known(144, &["content_offset"]);
    /// v3: how long a deletion vector is.
    pub const CONTENT_SIZE: Known = known(145, &["content_size_in_bytes"]);
}
