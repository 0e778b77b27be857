//! Compares the rows of every file: with all keys, no keys, some keys; in microseconds and nanoseconds; whole and in
//! parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StructArray};
use bytes::Bytes;
use icefield_orc::StripeDirectory;
use icefield_orc::proto::StripeInformation;
use icefield_orc::testing::{Context, Zone, sections};
use icefield_orc::{
    ArrowOptions, AsyncReader, AsyncSource, Error, FileMetadata, KeyProvider, Kind, Limits, Projection, ReadOptions,
    Reader, RowFilter, Source, StringForm, StripeReader, TimeUnit,
};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use super::expected::{TZ_DATA_UNTIL, check, decimals_keep_their_digits, exact};
use super::{Golden, trial};

/// The forms of expected rows, and the keys with which they are read.
const FORMS: &[(&str, Keys)] =
    &[("rows.jsonl", Keys::All), ("masked.rows.jsonl", Keys::None), ("partial.rows.jsonl", Keys::First)];

#[derive(Debug, Clone, Copy)]
enum Keys {
    All,
    First,
    None,
}

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let mut trials = vec![trial("rows: decimals keep their digits".to_owned(), decimals_keep_their_digits)];
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
    Ok(lines.lines().map(|line| serde_json::from_str(&exact(line))).collect::<Result<_, _>>()?)
}

/// Reads a file in several ways; each must return the expected rows.
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
    let nanos = ArrowOptions {
        timestamp_unit: TimeUnit::Nanosecond,
        strings: StringForm::Dictionary,
        ..ArrowOptions::default()
    };
    // Every other column has another unit, because one file may have timestamps that need both.
    let columns = 0..reader.metadata().schema.end;
    let mixed = ArrowOptions {
        column_units: columns.step_by(2).map(|column| (column, TimeUnit::Nanosecond)).collect(),
        ..ArrowOptions::default()
    };
    for (arrow, batch_size) in [(arrow.clone(), 1 << 16), (arrow, 97), (nanos, 1000), (mixed, 1 << 16)] {
        let options = ReadOptions { arrow: arrow.clone(), batch_size, ..base.clone() };
        // Text that is not UTF-8 is an error as text, and can be read as bytes.
        let as_bytes = ReadOptions { arrow: ArrowOptions { strings: StringForm::Binary, ..arrow }, ..options.clone() };
        let batches = match read(&reader, options) {
            Err(Error::Value(message)) if message.contains("not UTF-8") => read(&reader, as_bytes)?,
            other => other?,
        };
        compare(reader.metadata(), &batches, rows, 0..rows.len() as u64)?;
    }
    check_in_parts(&reader, rows, &base)?;
    check_selections(&reader, rows, &base)
}

/// Reads row group by row group, as several threads would, and stripe by stripe from a source that answers later.
fn check_in_parts(reader: &Reader<Bytes>, rows: &[Json], base: &ReadOptions) -> Result<(), Failed> {
    let arrow = ArrowOptions { strings: StringForm::Binary, ..base.arrow.clone() };
    let options = Arc::new(ReadOptions { arrow, ..base.clone() });
    let drain = |mut stripe: StripeReader| std::iter::from_fn(move || stripe.next_batch().transpose());
    let pieces = reader.pieces(&options, 1000)?;
    let pieces = pieces.iter().map(|piece| drain(reader.piece(piece, &options)?).collect());
    let batches: Vec<Vec<RecordBatch>> = pieces.collect::<icefield_orc::Result<_>>()?;
    compare(reader.metadata(), &batches.concat(), rows, 0..rows.len() as u64)?;

    let file = reader.metadata();
    compare(file, &by_columns(reader, &options)?, rows, 0..rows.len() as u64)?;

    // Many small requests.
    let options = Arc::new(ReadOptions { longest: 100, ..options.as_ref().clone() });
    let later = async {
        // Keys are tested elsewhere.
        let reader = AsyncReader::open(Later(reader.source().clone())).await?;
        assert_eq!(reader.metadata().schema, file.schema);
        let mut batches = Vec::new();
        for stripe in reader.stripes(&options)? {
            batches.push(drain(reader.stripe(stripe, &options).await?).collect::<icefield_orc::Result<Vec<_>>>()?);
        }
        Ok::<_, Error>(batches.concat())
    };
    let batches = wait(later)?;
    if file.footer.encryption.is_none() {
        compare(file, &batches, rows, 0..rows.len() as u64)?;
    }
    Ok(())
}

