//! Written manifests, read by us and by the `apache-avro` crate.

use std::sync::atomic::{AtomicUsize, Ordering};

use apache_avro::types::Value as Avro;
use icefield_format::Limits;
use icefield_format::avro::{Codec, Compression};
use icefield_format::manifest::write::{ListOptions, ListWriter};
use icefield_format::manifest::{
    FieldSummary, ManifestContent, ManifestEntry, ManifestFile, Metrics, ReadOptions, Status, entries, list,
};
use icefield_format::value::Value;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::manifests::made;

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An Avro value in a simple form, without branch names and logical types.
fn plain(value: &Avro) -> Json {
    match value {
        Avro::Null => Json::Null,
        Avro::Boolean(value) => json!(value),
        Avro::Int(value) | Avro::Date(value) | Avro::TimeMillis(value) => json!(value),
        Avro::Long(value)
        | Avro::TimeMicros(value)
        | Avro::TimestampMicros(value)
        | Avro::TimestampNanos(value)
        | Avro::LocalTimestampMicros(value)
        | Avro::LocalTimestampNanos(value) => json!(value),
        Avro::Float(value) => json!(value.to_bits()),
        Avro::Double(value) => json!(value.to_bits()),
        Avro::Bytes(value) | Avro::Fixed(_, value) => json!(hex(value)),
        Avro::String(value) => json!(value),
        Avro::Uuid(value) => json!(hex(value.as_bytes())),
        Avro::Decimal(value) => json!(unscaled(&Vec::try_from(value).unwrap()).to_string()),
        Avro::Union(_, value) => plain(value),
        Avro::Array(values) => values.iter().map(plain).collect(),
        Avro::Record(fields) => fields.iter().map(|(_, value)| plain(value)).collect(),
        other => panic!("unexpected {other:?}"),
    }
}

fn unscaled(bytes: &[u8]) -> i128 {
    let sign = if bytes.first().is_some_and(|first| *first > 127) { -1 } else { 0 };
    bytes.iter().fold(sign, |number, byte| number << 8 | i128::from(*byte))
}

