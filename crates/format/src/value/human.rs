//! Values as text for people, and for partition paths before escaping.
//!
//! The specification leaves the form to implementations; it is that of the reference implementation, since both write
//! to the same folders.

use std::fmt::Write as _;

use crate::primitive::PrimitiveType;
use crate::value::calendar::{self, CivilDate};
use crate::value::{Value, decimal};

/// Formats `value`, of type `ty`; null becomes `null`.
pub fn to_human_string(value: Option<&Value>, ty: &PrimitiveType) -> String {
    use PrimitiveType as T;
    let Some(value) = value else { return "null".to_owned() };
    match (ty, value) {
        (T::Date, Value::Int(days)) => day(*days),
        (T::Time, Value::Long(micros)) => time(*micros),
        (T::Timestamp, Value::Long(micros)) => calendar::format_micros(*micros),
        (T::Timestamptz, Value::Long(micros)) => calendar::format_micros(*micros) + "+00:00",
        (T::TimestampNs, Value::Long(nanos)) => calendar::format_nanos(*nanos),
        (T::TimestamptzNs, Value::Long(nanos)) => calendar::format_nanos(*nanos) + "+00:00",
        (T::Decimal { scale, .. }, Value::Decimal(unscaled)) => decimal::to_scientific_string(*unscaled, *scale),
        (_, value) => untyped(value),
    }
}

/// Formats a value whose text does not depend on the type.
fn untyped(value: &Value) -> String {
    match value {
        Value::Boolean(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Long(v) => v.to_string(),
        Value::Float(v) => float(*v),
        Value::Double(v) => double(*v),
        Value::Decimal(v) => v.to_string(),
        Value::String(v) => v.clone(),
        Value::Uuid(v) => uuid::Uuid::from_bytes(*v).to_string(),
        Value::Binary(v) => base64(v),
        // Never the value of a partition or sort field.
        Value::Variant { .. } | Value::Struct(_) | Value::List(_) | Value::Map(_) => value.kind().to_owned(),
    }
}

/// Formats a year, given as an ordinal from 1970.
pub fn year(ordinal: i32) -> String {
    java_padded(1970 + i64::from(ordinal), 4)
}

/// Formats a month, given as an ordinal from 1970-01.
pub fn month(ordinal: i32) -> String {
    let (years, month) = (ordinal.div_euclid(12), ordinal.rem_euclid(12) + 1);
    format!("{}-{month:02}", year(years))
}

/// Formats a day, given as an ordinal from 1970-01-01.
pub fn day(ordinal: i32) -> String {
    let CivilDate { year, month, day } = CivilDate::from_days(i64::from(ordinal));
    format!("{}-{month:02}-{day:02}", java_padded(year, 4))
}

/// Formats an hour, given as an ordinal from 1970-01-01T00.
pub fn hour(ordinal: i32) -> String {
    let CivilDate { year, month, day } = CivilDate::from_days(i64::from(ordinal.div_euclid(24)));
    format!("{}-{month:02}-{day:02}-{:02}", java_padded(year, 4), ordinal.rem_euclid(24))
}

/// Formats like Java's `%04d`, where the sign counts towards the width.
fn java_padded(number: i64, width: usize) -> String {
    format!("{number:0width$}")
}

/// Formats like Java's `LocalTime.toString`: without zero seconds, and with three, six or nine fractional digits.
fn time(micros: i64) -> String {
    let mut out = calendar::format_time(micros.rem_euclid(calendar::MICROS_PER_DAY) * 1000);
    match out.split_once('.') {
        None => {
            if out.ends_with(":00") {
                out.truncate(5);
            }
        }
        Some((_, fraction)) => {
            let missing = (3 - fraction.len() % 3) % 3;
            out.extend(std::iter::repeat_n('0', missing));
        }
    }
    out
}

/// Formats a float.
pub fn float(value: f32) -> String {
    let reads_back = |text: &str| text.parse() == Ok(value);
    float_text(f64::from(value), &format!("{value:e}"), &format!("{value:.1e}"), reads_back)
}

/// Formats a double.
pub fn double(value: f64) -> String {
    let reads_back = |text: &str| text.parse() == Ok(value);
    float_text(value, &format!("{value:e}"), &format!("{value:.1e}"), reads_back)
}

/// Formats like Java's `toString` of floats (as specified since Java 19): the shortest text that reads back, plain from
/// 0.001 to 10^7, else with an exponent.
///
/// `shortest` and `two_digits` are its texts in scientific notation: if one digit would be enough, Java uses the
/// nearest two digits if they read back too (`4.9E-324`, not `5.0E-324`).
fn float_text(value: f64, shortest: &str, two_digits: &str, reads_back: impl Fn(&str) -> bool) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let one_digit = !shortest.contains('.');
    let text = if one_digit && reads_back(two_digits) { two_digits } else { shortest };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let mut out = sign.to_owned();
    match exponent {
        -3..0 => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            let _ = write!(out, "0.{zeros}{digits}");
        }
        0..7 => {
            let (whole, fraction) = split_padded(digits, exponent.unsigned_abs() as usize + 1);
            let _ = write!(out, "{whole}.{fraction}");
        }
        _ => {
            let (whole, fraction) = split_padded(digits, 1);
            let _ = write!(out, "{whole}.{fraction}E{exponent}");
        }
    }
    out
}

/// Splits `digits` after `at` places, padded with zeros; each part has one digit or more.
fn split_padded(digits: &str, at: usize) -> (String, String) {
    let padded = format!("{digits:0<width$}", width = at + 1);
    let (whole, fraction) = padded.split_at(at);
    (whole.to_owned(), fraction.to_owned())
}

/// Base64 of RFC 4648 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let index = (group >> (18 - 6 * place)) as usize & 63;
            let letter = ALPHABET.get(index).filter(|_| place <= chunk.len()).unwrap_or(&b'=');
            out.push(char::from(*letter));
        }
    }
    out
}
