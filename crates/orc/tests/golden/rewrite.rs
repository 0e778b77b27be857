//! Reads every file and writes it again, in its own form and in others: rows and statistics stay the same.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use bytes::Bytes;
use icefield_orc::Packing;
use icefield_orc::proto::{ColumnStatistics, CompressionKind, IntegerStatistics};
use icefield_orc::testing::Zone;
use icefield_orc::{
    ArrowOptions, BloomVersion, Error, FileMetadata, FileVersion, Kind, LastSecond, Limits, OutOfRange, ReadOptions,
    Reader, StringForm, TimeUnit, Writer, WriterId, WriterOptions,
};
use libtest_mimic::{Failed, Trial};

use super::rows::{check_rows, parse, read};
use super::{Golden, trial};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let names = golden.names().filter(|name| golden.folder.join(format!("expected/{name}.rows.jsonl.gz")).exists());
    names
        .map(|name| {
            let golden = Arc::clone(golden);
            trial(format!("rewrite::{name}"), move || check_file(&golden, &name))
        })
        .collect()
}

fn check_file(golden: &Golden, name: &str) -> Result<(), Failed> {
    let reader = Reader::open_with(Bytes::from(golden.file(name)?), Limits::default(), golden.keys(false))?;
    let file = Arc::clone(reader.metadata());
    let (arrow, batches) = as_exact_as_possible(&reader)?;
    let exact = arrow.timestamp_unit == TimeUnit::Nanosecond && arrow.strings == StringForm::Utf8;
    let schema = reader.schema(&ReadOptions { arrow: arrow.clone(), ..ReadOptions::default() })?;
    for (index, options) in forms(&reader).into_iter().enumerate() {
        let what = format!("form {index}");
        let bytes = match write(&schema, &batches, options.clone()) {
            // Values that a lenient writer has written can only be written rounded.
            Err(Error::Value(message)) if message.contains("last second before 1970") => {
                let rounded = WriterOptions { last_second: LastSecond::Round, ..options };
                let bytes = write(&schema, &batches, rounded)?;
                let rows = Reader::open(bytes)?.metadata().rows();
                check(rows == file.rows(), || format!("{what}: {rows} rows"))?;
                continue;
            }
            other => other.map_err(|error| format!("{what}: {error}"))?,
        };
        let written = Reader::open(bytes.clone())?;
        let again = read(&written, ReadOptions { arrow: arrow.clone(), ..ReadOptions::default() })
            .map_err(|error| format!("{what}: {error}"))?;
        same_rows(&schema, &batches, &again).map_err(|error| format!("{what}: {error}"))?;
        if exact {
            same_statistics(&file, &written, index == 0).map_err(|error| format!("{what}: {error}"))?;
        }
        if index == 0 && exact {
            let rows = parse(&golden.expected(name, "rows.jsonl").ok_or("no rows")?)?;
            check_rows(&bytes, &rows, None, None)?;
        }
    }
    Ok(())
}

