//! Reading Parquet data files: pieces for several threads, rows selected by number.

use std::any::Any;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_ord::cmp::gt;
use arrow_schema::Fields;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use icefield_format::expr::{Expr, Literal, Predicate, Term, Test};
use icefield_format::types::arrow::with_positional_ids;
use icefield_format::types::{Field as TableField, PrimitiveType, Schema};
use icefield_table::Error;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::{DataFileReader, Filter, Request};
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use icefield_table::stream::Opened;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::TrackedWrite;

const ROWS: i64 = 10_000;
const GROUP: usize = 1_000;
/// The index of the leaf with row positions, after those of the file.
const POSITION: usize = 2;
/// Number of wrong page indexes per tested file.
const WRONG: u64 = 40;

/// Ten row groups with `n`, which counts the rows, and a text column.
fn file(storage: &Storage, path: &str) -> ParquetFile {
    write(storage, path, ROWS);
    ParquetFile::open(storage, path, None).unwrap()
}

/// Writes a file with this many rows, and returns its size.
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

/// A filter for texts greater than `text 5`: about half of the rows, scattered.
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

/// Small files are read whole and filtered afterwards; the rows are the same as with the code for large files.
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
    // Only requested columns count: the texts are larger than the numbers.
    assert_eq!(file.pieces(&mut request(None), bytes).unwrap().len(), 1);
}

/// Rows between those that a deletion vector deletes, with their numbers in the file, whatever is skipped or filtered.
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
    // Row groups without a requested row are not read.
    let request = Request { rows: Some(vec![2_500..2_600, 7_000..7_001]), ..Request::all(vec![0]) };
    assert_eq!(file.pieces(&mut request.clone(), 1).unwrap(), [[2], [7]]);
}

/// A filter can use row positions.
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

/// A small file is fetched whole with its footer. For a larger file, the end is fetched, which may contain some row
/// groups.
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

/// A page index with other page locations for each column of the only row group; everything else is unchanged.
#[derive(Debug)]
struct Places(Vec<OffsetIndexMetaData>, Arc<dyn PageIndexProvider>);

impl PageIndexProvider for Places {
    fn has_offset_indexes(&self) -> bool {
        true
    }

    fn has_column_indexes(&self) -> bool {
        true
    }

    fn column_index(&self, group: usize, column: usize) -> Option<&ColumnIndexMetaData> {
        self.1.column_index(group, column)
    }

