//! Writing data files: rows, partitions, order, metrics, sizes, and cleanup.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use icefield_format::manifest::DataFile;
use icefield_format::metadata::StringMap;
use icefield_format::spec::{NullOrder, PartitionField, PartitionSpec, SortDirection, SortField, SortOrder};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema, StructType};
use icefield_format::value::Value;
use icefield_table::Error;
use icefield_table::storage::Storage;
use icefield_table::write::{BackgroundWriter, Distribution, TableWriter, WriterConfig, wire};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const ROOT: &str = "memory://write";

fn schema() -> Arc<Schema> {
    let inner = StructType::new(vec![Field::required(6, "x", PrimitiveType::Int)]);
    let fields = vec![
        Field::required(1, "id", PrimitiveType::Long),
        Field::optional(2, "name", PrimitiveType::String),
        Field::optional(3, "day", PrimitiveType::Date),
        Field::optional(4, "score", PrimitiveType::Double),
        Field::optional(5, "at", inner),
    ];
    Arc::new(Schema::new(0, fields).unwrap())
}

fn spec(fields: &[(i32, Transform)]) -> Arc<PartitionSpec> {
    let fields = fields.iter().enumerate().map(|(number, (source, transform))| PartitionField {
        source_ids: vec![*source],
        field_id: 1000 + number as i32,
        name: format!("p{number}"),
        transform: transform.clone(),
    });
    Arc::new(PartitionSpec { spec_id: 0, fields: fields.collect() })
}

/// Rows with ids `from..from + count`, whose columns are in another order than in the table.
fn batch(from: i64, count: i64) -> RecordBatch {
    let ids = from..from + count;
    let x: ArrayRef = Arc::new(Int32Array::from_iter_values(ids.clone().map(|id| id as i32)));
    let at = StructArray::from(vec![(Arc::new(ArrowField::new("x", DataType::Int32, true)), x)]);
    let score = ids.clone().map(|id| match id % 5 {
        0 => None,
        1 => Some(f64::NAN),
        _ => Some(id as f64),
    });
    RecordBatch::try_from_iter_with_nullable([
        ("at", Arc::new(at) as ArrayRef, true),
        ("score", Arc::new(score.collect::<Float64Array>()), true),
        (
            "name",
            Arc::new(
                ids.clone()
                    .map(|id| (id % 7 != 0).then(|| format!("name-{id:05}-{}", "x".repeat(20))))
                    .collect::<StringArray>(),
            ),
            true,
        ),
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone())), false),
        ("day", Arc::new(ids.map(|id| (id % 10 != 0).then_some((id % 4) as i32)).collect::<Date32Array>()), true),
    ])
    .unwrap()
}

fn config(name: &str, partition: Arc<PartitionSpec>) -> WriterConfig {
    WriterConfig::new(Storage::default(), format!("{ROOT}/{name}"), schema(), partition)
}

