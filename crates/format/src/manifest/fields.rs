//! Declares the fields of manifest entries, data files and manifest lists ("Manifest Entry Fields", "Data File Fields",
//! "Manifest List Files").
//!
//! Each field of an entry or its file is declared once, in [`entry_fields!`]. Everything else is generated from the
//! declaration: its column in [`Entries`](super::Entries), its value in [`ManifestEntry`](super::ManifestEntry) or
//! [`DataFile`](super::DataFile), its flag in [`Metrics`](super::Metrics), how it is read and written, batches, and the
//! written schemas. The type of the value selects the code that reads it (`read_field.rs`) and writes it
//! (`write/field.rs`). Only [`DATA_FILE`] and [`PARTITION`], which are structs, are handled separately.

/// A field: its id and its names; the first name is the one written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Field id.
    pub(super) id: i32,
    /// Names under which files without field ids may store it.
    pub(super) names: &'static [&'static str],
}

impl Known {
    /// The name that is written.
    pub(super) fn name(self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

const fn known(id: i32, names: &'static [&'static str]) -> Known {
    Known { id, names }
}

/// Field of an entry, after the declared ones: the file.
pub(super) const DATA_FILE: Known = known(2, &["data_file"]);
/// Field of a file, before [`EntryField::record_count`]: the partition tuple.
pub(super) const PARTITION: Known = known(102, &["partition"]);
/// Field of a file in v1, before [`EntryField::column_sizes`]: required, although no reader uses it.
pub(super) const BLOCK_SIZE: Known = known(105, &["block_size_in_bytes"]);

/// Passes the declared fields of a group to a macro, in the order in which they are written: `all`, fields of the
/// `entry` itself, fields of its `file`, or the `metric` maps of a file.
///
/// A line is `name: value type => column type = id [ids of elements] since version, description`, where the description
/// is part of the written schema. `file` and `metric` are both fields of a file.
macro_rules! entry_fields {
    ($group:tt, $then:ident) => { select_fields! { $group $then []
        entry {
            /// Whether the file was added, kept or deleted; in columns, the id of a [`Status`].
            status: Status => Int32Array = 0 since 1, ""
        }
        entry {
            /// The snapshot that added or deleted the file; if null, inherited from the manifest list.
            snapshot_id: Option<i64> => Int64Array = 1 since 1, ""
        }
        entry {
            /// Data sequence number; if null, inherited from the manifest list.
            sequence_number: Option<i64> => Int64Array = 3 since 2, ""
        }
        entry {
            /// File sequence number; if null, inherited from the manifest list.
            file_sequence_number: Option<i64> => Int64Array = 4 since 2, ""
        }
        file {
            /// Content of the file; in columns, the id of a [`FileContent`].
            content: FileContent => Int32Array = 134 since 2,
            "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
        }
        file {
            /// Location of the file.
            file_path: String => StringArray = 100 since 1, "Location URI with FS scheme"
        }
        file {
            /// Name of the file format as written (`parquet`, `PARQUET`); see
            /// [`DataFile::format`](super::DataFile::format).
            file_format: String => StringArray = 101 since 1, "File format name: avro, orc, or parquet"
        }
        file {
            /// Number of rows.
            record_count: i64 => Int64Array = 103 since 1, "Number of records in the file"
        }
        file {
            /// Size of the file in bytes.
            file_size_in_bytes: i64 => Int64Array = 104 since 1, "Total file size in bytes"
        }
        metric {
            /// Size of each column in bytes, by field id.
            column_sizes: Option<Vec<(i32, i64)>> => Option<MetricMap> = 108 [117, 118] since 1,
            "Map of column id to total size on disk"
        }
        metric {
            /// Number of values of each column, including nulls and NaNs.
            value_counts: Option<Vec<(i32, i64)>> => Option<MetricMap> = 109 [119, 120] since 1,
            "Map of column id to total count, including null and NaN"
        }
        metric {
            /// Number of nulls of each column.
            null_value_counts: Option<Vec<(i32, i64)>> => Option<MetricMap> = 110 [121, 122] since 1,
            "Map of column id to null value count"
        }
        metric {
            /// Number of NaNs of each column.
            nan_value_counts: Option<Vec<(i32, i64)>> => Option<MetricMap> = 137 [138, 139] since 1,
            "Map of column id to number of NaN values in the column"
        }
        metric {
            /// Lower bound of each column, as a serialized single value.
            lower_bounds: Option<Vec<(i32, Vec<u8>)>> => Option<MetricMap> = 125 [126, 127] since 1,
            "Map of column id to lower bound"
        }
        metric {
            /// Upper bound of each column, as a serialized single value.
            upper_bounds: Option<Vec<(i32, Vec<u8>)>> => Option<MetricMap> = 128 [129, 130] since 1,
            "Map of column id to upper bound"
        }
        file {
            /// Encryption key metadata of the file.
            key_metadata: Option<Vec<u8>> => BinaryArray = 131 since 1, "Encryption key metadata blob"
        }
        file {
            /// Offsets at which the file may be split, in ascending order.
            split_offsets: Option<Vec<i64>> => ListArray = 132 [133] since 1, "Splittable offsets"
        }
        file {
            /// Field ids of the columns that an equality delete file compares.
            equality_ids: Option<Vec<i32>> => ListArray = 135 [136] since 2, "Equality comparison field IDs"
        }
        file {
            /// Id of the sort order of the rows.
            sort_order_id: Option<i32> => Int32Array = 140 since 1, "Sort order ID"
        }
        file {
            /// Row id of the first row in the file.
            first_row_id: Option<i64> => Int64Array = 142 since 3,
            "The first row ID assigned to the first row in the data file"
        }
        file {
            /// The only data file that the deletes apply to.
            referenced_data_file: Option<String> => StringArray = 143 since 2,
            "Fully qualified location (URI with FS scheme) of a data file that all deletes reference"
        }
        file {
            /// Offset of a deletion vector in its Puffin file.
            content_offset: Option<i64> => Int64Array = 144 since 3, "The offset in the file where the content starts"
        }
        file {
            /// Length of a deletion vector in bytes.
            content_size_in_bytes: Option<i64> => Int64Array = 145 since 3,
            "The length of referenced content stored in the file"
        }
    } };
}

/// Selects the fields of one group; see [`entry_fields!`].
macro_rules! select_fields {
    ($group:tt $then:ident [$($kept:tt)*]) => { $then! { $($kept)* } };
    (all $then:ident [] $($fields:tt)*) => { $then! { $($fields)* } };
    (file $then:ident [$($kept:tt)*] file $field:tt $($rest:tt)*) => {
        select_fields! { file $then [$($kept)* file $field] $($rest)* }
    };
    (file $then:ident [$($kept:tt)*] metric $field:tt $($rest:tt)*) => {
        select_fields! { file $then [$($kept)* metric $field] $($rest)* }
    };
    (entry $then:ident [$($kept:tt)*] entry $field:tt $($rest:tt)*) => {
        select_fields! { entry $then [$($kept)* entry $field] $($rest)* }
    };
    (metric $then:ident [$($kept:tt)*] metric $field:tt $($rest:tt)*) => {
        select_fields! { metric $then [$($kept)* metric $field] $($rest)* }
    };
    ($group:tt $then:ident [$($kept:tt)*] $other:ident $field:tt $($rest:tt)*) => {
        select_fields! { $group $then [$($kept)*] $($rest)* }
    };
}

/// The record that contains a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Entry,
    File,
}

