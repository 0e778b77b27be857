//! Applies `year`, `month`, `day` and `hour` to Arrow arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Date32Array, Int32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::vectorized::{by_block, vectorized};
use crate::error::{Error, Result};
use crate::transform::Transform;
use crate::value::calendar::CivilDate;

const SECONDS_PER_DAY: i64 = 86_400;

/// Computes the results of a time transform; `None` if it does not accept the type of `array`.
pub(super) fn kernel(transform: &Transform, array: &ArrayRef) -> Result<Option<ArrayRef>> {
    let nulls = array.nulls();
    let results = match array.data_type() {
        DataType::Date32 => match transform {
            Transform::Year | Transform::Month => {
                let values = array.as_primitive::<Date32Type>().values();
                let mut failed = false;
                let results = by_block(values, |values, out| {
                    out.copy_from_slice(values);
                    failed |= !civil(transform, out);
                });
                if failed { scalar(transform, values, nulls, 1, i64::from)? } else { results }
            }
            Transform::Day => return Ok(Some(array.clone())),
            _ => return Ok(None),
        },
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => {
                timestamps::<1>(transform, array.as_primitive::<TimestampSecondType>().values(), nulls)?
            }
            TimeUnit::Millisecond => {
                timestamps::<1_000>(transform, array.as_primitive::<TimestampMillisecondType>().values(), nulls)?
            }
            TimeUnit::Microsecond => {
                timestamps::<1_000_000>(transform, array.as_primitive::<TimestampMicrosecondType>().values(), nulls)?
            }
            TimeUnit::Nanosecond => {
                timestamps::<1_000_000_000>(transform, array.as_primitive::<TimestampNanosecondType>().values(), nulls)?
            }
        },
        _ => return Ok(None),
    };
    Ok(Some(match transform {
        Transform::Day => Arc::new(Date32Array::new(results.into(), nulls.cloned())),
        _ => Arc::new(Int32Array::new(results.into(), nulls.cloned())),
    }))
}

/// Computes the results for timestamps with `PER_SECOND` units per second.
fn timestamps<const PER_SECOND: i64>(
    transform: &Transform,
    values: &[i64],
    nulls: Option<&NullBuffer>,
) -> Result<Vec<i32>> {
    let mut failed = false;
    let results = by_block(values, |values, out| match transform {
        Transform::Hour => failed |= !passed(values, out, const { Span::new(PER_SECOND * 3_600) }),
        _ => {
            let exact = passed(values, out, const { Span::new(PER_SECOND * SECONDS_PER_DAY) });
            failed |= !(exact && civil(transform, out));
        }
    });
    if !failed {
        return Ok(results);
    }
    scalar(transform, values, nulls, PER_SECOND * SECONDS_PER_DAY, |value| value)
}

/// Converts days to years or months for those transforms; returns whether all days were in the range of the fast path.
fn civil(transform: &Transform, days: &mut [i32]) -> bool {
    match transform {
        Transform::Year => years(days),
        Transform::Month => months(days),
        _ => true,
    }
}

/// Computes the results value by value, for arrays that the fast path cannot handle: distant times, or garbage under a
/// null.
fn scalar<T: Copy>(
    transform: &Transform,
    values: &[T],
    nulls: Option<&NullBuffer>,
    per_day: i64,
    long: impl Fn(T) -> i64,
) -> Result<Vec<i32>> {
    let result = |(i, value): (usize, &T)| {
        if nulls.is_some_and(|nulls| nulls.is_null(i)) {
            return Ok(0);
        }
        let value = long(*value);
        let days = value.div_euclid(per_day);
        let ordinal = match transform {
            Transform::Year => CivilDate::from_days(days).year - 1970,
            Transform::Month => {
                let date = CivilDate::from_days(days);
                (date.year - 1970) * 12 + i64::from(date.month) - 1
            }
            Transform::Hour => value.div_euclid(per_day / 24),
            _ => days,
        };
        i32::try_from(ordinal).map_err(|_| {
            let message = format!("transform {transform}: the result for {value} does not fit 32 bits");
            Error::Value { row: i, message }
        })
    };
    values.iter().enumerate().map(result).collect()
}

/// Length of a time unit, in units of a timestamp, as a power of two times an odd number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    shift: u32,
    odd: f64,
    reciprocal: f64,
}

impl Span {
    const fn new(units: i64) -> Self {
        let shift = units.trailing_zeros();
        let odd = (units >> shift) as f64;
        Self { shift, odd, reciprocal: 1.0 / odd }
    }
}

/// Adding this to a number below 51 bits leaves the number as an integer in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;
const ROUND_BITS: i64 = 0x4338_0000_0000_0000;

vectorized! {
    /// Divides by a span, rounding down; returns whether all results are exact and fit.
    ///
    /// Vector instructions cannot divide integers, so the odd part of the division uses doubles. A number of 51 bits is
    /// exact as a double. The nearest integer quotient leaves a remainder of half the divisor or less, which is exact
    /// too, and a negative remainder means that the quotient was rounded up.
    fn passed(values: &[i64], out: &mut [i32], span: Span) -> bool {
        let mut lost = 0;
        for (out, value) in out.iter_mut().zip(values) {
            let number = *value >> span.shift;
            lost |= number.wrapping_add(1 << 50) >> 51;
            let number = f64::from_bits(number.wrapping_add(ROUND_BITS) as u64) - ROUND;
            let rounded = number * span.reciprocal + ROUND;
            let above = number - (rounded - ROUND) * span.odd < 0.0;
            let quotient = (rounded.to_bits() as i64).wrapping_sub(ROUND_BITS) - i64::from(above);
            *out = quotient as i32;
            lost |= i64::from(*out) ^ quotient;
        }
        lost == 0
    }
}

