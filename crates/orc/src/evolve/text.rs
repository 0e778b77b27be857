//! Conversions to text in the forms of Java (`Double.toString`, `HiveDecimal.toString`), and from it to doubles.

use super::time;
use super::value::Value;
use crate::predicate::decimal_text;

/// Writes a value as text; false for NaN, which orc-core reads as null.
pub(super) fn write(value: Value<'_>, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Boolean(yes) => out.extend_from_slice(if yes { b"TRUE" } else { b"FALSE" }),
        Value::Long(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(number) if number.is_nan() => return false,
        Value::Double(number) => out.extend_from_slice(double(number).as_bytes()),
        Value::Decimal(unscaled, scale) => out.extend_from_slice(decimal_text(unscaled, scale).as_bytes()),
        Value::Text(bytes) => out.extend_from_slice(bytes),
        Value::Binary(bytes) => {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            out.extend_from_slice(hex.join(" ").as_bytes());
        }
        Value::Time(nanos, instant) => out.extend_from_slice(time::written(nanos, instant).as_bytes()),
        Value::Date(day) => out.extend_from_slice(time::written_day(day).as_bytes()),
    }
    true
}

/// A value as it is shown in an error.
pub(super) fn shown(value: Value<'_>) -> String {
    let mut bytes = Vec::new();
    match write(value, &mut bytes) {
        false => "NaN".to_owned(),
        true if matches!(value, Value::Text(_)) => {
            let text = String::from_utf8_lossy(&bytes);
            format!("{:?}", text.chars().take(60).collect::<String>())
        }
        true => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Writes a double as `Double.toString`: its shortest digits, at least two of them, with an exponent below 10^-3 and
/// from 10^7 on.
fn double(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0.0" } else { "0.0" }.to_owned();
    }
    let shortest = format!("{number:e}");
    // Of the decimals of two digits, the nearest is chosen: 4.9E-324, not 5.0E-324.
    let two = format!("{number:.1e}");
    let one_digit = !shortest.contains('.');
    let chosen = if one_digit && two.parse() == Ok(number) { two } else { even(number, shortest) };
    let (mantissa, exponent) = chosen.split_once('e').unwrap_or((&chosen, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    if !(-3..7).contains(&exponent) {
        return format!("{sign}{first}.{rest}E{exponent}");
    }
    let digits = [first, rest].concat();
    let digits = digits.trim_end_matches('0');
    let plain = match usize::try_from(exponent) {
        Err(_) => format!("0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1)),
        Ok(before) if digits.len() <= before + 1 => format!("{digits:0<width$}.0", width = before + 1),
        Ok(before) => {
            let (whole, fraction) = digits.split_at_checked(before + 1).unwrap_or((digits, "0"));
            format!("{whole}.{fraction}")
        }
    };
    format!("{sign}{plain}")
}

/// Of the two shortest forms that are equally near, the one whose last digit is even.
fn even(number: f64, shortest: String) -> String {
    let digits =
        |text: &str| -> String { text.chars().take_while(|c| *c != 'e').filter(char::is_ascii_digit).collect() };
    let own = digits(&shortest);
    let longer = format!("{number:.*e}", own.len());
    // Halfway between two forms, the exact value is one digit longer and ends with 5.
    let more = digits(&longer);
    let Some(low) = more.strip_suffix('5') else { return shortest };
    let exact = digits(&format!("{number:.*e}", own.len() + 60));
    let halfway = exact.strip_prefix(&more).is_some_and(|rest| rest.bytes().all(|digit| digit == b'0'));
    let odd = |text: &str| text.bytes().last().is_some_and(|digit| digit % 2 == 1);
    if !halfway || !odd(&own) || own == low {
        return shortest;
    }
    let exponent = shortest.split_once('e').map_or("0", |(_, exponent)| exponent);
    let sign = if number < 0.0 { "-" } else { "" };
    let (first, rest) = low.split_at_checked(1).unwrap_or((low, ""));
    let candidate = format!("{sign}{first}.{rest}e{exponent}");
    if candidate.parse() == Ok(number) { candidate } else { shortest }
}

/// Parses a double as `Double.parseDouble`: control characters and spaces around it, `NaN` and `Infinity` in this
/// spelling, a type suffix.
pub(super) fn read_double(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches(|character: char| character <= ' ');
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let found = match body {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        _ if body.starts_with("0x") || body.starts_with("0X") => read_hex(body.get(2..)?)?,
        _ => {
            let digits = body.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(body);
            // "inf" and "nan" are numbers for Rust.
            let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
            if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') || !digits.bytes().all(plain) {
                return None;
            }
            digits.parse::<f64>().ok()?
        }
    };
    Some(if negative { -found } else { found })
}

/// Parses the digits of a hexadecimal double after `0x`, such as `1.8p3`; `None` if it has more than 16 digits.
fn read_hex(text: &str) -> Option<f64> {
    let text = text.strip_suffix(['f', 'F', 'd', 'D']).filter(|rest| rest.contains(['p', 'P'])).unwrap_or(text);
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) || digits.len() > 13 {
        return None;
    }
    let number = u64::from_str_radix(&digits, 16).ok()? as f64;
    let power = exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    Some(number * 2f64.powi(power))
}

/// Cuts text to a number of characters. Returns whether there were more.
pub(super) fn cut(text: &mut Vec<u8>, characters: u32) -> bool {
    // A byte that does not continue a character starts one.
    let starts = text.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80);
    let end = starts.map(|(at, _)| at).nth(characters as usize);
    if let Some(end) = end {
        text.truncate(end);
    }
    end.is_some()
}

/// Cuts the spaces at the end.
pub(super) fn cut_spaces(text: &mut Vec<u8>) {
    let length = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    text.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_java_writes_them() {
        for (number, expected) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (123.456, "123.456"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (12_345_678.9, "1.23456789E7"),
            (f64::from_bits(1), "4.9E-324"),
            (2e23, "2.0E23"),
            (1.0 / 3.0, "0.3333333333333333"),
            (f64::from(0.1f32), "0.10000000149011612"),
            (-138.904_571_533_203_13, "-138.90457153320312"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::MAX, "1.7976931348623157E308"),
        ] {
            assert_eq!(double(number), expected);
        }
    }

    #[test]
    fn doubles_as_java_reads_them() {
        for (text, expected) in [
            (" 1.5\t", Some(1.5)),
            ("+.5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1e3", Some(1000.0)),
            ("2d", Some(2.0)),
            ("0x1.8p1", Some(3.0)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("1e999", Some(f64::INFINITY)),
            ("infinity", None),
            ("nan", None),
            ("", None),
            (".", None),
            ("1 2", None),
            ("--1", None),
        ] {
            assert_eq!(read_double(text.as_bytes()), expected, "{text:?}");
        }
    }
}
