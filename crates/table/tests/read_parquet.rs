//! Parquet data files: pieces of one file that several threads read, rows by their numbers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_ord::cmp::gt;
use arrow_schema::Fields;
use arrow_select::concat::concat_batches;
use icefield_format::types::Schema;
use icefield_table::Error;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::{DataFileReader, Filter, Request};
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

const ROWS: i64 = 10_000;
const GROUP: usize = 1_000;
/// The leaf of positions, behind those of the file.
const POSITION: usize = 2;

/// Ten row groups of `n`, which counts the rows, and a text.
fn file(storage: &Storage, path: &str) -> ParquetFile {
    write(storage, path, ROWS);
    ParquetFile::open(storage, path, None).unwrap()
}

/// Writes a file of so many rows, and says how large it is.
fn write(storage: &Storage, path: &str, rows: i64) -> u64 {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|n| format!("text {}", n * n))));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("text", texts)]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(GROUP)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let size = bytes.len() as u64;
    storage.put(path, bytes, Existing::Replace).unwrap();
    size
}

/// Texts above `text 5`: about half of the rows, here and there.
fn above_five() -> Filter {
    let test = |batch: &RecordBatch| {
        let texts = batch.column(0).as_string::<i32>();
        gt(texts, &StringArray::new_scalar("text 5")).map_err(|error| Error::invalid(error.to_string()))
    };
    Filter { leaves: vec![1], test: Arc::new(test) }
}

fn column(batches: &[RecordBatch], at: usize) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(at).as_primitive::<Int64Type>().values().to_vec()).collect()
}

