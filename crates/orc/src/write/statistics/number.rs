//! Statistics of integers, doubles, dates, decimals and timestamps: minimum, maximum, sum.

use super::Summary;
use crate::predicate::decimal_text;
use crate::proto::{
    ColumnStatistics as Message, DateStatistics, DecimalStatistics, DoubleStatistics, IntegerStatistics,
    TimestampStatistics,
};

/// The range that covers two ranges.
fn join<T: PartialOrd + Copy>(own: Option<(T, T)>, later: Option<(T, T)>) -> Option<(T, T)> {
    let (Some(own), Some(later)) = (own, later) else { return own.or(later) };
    // With NaN, comparisons are false, so the first operand is kept.
    let least = if later.0 < own.0 { later.0 } else { own.0 };
    let most = if later.1 > own.1 { later.1 } else { own.1 };
    Some((least, most))
}

/// The minimum and maximum of a slice; both are NaN if the first value is.
pub(super) fn range<T: PartialOrd + Copy>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    let (mut least, mut most) = (first, first);
    for value in values {
        least = if *value < least { *value } else { least };
        most = if *value > most { *value } else { most };
    }
    Some((least, most))
}

/// Statistics of `tinyint` to `bigint`.
#[derive(Debug, Clone)]
pub(crate) struct Integers {
    range: Option<(i64, i64)>,
    /// `None` once the sum has overflowed.
    sum: Option<i64>,
}

impl Default for Integers {
    fn default() -> Self {
        Self { range: None, sum: Some(0) }
    }
}

impl Integers {
    /// Adds values.
    pub(crate) fn add(&mut self, values: &[i64]) {
        let Some((least, most)) = range(values) else { return };
        self.range = join(self.range, Some((least, most)));
        let Some(sum) = self.sum else { return };
        let largest = u128::from(least.unsigned_abs().max(most.unsigned_abs()));
        let reach = largest.saturating_mul(values.len() as u128).saturating_add(u128::from(sum.unsigned_abs()));
        self.sum = if reach <= i64::MAX as u128 {
            Some(values.iter().fold(sum, |sum, value| sum.wrapping_add(*value)))
        } else {
            values.iter().try_fold(sum, |sum, value| sum.checked_add(*value))
        };
    }
}

impl Summary for Integers {
    fn merge(&mut self, later: &Self) {
        self.range = join(self.range, later.range);
        self.sum = self.sum.zip(later.sum).and_then(|(own, later)| own.checked_add(later));
    }

    fn put(&self, message: &mut Message) {
        message.int_statistics = Some(Box::new(IntegerStatistics {
            minimum: self.range.map(|range| range.0),
            maximum: self.range.map(|range| range.1),
            sum: self.sum,
        }));
    }
}

/// Statistics of `float` and `double`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubles {
    range: Option<(f64, f64)>,
    sum: f64,
}

impl Doubles {
    /// Adds values.
    pub(crate) fn add(&mut self, values: &[f64]) {
        self.range = join(self.range, range(values));
        self.sum = values.iter().fold(self.sum, |sum, value| sum + value);
    }
}

impl Summary for Doubles {
    fn merge(&mut self, later: &Self) {
        self.range = join(self.range, later.range);
        self.sum += later.sum;
    }

    /// Writes zero bounds so that both zeros are within them. orc-core sorts -0.0 before 0.0, so it would skip a row
    /// group with -0.0 and 0.0 if both bounds were -0.0 (docs/orc-pitfalls.md, "Zeros and NaN in statistics").
    fn put(&self, message: &mut Message) {
        message.double_statistics = Some(Box::new(DoubleStatistics {
            minimum: self.range.map(|range| if range.0 == 0.0 { -0.0 } else { range.0 }),
            maximum: self.range.map(|range| if range.1 == 0.0 { 0.0 } else { range.1 }),
            sum: Some(self.sum),
        }));
    }
}

/// Statistics of `date`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Days {
    range: Option<(i64, i64)>,
}

impl Days {
    /// Adds days, which all fit 32 bits.
    pub(crate) fn add(&mut self, days: &[i64]) {
        self.range = join(self.range, range(days));
    }
}

