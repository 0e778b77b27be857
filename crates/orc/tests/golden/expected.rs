//! Compares Arrow values with the expected rows (README of the fixtures, "Rows").

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BinaryArray, StringArray};
use icefield_orc::{Kind, TimeUnit, TypeDescription};
use libtest_mimic::Failed;
use serde_json::Value as Json;

use super::{hex, unhex};

type Check = Result<(), String>;

thread_local! {
    /// The instant from which the tz data of the writer may differ from ours in the time zone of the current file: its
    /// last change, since governments may have changed the rules later (docs/orc-pitfalls.md, "Time zone rules").
    pub static TZ_DATA_UNTIL: std::cell::Cell<Option<i64>> = const { std::cell::Cell::new(None) };
    /// Whether expected floats have only seven digits, the last one rounded (the text of old Java versions).
    pub static SEVEN_DIGITS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether a local time is off by a whole hour after the last change of its zone.
fn other_tz_data(wanted: i128, got: i128, node: &TypeDescription) -> bool {
    const HOUR: i128 = 3_600_000_000_000;
    let until = TZ_DATA_UNTIL.get().map_or(i128::MAX, |until| i128::from(until) * 1_000_000_000);
    node.kind == Kind::Timestamp && wanted > until && (wanted - got).abs() == HOUR
}

/// Compares one value; `node` is the column's type.
pub fn check(array: &ArrayRef, row: usize, expected: &Json, node: &TypeDescription) -> Check {
    if node.kind == Kind::Union {
        return check_union(array, row, expected, node);
    }
    if beyond_unit(array, expected, node) {
        return if array.is_null(row) { Ok(()) } else { Err(format!("{expected} fits no nanoseconds")) };
    }
    if expected.is_null() || array.is_null(row) {
        let got = if array.is_null(row) { "null" } else { "a value" };
        return if expected.is_null() && array.is_null(row) {
            Ok(())
        } else {
            Err(format!("{expected} expected, {got}"))
        };
    }
    match &node.kind {
        Kind::Boolean => same(expected.as_bool(), Some(array.as_boolean().value(row)), expected),
        Kind::Byte => check_int::<Int8Type>(array, row, expected),
        Kind::Short => check_int::<Int16Type>(array, row, expected),
        Kind::Int => check_int::<Int32Type>(array, row, expected),
        Kind::Long => check_int::<Int64Type>(array, row, expected),
        Kind::Date => check_int::<Date32Type>(array, row, expected),
        Kind::Float => {
            let wanted = float(expected).map(|wanted| wanted as f32);
            let got = array.as_primitive::<Float32Type>().value(row);
            let near = |wanted: f32| (wanted - got).abs() <= wanted.abs() * 1e-6;
            if SEVEN_DIGITS.get() && wanted.is_some_and(near) {
                return Ok(());
            }
            same(wanted.map(bits32), Some(bits32(got)), expected)
        }
        Kind::Double => {
            same(float(expected).map(bits64), Some(bits64(array.as_primitive::<Float64Type>().value(row))), expected)
        }
        Kind::String | Kind::Varchar { .. } | Kind::Char { .. } => {
            let wanted = match expected {
                Json::String(text) => text.clone().into_bytes(),
                other => unhex(other["notutf8"].as_str().unwrap_or_default()),
            };
            same(wanted, bytes(array, row), expected)
        }
        Kind::Binary | Kind::Geometry { .. } | Kind::Geography { .. } => {
            same(expected.as_str().map(str::to_owned), Some(hex(&bytes(array, row))), expected)
        }
        Kind::Decimal { scale, .. } => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            same(decimal_text(expected, *scale), Some(decimal(value, *scale)), expected)
        }
        Kind::Timestamp | Kind::TimestampInstant => check_timestamp(array, row, expected, node),
        Kind::List => check_list(&array.as_list::<i32>().value(row), expected, node),
        Kind::Map => check_map(array, row, expected, node),
        Kind::Struct => check_struct(array, row, expected, node),
        Kind::Union => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(wanted: T, got: T, expected: &Json) -> Check {
    if wanted == got { Ok(()) } else { Err(format!("{expected} expected, {got:?}")) }
}

fn check_int<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize, expected: &Json) -> Check
where
    T::Native: Into<i64>,
{
    same(int(expected), Some(array.as_primitive::<T>().value(row).into()), expected)
}

/// An integer, from a number, or from text beyond 2^53.
pub fn int(value: &Json) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// A float, from a number or one of the names.
pub fn float(value: &Json) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(digits) => digits.parse().ok(),
        None => value.as_f64(),
    }
}

