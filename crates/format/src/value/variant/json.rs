//! Variants as JSON text.
//!
//! Numbers and decimals become JSON numbers with all digits. NaN, infinity, dates, times, timestamps (ISO 8601), uuids
//! and binary (base64) become strings. Two variants of different types may have the same text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Result};
use crate::value::{calendar, decimal, human};

use super::node::{Node, Variant};
use super::{DEPTH, corrupt};

/// Limit of the text in bytes: values may share bytes, so the text can be far larger than the variant.
const MOST: usize = 1 << 30;

/// Writes a variant as JSON.
///
/// # Errors
/// As [`Variant::check`]; `Unsupported` for an unknown primitive type.
pub fn to_json(variant: &Variant<'_>) -> Result<String> {
    variant.check()?;
    let mut out = String::new();
    write(&mut out, variant, 0)?;
    Ok(out)
}

fn write(out: &mut String, variant: &Variant<'_>, depth: usize) -> Result<()> {
    if depth > DEPTH || out.len() > MOST {
        return Err(corrupt(format!("the variant is deeper than {DEPTH} levels or its text longer than {MOST} bytes")));
    }
    match variant.node()? {
        Node::Object(object) => {
            out.push('{');
            for (place, field) in object.fields().enumerate() {
                let (name, value) = field?;
                if place > 0 {
                    out.push(',');
                }
                string(out, name)?;
                out.push(':');
                write(out, &value, depth + 1)?;
            }
            out.push('}');
        }
        Node::Array(elements) => {
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(out, &element?, depth + 1)?;
            }
            out.push(']');
        }
        Node::Null => out.push_str("null"),
        Node::String(text) => string(out, text)?,
        Node::Float(value) if !value.is_finite() => string(out, &human::float(value))?,
        Node::Double(value) if !value.is_finite() => string(out, &human::double(value))?,
        node => match scalar(&node) {
            Scalar::Bare(text) => out.push_str(&text),
            Scalar::Quoted(text) => string(out, &text)?,
        },
    }
    Ok(())
}

enum Scalar {
    Bare(String),
    Quoted(String),
}

fn scalar(node: &Node<'_>) -> Scalar {
    use Scalar::{Bare, Quoted};
    let zone = |is_utc: bool| if is_utc { "+00:00" } else { "" };
    match node {
        Node::Boolean(value) => Bare(value.to_string()),
        Node::Int8(value) => Bare(value.to_string()),
        Node::Int16(value) => Bare(value.to_string()),
        Node::Int32(value) => Bare(value.to_string()),
        Node::Int64(value) => Bare(value.to_string()),
        Node::Float(value) => Bare(human::float(*value)),
        Node::Double(value) => Bare(human::double(*value)),
        Node::Decimal { unscaled, scale, .. } => Bare(decimal::to_plain_string(*unscaled, *scale)),
        Node::Date(days) => Quoted(calendar::format_date(i64::from(*days))),
        Node::Time(micros) => Quoted(time(*micros)),
        Node::Timestamp { micros, is_utc } => Quoted(calendar::format_micros(*micros) + zone(*is_utc)),
        Node::TimestampNanos { nanos, is_utc } => Quoted(calendar::format_nanos(*nanos) + zone(*is_utc)),
        Node::Binary(bytes) => Quoted(STANDARD.encode(bytes)),
        Node::Uuid(bytes) => Quoted(uuid::Uuid::from_bytes(*bytes).to_string()),
        Node::Null | Node::String(_) | Node::Object(_) | Node::Array(_) => Bare("null".to_owned()),
    }
}

/// Formats a time of day; larger counts are taken modulo a day.
pub(super) fn time(micros: i64) -> String {
    calendar::format_time(micros.rem_euclid(calendar::MICROS_PER_DAY) * 1000)
}

fn string(out: &mut String, text: &str) -> Result<()> {
    let quoted = serde_json::to_string(text).map_err(|error| Error::invalid(error.to_string()))?;
    out.write_str(&quoted).map_err(|error| Error::invalid(error.to_string()))
}
