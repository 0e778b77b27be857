//! Evaluates tests by column statistics ("Column Statistics"; docs/orc-pitfalls.md, "Statistics").

use std::cmp::Ordering;

use super::{Literal, Test, Truth};
use crate::origin::{WriterId, WriterVersion};
use crate::proto::{ColumnStatistics, StringStatistics};
use crate::tail::FileMetadata;
use crate::types::{Kind, MAX_SHORT_PRECISION, TypeDescription};

/// Which statistics of a file can be trusted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    /// The version of the Java writer; for other writers at least ORC-517, as they never had Java's bugs.
    version: WriterVersion,
}

impl Trust {
    /// The trust in the writer of a file.
    pub(crate) fn of(file: &FileMetadata) -> Self {
        // The version numbers of other writers do not refer to Java's bugs. A Java version newer than the known ones
        // has every fix.
        let version = file.writer_version();
        Self { version: if file.writer() == WriterId::JAVA { version } else { version.max(WriterVersion::ORC_517) } }
    }

    /// Whether the bounds of columns of this kind can be used.
    fn bounds(self, kind: &Kind) -> bool {
        match kind {
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } | Kind::Date | Kind::Boolean => {
                self.version >= WriterVersion::HIVE_8732
            }
            Kind::Timestamp | Kind::TimestampInstant => self.version >= WriterVersion::ORC_135,
            Kind::Decimal { precision, .. } if *precision <= MAX_SHORT_PRECISION => {
                self.version >= WriterVersion::HIVE_8732 && self.version != WriterVersion::ORC_135
            }
            Kind::Decimal { .. } => self.version >= WriterVersion::HIVE_8732,
            _ => true,
        }
    }
}

/// The bounds of some values; an absent bound is unknown.
#[derive(Debug, Default)]
struct ValueBounds {
    low: Option<Literal>,
    high: Option<Literal>,
}

/// The possible values of a test for the rows with these statistics. `nested` means that a parent below the root may be
/// null: the column is null in such rows, but its statistics do not count them.
pub(crate) fn evaluate(
    test: &Test,
    node: &TypeDescription,
    statistics: &ColumnStatistics,
    trust: Trust,
    nested: bool,
) -> Truth {
    let cut = matches!(node.kind, Kind::Char { .. }).then(|| of_cut_values(test));
    let test = cut.as_ref().unwrap_or(test);
    let nulls = nested || statistics.has_null.unwrap_or(true);
    let none = statistics.number_of_values == Some(0);
    match test {
        Test::IsNull if none => Truth::TRUE,
        Test::IsNull if nulls => Truth::TRUE.or_also(Truth::FALSE),
        Test::IsNull => Truth::FALSE,
        Test::NullSafeEquals(_) if none => Truth::FALSE,
        Test::NullSafeEquals(value) => {
            let truth = compare(&Test::Equals(value.clone()), &bounds(node, statistics, trust));
            if nulls { truth.or_also(Truth::FALSE) } else { truth }
        }
        _ if none => Truth::NULL,
        other => {
            let truth = compare(other, &bounds(node, statistics, trust));
            if nulls { truth.or_also(Truth::NULL) } else { truth }
        }
    }
}

const YES_NO: Truth = Truth(3);

fn compare(test: &Test, bounds: &ValueBounds) -> Truth {
    let to = |end: &Option<Literal>, value: &Literal| end.as_ref().and_then(|end| end.compare(value));
    let below = |value: &Literal| to(&bounds.high, value) == Some(Ordering::Less);
    let above = |value: &Literal| to(&bounds.low, value) == Some(Ordering::Greater);
    let only = |value: &Literal| {
        to(&bounds.low, value) == Some(Ordering::Equal) && to(&bounds.high, value) == Some(Ordering::Equal)
    };
    let decide = |never: bool, always: bool| match (never, always) {
        (true, _) => Truth::FALSE,
        (_, true) => Truth::TRUE,
        _ => YES_NO,
    };
    match test {
        Test::Equals(value) | Test::NullSafeEquals(value) => decide(below(value) || above(value), only(value)),
        Test::LessThan(value) => {
            decide(matches!(to(&bounds.low, value), Some(Ordering::Greater | Ordering::Equal)), below(value))
        }
        Test::LessThanEquals(value) => {
            decide(above(value), matches!(to(&bounds.high, value), Some(Ordering::Less | Ordering::Equal)))
        }
        Test::In(values) => decide(values.iter().all(|value| below(value) || above(value)), values.iter().any(only)),
        Test::Between(low, high) => decide(
            below(low) || above(high),
            matches!(to(&bounds.low, low), Some(Ordering::Greater | Ordering::Equal))
                && matches!(to(&bounds.high, high), Some(Ordering::Less | Ordering::Equal)),
        ),
        Test::IsNull => YES_NO,
    }
}

