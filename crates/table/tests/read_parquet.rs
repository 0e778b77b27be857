//! Parquet data files: pieces of one file that several threads read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ord::cmp::gt;
use icefield_table::Error;
use icefield_table::read::parquet::{Filter, ParquetFile, Request};
use icefield_table::storage::{Existing, Storage};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const ROWS: i64 = 10_000;
const GROUP: usize = 1_000;

/// Ten row groups of `n`, which counts the rows, and a text.
fn file(storage: &Storage, path: &str) -> ParquetFile {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|n| format!("text {}", n * n))));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("text", texts)]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(GROUP)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    storage.put(path, bytes, Existing::Replace).unwrap();
    ParquetFile::open(storage, path, None).unwrap()
}

fn numbers(file: &ParquetFile, request: Request) -> Vec<i64> {
    let batches = file.batches(request).unwrap().map(Result::unwrap);
    batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[test]
fn pieces_of_a_file_have_its_rows_in_order() {
    let file = file(&Storage::default(), "memory://pieces/one.parquet");
    let request = |filter| Request {
        leaves: vec![0],
        row_groups: (0..10).collect(),
        batch_rows: 300,
        filter,
        ..Request::default()
    };
    let test = |batch: &RecordBatch| {
        let texts = batch.column(0).as_string::<i32>();
        gt(texts, &StringArray::new_scalar("text 5")).map_err(|error| Error::invalid(error.to_string()))
    };
    let bytes: i64 = file.metadata().row_groups().iter().map(|group| group.column(0).compressed_size()).sum();
    let bytes = bytes.unsigned_abs();
    for filter in [None, Some(Filter { leaves: vec![1], test: Arc::new(test) })] {
        let whole = numbers(&file, request(filter.clone()));
        assert_eq!(whole.len(), if filter.is_none() { 10_000 } else { whole.len().min(9_999) });
        for (least, most) in [(1, 10), (bytes / 5 - 1, 10), (bytes / 2, 10), (u64::MAX, 1)] {
            let pieces = file.pieces(request(filter.clone()), least);
            assert!(pieces.len() <= most, "{} pieces of {least} bytes", pieces.len());
            let groups: Vec<usize> = pieces.iter().flat_map(|piece| piece.row_groups.clone()).collect();
            assert_eq!(groups, (0..10).collect::<Vec<_>>());
            let rows: Vec<i64> = pieces.into_iter().flat_map(|piece| numbers(&file, piece)).collect();
            assert_eq!(rows, whole);
        }
    }
    assert_eq!(file.pieces(request(None), 1).len(), 10);
    assert_eq!(file.pieces(request(None), bytes / 2).len(), 2);
    // What is not read does not count: the texts are larger than the numbers.
    assert_eq!(file.pieces(request(None), bytes).len(), 1);
}