/// Converts numbers in a JSON text to strings if they have more digits than a double, so that decimals keep all digits.
pub fn exact(text: &str) -> String {
    const DIGITS_OF_DOUBLE: usize = 17;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at(start);
        out.push_str(before);
        let end = match token.strip_prefix('"') {
            Some(inside) => string_end(inside) + 1,
            None => token.find(|c: char| !"+-.eE0123456789".contains(c)).unwrap_or(token.len()),
        };
        let (token, after) = token.split_at(end);
        let long = !token.starts_with('"') && token.bytes().filter(u8::is_ascii_digit).count() > DIGITS_OF_DOUBLE;
        match long && !token.contains(['e', 'E']) {
            true => out.extend(["\"", token, "\""]),
            false => out.push_str(token),
        }
        rest = after;
    }
    out + rest
}

/// The end of a string after its first quote, including the last quote.
fn string_end(inside: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at + 1,
            _ => escaped = byte == b'\\' && !escaped,
        }
    }
    inside.len()
}

/// The text of an expected decimal, which may be a JSON number, with `scale` digits after the point.
pub fn decimal_text(value: &Json, scale: u8) -> Option<String> {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        _ => return None,
    };
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let missing = usize::from(scale).saturating_sub(fraction);
    let point = if fraction == 0 && missing > 0 { "." } else { "" };
    Some(text + point + &"0".repeat(missing))
}

/// A test of [`exact`] and [`decimal_text`].
pub fn decimals_keep_their_digits() -> Result<(), Failed> {
    let text = r#"{"a\"1": [12345678901234567890, -1234567890123456.7890, 1.5, 0.1e30], "12345678901234567890": "x"}"#;
    let json: Json = serde_json::from_str(&exact(text))?;
    let numbers = &json["a\"1"];
    assert_eq!(decimal_text(&numbers[0], 0).unwrap(), "12345678901234567890");
    assert_eq!(decimal_text(&numbers[1], 4).unwrap(), "-1234567890123456.7890");
    assert_eq!(decimal_text(&numbers[2], 3).unwrap(), "1.500");
    assert_eq!(float(&numbers[3]), Some(1e29));
    assert_eq!(json["12345678901234567890"], "x");
    Ok(())
}