/// Reads all rows: with nanoseconds if all timestamps fit, and as text if all text is UTF-8.
pub fn as_exact_as_possible(reader: &Reader<Bytes>) -> Result<(ArrowOptions, Vec<RecordBatch>), Failed> {
    let mut last = None;
    for strings in [StringForm::Utf8, StringForm::Binary] {
        for timestamp_unit in [TimeUnit::Nanosecond, TimeUnit::Microsecond] {
            let arrow =
                ArrowOptions { strings, timestamp_unit, out_of_range: OutOfRange::Error, ..ArrowOptions::default() };
            match read(reader, ReadOptions { arrow: arrow.clone(), batch_size: 700, ..ReadOptions::default() }) {
                Ok(batches) => return Ok((arrow, batches)),
                Err(error @ Error::Value(_)) => last = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
    }
    Err(last.map_or("no rows".into(), Into::into))
}

/// The form of the file, and some that differ from it.
pub fn forms(reader: &Reader<Bytes>) -> Vec<WriterOptions> {
    let file = reader.metadata();
    let stripe_rows = file.footer.stripes.iter().filter_map(|stripe| stripe.number_of_rows).max();
    let zone = (!file.footer.stripes.is_empty()).then(|| reader.directory(0).ok()?.footer.writer_timezone).flatten();
    let own = WriterOptions {
        version: file.version,
        compression: file.compression,
        compression_block_size: file
            .postscript
            .compression_block_size
            .map(|block| block as usize)
            .filter(|block| *block > 0),
        stripe_rows: stripe_rows.filter(|rows| *rows > 0),
        row_index_stride: file.footer.row_index_stride.unwrap_or(0),
        timezone: zone.unwrap_or_else(|| "UTC".to_owned()),
        bare_root: file.schema.kind != Kind::Struct,
        ..WriterOptions::default()
    };
    let names = if own.bare_root { Vec::new() } else { file.schema.names.clone() };
    vec![
        own.clone(),
        WriterOptions {
            version: FileVersion::V2Draft,
            compression: CompressionKind::None,
            packing: Packing::Tight,
            sorted_dictionaries: false,
            dictionary_key_size_threshold: 1.0,
            row_index_stride: 100,
            ..own.clone()
        },
        WriterOptions {
            version: FileVersion::V0_11,
            compression: CompressionKind::Lz4,
            compression_block_size: Some(300),
            stripe_rows: Some(777),
            row_index_stride: 1,
            dictionary_key_size_threshold: 0.0,
            ..own.clone()
        },
        WriterOptions {
            version: FileVersion::V0_12,
            compression: CompressionKind::Zstd,
            compression_block_size: None,
            stripe_size: 1 << 14,
            stripe_rows: None,
            row_index_stride: 250,
            bloom_filter_columns: names,
            bloom_filter_version: BloomVersion::Original,
            block_size: Some(1 << 15),
            ..own
        },
    ]
}

pub fn check(holds: bool, message: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(message().into()) }
}

pub fn write(schema: &Arc<Schema>, batches: &[RecordBatch], options: WriterOptions) -> icefield_orc::Result<Bytes> {
    let mut writer = Writer::try_new(Vec::new(), schema, options)?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    let (bytes, file) = writer.finish()?;
    assert_eq!(file.length, bytes.len() as u64);
    Ok(bytes.into())
}

fn same_rows(schema: &Arc<Schema>, wanted: &[RecordBatch], got: &[RecordBatch]) -> Result<(), String> {
    let count = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    if count(wanted) != count(got) {
        return Err(format!("{} rows of {}", count(got), count(wanted)));
    }
    for (index, field) in schema.fields().iter().enumerate() {
        let column = |batches: &[RecordBatch]| {
            let arrays: Vec<_> = batches.iter().map(|batch| batch.column(index).clone()).collect();
            let arrays: Vec<_> = arrays.iter().map(|array| array.as_ref()).collect();
            if arrays.is_empty() { Ok(None) } else { arrow_select::concat::concat(&arrays).map(Some) }
        };
        let (wanted, got) =
            (column(wanted).map_err(|error| error.to_string())?, column(got).map_err(|error| error.to_string())?);
        if wanted != got {
            return Err(format!("column {}: other values", field.name()));
        }
    }
    Ok(())
}

/// Checks that counts, bounds and sums of the file are those that orc-core wrote for the same rows, except where it is
/// known to be wrong.
fn same_statistics(file: &FileMetadata, written: &Reader<Bytes>, sums: bool) -> Result<(), String> {
    let java = file.writer() == WriterId::JAVA && file.footer.software_version.is_some();
    if !java || file.footer.encryption.is_some() {
        return Ok(());
    }
    let own = &written.metadata().footer.statistics;
    let zone = (!file.footer.stripes.is_empty()).then(|| written.directory(0).ok()?.footer.writer_timezone).flatten();
    let until = zone.and_then(|zone| Zone::named(&zone).ok()?.last_change());
    if own.len() != file.footer.statistics.len() {
        return Err(format!("{} statistics, {} wanted", own.len(), file.footer.statistics.len()));
    }
    for ((node, own), wanted) in file.schema.walk().iter().zip(own).zip(&file.footer.statistics) {
        let (mut own, mut wanted) = (comparable(own, &node.kind), comparable(wanted, &node.kind));
        // orc-core collects no statistics without an index.
        let uncounted = file.row_index_stride().is_none();
        // The files may have different calendars for old days, and different tz data after the last change of a zone.
        let other_calendar = matches!(node.kind, Kind::Date | Kind::Timestamp | Kind::TimestampInstant)
            && file.footer.calendar != written.metadata().footer.calendar;
        if until.is_some_and(|until| !is_before(&wanted, until)) || other_calendar || uncounted {
            continue;
        }
        if !sums {
            // Whether partial sums overflow depends on the stripes.
            (own.int_statistics, wanted.int_statistics) = (without_sum(&own), without_sum(&wanted));
            // A NaN at the start of a row group hides its bounds.
            let nan = wanted.double_statistics.as_ref().is_some_and(|own| own.sum == Some(NAN));
            if nan {
                (own.double_statistics, wanted.double_statistics) = (None, None);
            }
        }
        if let (Some(own), Some(wanted)) = (&mut own.decimal_statistics, &mut wanted.decimal_statistics)
            && own.sum.is_none()
        {
            // orc-core rounds a sum of more than 38 digits; our writer omits it.
            wanted.sum = None;
        }
        if let Some(text) = &mut wanted.string_statistics
            && text.upper_bound.as_ref().is_some_and(|bound| bound.ends_with("\u{FFFD}".as_bytes()))
            && let Some(own) = &mut own.string_statistics
        {
            // orc-core increments some bounds incorrectly (docs/orc-pitfalls.md, "Long strings in statistics").
            check_upper(own.upper_bound.as_deref(), text.upper_bound.as_deref())?;
            (text.upper_bound, own.upper_bound) = (None, None);
        }
        if own != wanted {
            return Err(format!("column {} {}: statistics {own:?}, {wanted:?} wanted", node.column, node.kind));
        }
    }
    Ok(())
}

/// A substitute for NaN, which does not equal itself.
const NAN: f64 = 0.25;

/// Checks that our bound is above the value for which orc-core computed its bound.
fn check_upper(own: Option<&[u8]>, cut: Option<&[u8]>) -> Result<(), String> {
    let head = cut.map(|cut| &cut[..cut.len() - 3]);
    if own.zip(head).is_some_and(|(own, head)| own > head) { Ok(()) } else { Err("an upper bound too low".to_owned()) }
}

fn without_sum(statistics: &ColumnStatistics) -> Option<Box<IntegerStatistics>> {
    statistics.int_statistics.clone().map(|own| Box::new(IntegerStatistics { sum: None, ..*own }))
}

/// Whether all timestamps are before a second.
fn is_before(statistics: &ColumnStatistics, second: i64) -> bool {
    let last = statistics.timestamp_statistics.as_ref().and_then(|own| own.maximum_utc);
    last.is_none_or(|last| last / 1000 < second)
}

/// Removes the statistics that cannot be compared, each for a reason.
fn comparable(statistics: &ColumnStatistics, kind: &Kind) -> ColumnStatistics {
    let mut statistics = statistics.clone();
    // Sizes differ with the codec.
    statistics.bytes_on_disk = None;
    // Those of orc-core are not about the lists (docs/orc-pitfalls.md, "Collection statistics").
    statistics.collection_statistics = None;
    if let Some(own) = &mut statistics.decimal_statistics
        && matches!(kind, Kind::Decimal { precision, .. } if *precision <= 18)
    {
        // A 64-bit sum that overflows (docs/orc-pitfalls.md, "Decimal sums").
        own.sum = None;
    }
    if let Some(own) = &mut statistics.double_statistics {
        // Zeros have no order (docs/orc-pitfalls.md, "Zeros and NaN in statistics"); a sum depends on the order of its
        // parts; NaN does not equal itself.
        let plain = |value: f64| match value {
            0.0 => 0.0,
            value if value.is_nan() => NAN,
            value => value,
        };
        (own.minimum, own.maximum) = (own.minimum.map(plain), own.maximum.map(plain));
        own.sum = own.sum.map(|sum| if sum.is_nan() { NAN } else { format!("{sum:.7e}").parse().unwrap() });
    }
    statistics
}
