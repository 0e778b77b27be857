//! Generates manifests for tests: a table with a partition field of each kind, and random entries.

use icefield_format::Result;
use icefield_format::avro::{Codec, Compression};
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, ManifestEntry, ManifestFile, Status};
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType as P, Schema};
use icefield_format::value::Value;
use proptest::option;
use proptest::prelude::*;

pub const SNAPSHOT: i64 = 77;
pub const SYNC: [u8; 16] = *b"0123456789abcdef";

/// The types of the partition fields, which are all identities. Their names need sanitizing.
pub fn types() -> Vec<P> {
    vec![
        P::Boolean,
        P::Int,
        P::Long,
        P::Float,
        P::Double,
        P::Decimal { precision: 9, scale: 2 },
        P::Date,
        P::Time,
        P::Timestamp,
        P::Timestamptz,
        P::TimestampNs,
        P::String,
        P::Uuid,
        P::Fixed(3),
        P::Binary,
        P::Decimal { precision: 38, scale: 0 },
        P::Fixed(3),
    ]
}

pub fn table() -> (Schema, PartitionSpec) {
    let types = types();
    let ids = || (1..).zip(&types);
    let fields = ids().map(|(id, ty)| Field::optional(id, format!("{id} column.{id}"), ty.clone())).collect();
    let partition = ids().map(|(id, _)| PartitionField {
        source_ids: vec![id],
        field_id: 999 + id,
        name: format!("{id} field-{id}"),
        transform: Transform::Identity,
    });
    (Schema::new(3, fields).unwrap(), PartitionSpec { spec_id: 5, fields: partition.collect() })
}

fn value(ty: &P) -> BoxedStrategy<Value> {
    match ty {
        P::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        P::Int | P::Date => any::<i32>().prop_map(Value::Int).boxed(),
        P::Float => any::<f32>().prop_map(Value::Float).boxed(),
        P::Double => any::<f64>().prop_map(Value::Double).boxed(),
        P::Decimal { precision, .. } => {
            let most = 10i128.pow(u32::from(*precision)) - 1;
            (-most..=most).prop_map(Value::Decimal).boxed()
        }
        P::String => any::<String>().prop_map(Value::String).boxed(),
        P::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        P::Fixed(size) => prop::collection::vec(any::<u8>(), *size as usize).prop_map(Value::Binary).boxed(),
        P::Binary => prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Binary).boxed(),
        _ => any::<i64>().prop_map(Value::Long).boxed(),
    }
}

fn counts() -> impl Strategy<Value = Option<Vec<(i32, i64)>>> {
    option::of(prop::collection::vec((any::<i32>(), any::<i64>().prop_map(|n| n >> (n & 63))), 0..6))
}

fn bounds() -> impl Strategy<Value = Option<Vec<(i32, Vec<u8>)>>> {
    option::of(prop::collection::vec((0..200i32, prop::collection::vec(any::<u8>(), 0..80)), 0..6))
}

prop_compose! {
    fn file(content: ManifestContent)(
        partition in types().iter().map(|ty| option::of(value(ty))).collect::<Vec<_>>(),
        texts in (".{0,30}", option::of(".{0,20}"), option::of(prop::collection::vec(any::<u8>(), 0..9))),
        numbers in (0..i64::from(i32::MAX), any::<i64>(), option::of(any::<i32>()), option::of(0..1i64 << 40)),
        sizes in counts(), values in counts(), nulls in counts(), nans in counts(), lower in bounds(), upper in bounds(),
        splits in option::of(prop::collection::vec(any::<i64>(), 0..5)),
        ids in option::of(prop::collection::vec(any::<i32>(), 0..5)),
        kind in 1..3i32, place in option::of((any::<i64>(), any::<i64>())),
    ) -> DataFile {
        let content = if content == ManifestContent::Data { FileContent::Data } else { FileContent::from_id(kind).unwrap() };
        let positions = content == FileContent::PositionDeletes;
        DataFile {
            content, partition, file_path: texts.0, file_format: "PARQUET".to_owned(), partition_spec_id: 5,
            record_count: numbers.0, file_size_in_bytes: numbers.1, column_sizes: sizes, value_counts: values,
            null_value_counts: nulls, nan_value_counts: nans, lower_bounds: lower, upper_bounds: upper, key_metadata: texts.2,
            split_offsets: splits, equality_ids: ids, sort_order_id: numbers.2,
            first_row_id: numbers.3.filter(|_| content == FileContent::Data), referenced_data_file: texts.1.filter(|_| positions),
            content_offset: place.filter(|_| positions).map(|place| place.0),
            content_size_in_bytes: place.filter(|_| positions).map(|place| place.1),
        }
    }
}