/// Reads each column separately, as several threads would, with one context for all.
fn by_columns(reader: &Reader<Bytes>, options: &Arc<ReadOptions>) -> icefield_orc::Result<Vec<RecordBatch>> {
    let numbered = Arc::new(ReadOptions { row_numbers: Some("row".to_owned()), ..options.as_ref().clone() });
    let whole = reader.schema(&numbered)?;
    let own = reader.schema(options)?;
    let mut context = Context::new(reader.metadata())?;
    let mut batches = Vec::new();
    let mut rows = 0;
    for stripe in reader.stripes(&numbered)? {
        let mut columns = reader.stripe(stripe, &numbered)?.by_column();
        assert_eq!(columns.len(), own.fields().len().max(1));
        loop {
            let parts: Vec<_> = columns
                .iter_mut()
                .map(|column| column.next_batch_with(&mut context))
                .collect::<icefield_orc::Result<_>>()?;
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            let Some(first) = parts.first() else { break };
            assert_eq!(parts.len(), columns.len(), "columns of unequal length");
            let all = parts.iter().flat_map(|part| part.columns().iter().cloned()).collect();
            let batch = RecordBatch::try_new(Arc::clone(&whole), all)?;
            let numbers: &Int64Array = batch.column(own.fields().len()).as_primitive();
            assert!(numbers.values().iter().copied().eq(rows..rows + first.num_rows() as i64));
            rows += first.num_rows() as i64;
            batches.push(batch.project(&(0..own.fields().len()).collect::<Vec<_>>())?);
        }
    }
    Ok(batches)
}

/// A source that is never ready immediately.
struct Later(Bytes);

impl AsyncSource for Later {
    async fn length(&self) -> icefield_orc::Result<u64> {
        self.0.length()
    }

    async fn read_ranges(&self, ranges: Vec<std::ops::Range<u64>>) -> icefield_orc::Result<Vec<Bytes>> {
        let mut asked = false;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        ranges.into_iter().map(|range| self.0.read_range(range)).collect()
    }
}

/// Runs a future to its end on this thread.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())) {
            return done;
        }
    }
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

/// Reads scattered rows, and each row group alone, for seeks and skips in every encoding.
fn check_selections(reader: &Reader<Bytes>, rows: &[Json], base: &ReadOptions) -> Result<(), Failed> {
    let count = rows.len() as u64;
    let arrow = ArrowOptions { strings: StringForm::Binary, ..base.arrow.clone() };
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
        let options = ReadOptions { rows: Some(wanted.clone()), arrow: arrow.clone(), batch_size: 333, ..base.clone() };
        let batches = read(reader, options)?;
        let numbers: Vec<u64> = wanted.into_iter().flatten().collect();
        compare(reader.metadata(), &batches, rows, numbers)?;
    }
    check_filter(reader, rows, base)
}

/// A filter that selects scattered rows, near and far apart, by decoding one field.
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

/// Reads with a filter, whose field is decoded first, and the others only for its rows; also each top-level field
/// alone.
fn check_filter(reader: &Reader<Bytes>, rows: &[Json], base: &ReadOptions) -> Result<(), Failed> {
    let arrow = ArrowOptions { strings: StringForm::Binary, ..base.arrow.clone() };
    let file = reader.metadata();
    let last = file.schema.children.last().filter(|_| file.schema.kind == Kind::Struct);
    let column = last.map_or(0, |child| child.column);
    let filter = Arc::new(SomeRows { column, seen: AtomicUsize::new(0) });
    let options = ReadOptions { filter: Some(filter), arrow: arrow.clone(), batch_size: 250, ..base.clone() };
    let wanted = (0..rows.len()).filter(|row| SomeRows::wants(*row)).map(|row| row as u64);
    if last.is_some() {
        compare(file, &read(reader, options)?, rows, wanted)?;
    }
    for child in &file.schema.children {
        let projection = Projection::Columns(vec![child.column]);
        let options = ReadOptions { projection, arrow: arrow.clone(), batch_size: 4000, ..base.clone() };
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