macro_rules! enumeration {
    ($($group:ident {
        $(#[$doc:meta])*
        $name:ident: $value:ty => $column:ty = $id:literal $([$($nested:literal),*])? since $since:literal, $text:literal
    })*) => {
        /// A declared field of an entry or of its file.
        #[allow(non_camel_case_types)] // The variants are the names of the specification.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum EntryField {
            $($(#[$doc])* $name,)*
        }

        impl EntryField {
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];

            /// Name in the specification.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Field id.
            pub(super) const fn id(self) -> i32 {
                match self { $(Self::$name => $id,)* }
            }

            /// Ids of a list's elements, or of a map's keys and values.
            pub(super) const fn nested_ids(self) -> &'static [i32] {
                match self { $(Self::$name => &[$($($nested),*)?],)* }
            }

            /// The format version that introduced the field.
            pub(super) const fn since(self) -> u8 {
                match self { $(Self::$name => $since,)* }
            }

            /// Description of the field in the written schema.
            pub(super) const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The record that contains the field.
            pub(super) const fn record(self) -> Record {
                match self { $(Self::$name => record_of!($group),)* }
            }
        }
    };
}

macro_rules! record_of {
    (entry) => {
        Record::Entry
    };
    ($file_or_metric:ident) => {
        Record::File
    };
}