/// Cycles of 400 years that are added, so that days up to a million years before and after 1970 are positive.
const CYCLES: i32 = 3_600;
/// Days from 1 March of the year `-400 * CYCLES` to 1970-01-01.
const SHIFT: u32 = 719_468 + 146_097 * CYCLES as u32;

/// A date, in years that start in March (so that the leap day is the last), by Neri and Schneider's "Euclidean affine
/// functions": divisions become multiplications whose low half contains the remainder.
struct Shifted {
    /// Years since 1 March of the year `-400 * CYCLES`.
    year: u32,
    /// Counted from 0.
    day_of_year: u32,
}

impl Shifted {
    /// Exact if `days + SHIFT` is not negative and fits in 30 bits.
    #[inline(always)]
    fn from_days(days: i32) -> Self {
        let quarter_days = (days as u32).wrapping_add(SHIFT).wrapping_mul(4) | 3;
        let century = quarter_days / 146_097;
        let of_century = quarter_days.wrapping_sub(century.wrapping_mul(146_097)) | 3;
        // floor(n / 1461) = floor(2939745 * n / 2^32) for every n that occurs, and the low half contains the remainder.
        let product = 2_939_745 * u64::from(of_century);
        let day_of_year = (product as u32) / 2_939_745 / 4;
        Self { year: century.wrapping_mul(100).wrapping_add((product >> 32) as u32), day_of_year }
    }
}

/// Zero if the fast path is exact; results are combined by `|`.
#[inline(always)]
fn out_of_range(days: i32) -> u32 {
    (days as u32).wrapping_add(SHIFT) >> 30
}

vectorized! {
    /// Converts days to years; returns whether all were in range.
    fn years(values: &mut [i32]) -> bool {
        let mut outside = 0;
        for value in values {
            outside |= out_of_range(*value);
            let date = Shifted::from_days(*value);
            // January and February, from day 306 on, belong to the next year.
            let year = date.year.wrapping_add(u32::from(date.day_of_year >= 306));
            *value = (year as i32).wrapping_sub(1970 + 400 * CYCLES);
        }
        outside == 0
    }
}

vectorized! {
    /// Converts days to months; returns whether all were in range.
    fn months(values: &mut [i32]) -> bool {
        let mut outside = 0;
        for value in values {
            outside |= out_of_range(*value);
            let date = Shifted::from_days(*value);
            // 3 for March to 14 for February.
            let month = (date.day_of_year.wrapping_mul(2_141).wrapping_add(197_913)) >> 16;
            let months = date.year.wrapping_mul(12).wrapping_add(month);
            *value = (months as i32).wrapping_sub((1970 + 400 * CYCLES) * 12 + 1);
        }
        outside == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(days: i32) {
        let date = CivilDate::from_days(i64::from(days));
        let expected_year = (date.year - 1970) as i32;
        let (mut year, mut month) = ([days], [days]);
        assert!(years(&mut year) && months(&mut month), "day {days}");
        assert_eq!(year[0], expected_year, "year of day {days}");
        assert_eq!(month[0], expected_year * 12 + date.month as i32 - 1, "month of day {days}");
    }

    #[test]
    fn every_day_of_four_centuries_around_the_epoch_and_the_ends_of_the_range() {
        let every = if cfg!(miri) { 997 } else { 1 };
        (-160_000..160_000).step_by(every).for_each(check);
        let (first, last) = (-(SHIFT as i32), (1 << 30) - 1 - SHIFT as i32);
        (first..first + 150_000).chain(last - 150_000..=last).step_by(every).for_each(check);
        for outside in [i32::MIN, first - 1, last + 1, i32::MAX] {
            assert!(!years(&mut [0, outside]) && !months(&mut [outside, 0]), "day {outside}");
        }
    }

    #[test]
    fn what_has_passed_is_rounded_down() {
        let mut seed = 1_u64;
        for units in [1, 1_000, 1_000_000, 1_000_000_000].into_iter().flat_map(|unit| [unit * 3_600, unit * 86_400]) {
            let multiples = (0..if cfg!(miri) { 8 } else { 2000 }).map(|i: i64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed as i64 >> (i % 64)) / units * units
            });
            let mut values: Vec<i64> = multiples.flat_map(|m| (-2..=2).map(move |near| m.wrapping_add(near))).collect();
            let furthest = (1_i64 << 50).saturating_mul(1 << units.trailing_zeros());
            values.extend([i64::MIN, i64::MAX, -furthest, furthest - 1, furthest, -furthest - 1, 0, -1]);
            for value in values {
                let mut out = [0];
                if passed(&[value], &mut out, Span::new(units)) {
                    assert_eq!(i64::from(out[0]), value.div_euclid(units), "{value} / {units}");
                } else {
                    let fits = i32::try_from(value.div_euclid(units)).is_ok();
                    assert!(!fits || !(-furthest..furthest).contains(&value), "{value} / {units}");
                }
            }
        }
    }

    #[test]
    fn timestamps_of_all_units_stay_in_range() {
        for days in [i64::MIN, i64::MAX].map(|micros| micros.div_euclid(86_400_000_000)) {
            check(i32::try_from(days).unwrap());
        }
    }
}
