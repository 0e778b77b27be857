//! Partition paths: `name=value/name=value`, with both sides escaped as in the reference implementation.
//!
//! Paths help people and tools that list folders; readers use only the partition tuple in the manifest.

use crate::error::{Error, Result};
use crate::spec::PartitionSpec;
use crate::transform::Transform;
use crate::types::PrimitiveType;
use crate::value::{Value, calendar, decimal};

/// Hive's folder name for null.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Form-encodes UTF-8: letters, digits and `*-._` stay, a space becomes `+`, everything else `%XX`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(text, &mut out);
    out
}

fn escape_into(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                for nibble in [byte >> 4, byte & 15] {
                    out.extend(HEX.get(usize::from(nibble)).copied().map(char::from));
                }
            }
        }
    }
}

/// Returns the path of a partition: `name=value` for each field of `spec`, joined by `/`.
///
/// `sources` are the types of the fields' source columns, `partition` the results of their transforms.
///
/// # Errors
/// `Invalid` if the three have different lengths.
pub fn partition_path(spec: &PartitionSpec, sources: &[PrimitiveType], partition: &[Option<Value>]) -> Result<String> {
    if spec.fields.len() != sources.len() || spec.fields.len() != partition.len() {
        return Err(Error::invalid(format!(
            "expected as many partition values and types as partition fields, got {} values and {} types for {} fields",
            partition.len(),
            sources.len(),
            spec.fields.len()
        )));
    }
    let mut out = String::new();
    for ((field, source), value) in spec.fields.iter().zip(sources).zip(partition) {
        if !out.is_empty() {
            out.push('/');
        }
        escape_into(&field.name, &mut out);
        out.push('=');
        match value {
            Some(Value::String(text)) if field.has_unknown_values() => escape_into(without_type(text), &mut out),
            _ => escape_into(&field.transform.to_human_string(value.as_ref(), source), &mut out),
        }
    }
    Ok(out)
}

/// A value with its type ([`super::untyped`]), as people read it.
fn without_type(text: &str) -> &str {
    text.find([':', '#']).and_then(|place| text.get(place + 1..)).unwrap_or(text)
}

/// Parses an identity-partitioned value from an (unescaped) folder name of a Hive-style layout, when files are
/// imported.
///
/// # Errors
/// `Invalid` if the text is not a value of the type, `Unsupported` for a type that is not read from paths.
pub fn from_partition_string(text: &str, ty: &PrimitiveType) -> Result<Option<Value>> {
    use PrimitiveType as T;
    if text == HIVE_NULL {
        return Ok(None);
    }
    let value = match ty {
        T::Boolean => Some(Value::Boolean(text.eq_ignore_ascii_case("true"))),
        T::Int => text.parse().ok().map(Value::Int),
        T::Long => text.parse().ok().map(Value::Long),
        T::Float => java_number(text).and_then(|text| text.parse().ok()).map(Value::Float),
        T::Double => java_number(text).and_then(|text| text.parse().ok()).map(Value::Double),
        T::String => Some(Value::String(text.to_owned())),
        T::Uuid => parse_uuid(text).map(Value::Uuid),
        T::Fixed(length) => fixed_from_text(text, *length).map(Value::Binary),
        T::Binary => Some(Value::Binary(text.as_bytes().to_vec())),
        T::Decimal { scale, .. } => decimal::parse(text).and_then(|parsed| parsed.rescaled(*scale)).map(Value::Decimal),
        T::Date => calendar::parse_date(text).and_then(|days| i32::try_from(days).ok()).map(Value::Int),
        _ => return Err(Error::unsupported(format!("type {ty} is not supported in partition paths"))),
    };
    let value = value.ok_or_else(|| Error::invalid(format!("{text:?} in a partition path is not a valid {ty}")))?;
    Ok(Some(value))
}

