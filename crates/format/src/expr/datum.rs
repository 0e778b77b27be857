//! Borrowed values for the evaluators, in the order of the specification.
//!
//! The order is that of bounds ("Appendix D"): booleans false first, numbers by value, -0.0 before 0.0, NaN after all
//! other numbers, strings by code point (which is the order of their UTF-8), uuid, fixed and binary by unsigned bytes.
//! Bounds of uuids may have another order, which [`Datum::of_bounds`] handles.

use std::cmp::Ordering;

use crate::types::PrimitiveType;
use crate::value::Value;
use crate::value::binary::promoted_int;
use crate::value::decimal::from_big_endian;
use crate::value::order::compare_floats;
use crate::value::uuid;

/// A borrowed value of a primitive type.
#[derive(Debug, Clone, Copy)]
pub enum Datum<'a> {
    /// `boolean`
    Boolean(bool),
    /// `int`, `long`, `date`, `time` and all timestamps
    Integer(i64),
    /// `float`, `double`
    Float(f64),
    /// `decimal`, unscaled
    Decimal(i128),
    /// `uuid`, big endian
    Uuid(u128),
    /// `string` as UTF-8, `fixed`, `binary`
    Bytes(&'a [u8]),
}

impl<'a> Datum<'a> {
    /// The datum of a value; `None` for variants and nested values, which have no order.
    #[must_use]
    pub fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Int(value) => Self::Integer(i64::from(*value)),
            Value::Long(value) => Self::Integer(*value),
            Value::Float(value) => Self::Float(f64::from(*value)),
            Value::Double(value) => Self::Float(*value),
            Value::Decimal(value) => Self::Decimal(*value),
            Value::String(value) => Self::Bytes(value.as_bytes()),
            Value::Uuid(value) => Self::Uuid(u128::from_be_bytes(*value)),
            Value::Binary(value) => Self::Bytes(value),
            Value::Variant { .. } | Value::Struct(_) | Value::List(_) | Value::Map(_) => return None,
        })
    }

    /// Decodes a lower and an upper bound from their binary form; `None` if unknown.
    ///
    /// A bound may be shorter than its type if the column was promoted after the file was written. Invalid bounds count
    /// as unknown, not as errors: they prune nothing. Bounds of uuids are widened so that they hold in either order
    /// that a writer may have used.
    #[must_use]
    pub fn of_bounds(
        ty: &PrimitiveType,
        lower: Option<&'a [u8]>,
        upper: Option<&'a [u8]>,
    ) -> (Option<Self>, Option<Self>) {
        let bound = |bytes| Self::of_bound(ty, bytes);
        let (lower, upper) = (lower.and_then(bound), upper.and_then(bound));
        if *ty != PrimitiveType::Uuid {
            return (lower, upper);
        }
        let number = |datum| if let Self::Uuid(number) = datum { Some(number) } else { None };
        let (lower, upper) = uuid::of_either_order(lower.and_then(number), upper.and_then(number));
        (lower.map(Self::Uuid), upper.map(Self::Uuid))
    }

    fn of_bound(ty: &PrimitiveType, bytes: &'a [u8]) -> Option<Self> {
        use PrimitiveType as P;
        Some(match ty {
            P::Boolean => Self::Boolean(*bytes.first()? != 0),
            P::Int | P::Date => Self::Integer(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
            P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs => {
                match bytes.len() {
                    4 => Self::Integer(promoted_int(i32::from_le_bytes(bytes.try_into().ok()?), ty)?),
                    _ => Self::Integer(i64::from_le_bytes(bytes.try_into().ok()?)),
                }
            }
            P::Float => Self::Float(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
            P::Double => match bytes.len() {
                4 => Self::Float(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
                _ => Self::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
            },
            P::Decimal { .. } => Self::Decimal(from_big_endian(bytes)?),
            P::Uuid => Self::Uuid(u128::from_be_bytes(bytes.try_into().ok()?)),
            P::String | P::Fixed(_) | P::Binary => Self::Bytes(bytes),
            P::Unknown | P::Geometry { .. } | P::Geography { .. } | P::Unrecognized(_) => return None,
        })
    }

    /// Whether it is NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }

    /// Compares two values of one type. Bound expressions never compare values of different types, for which the result
    /// is meaningless.
    #[must_use]
    pub fn order(self, other: Datum<'_>) -> Ordering {
        match (self, other) {
            (Self::Boolean(a), Datum::Boolean(b)) => a.cmp(&b),
            (Self::Integer(a), Datum::Integer(b)) => a.cmp(&b),
            (Self::Float(a), Datum::Float(b)) => compare_floats(a, b),
            (Self::Decimal(a), Datum::Decimal(b)) => a.cmp(&b),
            (Self::Uuid(a), Datum::Uuid(b)) => a.cmp(&b),
            (Self::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    /// Compares two values as rows do: `None` if one of them is NaN.
    #[must_use]
    pub fn row_order(self, other: Datum<'_>) -> Option<Ordering> {
        (!self.is_nan() && !other.is_nan()).then(|| self.order(other))
    }

    fn rank(self) -> u8 {
        match self {
            Self::Boolean(_) => 0,
            Self::Integer(_) => 1,
            Self::Float(_) => 2,
            Self::Decimal(_) => 3,
            Self::Uuid(_) => 4,
            Self::Bytes(_) => 5,
        }
    }
}
