//! What variants are shredded as: the content of a `typed_value` column (Parquet's `VariantShredding.md`).

use std::fmt;

use super::node::Node;

/// What a `typed_value` column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Values of one primitive type.
    Primitive(Kind),
    /// Fields of objects, ordered by name.
    Object(Vec<(String, Shape)>),
    /// Elements of arrays.
    Array(Box<Shape>),
}

/// A primitive type of the shredding specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `boolean`
    Boolean,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `decimal4` up to 9 digits, `decimal8` up to 18, else `decimal16`.
    Decimal {
        /// Digits, 1 to 38.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// `date`
    Date,
    /// `time`
    Time,
    /// `timestamp` in microseconds.
    Timestamp {
        /// Whether it is an instant in UTC.
        is_utc: bool,
    },
    /// `timestamp` in nanoseconds.
    TimestampNanos {
        /// Whether it is an instant in UTC.
        is_utc: bool,
    },
    /// `string`
    String,
    /// `binary`
    Binary,
    /// `uuid`
    Uuid,
}

/// Which values a column takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Values of the column's own type. Decimals of the column's size take its scale, as in the Java library.
    Exact,
    /// Also values of narrower types, which become values of the column's type.
    Widened,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(kind) => kind.fmt(f),
            Self::Array(element) => write!(f, "list<{element}>"),
            Self::Object(fields) => {
                f.write_str("struct<")?;
                for (place, (name, shape)) in fields.iter().enumerate() {
                    let separator = if place > 0 { ", " } else { "" };
                    let is_plain = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
                    match is_plain {
                        true => write!(f, "{separator}{name}: {shape}")?,
                        false => write!(f, "{separator}`{}`: {shape}", name.replace('`', "``"))?,
                    }
                }
                f.write_str(">")
            }
        }
    }
}

impl Kind {
    /// The value as the column stores it; `None` if the column does not take it.
    #[must_use]
    pub fn stored<'a>(self, node: Node<'a>, fit: Fit) -> Option<Node<'a>> {
        let own = match (self, node) {
            (Self::Boolean, Node::Boolean(_))
            | (Self::Int8, Node::Int8(_))
            | (Self::Int16, Node::Int16(_))
            | (Self::Int32, Node::Int32(_))
            | (Self::Int64, Node::Int64(_))
            | (Self::Float, Node::Float(_))
            | (Self::Double, Node::Double(_))
            | (Self::Date, Node::Date(_))
            | (Self::Time, Node::Time(_))
            | (Self::String, Node::String(_))
            | (Self::Binary, Node::Binary(_))
            | (Self::Uuid, Node::Uuid(_)) => true,
            (Self::Timestamp { is_utc }, Node::Timestamp { is_utc: own, .. })
            | (Self::TimestampNanos { is_utc }, Node::TimestampNanos { is_utc: own, .. }) => is_utc == own,
            (Self::Decimal { precision, scale }, Node::Decimal { unscaled, scale: own, bytes }) => {
                let wanted = decimal_bytes(precision);
                let fits = if fit == Fit::Exact { bytes == wanted } else { true };
                return fits
                    .then(|| rescaled(unscaled, own, precision, scale))
                    .flatten()
                    .map(|unscaled| Node::Decimal { unscaled, scale, bytes: wanted });
            }
            _ => false,
        };
        if own || fit == Fit::Exact {
            return own.then_some(node);
        }
        let integer = match node {
            Node::Int8(value) => i64::from(value),
            Node::Int16(value) => i64::from(value),
            Node::Int32(value) => i64::from(value),
            Node::Int64(value) => value,
            Node::Float(value) if self == Self::Double => return Some(Node::Double(f64::from(value))),
            _ => return None,
        };
        match self {
            Self::Int8 => i8::try_from(integer).ok().map(Node::Int8),
            Self::Int16 => i16::try_from(integer).ok().map(Node::Int16),
            Self::Int32 => i32::try_from(integer).ok().map(Node::Int32),
            Self::Int64 => Some(Node::Int64(integer)),
            _ => None,
        }
    }
}

/// Bytes of the unscaled number of a decimal with this many digits.
fn decimal_bytes(precision: u8) -> u8 {
    match precision {
        0..=9 => 4,
        10..=18 => 8,
        _ => 16,
    }
}

/// Decimal digits of a number; zero has one.
pub(super) fn digits(number: i128) -> u32 {
    number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1
}

/// The unscaled number at another scale; `None` if digits would be lost.
fn rescaled(unscaled: i128, own: u8, precision: u8, scale: u8) -> Option<i128> {
    let more = scale.checked_sub(own)?;
    if digits(unscaled) + u32::from(more) > u32::from(precision) {
        return None;
    }
    unscaled.checked_mul(10_i128.checked_pow(u32::from(more))?)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int",
            Self::Int64 => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision}, {scale})"),
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp { is_utc: false } => "timestamp",
            Self::Timestamp { is_utc: true } => "timestamptz",
            Self::TimestampNanos { is_utc: false } => "timestamp_ns",
            Self::TimestampNanos { is_utc: true } => "timestamptz_ns",
            Self::String => "string",
            Self::Binary => "binary",
            Self::Uuid => "uuid",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_take_values_of_their_type() {
        let decimal = |unscaled, scale, bytes| Node::Decimal { unscaled, scale, bytes };
        let of = |precision, scale| Kind::Decimal { precision, scale };
        for (kind, node, exact, widened) in [
            (Kind::Int64, Node::Int64(5), Some("5"), Some("5")),
            (Kind::Int64, Node::Int8(5), None, Some("5")),
            (Kind::Int8, Node::Int64(5), None, Some("5")),
            (Kind::Int8, Node::Int64(500), None, None),
            (Kind::Double, Node::Float(0.5), None, Some("0.5")),
            (Kind::Double, Node::Int8(1), None, None),
            (Kind::Float, Node::Double(0.5), None, None),
            (Kind::String, Node::Int8(1), None, None),
            (of(9, 2), decimal(15, 1, 4), Some("150"), Some("150")),
            (of(9, 2), decimal(15, 1, 8), None, Some("150")),
            (of(9, 2), decimal(1234, 3, 4), None, None),
            (of(4, 2), decimal(123, 0, 4), None, None),
            (of(12, 2), decimal(123, 0, 8), Some("12300"), Some("12300")),
            (Kind::Timestamp { is_utc: true }, Node::Timestamp { micros: 1, is_utc: false }, None, None),
        ] {
            let shown = |fit| {
                kind.stored(node, fit).map(|node| match node {
                    Node::Int8(value) => value.to_string(),
                    Node::Int64(value) => value.to_string(),
                    Node::Double(value) => value.to_string(),
                    Node::Decimal { unscaled, scale, bytes } => {
                        let of = kind.stored(decimal(unscaled, scale, bytes), Fit::Exact);
                        assert!(of.is_some(), "{kind} stores what it does not take");
                        unscaled.to_string()
                    }
                    other => format!("{other:?}"),
                })
            };
            assert_eq!(shown(Fit::Exact).as_deref(), exact, "{kind} {node:?}");
            assert_eq!(shown(Fit::Widened).as_deref(), widened, "{kind} {node:?}");
        }
    }
}