entry_fields!(all, enumeration);

impl EntryField {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// Returns the fields of a record.
    pub(super) fn of(record: Record) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |field| field.record() == record)
    }
}

/// Fields of a manifest list.
pub(super) mod list {
    use super::{Known, known};

    /// Location of the manifest.
    pub(in crate::manifest) const PATH: Known = known(500, &["manifest_path"]);
    /// Length of the manifest in bytes.
    pub(in crate::manifest) const LENGTH: Known = known(501, &["manifest_length"]);
    /// The partition spec that the manifest was written with.
    pub(in crate::manifest) const SPEC_ID: Known = known(502, &["partition_spec_id"]);
    /// Data or deletes.
    pub(in crate::manifest) const CONTENT: Known = known(517, &["content"]);
    /// Sequence number of the snapshot that added the manifest.
    pub(in crate::manifest) const SEQUENCE_NUMBER: Known = known(515, &["sequence_number"]);
    /// Smallest data sequence number of its live files.
    pub(in crate::manifest) const MIN_SEQUENCE_NUMBER: Known = known(516, &["min_sequence_number"]);
    /// The snapshot that added the manifest.
    pub(in crate::manifest) const SNAPSHOT_ID: Known = known(503, &["added_snapshot_id"]);
    /// Number of entries with status added.
    pub(in crate::manifest) const ADDED_FILES: Known = known(504, &["added_files_count", "added_data_files_count"]);
    /// Number of entries with status existing.
    pub(in crate::manifest) const EXISTING_FILES: Known =
        known(505, &["existing_files_count", "existing_data_files_count"]);
    /// Number of entries with status deleted.
    pub(in crate::manifest) const DELETED_FILES: Known =
        known(506, &["deleted_files_count", "deleted_data_files_count"]);
    /// Number of rows in added files.
    pub(in crate::manifest) const ADDED_ROWS: Known = known(512, &["added_rows_count"]);
    /// Number of rows in existing files.
    pub(in crate::manifest) const EXISTING_ROWS: Known = known(513, &["existing_rows_count"]);
    /// Number of rows in deleted files.
    pub(in crate::manifest) const DELETED_ROWS: Known = known(514, &["deleted_rows_count"]);
    /// Summaries of the partition fields.
    pub(in crate::manifest) const PARTITIONS: Known = known(507, &["partitions"]);
    /// Whether any partition value is null.
    pub(in crate::manifest) const CONTAINS_NULL: Known = known(509, &["contains_null"]);
    /// Whether any partition value is NaN.
    pub(in crate::manifest) const CONTAINS_NAN: Known = known(518, &["contains_nan"]);
    /// Smallest partition value.
    pub(in crate::manifest) const LOWER_BOUND: Known = known(510, &["lower_bound"]);
    /// Largest partition value.
    pub(in crate::manifest) const UPPER_BOUND: Known = known(511, &["upper_bound"]);
    /// Encryption key metadata of the manifest.
    pub(in crate::manifest) const KEY_METADATA: Known = known(519, &["key_metadata"]);
    /// v3: first row id for rows without one.
    pub(in crate::manifest) const FIRST_ROW_ID: Known = known(520, &["first_row_id"]);
}
