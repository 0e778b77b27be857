//! Of integers, doubles, days, decimals and timestamps: minimum, maximum, sum.

use super::Summary;
use crate::predicate::decimal_text;
use crate::proto::{
    ColumnStatistics as Message, DateStatistics, DecimalStatistics, DoubleStatistics, IntegerStatistics,
    TimestampStatistics,
};

/// The minimum and maximum of two ranges.
fn join<T: PartialOrd + Copy>(own: Option<(T, T)>, later: Option<(T, T)>) -> Option<(T, T)> {
    let (Some(own), Some(later)) = (own, later) else { return own.or(later) };
    // The order of operands decides for NaN: the first one stays.
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

/// Of `tinyint` to `bigint`.
#[derive(Debug, Clone)]
pub(crate) struct Integers {
    range: Option<(i64, i64)>,
    /// `None` after an overflow on the way.
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

/// Of `float` and `double`.
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

    /// A zero bound is written so that both zeros lie inside: orc-core orders -0.0 before 0.0, and would skip a group of
    /// -0.0 and 0.0 whose bounds are both -0.0 (docs/orc-pitfalls.md, "Zeros and NaN in statistics").
    fn put(&self, message: &mut Message) {
        message.double_statistics = Some(Box::new(DoubleStatistics {
            minimum: self.range.map(|range| if range.0 == 0.0 { -0.0 } else { range.0 }),
            maximum: self.range.map(|range| if range.1 == 0.0 { 0.0 } else { range.1 }),
            sum: Some(self.sum),
        }));
    }
}

/// Of `date`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Days {
    range: Option<(i64, i64)>,
}

impl Days {
    /// Adds days, all of 32 bits.
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

/// One more than the greatest sum of decimals, either way.
const SUM_LIMIT: u128 = 10u128.pow(38);

/// Of `decimal`.
#[derive(Debug, Clone)]
pub(crate) struct Decimals {
    scale: u8,
    range: Option<(i128, i128)>,
    /// `None` for more than 38 digits.
    sum: Option<i128>,
}

impl Decimals {
    /// Of no values, of a scale.
    pub(crate) fn new(scale: u8) -> Self {
        Self { scale, range: None, sum: Some(0) }
    }

    /// Adds values.
    pub(crate) fn add(&mut self, values: &[i128]) {
        self.range = join(self.range, range(values));
        self.add_sum(values.iter().copied());
    }

    /// Adds values of 64 bits.
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

/// Of both kinds of timestamps: seconds from 1970, and nanoseconds from 0, as if they were UTC.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instants {
    range: Option<((i64, i64), (i64, i64))>,
}

impl Instants {
    /// Adds the first and the last of some values.
    pub(crate) fn add(&mut self, first: (i64, i64), last: (i64, i64)) {
        self.range = join(self.range, Some((first, last)));
    }
}

impl Summary for Instants {
    fn merge(&mut self, later: &Self) {
        self.range = join(self.range, later.range);
    }

    /// Milliseconds, and the six digits below them plus one; 0 of the minimum and 999999 of the maximum are left out.
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