fn plain_value(value: &Value) -> Json {
    match value {
        Value::Boolean(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Long(value) => json!(value),
        Value::Float(value) => json!(value.to_bits()),
        Value::Double(value) => json!(value.to_bits()),
        Value::Decimal(value) => json!(value.to_string()),
        Value::String(value) => json!(value),
        Value::Uuid(value) => json!(hex(value)),
        Value::Binary(value) => json!(hex(value)),
        other => panic!("unexpected {other:?}"),
    }
}

/// An entry with its fields in the order of its version.
fn plain_entry(version: u8, entry: &ManifestEntry) -> Json {
    let file = &entry.file;
    let bounds = |map: &Option<Vec<(i32, Vec<u8>)>>| {
        json!(map.as_ref().map(|map| map.iter().map(|(key, value)| json!([key, hex(value)])).collect::<Vec<_>>()))
    };
    let mut data_file = Vec::new();
    if version > 1 {
        data_file.push(json!(file.content.id()));
    }
    data_file.extend([json!(file.file_path), json!(file.file_format)]);
    data_file.push(file.partition.iter().map(|value| value.as_ref().map_or(Json::Null, plain_value)).collect());
    data_file.extend([json!(file.record_count), json!(file.file_size_in_bytes)]);
    if version == 1 {
        data_file.push(json!(64 << 20));
    }
    data_file.extend(
        [&file.column_sizes, &file.value_counts, &file.null_value_counts, &file.nan_value_counts].map(|map| json!(map)),
    );
    data_file.extend([bounds(&file.lower_bounds), bounds(&file.upper_bounds)]);
    data_file.extend([json!(file.key_metadata.as_ref().map(hex)), json!(file.split_offsets)]);
    if version > 1 {
        data_file.push(json!(file.equality_ids));
    }
    data_file.push(json!(file.sort_order_id));
    if version > 2 {
        data_file.push(json!(file.first_row_id));
    }
    if version > 1 {
        data_file.push(json!(file.referenced_data_file));
    }
    if version > 2 {
        data_file.extend([json!(file.content_offset), json!(file.content_size_in_bytes)]);
    }
    let mut whole = vec![json!(entry.status.id()), json!(entry.snapshot_id)];
    if version > 1 {
        whole.extend([json!(entry.sequence_number), json!(entry.file_sequence_number)]);
    }
    whole.push(Json::Array(data_file));
    Json::Array(whole)
}

/// Whether the other reader is built with this codec.
fn oracle_reads(codec: Codec) -> bool {
    matches!(codec, Codec::Null | Codec::Deflate)
}

proptest! {
    #[test]
    fn manifests_come_back((version, content, codec, written) in made::manifest()) {
        let (bytes, described) = made::write(version, content, codec, &written).unwrap();
        let (schema, spec) = made::table();
        let ty = spec.partition_type(&schema);
        for partition_type in [Some(&ty), None] {
            let options = ReadOptions { partition_type, metrics: Metrics::all(), ..ReadOptions::default() };
            let read = entries::read(&bytes, &options, &Limits::default()).unwrap();
            prop_assert_eq!(read.header.format_version, version);
            prop_assert_eq!(read.header.content, content);
            prop_assert_eq!(read.header.partition_spec_id, Some(5));
            let rows: Vec<_> = (0..read.len()).map(|row| read.entry(row, 5).unwrap()).collect();
            prop_assert_eq!(&rows, &written);
        }
        let files = |status: Status| written.iter().filter(|entry| entry.status == status).count() as i32;
        prop_assert_eq!(described.added_files_count, Some(files(Status::Added)));
        prop_assert_eq!(described.manifest_length, bytes.len() as i64);
        if oracle_reads(codec) {
            let reader = apache_avro::Reader::new(&bytes[..]).unwrap();
            let found: Vec<_> = reader.map(|value| plain(&value.unwrap())).collect();
            let expected: Vec<_> = written.iter().map(|entry| plain_entry(version, entry)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_partition_filter_leaves_out_whole_entries((version, content, codec, written) in made::manifest(), live_only: bool) {
        let (bytes, _) = made::write(version, content, codec, &written).unwrap();
        let (schema, spec) = made::table();
        let ty = spec.partition_type(&schema);
        let wanted = |tuple: &[Option<Value>]| matches!(tuple, [Some(Value::Boolean(true)) | None, ..]);
        let asked = AtomicUsize::new(0);
        let filter = |tuple: &[Option<Value>]| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(wanted(tuple))
        };
        let options = ReadOptions {
            partition_type: Some(&ty), metrics: Metrics::all(), live_only, partition_filter: Some(&filter), ..ReadOptions::default()
        };
        let read = entries::read(&bytes, &options, &Limits::default()).unwrap();
        let kept = |entry: &&ManifestEntry| wanted(&entry.file.partition) && (!live_only || entry.status.is_live());
        let expected: Vec<_> = written.iter().filter(kept).cloned().collect();
        let rows: Vec<_> = (0..read.len()).map(|row| read.entry(row, 5).unwrap()).collect();
        prop_assert_eq!(rows, expected);
        prop_assert!(asked.load(Ordering::Relaxed) <= written.len());
    }

    #[test]
    fn some_metrics_are_those_of_all((version, content, codec, written) in made::manifest(), ids in prop::collection::vec(0..200i32, 0..12)) {
        let (bytes, _) = made::write(version, content, codec, &written).unwrap();
        let options = ReadOptions { metrics: Metrics::for_filter(ids.clone()), ..ReadOptions::default() };
        let read = entries::read(&bytes, &options, &Limits::default()).unwrap();
        prop_assert!(read.column_sizes.is_none());
        let lower = read.lower_bounds.as_ref().unwrap();
        for (row, entry) in written.iter().enumerate() {
            let all = entry.file.lower_bounds.as_ref();
            let expected = all.map(|all| all.iter().filter(|(id, _)| ids.contains(id)).cloned().collect::<Vec<_>>());
            prop_assert_eq!(lower.bounds_of(row), expected);
        }
        for id in ids {
            let column = lower.bounds(id);
            for (row, entry) in written.iter().enumerate() {
                let first = entry.file.lower_bounds.iter().flatten().find(|(key, _)| *key == id).map(|(_, bound)| bound.as_slice());
                let found = arrow_array::Array::is_valid(&column, row).then(|| column.value(row));
                prop_assert_eq!(found, first);
            }
        }
    }

    #[test]
    fn manifest_lists_come_back(version in 1..4u8, codec in 0..4usize, numbers in prop::collection::vec(any::<[u32; 4]>(), 0..8), bound: Option<Vec<u8>>) {
        let codec = [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard][codec];
        let mut writer = ListWriter::new(ListOptions {
            format_version: version, snapshot_id: made::SNAPSHOT, parent_snapshot_id: Some(3), sequence_number: 9,
            first_row_id: Some(100), compression: Compression { codec, level: None }, sync: made::SYNC,
        }).unwrap();
        for n in &numbers {
            let summary = FieldSummary {
                contains_null: n[0] % 2 == 0, contains_nan: (n[1] % 3 != 0).then_some(n[1] % 2 == 0),
                lower_bound: bound.clone(), upper_bound: None,
            };
            let content = if version > 1 && n[2] % 2 == 0 { ManifestContent::Deletes } else { ManifestContent::Data };
            writer.add(&ManifestFile {
                manifest_path: format!("file:/{}.avro", n[0]), manifest_length: n[1].into(), partition_spec_id: 1, content,
                sequence_number: ManifestFile::UNASSIGNED, min_sequence_number: ManifestFile::UNASSIGNED,
                added_snapshot_id: made::SNAPSHOT, added_files_count: Some(1), existing_files_count: Some(2),
                deleted_files_count: Some(3), added_rows_count: Some(n[2].into()), existing_rows_count: Some(n[3].into()),
                deleted_rows_count: Some(6), partitions: (n[3] % 4 != 0).then(|| vec![summary; (n[3] % 3) as usize]),
                key_metadata: bound.clone(), first_row_id: None,
            }).unwrap();
        }
        let written = writer.finish().unwrap();
        let read = list::read(&written.bytes, &Limits::default()).unwrap();
        prop_assert_eq!(&read.manifests, &written.manifests);
        prop_assert_eq!(read.header.parent_snapshot_id, Some(3));
        prop_assert_eq!(read.header.first_row_id, (version > 2).then_some(100));
        if oracle_reads(codec) {
            let reader = apache_avro::Reader::new(&written.bytes[..]).unwrap();
            let paths: Vec<_> = reader.map(|value| plain(&value.unwrap())[0].clone()).collect();
            let expected: Vec<_> = numbers.iter().map(|n| json!(format!("file:/{}.avro", n[0]))).collect();
            prop_assert_eq!(paths, expected);
        }
    }
}