fn bounds(node: &TypeDescription, statistics: &ColumnStatistics, trust: Trust) -> ValueBounds {
    if !trust.bounds(&node.kind) {
        return ValueBounds::default();
    }
    match &node.kind {
        Kind::Byte | Kind::Short | Kind::Int | Kind::Long => statistics
            .int_statistics
            .as_deref()
            .map(|own| ValueBounds { low: own.minimum.map(Literal::Long), high: own.maximum.map(Literal::Long) }),
        Kind::Boolean => boolean_bounds(statistics),
        Kind::Float | Kind::Double => double_bounds(statistics),
        Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => {
            statistics.string_statistics.as_deref().map(|own| text_bounds(own, &node.kind))
        }
        Kind::Date => statistics.date_statistics.as_deref().map(|own| ValueBounds {
            low: own.minimum.map(|day| Literal::Date(i64::from(day))),
            high: own.maximum.map(|day| Literal::Date(i64::from(day))),
        }),
        Kind::Decimal { .. } => statistics.decimal_statistics.as_deref().map(|own| ValueBounds {
            low: own.minimum.as_deref().and_then(read_decimal),
            high: own.maximum.as_deref().and_then(read_decimal),
        }),
        Kind::Timestamp | Kind::TimestampInstant => statistics.timestamp_statistics.as_deref().map(|own| ValueBounds {
            low: own.minimum_utc.and_then(|millis| timestamp(millis, own.minimum_nanos, 0)),
            high: own.maximum_utc.and_then(|millis| timestamp(millis, own.maximum_nanos, 999_999)),
        }),
        _ => None,
    }
    .unwrap_or_default()
}

fn boolean_bounds(statistics: &ColumnStatistics) -> Option<ValueBounds> {
    let all = statistics.number_of_values?;
    let own = statistics.bucket_statistics.as_deref()?;
    let &[yes] = own.count.as_slice() else { return None };
    if yes > all {
        return None;
    }
    Some(ValueBounds { low: Some(Literal::Boolean(yes == all)), high: Some(Literal::Boolean(yes > 0)) })
}

/// The bounds of floats: none if a NaN is among the values, which only the sum shows.
fn double_bounds(statistics: &ColumnStatistics) -> Option<ValueBounds> {
    let own = statistics.double_statistics.as_deref()?;
    if own.sum.is_none_or(f64::is_nan) || own.minimum.is_none_or(f64::is_nan) || own.maximum.is_none_or(f64::is_nan) {
        return None;
    }
    Some(ValueBounds { low: own.minimum.map(Literal::Double), high: own.maximum.map(Literal::Double) })
}

/// The bounds of text. A bound with U+FFFD is ignored: Java replaces bytes that are not UTF-8 by this character, and it
/// can also result from incrementing a truncated upper bound.
///
/// The bounds of `char` are padded with spaces, unlike its values. The padded maximum is above all values. The minimum
/// without its padding is below them, unless it contains a character that sorts before the space.
fn text_bounds(own: &StringStatistics, kind: &Kind) -> ValueBounds {
    const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();
    let padded = matches!(kind, Kind::Char { .. });
    let sound = |bytes: &&Vec<u8>| {
        std::str::from_utf8(bytes).is_ok() && !bytes.windows(REPLACEMENT.len()).any(|window| window == REPLACEMENT)
    };
    let low = own.minimum.as_ref().or(own.lower_bound.as_ref()).filter(sound);
    let low = low.filter(|bytes| !padded || bytes.iter().all(|byte| *byte >= b' '));
    let high = own.maximum.as_ref().or(own.upper_bound.as_ref()).filter(sound);
    let cut = |bytes: &Vec<u8>| if padded { without_padding(bytes) } else { bytes.clone() };
    ValueBounds {
        low: low.map(|bytes| Literal::Text(cut(bytes))),
        high: high.map(|bytes| Literal::Text(bytes.clone())),
    }
}

/// Text without trailing spaces.
fn without_padding(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    bytes.get(..length).unwrap_or_default().to_vec()
}

/// The test for values of `char`, which have no trailing spaces: removes those of its literals.
fn of_cut_values(test: &Test) -> Test {
    let cut = |literal: &Literal| match literal {
        Literal::Text(bytes) => Literal::Text(without_padding(bytes)),
        other => other.clone(),
    };
    match test {
        Test::Equals(value) => Test::Equals(cut(value)),
        Test::NullSafeEquals(value) => Test::NullSafeEquals(cut(value)),
        Test::LessThan(value) => Test::LessThan(cut(value)),
        Test::LessThanEquals(value) => Test::LessThanEquals(cut(value)),
        Test::In(values) => Test::In(values.iter().map(cut).collect()),
        Test::Between(low, high) => Test::Between(cut(low), cut(high)),
        Test::IsNull => Test::IsNull,
    }
}

/// A timestamp from milliseconds and the last six digits of its nanoseconds plus one; `absent` replaces digits that
/// were not written.
fn timestamp(millis: i64, nanos: Option<i32>, absent: i64) -> Option<Literal> {
    let last = nanos.map_or(absent, |nanos| i64::from(nanos) - 1);
    if !(0..1_000_000).contains(&last) {
        return None;
    }
    let nanos = millis.rem_euclid(1000) * 1_000_000 + last;
    Some(Literal::Timestamp { seconds: millis.div_euclid(1000), nanos: u32::try_from(nanos).ok()? })
}

/// Parses a decimal: digits, optionally with a sign, a decimal point, an exponent.
pub(super) fn read_decimal(text: &[u8]) -> Option<Literal> {
    let text = std::str::from_utf8(text).ok()?;
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = [whole, fraction].concat();
    let mut unscaled = digits.parse::<i128>().ok()?;
    let mut scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    while scale < 0 {
        unscaled = unscaled.checked_mul(10)?;
        scale += 1;
    }
    Some(Literal::Decimal { unscaled, scale: u8::try_from(scale).ok()? })
}