fn write(config: WriterConfig, batches: &[RecordBatch]) -> Vec<DataFile> {
    let mut writer = TableWriter::new(config, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap()
}

fn read(file: &DataFile) -> Vec<RecordBatch> {
    let bytes = Storage::default().read(&file.file_path).unwrap();
    assert_eq!(bytes.len() as i64, file.file_size_in_bytes);
    ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap().map(Result::unwrap).collect()
}

fn ids(file: &DataFile) -> Vec<i64> {
    let column =
        |batch: &RecordBatch| batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec();
    read(file).iter().flat_map(column).collect()
}

fn get<T: Clone>(map: &Option<Vec<(i32, T)>>, id: i32) -> Option<T> {
    map.as_ref().unwrap().iter().find(|(key, _)| *key == id).map(|(_, value)| value.clone())
}

#[test]
fn one_file_with_the_metrics_of_its_rows() {
    let files = write(config("plain", spec(&[])), &[batch(0, 60), batch(60, 40)]);
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(ids(file), (0..100).collect::<Vec<_>>());
    assert_eq!(file.record_count, 100);
    assert_eq!(get(&file.value_counts, 2), Some(100));
    assert_eq!(get(&file.null_value_counts, 2), Some(15));
    assert_eq!(get(&file.nan_value_counts, 4), Some(20));
    assert_eq!(get(&file.nan_value_counts, 1), None);
    assert_eq!(get(&file.lower_bounds, 2), Some(b"name-00001-xxxxx".to_vec()));
    assert_eq!(get(&file.upper_bounds, 2), Some(b"name-00099-xxxxy".to_vec()));
    assert_eq!(get(&file.lower_bounds, 4), Some(2_f64.to_le_bytes().to_vec()));
    assert_eq!(get(&file.upper_bounds, 4), Some(99_f64.to_le_bytes().to_vec()));
    assert_eq!(get(&file.upper_bounds, 6), Some(99_i32.to_le_bytes().to_vec()));
    assert_eq!(file.split_offsets, Some(vec![4]));
    // Columns in the file have the order and ids of the table.
    let bytes = Storage::default().read(&file.file_path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let found: Vec<_> = reader
        .parquet_schema()
        .columns()
        .iter()
        .map(|c| (c.path().string(), c.self_type().get_basic_info().id()))
        .collect();
    let expected = [("id", 1), ("name", 2), ("day", 3), ("score", 4), ("at.x", 6)];
    assert_eq!(found, expected.map(|(name, id)| (name.to_owned(), id)));
}

#[test]
fn partitions_hold_their_rows_and_no_others() {
    for distribution in [Distribution::Fanout, Distribution::Clustered] {
        let partition = spec(&[(3, Transform::Identity), (1, Transform::Bucket(3)), (2, Transform::Truncate(6))]);
        let name = format!("parts-{distribution:?}");
        let config = WriterConfig { distribution, ..config(&name, partition.clone()) };
        let files = write(config, &[batch(0, 500), batch(500, 500)]);
        let mut seen = Vec::new();
        for file in &files {
            for rows in read(file) {
                for row in 0..rows.num_rows() {
                    let id = rows.column_by_name("id").unwrap().as_primitive::<Int64Type>().value(row);
                    let days = rows.column_by_name("day").unwrap().as_primitive::<Date32Type>();
                    let day = days.is_valid(row).then(|| Value::Int(days.value(row)));
                    let names = rows.column_by_name("name").unwrap().as_string::<i32>();
                    let bucket =
                        Transform::Bucket(3).apply(&PrimitiveType::Long.into(), Some(&Value::Long(id))).unwrap();
                    let name = names.is_valid(row).then(|| Value::String(names.value(row)[..6].to_owned()));
                    assert_eq!(file.partition, [day, bucket, name]);
                    seen.push(id);
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..1000).collect::<Vec<_>>(), "{distribution:?}");
        if distribution == Distribution::Fanout {
            let distinct: std::collections::BTreeSet<String> =
                files.iter().map(|file| format!("{:?}", file.partition)).collect();
            assert_eq!(distinct.len(), files.len(), "one file a partition");
        }
        assert!(files[0].file_path.contains("/data/p0="), "{}", files[0].file_path);
    }
}

#[test]
fn many_partitions_stay_within_few_open_files_and_little_memory() {
    let limited =
        WriterConfig { open_files: 4, memory_bytes: 1 << 20, ..config("many", spec(&[(1, Transform::Identity)])) };
    let files = write(limited, &[batch(0, 300), batch(0, 300)]);
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    files.iter().for_each(|file| *rows.entry(format!("{:?}", file.partition)).or_default() += file.record_count);
    assert_eq!(rows.len(), 300);
    assert!(rows.values().all(|count| *count == 2));
    assert_eq!(files.len(), 300, "one file a partition");
}

#[test]
fn the_distribution_mode_says_whether_rows_of_a_partition_come_together() {
    for (mode, together) in [(None, true), (Some("hash"), true), (Some("RANGE"), true), (Some("none"), false)] {
        for sorted in [false, true] {
            let name = format!("mode-{mode:?}-{sorted}");
            let mut limited = config(&name, spec(&[(1, Transform::Bucket(40))]));
            (limited.open_files, limited.memory_bytes) = (3, 100_000);
            limited.properties.extend(mode.map(|mode| ("write.distribution-mode".to_owned(), mode.to_owned())));
            if sorted {
                let by_id = SortField {
                    source_ids: vec![1],
                    transform: Transform::Identity,
                    direction: SortDirection::Descending,
                    null_order: NullOrder::Last,
                };
                limited.order = Some(Arc::new(SortOrder { order_id: 1, fields: vec![by_id] }));
            }
            let batches: Vec<_> = (0..20).map(|number| batch(number * 500, 500)).collect();
            let files = write(limited, &batches);
            let mut all: Vec<i64> = files.iter().flat_map(ids).collect();
            // Sorted rows are always held until the end of their partition.
            assert_eq!(files.len() == 40, together || sorted, "{mode:?} {sorted}: {} files", files.len());
            for file in &files {
                let ids = ids(file);
                let expected = if sorted { ids.is_sorted_by(|a, b| a > b) } else { ids.is_sorted() };
                assert!(expected, "rows keep their order, or have that of the table");
                assert_eq!(file.sort_order_id, Some(i32::from(sorted)));
            }
            all.sort_unstable();
            assert_eq!(all, (0..10_000).collect::<Vec<_>>());
        }
    }
    let other = strings([("write.distribution-mode", "random")]);
    let other = WriterConfig { properties: other, ..config("mode-other", spec(&[])) };
    let error = TableWriter::new(other, &batch(0, 1).schema()).unwrap_err();
    assert!(error.to_string().contains("write.distribution-mode"), "{error}");
}

#[test]
fn sorted_files_are_sorted_whole_and_say_so() {
    let order = SortOrder {
        order_id: 7,
        fields: vec![
            SortField {
                source_ids: vec![3],
                transform: Transform::Identity,
                direction: SortDirection::Descending,
                null_order: NullOrder::Last,
            },
            SortField {
                source_ids: vec![1],
                transform: Transform::Identity,
                direction: SortDirection::Ascending,
                null_order: NullOrder::First,
            },
        ],
    };
    let sorted = WriterConfig { order: Some(Arc::new(order)), ..config("sorted", spec(&[])) };
    let files = write(sorted, &[batch(0, 100), batch(100, 100)]);
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].sort_order_id, Some(7));
    let mut expected: Vec<i64> = (0..200).collect();
    expected.sort_by_key(|id| (if id % 10 == 0 { 1 } else { -(id % 4) }, *id));
    assert_eq!(ids(&files[0]), expected);
}

fn strings<const N: usize>(properties: [(&str, &str); N]) -> StringMap {
    properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn files_roll_over_at_the_target_size() {
    let properties = strings([
        ("write.target-file-size-bytes", "60000"),
        ("write.parquet.row-group-limit", "1000"),
        ("write.parquet.compression-codec", "uncompressed"),
    ]);
    let rolled = WriterConfig { properties, ..config("rolled", spec(&[(3, Transform::Void)])) };
    let batches: Vec<RecordBatch> = (0..40).map(|number| batch(number * 1000, 1000)).collect();
    let files = write(WriterConfig { memory_bytes: 1 << 16, ..rolled }, &batches);
    assert!(files.len() > 3, "{}", files.len());
    assert_eq!(files.iter().map(|file| file.record_count).sum::<i64>(), 40_000);
    assert!(
        files
            .iter()
            .all(|file| file.split_offsets.as_ref().unwrap().len() as i64 == file.record_count.div_euclid(1000))
    );
    assert_eq!(files[0].partition, [None]);
}

/// As in the Java library, which writes 16 files for these rows.
#[test]
fn files_are_as_large_as_the_target_says() {
    let schema = Arc::new(Schema::new(0, vec![Field::required(1, "v", PrimitiveType::Long)]).unwrap());
    let mix = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n << 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) as i64;
    let values = |rows: std::ops::Range<u64>| Int64Array::from_iter_values(rows.map(mix));
    let rows = RecordBatch::try_from_iter([("v", Arc::new(values(0..200_000)) as ArrayRef)]).unwrap();
    for (format, partition, distribution, most) in [
        ("parquet", spec(&[]), Distribution::Fanout, 17),
        ("orc", spec(&[]), Distribution::Fanout, 17),
        ("parquet", spec(&[(1, Transform::Bucket(2))]), Distribution::Fanout, 18),
        ("orc", spec(&[(1, Transform::Bucket(2))]), Distribution::Fanout, 18),
        ("parquet", spec(&[(1, Transform::Void)]), Distribution::Clustered, 17),
    ] {
        let settings = [("write.target-file-size-bytes", "100000"), ("write.format.default", format)];
        let root = format!("{ROOT}/sized-{format}-{}", partition.fields.len());
        let config = WriterConfig {
            properties: strings(settings),
            distribution,
            ..WriterConfig::new(Storage::default(), root, schema.clone(), partition)
        };
        let files = write(config, std::slice::from_ref(&rows));
        let sizes: Vec<i64> = files.iter().map(|file| file.file_size_in_bytes).collect();
        assert!((15..=most).contains(&files.len()), "{format}: {sizes:?}");
        assert!(sizes.iter().all(|size| *size < 120_000), "{format}: {sizes:?}");
        assert_eq!(files.iter().map(|file| file.record_count).sum::<i64>(), 200_000, "{format}");
    }
}

#[test]
fn data_that_do_not_fit_name_the_column_and_leave_nothing() {
    let one = |name: &str, array: ArrayRef| RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap();
    let cases: Vec<(RecordBatch, &[&str])> = vec![
        (one("name", Arc::new(StringArray::from(vec!["x"]))), &["id", "required"]),
        (one("id", Arc::new(StringArray::from(vec!["x"]))), &["id", "long", "string"]),
        (one("id", Arc::new(Int64Array::from(vec![Some(1), None]))), &["id", "row 1"]),
        (
            RecordBatch::try_from_iter([
                ("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
                ("odd", Arc::new(Int64Array::from(vec![1]))),
            ])
            .unwrap(),
            &["odd", "not in the table"],
        ),
    ];
    for (number, (batch, parts)) in cases.into_iter().enumerate() {
        let name = format!("bad-{number}");
        let made = TableWriter::new(config(&name, spec(&[])), &batch.schema());
        let error = match made {
            Err(error) => error,
            Ok(mut writer) => {
                let error = writer.write(&batch).unwrap_err();
                writer.abort();
                error
            }
        };
        assert!(matches!(error, Error::Column { .. }), "{error}");
        assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
        assert!(Storage::default().list(&format!("{ROOT}/{name}")).unwrap().is_empty());
    }
}

#[test]
fn large_texts_and_missing_columns() {
    let fields = Fields::from(vec![
        ArrowField::new("name", DataType::LargeUtf8, true),
        ArrowField::new("id", DataType::Int32, true),
    ]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(LargeStringArray::from(vec![Some("a"), None])), Arc::new(Int32Array::from(vec![5, 6]))];
    let narrow = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns).unwrap();
    let files = write(config("large", spec(&[])), &[narrow]);
    let rows = read(&files[0]);
    assert_eq!(rows[0].num_columns(), 5);
    assert_eq!(rows[0].column_by_name("at").unwrap().null_count(), 2);
    assert_eq!(get(&files[0].null_value_counts, 4), Some(2));
    assert_eq!(get(&files[0].lower_bounds, 4), None);
}

#[test]
fn descriptions_of_files_travel_as_bytes() {
    let partition = spec(&[(3, Transform::Identity), (1, Transform::Bucket(3)), (2, Transform::Truncate(6))]);
    let files = write(config("wire", partition.clone()), &[batch(0, 100)]);
    let bytes = wire::to_bytes(&files, &schema(), &partition).unwrap();
    assert_eq!(wire::from_bytes(&bytes, &schema(), &partition).unwrap(), files);
    let cut = wire::from_bytes(&bytes[..bytes.len() - 9], &schema(), &partition);
    assert!(matches!(cut, Err(Error::Format(_))), "{cut:?}");
}

#[test]
fn a_thread_of_its_own_writes_the_same() {
    for (name, spec) in [("beside", spec(&[])), ("beside-by-day", spec(&[(3, Transform::Identity)]))] {
        // More batches than can be buffered, so the writing thread must wait.
        let batches: Vec<RecordBatch> = (0..24).map(|n| batch(n * 40_000, 40_000)).collect();
        let alone = write(config(name, spec.clone()), &batches);
        let writer = TableWriter::new(config(name, spec), &batches[0].schema()).unwrap();
        let writer = BackgroundWriter::new(writer).unwrap();
        batches.into_iter().for_each(|batch| writer.write(batch).unwrap());
        let beside = writer.finish().unwrap();
        assert_eq!(beside.len(), alone.len());
        for (one, other) in beside.iter().zip(&alone) {
            assert_eq!(read(one), read(other));
            assert_eq!((&one.partition, &one.lower_bounds), (&other.partition, &other.lower_bounds));
        }
    }
}

#[test]
fn errors_of_a_thread_of_its_own_are_told_by_a_later_call() {
    let null = Arc::new((0..9).map(|id| (id != 7).then_some(id)).collect::<Int64Array>()) as ArrayRef;
    let bad = RecordBatch::try_from_iter_with_nullable([("id", null, true)]).unwrap();
    let good = bad.slice(0, 5);
    let start = || {
        let config = config("beside-bad", spec(&[]));
        BackgroundWriter::new(TableWriter::new(config, &bad.schema()).unwrap()).unwrap()
    };
    let is_of_row = |row: usize, error: Error| {
        let expected = format!("row {row} of the data is null");
        assert!(error.to_string().contains(&expected), "{error}");
    };

    let writer = start();
    writer.write(good.clone()).unwrap();
    writer.write(bad.clone()).unwrap();
    is_of_row(5 + 7, writer.finish().unwrap_err());

    let writer = start();
    writer.write(bad.clone()).unwrap();
    let error = std::iter::repeat_with(|| writer.write(good.clone())).find_map(Result::err).unwrap();
    is_of_row(7, error);
    assert!(writer.write(good.clone()).is_err());
    writer.abort();

    let given_up = start();
    (0..100).for_each(|_| given_up.write(good.clone()).unwrap());
    given_up.abort();
    drop(start());
    assert!(Storage::default().list(&format!("{ROOT}/beside-bad")).unwrap().is_empty());
}
