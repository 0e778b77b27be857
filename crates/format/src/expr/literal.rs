//! Literals of unbound predicates: a value with the type it was written as.

use std::fmt;

use crate::error::{Error, Result};
use crate::types::value_json;
use crate::types::{PrimitiveType, Type};
use crate::value::Value;

/// A literal as it was written; binding converts it to the type of its term.
///
/// JSON without a schema and plain SQL text have only `long`, `double`, `string` and `boolean`; other types come from a
/// schema (JSON), from typed literals (`DATE '2020-01-01'`) or from the API.
#[derive(Debug, Clone)]
pub struct Literal {
    ty: PrimitiveType,
    value: Value,
    /// Whether a string comes from a protocol, which allows only its exact forms.
    strict: bool,
}

/// Ignores where a literal comes from.
impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty && self.value == other.value
    }
}

impl Literal {
    /// Creates a literal of a type. NaN is refused, as by all writers of expressions: use `IS NAN`.
    pub fn new(ty: PrimitiveType, value: Value) -> Result<Self> {
        let nan = match &value {
            Value::Float(value) => value.is_nan(),
            Value::Double(value) => value.is_nan(),
            _ => false,
        };
        if nan {
            return Err(Error::invalid("NaN cannot be a literal: use IS NAN or IS NOT NAN"));
        }
        Ok(Self { ty, value, strict: false })
    }

    fn of(ty: PrimitiveType, value: Value) -> Self {
        Self { ty, value, strict: false }
    }

    /// A `boolean`.
    #[must_use]
    pub fn boolean(value: bool) -> Self {
        Self::of(PrimitiveType::Boolean, Value::Boolean(value))
    }

    /// A `long`, the type of every integer until it is bound to a column.
    #[must_use]
    pub fn long(value: i64) -> Self {
        Self::of(PrimitiveType::Long, Value::Long(value))
    }

    /// A `double`; NaN is refused.
    pub fn double(value: f64) -> Result<Self> {
        Self::new(PrimitiveType::Double, Value::Double(value))
    }

    /// A `string`.
    pub fn string(value: impl Into<String>) -> Self {
        Self::of(PrimitiveType::String, Value::String(value.into()))
    }

    /// A `string` from JSON, which converts to dates and timestamps only in ISO 8601 form.
    pub fn json_string(value: impl Into<String>) -> Self {
        Self { strict: true, ..Self::string(value) }
    }

    /// A `decimal` of maximum precision.
    #[must_use]
    pub fn decimal(unscaled: i128, scale: u8) -> Self {
        Self::of(PrimitiveType::Decimal { precision: 38, scale }, Value::Decimal(unscaled))
    }

    /// A `binary`, which also converts to `fixed` of the same length.
    #[must_use]
    pub fn binary(value: Vec<u8>) -> Self {
        Self::of(PrimitiveType::Binary, Value::Binary(value))
    }

    /// A `uuid`.
    #[must_use]
    pub fn uuid(value: [u8; 16]) -> Self {
        Self::of(PrimitiveType::Uuid, Value::Uuid(value))
    }

    /// The type that it was written as.
    #[must_use]
    pub fn ty(&self) -> &PrimitiveType {
        &self.ty
    }

    /// Whether it is a `string` from JSON.
    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// Writes SQL text that the parser reads as the same literal.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_sql(f, &self.ty, &self.value)
    }
}

/// Writes a value as SQL: plain if the type has a plain form, else the type's name and a quoted string.
pub(super) fn write_sql(f: &mut fmt::Formatter<'_>, ty: &PrimitiveType, value: &Value) -> fmt::Result {
    match (ty, value) {
        (_, Value::Boolean(value)) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
        (PrimitiveType::Long, Value::Long(value)) => write!(f, "{value}"),
        (_, Value::String(value)) => write_quoted(f, value, '\''),
        (PrimitiveType::Double, Value::Double(value)) if is_plain(*value) => write!(f, "{value:?}"),
        (_, Value::Double(value)) if value.is_finite() => write!(f, "{value:e}"),
        (PrimitiveType::Binary | PrimitiveType::Fixed(_), Value::Binary(bytes)) => {
            f.write_str("X'")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("'")
        }
        _ => {
            let text = match value_json::to_json(value, &Type::Primitive(ty.clone())) {
                Ok(serde_json::Value::String(text)) => text,
                Ok(other) => other.to_string(),
                Err(_) => format!("{value:?}"),
            };
            write!(f, "{} ", type_word(ty))?;
            write_quoted(f, &text, '\'')
        }
    }
}

/// Whether a double is written without an exponent and read back as a double rather than a decimal: at most 15 digits.
fn is_plain(value: f64) -> bool {
    value == 0.0 || (1e-5..1e15).contains(&value.abs()) && format!("{value:?}").len() <= 16
}

/// The type name in front of the string of a typed literal.
fn type_word(ty: &PrimitiveType) -> String {
    match ty {
        PrimitiveType::Decimal { .. } => "DECIMAL".to_owned(),
        other => other.to_string().to_uppercase(),
    }
}

/// Writes `text` in quotes and doubles the quotes inside it.
pub(super) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str, quote: char) -> fmt::Result {
    use fmt::Write as _;
    f.write_char(quote)?;
    for c in text.chars() {
        if c == quote {
            f.write_char(quote)?;
        }
        f.write_char(c)?;
    }
    f.write_char(quote)
}