/// What is small is read at once and filtered afterwards: the same rows as by the way of large files.
#[test]
fn small_files_have_the_rows_that_large_ones_would_have() {
    let strings = |n: i64| (n % 7 != 0).then(|| format!("text {}", n % 50));
    let mut lists = ListBuilder::new(StringBuilder::new());
    for n in 0..ROWS {
        (0..n % 4).for_each(|part| lists.values().append_option(strings(n + part)));
        lists.append(n % 5 != 0);
    }
    let pairs = StructArray::try_from(vec![
        ("left", Arc::new((0..ROWS).map(strings).collect::<StringArray>()) as ArrayRef),
        ("right", Arc::new((0..ROWS).map(|n| (n % 3 == 0).then_some(n)).collect::<Int64Array>()) as ArrayRef),
    ]);
    let columns: [(&str, ArrayRef); 4] = [
        ("n", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("text", Arc::new((0..ROWS).map(strings).collect::<StringArray>())),
        ("list", Arc::new(lists.finish())),
        ("pair", Arc::new(pairs.unwrap())),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let storage = Storage::default();
    let codecs = [Compression::ZSTD(ZstdLevel::default()), Compression::SNAPPY, Compression::UNCOMPRESSED];
    for (number, ((codec, version), is_flat)) in codecs
        .into_iter()
        .flat_map(|codec| [(codec, WriterVersion::PARQUET_1_0), (codec, WriterVersion::PARQUET_2_0)])
        .flat_map(|how| [(how, true), (how, false)])
        .enumerate()
    {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(3 * GROUP))
            .set_compression(codec)
            .set_writer_version(version)
            .set_data_page_row_count_limit(700);
        let batch = if is_flat { batch.project(&[0, 1]).unwrap() } else { batch.clone() };
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let path = format!("memory://pieces/small-{number}.parquet");
        storage.put(&path, bytes, Existing::Replace).unwrap();
        let all = if is_flat { vec![0, 1] } else { vec![0, 1, 2, 3, 4] };
        for leaves in [all.clone(), all[1..2].to_vec(), vec![0], vec![]] {
            for filter in [None, Some(above_five())] {
                let file = ParquetFile::open(&storage, &path, None).unwrap();
                let request = Request { batch_rows: 450, filter, ..Request::all(leaves.clone()) };
                let groups = (0..file.metadata().num_row_groups()).collect();
                let expected: Vec<RecordBatch> = file.decode(groups, &request).unwrap().map(Result::unwrap).collect();
                let found = Box::new(file).batches(request).unwrap().into_batches();
                let found: Vec<RecordBatch> = found.map(Result::unwrap).collect();
                let whole = |batches: &[RecordBatch]| {
                    let schema = batches[0].schema();
                    (concat_batches(&schema, batches).unwrap(), schema)
                };
                assert_eq!(whole(&found), whole(&expected), "{codec} {version:?}, leaves {leaves:?}");
            }
        }
    }
}

#[test]
fn pieces_of_a_file_have_its_rows_in_order() {
    let file = file(&Storage::default(), "memory://pieces/one.parquet");
    let request = |filter| Request { batch_rows: 300, filter, ..Request::all(vec![0]) };
    let numbers = |groups: Vec<usize>, request: &Request| -> Vec<i64> {
        column(&file.decode(groups, request).unwrap().map(Result::unwrap).collect::<Vec<_>>(), 0)
    };
    let bytes: i64 = file.metadata().row_groups().iter().map(|group| group.column(0).compressed_size()).sum();
    let bytes = bytes.unsigned_abs();
    for filter in [None, Some(above_five())] {
        let request = request(filter);
        let whole = numbers((0..10).collect(), &request);
        assert!(if request.filter.is_none() { whole.len() == 10_000 } else { (1000..9000).contains(&whole.len()) });
        for least in [1, bytes / 5, bytes / 2, u64::MAX] {
            let pieces = file.pieces(&mut request.clone(), least).unwrap();
            assert_eq!(pieces.concat(), (0..10).collect::<Vec<_>>());
            let rows: Vec<i64> = pieces.into_iter().flat_map(|piece| numbers(piece, &request)).collect();
            assert_eq!(rows, whole);
        }
    }
    assert_eq!(file.pieces(&mut request(None), 1).unwrap().len(), 10);
    assert_eq!(file.pieces(&mut request(None), bytes / 2).unwrap().len(), 2);
    // What is not read does not count: the texts are larger than the numbers.
    assert_eq!(file.pieces(&mut request(None), bytes).unwrap().len(), 1);
}

/// Rows between those that a delete vector names, with their numbers in the file, whatever is skipped or filtered.
#[test]
fn rows_are_selected_by_position_and_have_their_numbers() {
    let (storage, path) = (Storage::default(), "memory://pieces/selected.parquet");
    let file = file(&storage, path);
    let one = |range: Range<u64>| std::iter::once(range).collect();
    let all: Vec<Range<u64>> = one(0..u64::MAX);
    let selections: [Vec<Range<u64>>; 6] = [
        vec![],
        all.clone(),
        one(0..1),
        vec![5..6, 7..900, 999..1001, 2_999..3_001, 9_999..10_000],
        one(4_000..20_000),
        (0..ROWS as u64).filter(|row| row % 3 != 0).map(|row| row..row + 1).collect(),
    ];
    let kept = {
        let request = Request { filter: Some(above_five()), ..Request::all(vec![0]) };
        column(&file.decode((0..10).collect(), &request).unwrap().map(Result::unwrap).collect::<Vec<_>>(), 0)
    };
    for rows in selections {
        for filter in [None, Some(above_five())] {
            for leaves in [vec![0, POSITION], vec![POSITION]] {
                let mut file = file.clone();
                let fields = file.bind(&Fields::clone, &Arc::new(Schema::new(0, Vec::new()).unwrap()));
                assert_eq!(fields.len(), 3);
                let request = Request {
                    rows: Some(rows.clone()),
                    filter: filter.clone(),
                    batch_rows: 300,
                    ..Request::all(leaves.clone())
                };
                let batches = Box::new(file).batches(request).unwrap().into_batches();
                let batches: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
                let wanted = rows.iter().flat_map(|range| range.start as i64..range.end.min(ROWS as u64) as i64);
                let wanted: Vec<i64> = match filter {
                    None => wanted.collect(),
                    Some(_) => wanted.filter(|row| kept.binary_search(row).is_ok()).collect(),
                };
                for at in 0..leaves.len() {
                    assert_eq!(column(&batches, at), wanted, "column {at} of {leaves:?}");
                }
            }
        }
    }
    // Row groups without a row are not read.
    let request = Request { rows: Some(vec![2_500..2_600, 7_000..7_001]), ..Request::all(vec![0]) };
    assert_eq!(file.pieces(&mut request.clone(), 1).unwrap(), [[2], [7]]);
}

/// A filter may ask for positions.
#[test]
fn positions_can_be_filtered_by() {
    let file = file(&Storage::default(), "memory://pieces/filtered.parquet");
    let test = |batch: &RecordBatch| {
        let positions = batch.column(0).as_primitive::<Int64Type>();
        gt(positions, &Int64Array::new_scalar(9_990)).map_err(|error| Error::invalid(error.to_string()))
    };
    let filter = Some(Filter { leaves: vec![POSITION], test: Arc::new(test) });
    for leaves in [vec![0], vec![0, POSITION]] {
        let request = Request { filter: filter.clone(), ..Request::all(leaves) };
        let batches: Vec<_> = file.decode(vec![3, 9], &request).unwrap().map(Result::unwrap).collect();
        assert_eq!(column(&batches, 0), (9_991..ROWS).collect::<Vec<_>>());
    }
}

/// What is fetched for the footer is all of a small file. Of a larger one it is the end, and some row groups may lie in it.
#[test]
#[cfg(debug_assertions)] // reads are counted for tests alone
fn small_files_are_fetched_once() {
    let plain = Storage::default();
    for (rows, expected) in [(10, 1..2), (1_000, 1..2), (ROWS, 2..12)] {
        let path = format!("memory://fetched/{rows}.parquet");
        let size = write(&plain, &path, rows);
        assert_eq!(size > 64 << 10, rows == ROWS, "{size} bytes");
        let counted = FaultPlan::new(usize::MAX, Fault::Panic);
        let file = ParquetFile::open(&plain.with_faults(counted.clone()), &path, Some(size)).unwrap();
        let groups = (0..file.metadata().num_row_groups()).collect();
        let batches: Vec<_> = file.decode(groups, &Request::all(vec![0, 1])).unwrap().map(Result::unwrap).collect();
        assert_eq!(column(&batches, 0), (0..rows).collect::<Vec<_>>());
        assert!(expected.contains(&counted.steps()), "{} fetches of {rows} rows", counted.steps());
    }
}
