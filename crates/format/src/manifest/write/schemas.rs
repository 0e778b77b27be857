//! Schemas of written manifests and manifest lists, as Iceberg types; their Avro schemas are derived from these.

use crate::types::{Field, ListType, PrimitiveType as P, StructType, Type};

use crate::manifest::fields::{BLOCK_SIZE, DATA_FILE, EntryField, Known, PARTITION, Record, list};

fn required(known: Known, ty: impl Into<Type>, doc: &str) -> Field {
    let field = Field::required(known.id, known.name(), ty);
    if doc.is_empty() { field } else { field.with_doc(doc) }
}

fn optional(known: Known, ty: impl Into<Type>, doc: &str) -> Field {
    Field { required: false, ..required(known, ty, doc) }
}

/// Type of a written manifest entry in a format version.
pub fn entry_type(version: u8, partition: StructType) -> StructType {
    let mut fields: Vec<_> = written(Record::Entry, version).map(EntryField::written).collect();
    fields.push(required(DATA_FILE, file_type(version, partition), ""));
    StructType::new(fields)
}

/// Type of a written data or delete file in a format version.
pub fn file_type(version: u8, partition: StructType) -> StructType {
    let mut fields = Vec::new();
    let mut partition = Some(partition);
    for field in written(Record::File, version) {
        match field {
            EntryField::record_count => {
                let text = if version >= 2 { "Partition data tuple, schema based on the partition spec" } else { "" };
                fields.extend(partition.take().map(|partition| required(PARTITION, partition, text)));
            }
            EntryField::column_sizes if version == 1 => fields.push(required(BLOCK_SIZE, P::Long, "")),
            _ => {}
        }
        fields.push(field.written());
    }
    StructType::new(fields)
}

/// The fields of a record in a format version.
fn written(record: Record, version: u8) -> impl Iterator<Item = EntryField> {
    EntryField::of(record).filter(move |field| field.since() <= version)
}

/// Type of a manifest in a manifest list. Since v2 the counts come before the summaries and are required.
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