impl Summary for Days {
    fn merge(&mut self, later: &Self) {
        self.range = join(self.range, later.range);
    }

    fn put(&self, message: &mut Message) {
        message.date_statistics = Some(Box::new(DateStatistics {
            minimum: self.range.map(|range| range.0 as i32),
            maximum: self.range.map(|range| range.1 as i32),
        }));
    }
}

/// One more than the maximum magnitude of a sum of decimals.
const SUM_LIMIT: u128 = 10u128.pow(38);

/// Statistics of `decimal`.
#[derive(Debug, Clone)]
pub(crate) struct Decimals {
    scale: u8,
    range: Option<(i128, i128)>,
    /// `None` once the sum has more than 38 digits.
    sum: Option<i128>,
}

impl Decimals {
    /// The statistics of no values with a scale.
    pub(crate) fn new(scale: u8) -> Self {
        Self { scale, range: None, sum: Some(0) }
    }

    /// Adds values.
    pub(crate) fn add(&mut self, values: &[i128]) {
        self.range = join(self.range, range(values));
        self.add_sum(values.iter().copied());
    }

    /// Adds 64-bit values.
    pub(crate) fn add_short(&mut self, values: &[i64]) {
        let found = range(values);
        self.range = join(self.range, found.map(|(least, most)| (i128::from(least), i128::from(most))));
        let reach = found.map_or(0, |(least, most)| u128::from(least.unsigned_abs().max(most.unsigned_abs())));
        if reach.saturating_mul(values.len() as u128) <= i64::MAX as u128 {
            let sum = values.iter().fold(0i64, |sum, value| sum.wrapping_add(*value));
            self.add_sum([i128::from(sum)]);
        } else {
            self.add_sum(values.iter().map(|value| i128::from(*value)));
        }
    }

    fn add_sum(&mut self, values: impl IntoIterator<Item = i128>) {
        let add = |sum: i128, value: i128| sum.checked_add(value).filter(|sum| sum.unsigned_abs() < SUM_LIMIT);
        self.sum = self.sum.and_then(|sum| values.into_iter().try_fold(sum, add));
    }
}

impl Summary for Decimals {
    fn merge(&mut self, later: &Self) {
        self.range = join(self.range, later.range);
        match later.sum {
            Some(sum) => self.add_sum([sum]),
            None => self.sum = None,
        }
    }

    fn put(&self, message: &mut Message) {
        let text = |value: i128| decimal_text(value, self.scale).into_bytes();
        message.decimal_statistics = Some(Box::new(DecimalStatistics {
            minimum: self.range.map(|range| text(range.0)),
            maximum: self.range.map(|range| text(range.1)),
            sum: self.sum.map(text),
        }));
    }
}

/// Statistics of both kinds of timestamps: seconds since 1970, and nanoseconds from 0, as if they were in UTC.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instants {
    range: Option<((i64, i64), (i64, i64))>,
}

impl Instants {
    /// Adds the minimum and maximum of some values.
    pub(crate) fn add(&mut self, first: (i64, i64), last: (i64, i64)) {
        self.range = join(self.range, Some((first, last)));
    }
}

impl Summary for Instants {
    fn merge(&mut self, later: &Self) {
        self.range = join(self.range, later.range);
    }

    /// Writes milliseconds, and the remaining six digits plus one. The digits are omitted if they are 0 in the minimum,
    /// or 999999 in the maximum.
    fn put(&self, message: &mut Message) {
        let mut own = TimestampStatistics::default();
        if let Some((first, last)) = self.range {
            let millis = |(second, nano): (i64, i64)| second.saturating_mul(1000).saturating_add(nano / 1_000_000);
            let digits = |(_, nano): (i64, i64)| (nano % 1_000_000) as i32;
            (own.minimum_utc, own.maximum_utc) = (Some(millis(first)), Some(millis(last)));
            own.minimum_nanos = Some(digits(first) + 1).filter(|nanos| *nanos != 1);
            own.maximum_nanos = Some(digits(last) + 1).filter(|nanos| *nanos != 1_000_000);
        }
        message.timestamp_statistics = Some(Box::new(own));
    }
}