    fn offset_index(&self, _: usize, column: usize) -> Option<&OffsetIndexMetaData> {
        self.0.get(column)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Unordered numbers, which cannot be compressed.
fn mixed(mut number: u64) -> u64 {
    for odd in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        number = (number ^ number >> 31).wrapping_mul(odd);
    }
    number ^ number >> 31
}

/// One row group with many pages: numbers, texts with a dictionary, lists, lists of lists, ascending numbers.
fn paged_file(codec: Compression, version: WriterVersion) -> Vec<u8> {
    let numbers = (0..ROWS as u64).map(|n| mixed(n) as i64);
    let texts = (0..ROWS as u64).map(|n| format!("text {:060}", mixed(n) % 50));
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut deep = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for n in 0..ROWS as u64 {
        for part in 0..mixed(n) % 4 {
            lists.values().append_value(mixed(n + part).to_string());
            (0..part).for_each(|_| deep.values().values().append_value("deep"));
            deep.values().append(part != 1);
        }
        lists.append(n % 5 != 0);
        deep.append(true);
    }
    let columns: [(&str, ArrayRef); 5] = [
        ("n", Arc::new(Int64Array::from_iter_values(numbers))),
        ("text", Arc::new(StringArray::from_iter_values(texts))),
        ("list", Arc::new(lists.finish())),
        ("deep", Arc::new(deep.finish())),
        ("row", Arc::new(Int64Array::from_iter_values(0..ROWS))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_writer_version(version)
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled("text".into(), true)
        .set_write_batch_size(100_000)
        // Page headers that are longer than the bytes first read for a header.
        .set_write_page_header_statistics(codec == Compression::UNCOMPRESSED)
        .set_data_page_row_count_limit(500);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
    // Write 500 rows at a time, so that pages of repeated columns end at the same rows as other pages.
    (0..batch.num_rows()).step_by(500).for_each(|row| writer.write(&batch.slice(row, 500)).unwrap());
    writer.close().unwrap();
    bytes
}

/// The file with changed page locations; `change` also gets the starts of the column chunks.
fn with_places(bytes: &[u8], change: impl FnOnce(&mut [Vec<PageLocation>], &[i64])) -> Vec<u8> {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = reader.parse_and_finish(&Bytes::copy_from_slice(bytes)).unwrap();
    let index = metadata.page_index_for_row_group(0);
    let columns = metadata.row_group(0).columns();
    let mut places: Vec<_> = (0..columns.len()).map(|column| index.page_locations(column).unwrap().clone()).collect();
    let end = columns.iter().map(|column| column.byte_range()).map(|(start, length)| start + length).max().unwrap();
    let starts: Vec<i64> = columns.iter().map(|column| column.byte_range().0.cast_signed()).collect();
    change(&mut places, &starts);
    let index = |page_locations| OffsetIndexMetaData { page_locations, unencoded_byte_array_data_bytes: None };
    let known = metadata.page_index().unwrap().clone();
    let places = Places(places.into_iter().map(index).collect(), known);
    let metadata = metadata.into_builder().set_page_index(Some(Arc::new(places))).build();
    let mut changed = Vec::new();
    let mut file = TrackedWrite::new(&mut changed);
    file.write_all(&bytes[..usize::try_from(end).unwrap()]).unwrap();
    ParquetMetaDataWriter::new_with_tracked(file, &metadata).finish().unwrap();
    changed
}

/// Reads a file with two threads; also returns whether it was split for them.
fn read_by_two(path: &str, leaves: &[usize]) -> icefield_table::Result<(Vec<RecordBatch>, bool)> {
    let file = ParquetFile::open(&Storage::default(), path, None)?;
    let request = Request { batch_rows: 800, threads: 2, ..Request::all(leaves.to_vec()) };
    let opened = Box::new(file).batches(request)?;
    let is_cut = matches!(opened, Opened::Parts(_));
    Ok((opened.into_batches().collect::<icefield_table::Result<_>>()?, is_cut))
}

/// How rows of a file with one row group are selected.
#[derive(Debug, Clone, Copy)]
enum Skipped {
    /// By their numbers, as for deleted rows.
    Rows,
    /// By a filter on the column `row`, or on the row numbers that the decoder counts.
    Filtered,
    Counted,
    /// By both.
    RowsAndFiltered,
    /// By the page bounds, and then by a filter.
    Pruned,
}

/// Whether a row is requested: a few rows of some pages; there are pages without requested rows in between.
fn is_wanted(row: i64) -> bool {
    row % 2_300 < 40 || (4_990..5_010).contains(&row)
}

/// Reads the requested rows of the only row group of a file.
fn read_some(
    storage: &Storage,
    path: &str,
    leaves: &[usize],
    skipped: Skipped,
) -> icefield_table::Result<Vec<RecordBatch>> {
    let mut file = ParquetFile::open(storage, path, None)?;
    let schema = Schema::new(0, vec![TableField::required(5, "row", PrimitiveType::Long)]).unwrap();
    file.bind(&with_positional_ids, &Arc::new(schema.clone()));
    let filter = |leaf: usize| {
        let test = |batch: &RecordBatch| {
            let rows = batch.column(0).as_primitive::<Int64Type>().values();
            Ok(rows.iter().map(|row| Some(is_wanted(*row))).collect())
        };
        Some(Filter { leaves: vec![leaf], test: Arc::new(test) })
    };
    let mut request = Request { batch_rows: 800, ..Request::all(leaves.to_vec()) };
    match skipped {
        Skipped::Rows => {
            let rows = (0..ROWS).filter(|row| is_wanted(*row)).map(|row| row as u64..row as u64 + 1);
            request.rows = Some(rows.collect());
        }
        Skipped::Filtered => request.filter = filter(4),
        Skipped::Counted => request.filter = filter(5),
        Skipped::RowsAndFiltered => {
            request.rows = Some((0..ROWS as u64).step_by(9).map(|row| row..row + 4).collect());
            request.filter = filter(4);
        }
        Skipped::Pruned => {
            let near = [0, 2_300, 4_600, 5_005, 6_900, 9_200].map(Literal::long).to_vec();
            let term = Term { name: "row".to_owned(), extract: None, transform: None };
            let near = Expr::Predicate(Predicate { term, test: Test::In(near) });
            request.prune = near.bind(&schema, true).unwrap();
            request.filter = filter(4);
        }
    }
    let groups = file.pieces(&mut request, u64::MAX)?.concat();
    file.decode(groups, &request)?.collect()
}

/// A page index that does not match the pages is ignored, or gives an error that names the file: no row has values of
/// another row.
#[test]
fn page_indexes_that_are_wrong_give_no_wrong_rows() {
    let folder = tempfile::tempdir().unwrap();
    let file = |number: usize, bytes: &[u8]| {
        let path = folder.path().join(format!("{number}.parquet"));
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let remote = Storage::default();
    let roads = [Skipped::Rows, Skipped::Filtered, Skipped::Counted, Skipped::RowsAndFiltered, Skipped::Pruned];
    let (mut number, mut refused, mut cut, mut some, mut some_refused) = (0, 0, 0, 0, 0);
    for (codec, version) in [
        (Compression::ZSTD(ZstdLevel::default()), WriterVersion::PARQUET_1_0),
        (Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0),
        (Compression::SNAPPY, WriterVersion::PARQUET_2_0),
    ] {
        let bytes = paged_file(codec, version);
        let all = [0, 1, 2, 3, 4];
        let (expected, is_cut) = read_by_two(&file(number, &with_places(&bytes, |_, _| {})), &all).unwrap();
        assert!(is_cut, "{codec} {version:?}: {} bytes are not cut", bytes.len());
        let whole = concat_batches(&expected[0].schema(), &expected).unwrap();
        assert_eq!(whole.num_rows() as i64, ROWS);
        for seed in 0..WRONG {
            number += 1;
            let random = |salt: u64, most: u64| mixed(seed * 100 + salt) % most;
            let amount = [1, -1, 2, 5, -5, 7, 50, 100, -100, 499, 500, 501][random(0, 12) as usize];
            let (kind, page) = (random(1, 9), random(2, ROWS as u64 / 500) as usize);
            let chosen: Vec<usize> = match random(3, 3) {
                0 => all.to_vec(),
                _ => vec![random(4, 5) as usize],
            };
            let changed = with_places(&bytes, |places, starts| {
                for column in chosen {
                    let pages = &mut places[column];
                    let page = page % (pages.len() - 1);
                    match kind {
                        // Move rows from one page to the next.
                        0 => pages[page + 1].first_row_index += amount,
                        // Shift the rows of all pages after one.
                        1 => pages[page + 1..].iter_mut().for_each(|page| page.first_row_index += amount),
                        // Move bytes from one page to the next.
                        2 => {
                            pages[page].compressed_page_size += amount as i32;
                            pages[page + 1].offset += amount;
                            pages[page + 1].compressed_page_size -= amount as i32;
                        }
                        // Merge two pages into one, with the rows of both or of one.
                        3 | 4 => {
                            let next = pages.remove(page + 1);
                            pages[page].compressed_page_size += next.compressed_page_size;
                            if kind == 4 {
                                let rows = next.first_row_index - pages[page].first_row_index;
                                pages[page + 1..].iter_mut().for_each(|page| page.first_row_index -= rows);
                            }
                        }
                        // Treat the dictionary as a page, or the first page as a dictionary.
                        5 if page % 2 == 0 => {
                            let end = pages[0].offset + i64::from(pages[0].compressed_page_size);
                            pages[0].offset = starts[column];
                            pages[0].compressed_page_size = (end - pages[0].offset) as i32;
                        }
                        5 => {
                            pages.remove(0);
                            pages[0].first_row_index = 0;
                        }
                        // Swap the rows, or the locations, of two pages.
                        6 => {
                            let (one, other) = (pages[page].first_row_index, pages[page + 1].first_row_index);
                            (pages[page].first_row_index, pages[page + 1].first_row_index) = (other, one);
                        }
                        7 => pages.swap(page, page + 1),
                        // Set invalid numbers.
                        _ => match amount {
                            ..0 => pages[page].first_row_index = i64::MIN,
                            0..50 => pages[page + 1].first_row_index = i64::MAX,
                            50..200 => pages[page].offset = i64::MAX - 10,
                            _ => pages[page].compressed_page_size = -1,
                        },
                    }
                }
            });
            let path = file(number, &changed);
            let case = format!("{codec} {version:?}, seed {seed}: kind {kind}, page {page}, amount {amount}");
            for leaves in [&all[..], &[0, 2, 4], &[1, 3]] {
                match read_by_two(&path, leaves) {
                    Err(Error::CorruptFile { path: named, .. }) => {
                        assert_eq!(named, path, "{case}");
                        refused += 1;
                    }
                    Err(other) => panic!("{case}: {other:?}"),
                    Ok((found, is_cut)) => {
                        let expected = whole.project(leaves).unwrap();
                        assert_eq!(concat_batches(&expected.schema(), &found).unwrap(), expected, "{case}");
                        cut += usize::from(is_cut);
                    }
                }
            }
            let fetched = format!("memory://page-index/{number}.parquet");
            remote.put(&fetched, changed, Existing::Replace).unwrap();
            for (place, skipped) in roads.into_iter().enumerate() {
                let leaves = [&all[..], &[0, 2, 4], &[1, 3], &[2]][(seed as usize + place) % 4];
                let mask = (0..ROWS).map(|row| {
                    let is_left = !matches!(skipped, Skipped::RowsAndFiltered) || row % 9 < 4;
                    Some(is_left && is_wanted(row))
                });
                let expected = filter_record_batch(&whole.project(leaves).unwrap(), &mask.collect()).unwrap();
                for (storage, path) in [(&Storage::default(), &path), (&remote, &fetched)] {
                    let case = format!("{case}: {skipped:?} of {path}, {leaves:?}");
                    some += 1;
                    match read_some(storage, path, leaves, skipped) {
                        Err(Error::CorruptFile { path: named, .. }) => {
                            assert_eq!(&named, path, "{case}");
                            some_refused += 1;
                        }
                        Err(other) => panic!("{case}: {other:?}"),
                        Ok(found) => {
                            assert_eq!(concat_batches(&expected.schema(), &found).unwrap(), expected, "{case}");
                        }
                    }
                }
            }
        }
    }
    assert!(refused > number / 4 && cut > number / 4, "{refused} refused and {cut} cut of {number} files");
    assert!(some_refused > some / 8 && some - some_refused > some / 8, "{some_refused} of {some} reads are refused");
}
