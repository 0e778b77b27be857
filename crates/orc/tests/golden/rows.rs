//! Rows of every file: with all keys, without, with some; in microseconds and nanoseconds; whole and in parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StructArray};
use bytes::Bytes;
use icefield_orc::proto::StripeInformation;
use icefield_orc::stripe::{StripeDirectory, sections};
use icefield_orc::zone::Zone;
use icefield_orc::{
    ArrowOptions, Error, FileMetadata, KeyProvider, Kind, Limits, Projection, ReadOptions, Reader, RowFilter,
    StringForm, TimeUnit,
};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use super::expected::{TZ_DATA_UNTIL, check};
use super::{Golden, trial};

/// The forms of rows that a set may have, and the keys that show them.
const FORMS: &[(&str, Keys)] =
    &[("rows.jsonl", Keys::All), ("masked.rows.jsonl", Keys::None), ("partial.rows.jsonl", Keys::First)];

#[derive(Debug, Clone, Copy)]
enum Keys {
    All,
    First,
    None,
}

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in golden.names() {
        for (form, keys) in FORMS {
            let (golden, name) = (Arc::clone(golden), name.clone());
            if golden.folder.join(format!("expected/{name}.{form}.gz")).exists() {
                let title = format!("rows::{name}.{form}");
                trials.push(trial(title, move || check_file(&golden, &name, form, *keys)));
            }
        }
    }
    trials
}

fn check_file(golden: &Golden, name: &str, form: &str, keys: Keys) -> Result<(), Failed> {
    let keys = match keys {
        Keys::All => golden.keys(false),
        Keys::First => golden.keys(true),
        Keys::None => None,
    };
    let rows = parse(&golden.expected(name, form).ok_or("no rows")?)?;
    let bytes = Bytes::from(golden.file(name)?);
    check_rows(&bytes, &rows, keys, None)
}