prop_compose! {
    fn entry(content: ManifestContent)(file in file(content), status in 0..3i32, numbers in any::<[i64; 3]>(), new: bool) -> ManifestEntry {
        let status = Status::from_id(status).unwrap();
        let inherits = new && status == Status::Added;
        let snapshot_id = if status == Status::Added { SNAPSHOT } else { numbers[0] };
        ManifestEntry {
            status,
            snapshot_id: Some(snapshot_id),
            sequence_number: (!inherits).then_some(numbers[1]),
            file_sequence_number: (!inherits).then_some(numbers[2]),
            file: DataFile { first_row_id: file.first_row_id.filter(|_| status != Status::Added), ..file },
        }
    }
}

/// Version, content, codec, and entries with the fields of this version.
pub fn manifest() -> impl Strategy<Value = (u8, ManifestContent, Codec, Vec<ManifestEntry>)> {
    let content = prop_oneof![Just(ManifestContent::Data), Just(ManifestContent::Deletes)];
    let codec = prop_oneof![Just(Codec::Null), Just(Codec::Deflate), Just(Codec::Snappy), Just(Codec::Zstandard)];
    (1..4u8, content, codec).prop_flat_map(|(version, content, codec)| {
        let content = if version == 1 { ManifestContent::Data } else { content };
        let entries = prop::collection::vec(entry(content).prop_map(move |entry| of_version(version, entry)), 0..12);
        (Just(version), Just(content), Just(codec), entries)
    })
}

fn of_version(version: u8, mut entry: ManifestEntry) -> ManifestEntry {
    if version < 3 {
        entry.file.first_row_id = None;
        entry.file.content_offset = None;
        entry.file.content_size_in_bytes = None;
    }
    if version < 2 {
        entry.sequence_number = None;
        entry.file_sequence_number = None;
        entry.file.equality_ids = None;
    }
    entry
}

pub fn write(
    version: u8,
    content: ManifestContent,
    codec: Codec,
    entries: &[ManifestEntry],
) -> Result<(Vec<u8>, ManifestFile)> {
    let (schema, spec) = table();
    let mut writer = ManifestWriter::new(ManifestOptions {
        format_version: version,
        content,
        schema: &schema,
        spec: &spec,
        snapshot_id: SNAPSHOT,
        first_row_id: None,
        compression: Compression { codec, level: None },
        sync: SYNC,
    })?;
    entries.iter().try_for_each(|entry| writer.add(entry))?;
    writer.finish("file:/m.avro")
}

/// A few plain entries.
pub fn plain_entries(count: usize) -> Vec<ManifestEntry> {
    let entry = |number: usize| ManifestEntry {
        status: Status::Added,
        snapshot_id: Some(SNAPSHOT),
        sequence_number: None,
        file_sequence_number: None,
        file: DataFile {
            file_path: format!("file:/data/{number}.parquet"),
            file_format: "PARQUET".to_owned(),
            partition_spec_id: 5,
            partition: types().iter().map(|ty| (*ty == P::Int).then_some(Value::Int(number as i32 % 7))).collect(),
            record_count: 10,
            file_size_in_bytes: 1000,
            value_counts: Some((1..=10).map(|id| (id, 10)).collect()),
            lower_bounds: Some((1..=10).map(|id| (id, number.to_le_bytes().to_vec())).collect()),
            upper_bounds: Some((1..=10).map(|id| (id, number.to_le_bytes().to_vec())).collect()),
            split_offsets: Some(vec![4]),
            ..DataFile::default()
        },
    };
    (0..count).map(entry).collect()
}
