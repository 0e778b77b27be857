//! Pruning by page indexes, dictionaries and Bloom filters of Parquet files, in addition to the bounds of row groups.
//! No matching row is skipped, and no more bytes are read than necessary.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema as ArrowSchema};
use icefield_format::expr::{BoundExpr, Comparison, Expr, Literal, Predicate, Term, Test};
use icefield_format::types::arrow::with_positional_ids;
use icefield_format::types::{Field as Column, PrimitiveType, Schema};
use icefield_format::value::Value;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::{DataFileReader, Request};
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;

use crate::pruning::draw::{Draw, choices};
use crate::pruning::filters::Filter;
use crate::pruning::laws::{FILTERS, location};
use crate::pruning::rows::{TYPES, array};
use crate::pruning::world::{Row, World, schema};

/// Bytes per row of an additional column, so that pruning pays off.
const PADDING: usize = 600;

fn bytes(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let properties = properties.set_compression(Compression::UNCOMPRESSED).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Adds a last column that no dictionary makes smaller.
fn padded(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    let rows = columns[0].1.len();
    let padding =
        (0..rows).map(|row| (0..PADDING).map(|at| (((row * 31 + at) * 2_654_435_761) >> 9) as u8).collect::<Vec<_>>());
    let padding: ArrayRef = Arc::new(BinaryArray::from_iter_values(padding));
    let columns = columns.into_iter().chain([("padding".to_owned(), padding)]);
    let (fields, arrays): (Vec<_>, Vec<_>) =
        columns.map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).unwrap()
}

/// The numbers of the rows that remain after pruning.
fn left(file: &mut ParquetFile, schema: &Arc<Schema>, filter: &BoundExpr) -> Vec<Range<u64>> {
    let fields = file.bind(&with_positional_ids, schema);
    let mut request = Request { prune: filter.clone(), ..Request::all((0..fields.len() - 1).collect()) };
    let groups = file.pieces(&mut request, u64::MAX).unwrap().concat();
    let mut start = 0;
    let mut rows = Vec::new();
    for (place, group) in file.metadata().row_groups().iter().enumerate() {
        let end = start + group.num_rows().unsigned_abs();
        if groups.contains(&place) {
            match &request.rows {
                None => rows.push(start..end),
                Some(wanted) => rows.extend(
                    wanted
                        .iter()
                        .map(|range| range.start.max(start)..range.end.min(end))
                        .filter(|range| !range.is_empty()),
                ),
            }
        }
        start = end;
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_row_that_matches_is_skipped(choices in choices()) {
        let mut draw = Draw::new(choices);
        let world = World::plain(&mut draw, &TYPES);
        let rows: Vec<Row> = world.manifests[0].files.iter().flat_map(|file| file.rows.clone()).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let columns = world.columns.iter().enumerate().map(|(position, column)| {
            let values: Vec<_> = rows.iter().map(|row| row[position].as_ref()).collect();
            (column.name.clone(), array(&column.types.1, &values))
        });
        let batch = padded(columns.collect());
        let properties = WriterProperties::builder()
            .set_write_batch_size(1 + draw.below(2))
            .set_data_page_row_count_limit(1 + draw.below(3))
            .set_max_row_group_row_count(Some(1 + draw.below(6)))
            .set_dictionary_enabled(draw.chance(50))
            .set_bloom_filter_enabled(draw.chance(60))
            .set_statistics_enabled(draw.pick(&[
                EnabledStatistics::Page,
                EnabledStatistics::Chunk,
                EnabledStatistics::None,
            ]));
        let (storage, path) = (Storage::default(), format!("{}/one.parquet", location()));
        storage.put(&path, bytes(&batch, properties), Existing::Replace).unwrap();
        let schema = Arc::new(schema(&world.columns, true));
        for _ in 0..FILTERS {
            let filter = Filter::draw(&mut draw, &world, 1);
            let bound = filter.expr().bind(&schema, true).unwrap();
            let mut file = ParquetFile::open(&storage, &path, None).unwrap();
            let left = left(&mut file, &schema, &bound);
            for (number, row) in (0u64..).zip(&rows) {
                let is_left = left.iter().any(|range| range.contains(&number));
                prop_assert!(is_left || !filter.matches(row), "{} lost row {} of {:?}", bound, number, rows);
            }
        }
    }
}

/// Six row groups of 1,000 rows: `id` ascends; `code` covers the whole range in every row group, but no two row groups
/// have a common value; `text` likewise with few values.
fn file(properties: WriterPropertiesBuilder) -> (Storage, String, Vec<u8>) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..6000));
    let codes: ArrayRef = Arc::new(Int64Array::from_iter_values((0..6000).map(|n| n % 1000 * 1_000_003 + n / 1000)));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..6000).map(|n| format!("{:03} {}", n % 50 * 7, n / 1000))));
    let batch = padded(vec![("id".into(), ids), ("code".into(), codes), ("text".into(), texts)]);
    let properties = properties
        .set_max_row_group_row_count(Some(1000))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(100)
        .set_column_dictionary_enabled(ColumnPath::from("padding"), false)
        .set_column_dictionary_enabled(ColumnPath::from("code"), false)
        .set_column_bloom_filter_enabled(ColumnPath::from("code"), true)
        .set_column_bloom_filter_fpp(ColumnPath::from("code"), 1e-6);
    let (storage, path) = (Storage::default(), format!("{}/six.parquet", location()));
    let bytes = bytes(&batch, properties);
    storage.put(&path, bytes.clone(), Existing::Replace).unwrap();
    (storage, path, bytes)
}

fn one(rows: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(rows).collect()
}