/// Parses the value of a partition field from the folder name after `name=`, as Hive and Spark write it: only `%XX` is
/// an escape, for a byte. Results of transforms have the form of [`partition_path`].
///
/// # Errors
/// As [`from_partition_string`].
pub fn from_folder_name(name: &str, transform: &Transform, source: &PrimitiveType) -> Result<Option<Value>> {
    use {PrimitiveType as P, Transform as T};
    let text = &unescape(name)?;
    if text == HIVE_NULL || (text == "null" && (*source != PrimitiveType::String || *transform != T::Identity)) {
        return Ok(None);
    }
    let ordinal = |text: &str| text.parse::<i32>().ok();
    let value = match transform {
        T::Identity | T::Truncate(_) => {
            let moment = text.replacen(' ', "T", 1);
            let value = match source {
                P::Time => calendar::parse_time(text).map(|nanos| nanos / 1000),
                P::Timestamp => calendar::parse_timestamp(&moment).and_then(calendar::to_micros),
                P::Timestamptz => calendar::parse_timestamp_utc(&moment).and_then(calendar::to_micros),
                P::TimestampNs => calendar::parse_timestamp(&moment).and_then(calendar::to_nanos),
                P::TimestamptzNs => calendar::parse_timestamp_utc(&moment).and_then(calendar::to_nanos),
                _ => return from_partition_string(text, source),
            };
            let value = value.map(|value| Some(Value::Long(value)));
            return value
                .ok_or_else(|| Error::invalid(format!("{text:?} in a partition path is not a valid {source}")));
        }
        T::Void => return Ok(None),
        T::Bucket(buckets) => {
            ordinal(text).filter(|bucket| u32::try_from(*bucket).is_ok_and(|bucket| bucket < *buckets))
        }
        T::Year => ordinal(text).and_then(|year| year.checked_sub(1970)),
        T::Month => calendar::parse_date(&format!("{text}-01")).and_then(|days| {
            let date = calendar::CivilDate::from_days(days);
            i32::try_from((date.year - 1970) * 12 + i64::from(date.month) - 1).ok()
        }),
        T::Day => calendar::parse_date(text).and_then(|days| i32::try_from(days).ok()),
        T::Hour => text.rsplit_once('-').and_then(|(day, hour)| {
            let hour = hour.parse::<i64>().ok().filter(|hour| (0..24).contains(hour))?;
            i32::try_from(calendar::parse_date(day)?.checked_mul(24)?.checked_add(hour)?).ok()
        }),
        T::Unknown(name) => return Err(Error::unsupported(format!("results of {name} are not read from paths"))),
    };
    let value =
        value.ok_or_else(|| Error::invalid(format!("{text:?} in a partition path is no result of {transform}")))?;
    Ok(Some(Value::Int(value)))
}

/// Splits a folder `name=value` into the field's name and the escaped value; `None` for any other folder.
///
/// # Errors
/// `Invalid` if the name is not UTF-8.
pub fn split_folder(folder: &str) -> Result<Option<(String, &str)>> {
    match folder.split_once('=').filter(|(name, _)| !name.is_empty()) {
        Some((name, value)) => Ok(Some((unescape(name)?, value))),
        None => Ok(None),
    }
}

/// Infers the type of a partition column from its folder names, as Spark does: the first of `int`, `long`,
/// `decimal(38, 0)`, `double`, `date` and `timestamp` that fits all values, otherwise `string`. Nulls fit every type.
pub fn infer_type<'a>(values: impl IntoIterator<Item = &'a str> + Clone) -> PrimitiveType {
    use PrimitiveType as P;
    let is_of = |ty: &P, value: &str| {
        let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
        match ty {
            _ if value == HIVE_NULL => true,
            // Other readers of paths take these words for null, and these types have further forms.
            _ if value == "null" => false,
            P::Decimal { .. } => digits.len() <= 38 && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()),
            _ => matches!(from_folder_name(value, &Transform::Identity, ty), Ok(Some(_))),
        }
    };
    if values.clone().into_iter().all(|value| value == HIVE_NULL) {
        return P::String;
    }
    let numbers = [P::Int, P::Long, P::Decimal { precision: 38, scale: 0 }, P::Double];
    let all = numbers.into_iter().chain([P::Date, P::Timestamp]);
    all.into_iter().find(|ty| values.clone().into_iter().all(|value| is_of(ty, value))).unwrap_or(P::String)
}

/// Decodes a folder name.
fn unescape(name: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| others.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = others.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{name:?} in a partition path is no UTF-8")))
}

/// Accepts the words that Java parses as numbers, but not those that only Rust accepts (`nan`, `inf`).
fn java_number(text: &str) -> Option<&str> {
    let text = text.trim();
    let special = ["NaN", "Infinity", "+Infinity", "-Infinity", "+NaN", "-NaN"].contains(&text);
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    (special || numeric).then_some(text)
}

/// Parses five groups of hexadecimal digits, each padded with zeros (like Java's `UUID.fromString`).
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    const WIDTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut digits = String::with_capacity(32);
    let mut groups = text.split('-');
    for width in WIDTHS {
        let group = groups.next().filter(|group| (1..=width).contains(&group.len()))?;
        if !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        digits.extend(std::iter::repeat_n('0', width - group.len()));
        digits.push_str(group);
    }
    if groups.next().is_some() {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// The text's bytes, cut or padded with zeros. A type may claim any length, so padding is limited to what a path can
/// contain.
fn fixed_from_text(text: &str, length: u32) -> Option<Vec<u8>> {
    const LONGEST: usize = 1 << 20;
    let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST)?;
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, 0);
    Some(bytes)
}