/// The bits of a double; all NaNs are equal.
fn bits64(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

fn bits32(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

fn bytes(array: &ArrayRef, row: usize) -> Vec<u8> {
    if let Some(dictionary) = array.as_dictionary_opt::<Int32Type>() {
        return bytes(dictionary.values(), dictionary.keys().value(row) as usize);
    }
    match array.as_any().downcast_ref::<BinaryArray>() {
        Some(binary) => binary.value(row).to_vec(),
        None => array.as_any().downcast_ref::<StringArray>().unwrap().value(row).as_bytes().to_vec(),
    }
}

/// The text of a decimal, with as many digits after the point as the scale.
fn decimal(value: i128, scale: u8) -> String {
    let digits = format!("{:0width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let point = if scale > 0 { "." } else { "" };
    format!("{}{whole}{point}{fraction}", if value < 0 { "-" } else { "" })
}

/// Parses `YYYY-MM-DD HH:MM:SS.fffffffff[Z]` to seconds and nanoseconds; the fraction may be shorter.
pub fn timestamp(text: &str) -> Option<(i64, i64)> {
    let text = text.trim_end_matches('Z');
    let (date, time) = text.split_once(' ')?;
    let (negative, date) = date.strip_prefix('-').map_or((false, date), |rest| (true, rest));
    let mut date = date.split('-').map(|part| part.parse::<i64>());
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let year = if negative { -year } else { year };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let clock = clock.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<i64>().ok()?))?;
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((days * 86_400 + clock, nanos))
}

fn unit_of(array: &ArrayRef) -> Option<TimeUnit> {
    match array.data_type() {
        arrow_schema::DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    }
}

fn exact_nanos(expected: &Json) -> Option<i128> {
    let (seconds, nanos) = timestamp(expected.as_str()?)?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}

/// Whether a value does not fit nanoseconds; it is read as null then.
fn beyond_unit(array: &ArrayRef, expected: &Json, node: &TypeDescription) -> bool {
    matches!(node.kind, Kind::Timestamp | Kind::TimestampInstant)
        && unit_of(array) == Some(TimeUnit::Nanosecond)
        && exact_nanos(expected).is_some_and(|nanos| i64::try_from(nanos).is_err())
}

fn check_timestamp(array: &ArrayRef, row: usize, expected: &Json, node: &TypeDescription) -> Check {
    let zoned = expected.as_str().is_some_and(|text| text.ends_with('Z'));
    same(zoned, node.kind == Kind::TimestampInstant, expected)?;
    let wanted = exact_nanos(expected).ok_or("no timestamp")?;
    match unit_of(array) {
        Some(TimeUnit::Nanosecond) => {
            let got = i128::from(array.as_primitive::<TimestampNanosecondType>().value(row));
            if other_tz_data(wanted, got, node) { Ok(()) } else { same(wanted, got, expected) }
        }
        _ => {
            let got = i128::from(array.as_primitive::<TimestampMicrosecondType>().value(row));
            let cut = wanted.div_euclid(1000);
            if other_tz_data(cut * 1000, got * 1000, node) { Ok(()) } else { same(cut, got, expected) }
        }
    }
}

fn check_list(values: &ArrayRef, expected: &Json, node: &TypeDescription) -> Check {
    let items = expected.as_array().ok_or("no array expected")?;
    same(items.len(), values.len(), expected)?;
    items.iter().enumerate().try_for_each(|(row, item)| check(values, row, item, &node.children[0]))
}

fn check_map(array: &ArrayRef, row: usize, expected: &Json, node: &TypeDescription) -> Check {
    let entries = array.as_map().value(row);
    let pairs = expected.as_array().ok_or("no pairs expected")?;
    same(pairs.len(), entries.len(), expected)?;
    for (row, pair) in pairs.iter().enumerate() {
        check(entries.column(0), row, &pair[0], &node.children[0])?;
        check(entries.column(1), row, &pair[1], &node.children[1])?;
    }
    Ok(())
}

fn check_struct(array: &ArrayRef, row: usize, expected: &Json, node: &TypeDescription) -> Check {
    let wanted = expected.as_object().map_or(0, serde_json::Map::len);
    if wanted != node.names.len() {
        return Err(format!("{wanted} fields expected, {}", node.names.len()));
    }
    let fields = array.as_struct();
    for (index, ((name, child), column)) in node.names.iter().zip(&node.children).zip(fields.columns()).enumerate() {
        // The maker of the set truncates names at a backtick; find such fields by position.
        let fields = expected.as_object().ok_or("no object expected")?;
        let value = fields.get(name).or_else(|| fields.values().nth(index)).unwrap_or(&Json::Null);
        check(column, row, value, child).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn check_union(array: &ArrayRef, row: usize, expected: &Json, node: &TypeDescription) -> Check {
    let (tag, value, at) = match array.as_union_opt() {
        Some(union) => {
            let tag = union.type_id(row);
            (tag as usize, union.child(tag).clone(), union.value_offset(row))
        }
        None => {
            // A union with more variants than Arrow allows is a struct of the tag and all variants.
            let fields = array.as_struct();
            let tags = fields.column(0).as_primitive::<UInt8Type>();
            let tag = if tags.is_null(row) { node.children.len() } else { usize::from(tags.value(row)) };
            (tag, fields.columns().get(tag + 1).cloned().unwrap_or_else(|| fields.column(0).clone()), row)
        }
    };
    if tag == node.children.len() {
        return same(true, expected.is_null(), expected);
    }
    same(expected["tag"].as_u64(), Some(tag as u64), expected)?;
    check(&value, at, &expected["value"], &node.children[tag])
}