fn columns() -> Arc<Schema> {
    let columns = [("id", PrimitiveType::Long), ("code", PrimitiveType::Long), ("text", PrimitiveType::String)];
    Arc::new(
        Schema::new(0, (1..).zip(columns).map(|(id, (name, ty))| Column::optional(id, name, ty)).collect()).unwrap(),
    )
}

fn test(name: &str, test: Test<Literal, Vec<Literal>>) -> Expr {
    Expr::Predicate(Predicate { term: Term { name: name.to_owned(), extract: None, transform: None }, test })
}

fn equal(name: &str, value: Value) -> Expr {
    let literal = match value {
        Value::Long(value) => Literal::long(value),
        Value::String(value) => Literal::string(value),
        other => panic!("{other:?}"),
    };
    test(name, Test::Compare(Comparison::Eq, literal))
}

#[test]
fn pages_dictionaries_and_bloom_filters_leave_what_may_match() {
    let (storage, path, bytes) = file(WriterProperties::builder());
    let whole = one(0..6000);
    let code = |n: i64| Value::Long(n % 1000 * 1_000_003 + n / 1000);
    let text = |text: &str| Value::String(text.to_owned());
    let cases: Vec<(&str, Expr, Vec<Range<u64>>, f64)> = vec![
        // Expression, remaining rows, maximum share of the file to read; the last page of each column is always read
        // too.
        ("a page", equal("id", Value::Long(2555)), one(2500..2600), 0.06),
        (
            "pages of two row groups",
            Expr::or(equal("id", Value::Long(999)), equal("id", Value::Long(1000))),
            vec![900..1000, 1000..1100],
            0.08,
        ),
        ("a bloom filter", equal("code", code(3456)), one(3400..3500), 0.08),
        ("no bloom filter has it", equal("code", Value::Long(500_000)), vec![], 0.05),
        ("a dictionary", equal("text", text("007 4")), one(4000..5000), 0.25),
        ("no dictionary has it", equal("text", text("008 4")), vec![], 0.05),
        (
            "one of several",
            test("text", Test::In(vec![Literal::string("x"), Literal::string("343 0")])),
            one(0..1000),
            0.25,
        ),
        ("both", Expr::and(equal("text", text("007 4")), equal("id", Value::Long(4321))), one(4300..4400), 0.08),
        ("neither", Expr::and(equal("text", text("007 4")), equal("id", Value::Long(1))), vec![], 0.05),
        ("either", Expr::or(equal("text", text("007 4")), Expr::True), whole.clone(), 1.1),
        ("negated", Expr::not(equal("text", text("007 4"))), whole, 1.1),
    ];
    for (name, filter, expected, share) in cases {
        let counted = FaultPlan::new(usize::MAX, Fault::Error);
        let storage = storage.with_faults(counted.clone());
        let mut file = ParquetFile::open(&storage, &path, None).unwrap();
        let bound = filter.bind(&columns(), true).unwrap();
        let mut found: Vec<Range<u64>> = Vec::new();
        for range in left(&mut file, &columns(), &bound) {
            match found.last_mut() {
                Some(last) if last.end == range.start && range.start % 1000 != 0 => last.end = range.end,
                _ => found.push(range),
            }
        }
        let groups =
            |ranges: &[Range<u64>]| ranges.iter().flat_map(|range| range.clone().step_by(100)).collect::<Vec<_>>();
        assert_eq!(groups(&found), groups(&expected), "{name}");
        let request = Request { prune: bound, ..Request::all(vec![0, 1, 2, 3]) };
        let batches = Box::new(file).batches(request).unwrap().into_batches();
        let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows as u64, expected.iter().map(|range| range.end - range.start).sum::<u64>(), "{name}");
        let (_, read) = counted.read();
        assert!(read as f64 <= share * bytes.len() as f64, "{name}: {read} of {} bytes", bytes.len());
    }
}

/// Detectable damage of a Bloom filter gives an error with file, row group and column; other damage must not crash.
#[test]
fn bloom_filters_of_noise() {
    let (storage, path, bytes) = file(WriterProperties::builder());
    let known = ParquetFile::open(&storage, &path, None).unwrap();
    let chunk = known.metadata().row_group(2).column(1);
    let start = chunk.bloom_filter_offset().unwrap() as usize;
    let end = start + chunk.bloom_filter_length().unwrap() as usize;
    let filter = equal("code", Value::Long(2 + 500 * 1_000_003)).bind(&columns(), true).unwrap();
    let read = |bytes: Vec<u8>| {
        storage.put(&path, bytes, Existing::Replace).unwrap();
        let mut file = ParquetFile::open(&storage, &path, None).unwrap();
        file.bind(&with_positional_ids, &columns());
        file.pieces(&mut Request { prune: filter.clone(), ..Request::all(vec![0, 1, 2, 3]) }, u64::MAX)
    };
    assert_eq!(read(bytes.clone()).unwrap().concat(), [2]);
    let mut refused = 0;
    for seed in 0..200u64 {
        let mut damaged = bytes.clone();
        for (at, byte) in damaged.iter_mut().enumerate().take(end).skip(start) {
            *byte = ((seed + 1).wrapping_mul(at as u64 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
        }
        match read(damaged) {
            Ok(groups) => assert!(groups.concat().len() <= 6),
            Err(error) => {
                refused += 1;
                let (text, expected) = (error.to_string(), "row group 2, column code: its bloom filter: ");
                assert!(text.contains(&path) && text.contains(expected), "{text}");
            }
        }
    }
    assert!(refused > 150, "{refused}");
    // Overwrite only the bits.
    let mut damaged = bytes;
    damaged[end - 32..end].fill(0xff);
    read(damaged).unwrap();
}
