//! Variants as text with types, like the Java library: `VariantObject(fields={a: Variant(type=INT8, value=1)})`.

use crate::error::Result;
use crate::value::{calendar, decimal, human};

use super::json::time;
use super::node::{Node, Variant};
use super::{DEPTH, corrupt};

/// Formats a variant.
///
/// # Errors
/// As [`Variant::check`].
pub fn to_human_string(variant: &Variant<'_>) -> Result<String> {
    variant.check()?;
    let mut out = String::new();
    write(&mut out, variant, 0)?;
    Ok(out)
}

fn write(out: &mut String, variant: &Variant<'_>, depth: usize) -> Result<()> {
    if depth > DEPTH {
        return Err(corrupt(format!("the variant is nested deeper than {DEPTH} levels")));
    }
    match variant.node()? {
        Node::Object(object) => {
            out.push_str("VariantObject(fields={");
            for (place, field) in object.fields().enumerate() {
                let (name, value) = field?;
                if place > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push_str(": ");
                write(out, &value, depth + 1)?;
            }
            out.push_str("})");
        }
        Node::Array(elements) => {
            out.push_str("VariantArray([");
            for (place, element) in elements.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                write(out, &element?, depth + 1)?;
            }
            out.push_str("])");
        }
        node => {
            let (kind, text) = primitive(&node);
            out.push_str("Variant(type=");
            out.push_str(kind);
            out.push_str(", value=");
            out.push_str(&text);
            out.push(')');
        }
    }
    Ok(())
}

fn primitive(node: &Node<'_>) -> (&'static str, String) {
    let kind = node.kind();
    let text = match node {
        Node::Null | Node::Object(_) | Node::Array(_) => "null".to_owned(),
        Node::Boolean(value) => value.to_string(),
        Node::Int8(value) => value.to_string(),
        Node::Int16(value) => value.to_string(),
        Node::Int32(value) => value.to_string(),
        Node::Int64(value) => value.to_string(),
        Node::Float(value) => human::float(*value),
        Node::Double(value) => human::double(*value),
        Node::Decimal { unscaled, scale, .. } => decimal::to_scientific_string(*unscaled, *scale),
        Node::Date(days) => calendar::format_date(i64::from(*days)),
        Node::Time(micros) => time(*micros),
        Node::Timestamp { micros, is_utc: true } => calendar::format_micros(*micros) + "+00:00",
        Node::Timestamp { micros, is_utc: false } => calendar::format_micros(*micros),
        Node::TimestampNanos { nanos, is_utc: true } => calendar::format_nanos(*nanos) + "+00:00",
        Node::TimestampNanos { nanos, is_utc: false } => calendar::format_nanos(*nanos),
        Node::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        Node::String(text) => (*text).to_owned(),
        Node::Uuid(bytes) => uuid::Uuid::from_bytes(*bytes).to_string(),
    };
    (kind, text)
}

impl Node<'_> {
    /// Name of the type in the Java library.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Boolean(true) => "BOOLEAN_TRUE",
            Self::Boolean(false) => "BOOLEAN_FALSE",
            Self::Int8(_) => "INT8",
            Self::Int16(_) => "INT16",
            Self::Int32(_) => "INT32",
            Self::Int64(_) => "INT64",
            Self::Float(_) => "FLOAT",
            Self::Double(_) => "DOUBLE",
            Self::Decimal { bytes: 4, .. } => "DECIMAL4",
            Self::Decimal { bytes: 8, .. } => "DECIMAL8",
            Self::Decimal { .. } => "DECIMAL16",
            Self::Date(_) => "DATE",
            Self::Time(_) => "TIME",
            Self::Timestamp { is_utc: true, .. } => "TIMESTAMPTZ",
            Self::Timestamp { is_utc: false, .. } => "TIMESTAMPNTZ",
            Self::TimestampNanos { is_utc: true, .. } => "TIMESTAMPTZ_NANOS",
            Self::TimestampNanos { is_utc: false, .. } => "TIMESTAMPNTZ_NANOS",
            Self::Binary(_) => "BINARY",
            Self::String(_) => "STRING",
            Self::Uuid(_) => "UUID",
            Self::Object(_) => "OBJECT",
            Self::Array(_) => "ARRAY",
        }
    }
}
