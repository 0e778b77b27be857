//! Conversions to numbers.

use super::text;
use super::value::{Overflow, Value};
use crate::column::power_of_ten;

const NANOS: i128 = 1_000_000_000;
/// Most digits of a decimal, before and after the point.
const MOST_DIGITS: i64 = 38;

/// To `boolean`: whether the integral part is not zero; for a decimal, whether the whole value is not.
pub(super) fn boolean(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Decimal(unscaled, _) => Some(unscaled != 0),
        other => Some(long(other)? != 0),
    }
}

/// To `bigint`: fractions are dropped, and a time becomes seconds.
pub(super) fn long(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Boolean(yes) => Some(i64::from(yes)),
        Value::Long(number) => Some(number),
        Value::Double(number) => {
            // 2^63 does not fit into a bigint, but the next smaller double does.
            let fits = -9_223_372_036_854_775_808.0 - number < 1.0 && number < 9_223_372_036_854_775_808.0;
            fits.then_some(number as i64)
        }
        Value::Decimal(unscaled, scale) => i64::try_from(unscaled / power_of_ten(usize::from(scale))?).ok(),
        Value::Text(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        Value::Time(nanos, _) => i64::try_from(nanos.div_euclid(NANOS)).ok(),
        Value::Date(_) | Value::Binary(_) => None,
    }
}

/// To `double`.
pub(super) fn double(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        Value::Decimal(..) => {
            let mut digits = Vec::new();
            text::write(value, &mut digits);
            std::str::from_utf8(&digits).ok()?.parse().ok()
        }
        Value::Text(bytes) => text::read_double(bytes),
        Value::Time(nanos, _) => {
            let (seconds, rest) = (nanos.div_euclid(NANOS) as f64, nanos.rem_euclid(NANOS) as f64);
            Some(seconds + rest / 1e9)
        }
        other => Some(long(other)? as f64),
    }
}

/// To `float`, by way of a double as in orc-core. A number beyond the greatest float is infinite, unless that is an
/// error.
pub(super) fn float(value: Value<'_>, overflow: Overflow) -> Option<f32> {
    let exact = double(value)?;
    let found = exact as f32;
    let lost = found.is_infinite() && exact.is_finite() && overflow == Overflow::Error;
    (!lost).then_some(found)
}

/// To `decimal`: rounded half up to the scale; `None` if there are too many digits before the point.
pub(super) fn decimal(value: Value<'_>, precision: u8, scale: u8) -> Option<i128> {
    let (unscaled, own) = match value {
        Value::Decimal(unscaled, own) => (unscaled, own),
        Value::Double(_) => {
            let mut digits = Vec::new();
            if !text::write(value, &mut digits) {
                return None;
            }
            read_decimal(&digits)?
        }
        Value::Text(bytes) => read_decimal(bytes)?,
        Value::Time(nanos, _) => (nanos, 9),
        other => (i128::from(long(other)?), 0),
    };
    let found = rescale(unscaled, own, scale)?;
    (found.unsigned_abs() < power_of_ten(usize::from(precision))?.unsigned_abs()).then_some(found)
}

/// Changes the scale of a decimal; digits that are lost are rounded half up, away from zero.
fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(power_of_ten(usize::from(to - from))?);
    }
    let step = power_of_ten(usize::from(from - to))?;
    let (whole, rest) = (unscaled / step, unscaled % step);
    let up = rest.unsigned_abs() >= step.unsigned_abs() / 2;
    Some(whole + if up { unscaled.signum() } else { 0 })
}

/// Parses a decimal as `HiveDecimal.create` does: spaces around it, a sign, digits with a point, an exponent. Digits
/// beyond the 38th are rounded; `None` if there are more than 38 before the point.
pub(super) fn read_decimal(bytes: &[u8]) -> Option<(i128, u8)> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches(' ');
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        // HiveDecimal takes exponents of two digits.
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i32>().ok().filter(|exponent| exponent.unsigned_abs() < 100)?)
        }
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = all.trim_start_matches('0');
    if digits.is_empty() {
        return Some((0, 0));
    }
    // Digits before the point, or less than zero: zeros after it.
    let before = i64::try_from(digits.len()).ok()? - i64::try_from(fraction.len()).ok()? + i64::from(exponent);
    if before > MOST_DIGITS {
        return None;
    }
    let room = before + (MOST_DIGITS - before.max(0));
    let kept = usize::try_from(room.max(0)).ok()?.min(digits.len());
    let (kept, lost) = digits.split_at_checked(kept)?;
    let up = room >= 0 && lost.bytes().next().is_some_and(|digit| digit >= b'5');
    let mut unscaled = if kept.is_empty() { 0 } else { kept.parse::<i128>().ok()? } + i128::from(up);
    let mut scale = i64::try_from(kept.len()).ok()? - before;
    if unscaled == 0 {
        return Some((0, 0));
    }
    if scale < 0 {
        unscaled = unscaled.checked_mul(power_of_ten(usize::try_from(-scale).ok()?)?)?;
        scale = 0;
    }
    let limit = power_of_ten(38)?;
    if unscaled == limit && scale > 0 {
        (unscaled, scale) = (limit / 10, scale - 1);
    }
    if unscaled >= limit {
        return None;
    }
    Some((if negative { -unscaled } else { unscaled }, u8::try_from(scale).ok()?))
}