pub fn parse(lines: &str) -> Result<Vec<Json>, Failed> {
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Reads a file in several ways; each must give the rows.
pub fn check_rows(
    bytes: &Bytes,
    rows: &[Json],
    keys: Option<Arc<dyn KeyProvider>>,
    default_zone: Option<&str>,
) -> Result<(), Failed> {
    let reader = Reader::open_with(bytes.clone(), Limits::default(), keys)?;
    TZ_DATA_UNTIL.set(last_change(&reader));
    let arrow = ArrowOptions::default();
    let base = ReadOptions { default_zone: default_zone.map(str::to_owned), ..ReadOptions::default() };
    let nanos = ArrowOptions { timestamp_unit: TimeUnit::Nanosecond, strings: StringForm::Dictionary, ..arrow };
    for (arrow, batch_size) in [(arrow, 1 << 16), (arrow, 97), (nanos, 1000)] {
        let options = ReadOptions { arrow, batch_size, ..base.clone() };
        // Text that is not UTF-8 is refused as text, and read as bytes.
        let as_bytes = ReadOptions { arrow: ArrowOptions { strings: StringForm::Binary, ..arrow }, ..options.clone() };
        let batches = match read(&reader, options) {
            Err(Error::Value(message)) if message.contains("not UTF-8") => read(&reader, as_bytes)?,
            other => other?,
        };
        compare(reader.metadata(), &batches, rows, 0..rows.len() as u64)?;
    }
    check_selections(&reader, rows, &base)
}

/// The earliest last change of the zones of all stripes.
fn last_change(reader: &Reader<Bytes>) -> Option<i64> {
    let file = reader.metadata();
    let zone = |stripe: &StripeInformation| {
        let [_, _, footer] = sections(stripe, file.length).ok()?;
        let directory =
            StripeDirectory::read(file, stripe, &reader.source().slice(footer.start as usize..footer.end as usize));
        Zone::named(directory.ok()?.footer.writer_timezone.as_deref()?).ok()?.last_change()
    };
    file.footer.stripes.iter().filter_map(zone).min()
}

pub fn read(reader: &Reader<Bytes>, options: ReadOptions) -> icefield_orc::Result<Vec<RecordBatch>> {
    reader.batches(options)?.collect()
}

/// Rows picked here and there, and each row group alone: seeks and skips of every encoding.
fn check_selections(reader: &Reader<Bytes>, rows: &[Json], base: &ReadOptions) -> Result<(), Failed> {
    let count = rows.len() as u64;
    let arrow = ArrowOptions { strings: StringForm::Binary, ..base.arrow };
    let stride = reader.metadata().row_index_stride().unwrap_or(700).min(1000);
    let picked: Vec<_> = (0..count).step_by(1 + (count as usize / 7)).map(|row| row..(row + 3).min(count)).collect();
    let mut merged = Vec::new();
    for range in picked {
        if merged.last().is_none_or(|last: &std::ops::Range<u64>| last.end < range.start) {
            merged.push(range);
        }
    }
    let groups =
        (0..count).step_by(2 * stride as usize).skip(1).map(|start| start..(start + stride).min(count)).collect();
    for wanted in [merged, groups] {
        let options = ReadOptions { rows: Some(wanted.clone()), arrow, batch_size: 333, ..base.clone() };
        let batches = read(reader, options)?;
        let numbers: Vec<u64> = wanted.into_iter().flatten().collect();
        compare(reader.metadata(), &batches, rows, numbers)?;
    }
    check_filter(reader, rows, base)
}

/// Wants some rows here and there, far and near, of which it learns by decoding one field.
#[derive(Debug)]
struct SomeRows {
    column: u32,
    seen: AtomicUsize,
}

impl SomeRows {
    fn wants(row: usize) -> bool {
        row % 611 < 2 || row % 97 == 5 || (1500..1600).contains(&row)
    }
}

impl RowFilter for SomeRows {
    fn columns(&self) -> Vec<u32> {
        vec![self.column]
    }

    fn evaluate(&self, batch: &RecordBatch) -> icefield_orc::Result<BooleanArray> {
        let first = self.seen.fetch_add(batch.num_rows(), Ordering::Relaxed);
        Ok((first..first + batch.num_rows()).map(|row| Some(Self::wants(row))).collect())
    }
}

/// A filter's field is decoded first, the others follow to the rows that it wants; each top-level field alone, too.
fn check_filter(reader: &Reader<Bytes>, rows: &[Json], base: &ReadOptions) -> Result<(), Failed> {
    let arrow = ArrowOptions { strings: StringForm::Binary, ..base.arrow };
    let file = reader.metadata();
    let last = file.schema.children.last().filter(|_| file.schema.kind == Kind::Struct);
    let column = last.map_or(0, |child| child.column);
    let filter = Arc::new(SomeRows { column, seen: AtomicUsize::new(0) });
    let options = ReadOptions { filter: Some(filter), arrow, batch_size: 250, ..base.clone() };
    let wanted = (0..rows.len()).filter(|row| SomeRows::wants(*row)).map(|row| row as u64);
    if last.is_some() {
        compare(file, &read(reader, options)?, rows, wanted)?;
    }
    for child in &file.schema.children {
        let projection = Projection::Columns(vec![child.column]);
        let options = ReadOptions { projection, arrow, batch_size: 4000, ..base.clone() };
        let count: usize = read(reader, options)?.iter().map(RecordBatch::num_rows).sum();
        if count != rows.len() {
            return Err(format!("column {} alone: {count} of {} rows", child.column, rows.len()).into());
        }
    }
    Ok(())
}

/// Compares batches with the rows of these numbers.
pub fn compare(
    file: &FileMetadata,
    batches: &[RecordBatch],
    rows: &[Json],
    numbers: impl IntoIterator<Item = u64>,
) -> Result<(), Failed> {
    let mut numbers = numbers.into_iter();
    for batch in batches {
        let struct_root = file.schema.kind == Kind::Struct;
        let whole: Option<ArrayRef> = if struct_root && batch.num_columns() > 0 {
            Some(Arc::new(StructArray::from(batch.clone())))
        } else {
            batch.columns().first().cloned()
        };
        for row in 0..batch.num_rows() {
            let number = numbers.next().ok_or("too many rows")? as usize;
            let expected = rows.get(number).ok_or_else(|| format!("row {number} is none of {}", rows.len()))?;
            let Some(whole) = &whole else { continue };
            check(whole, row, expected, &file.schema).map_err(|error| format!("row {number}: {error}"))?;
        }
    }
    let left = numbers.count();
    if left > 0 { Err(format!("{left} rows are missing").into()) } else { Ok(()) }
}
