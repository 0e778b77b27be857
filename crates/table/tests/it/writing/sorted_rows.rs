//! Writing more rows of a sorted table than fit in memory: the result is the same, in files of the target size.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Int32Array, Int64Array, RecordBatch, StringArray};
use icefield_format::manifest::DataFile;
use icefield_format::spec::{NullOrder, PartitionField, PartitionSpec, SortDirection, SortField, SortOrder};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::storage::Storage;
use icefield_table::write::{Distribution, TableWriter, WriterConfig};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

/// A row: a unique number in input order, a key with many duplicates, a text.
type Row = (i64, Option<i32>, Option<String>);

fn schema() -> Arc<Schema> {
    let fields = vec![
        Field::required(1, "number", PrimitiveType::Long),
        Field::optional(2, "key", PrimitiveType::Int),
        Field::optional(3, "text", PrimitiveType::String),
    ];
    Arc::new(Schema::new(0, fields).unwrap())
}

fn order(fields: &[(i32, Transform, SortDirection, NullOrder)]) -> Arc<SortOrder> {
    let fields = fields.iter().map(|(source, transform, direction, null_order)| SortField {
        source_ids: vec![*source],
        transform: transform.clone(),
        direction: *direction,
        null_order: *null_order,
    });
    Arc::new(SortOrder { order_id: 3, fields: fields.collect() })
}

fn spec(partitioned: bool) -> Arc<PartitionSpec> {
    let field = PartitionField {
        source_ids: vec![1],
        field_id: 1000,
        name: "number_bucket".to_owned(),
        transform: Transform::Bucket(3),
    };
    Arc::new(PartitionSpec { spec_id: 0, fields: if partitioned { vec![field] } else { Vec::new() } })
}

fn batch(rows: &[Row]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("number", Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>()) as _, false),
        ("key", Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>()) as _, true),
        ("text", Arc::new(rows.iter().map(|row| row.2.as_deref()).collect::<StringArray>()) as _, true),
    ])
    .unwrap()
}

fn read(file: &DataFile) -> Vec<Row> {
    let bytes = Storage::default().read(&file.file_path).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
    let rows = batches.flat_map(|batch| {
        let batch = batch.unwrap();
        let numbers = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let keys: Vec<Option<i32>> = batch.column(1).as_primitive::<Int32Type>().iter().collect();
        let texts: Vec<Option<String>> =
            batch.column(2).as_string::<i32>().iter().map(|t| t.map(str::to_owned)).collect();
        numbers.into_iter().zip(keys).zip(texts).map(|((number, key), text)| (number, key, text)).collect::<Vec<_>>()
    });
    rows.collect()
}

/// The expected order: by the key descending, nulls last; then by the first letter of the text ascending, nulls first;
/// equal rows in input order.
fn compared(a: &Row, b: &Row) -> Ordering {
    let key = |row: &Row| (row.1.is_none(), Reverse(row.1));
    let letter = |row: &Row| row.2.as_ref().map(|text| text.chars().next());
    key(a).cmp(&key(b)).then(letter(a).cmp(&letter(b))).then(a.0.cmp(&b.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_beyond_memory_are_sorted_as_in_memory(
        parts in prop::collection::vec(
            prop::collection::vec((prop::option::of(-3..3_i32), prop::option::of("[a-d][a-z]{0,40}")), 0..400),
            1..12,
        ),
        memory in prop::sample::select(vec![1_usize, 4_000, 20_000, 1 << 20]),
        partitioned in any::<bool>(),
    ) {
        let mut number = 0;
        let mut numbered = |(key, text): (Option<i32>, Option<String>)| { number += 1; (number, key, text) };
        let parts: Vec<Vec<Row>> = parts.into_iter().map(|part| part.into_iter().map(&mut numbered).collect()).collect();
        let order = order(&[
            (2, Transform::Identity, SortDirection::Descending, NullOrder::Last),
            (3, Transform::Truncate(1), SortDirection::Ascending, NullOrder::First),
        ]);
        let config = WriterConfig {
            order: Some(order),
            memory_bytes: memory,
            ..WriterConfig::new(Storage::default(), "memory://sorted/rows", schema(), spec(partitioned))
        };
        let mut writer = TableWriter::new(config, &batch(&[]).schema()).unwrap();
        for part in &parts {
            writer.write(&batch(part)).unwrap();
        }
        let files = writer.finish().unwrap();
        let mut written = 0;
        let mut of_partition: BTreeMap<String, usize> = BTreeMap::new();
        for file in &files {
            let rows = read(file);
            prop_assert_eq!(file.sort_order_id, Some(3));
            prop_assert_eq!(file.record_count, rows.len() as i64);
            prop_assert!(rows.is_sorted_by(|a, b| compared(a, b) == Ordering::Less), "{}: {:?}", file.file_path, rows);
            let known: Vec<&Row> = parts.iter().flatten().collect();
            for row in &rows {
                prop_assert_eq!(known[row.0 as usize - 1], row);
            }
            written += rows.len();
            *of_partition.entry(format!("{:?}", file.partition)).or_default() += 1;
        }
        prop_assert_eq!(written, parts.iter().map(Vec::len).sum::<usize>());
        // Far below the target size there is one file, whatever fits in memory.
        prop_assert!(of_partition.values().all(|count| *count == 1), "{of_partition:?}");
    }
}

#[test]
fn merged_files_roll_over_and_follow_each_other() {
    let properties = [("write.target-file-size-bytes", "40000"), ("write.parquet.row-group-limit", "500")];
    let config = WriterConfig {
        order: Some(order(&[(2, Transform::Identity, SortDirection::Ascending, NullOrder::First)])),
        memory_bytes: 50_000,
        distribution: Distribution::Clustered,
        properties: properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..WriterConfig::new(Storage::default(), "memory://sorted/rolled", schema(), spec(false))
    };
    let mut writer = TableWriter::new(config, &batch(&[]).schema()).unwrap();
    let key = |number: i64| (number * 7919 % 20_011) as i32;
    for start in (0..20_000).step_by(1000) {
        let rows: Vec<Row> = (start..start + 1000)
            .map(|number| {
                (number, Some(key(number)), Some(format!("{:x}", (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))))
            })
            .collect();
        writer.write(&batch(&rows)).unwrap();
    }
    let files = writer.finish().unwrap();
    assert!(files.len() > 3, "{}", files.len());
    let keys: Vec<i32> = files.iter().flat_map(read).map(|row| row.1.unwrap()).collect();
    assert_eq!(keys.len(), 20_000);
    assert!(keys.is_sorted());
}
