//! The schemas of what is written, as Iceberg types; their Avro form is made of these.

use crate::types::{Field, ListType, MapType, PrimitiveType as P, StructType, Type};

use crate::manifest::fields::{Known, entry, file, list};

fn required(known: Known, ty: impl Into<Type>, doc: &str) -> Field {
    let field = Field::required(known.id, known.name(), ty);
    if doc.is_empty() { field } else { field.with_doc(doc) }
}

fn optional(known: Known, ty: impl Into<Type>, doc: &str) -> Field {
    Field { required: false, ..required(known, ty, doc) }
}

/// An entry of a manifest.
pub(super) fn entry_type(version: u8, partition: StructType) -> StructType {
    let mut fields = vec![required(entry::STATUS, P::Int, ""), optional(entry::SNAPSHOT_ID, P::Long, "")];
    if version >= 2 {
        fields.push(optional(entry::SEQUENCE_NUMBER, P::Long, ""));
        fields.push(optional(entry::FILE_SEQUENCE_NUMBER, P::Long, ""));
    }
    fields.push(required(entry::DATA_FILE, file_type(version, partition), ""));
    StructType::new(fields)
}

fn file_type(version: u8, partition: StructType) -> StructType {
    let mut fields = Vec::new();
    if version >= 2 {
        let doc = "Contents of the file: 0=data, 1=position deletes, 2=equality deletes";
        fields.push(required(file::CONTENT, P::Int, doc));
    }
    fields.push(required(file::FILE_PATH, P::String, "Location URI with FS scheme"));
    fields.push(required(file::FILE_FORMAT, P::String, "File format name: avro, orc, or parquet"));
    let doc = if version >= 2 { "Partition data tuple, schema based on the partition spec" } else { "" };
    fields.push(required(file::PARTITION, partition, doc));
    fields.push(required(file::RECORD_COUNT, P::Long, "Number of records in the file"));
    fields.push(required(file::FILE_SIZE, P::Long, "Total file size in bytes"));
    if version == 1 {
        fields.push(required(file::BLOCK_SIZE, P::Long, ""));
    }
    fields.extend(metrics());
    fields.push(optional(file::KEY_METADATA, P::Binary, "Encryption key metadata blob"));
    fields.push(optional(file::SPLIT_OFFSETS, ListType::required(133, P::Long), "Splittable offsets"));
    if version >= 2 {
        fields.push(optional(file::EQUALITY_IDS, ListType::required(136, P::Int), "Equality comparison field IDs"));
    }
    fields.push(optional(file::SORT_ORDER_ID, P::Int, "Sort order ID"));
    if version >= 3 {
        fields.push(optional(
            file::FIRST_ROW_ID,
            P::Long,
            "The first row ID assigned to the first row in the data file",
        ));
    }
    if version >= 2 {
        let doc = "Fully qualified location (URI with FS scheme) of a data file that all deletes reference";
        fields.push(optional(file::REFERENCED_DATA_FILE, P::String, doc));
    }
    if version >= 3 {
        fields.push(optional(file::CONTENT_OFFSET, P::Long, "The offset in the file where the content starts"));
        fields.push(optional(file::CONTENT_SIZE, P::Long, "The length of referenced content stored in the file"));
    }
    StructType::new(fields)
}

fn metrics() -> [Field; 6] {
    let counts = |key, value| MapType::required(key, P::Int, value, P::Long);
    let bounds = |key, value| MapType::required(key, P::Int, value, P::Binary);
    [
        optional(file::COLUMN_SIZES, counts(117, 118), "Map of column id to total size on disk"),
        optional(file::VALUE_COUNTS, counts(119, 120), "Map of column id to total count, including null and NaN"),
        optional(file::NULL_VALUE_COUNTS, counts(121, 122), "Map of column id to null value count"),
        optional(file::NAN_VALUE_COUNTS, counts(138, 139), "Map of column id to number of NaN values in the column"),
        optional(file::LOWER_BOUNDS, bounds(126, 127), "Map of column id to lower bound"),
        optional(file::UPPER_BOUNDS, bounds(129, 130), "Map of column id to upper bound"),
    ]
}

/// A manifest of a manifest list. From v2 on the counts come before the summaries and are required.
pub(super) fn manifest_type(version: u8) -> StructType {
    let mut fields = vec![
        required(list::PATH, P::String, "Location URI with FS scheme"),
        required(list::LENGTH, P::Long, "Total file size in bytes"),
        required(list::SPEC_ID, P::Int, "Spec ID used to write"),
    ];
    if version >= 2 {
        fields.push(required(list::CONTENT, P::Int, "Contents of the manifest: 0=data, 1=deletes"));
        fields.push(required(list::SEQUENCE_NUMBER, P::Long, "Sequence number when the manifest was added"));
        fields.push(required(list::MIN_SEQUENCE_NUMBER, P::Long, "Lowest sequence number in the manifest"));
    }
    fields.push(required(list::SNAPSHOT_ID, P::Long, "Snapshot ID that added the manifest"));
    let counted = |mut field: Field| {
        field.required = version >= 2;
        field
    };
    fields.extend(
        [
            required(list::ADDED_FILES, P::Int, "Added entry count"),
            required(list::EXISTING_FILES, P::Int, "Existing entry count"),
            required(list::DELETED_FILES, P::Int, "Deleted entry count"),
        ]
        .map(counted),
    );
    let rows = [
        required(list::ADDED_ROWS, P::Long, "Added rows count"),
        required(list::EXISTING_ROWS, P::Long, "Existing rows count"),
        required(list::DELETED_ROWS, P::Long, "Deleted rows count"),
    ]
    .map(counted);
    let summaries = optional(list::PARTITIONS, ListType::required(508, summary_type()), "Summary for each partition");
    if version >= 2 {
        fields.extend(rows);
        fields.push(summaries);
    } else {
        fields.push(summaries);
        fields.extend(rows);
    }
    fields.push(optional(list::KEY_METADATA, P::Binary, "Encryption key metadata blob"));
    if version >= 3 {
        fields.push(optional(list::FIRST_ROW_ID, P::Long, "Starting row ID to assign to new rows in ADDED data files"));
    }
    StructType::new(fields)
}

fn summary_type() -> StructType {
    StructType::new(vec![
        required(list::CONTAINS_NULL, P::Boolean, "True if any file has a null partition value"),
        optional(list::CONTAINS_NAN, P::Boolean, "True if any file has a nan partition value"),
        optional(list::LOWER_BOUND, P::Binary, "Partition lower bound for all files"),
        optional(list::UPPER_BOUND, P::Binary, "Partition upper bound for all files"),
    ])
}
