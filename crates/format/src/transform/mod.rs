//! Partition transforms ("Partition Transforms"; hashes in Appendix B).
//!
//! [`Transform::apply`] defines each transform for a single value, [`Transform::kernel`] applies it to an Arrow array.
//! [`murmur3`] is the hash of `bucket`.

mod kernel;
pub mod murmur3;
mod name;
mod scalar;

use std::sync::Arc;

use crate::types::{PrimitiveType, Type};
use crate::value::{Value, human};

pub use kernel::{SHORT_HEAD, Truncated, truncate_equally, truncate_unchecked};
pub use murmur3::murmur3_32;

/// A transform in a partition or sort field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// murmur3 hash without its sign bit, modulo the number of buckets.
    Bucket(u32),
    /// Value truncated to a width.
    Truncate(u32),
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01T00.
    Hour,
    /// Always null.
    Void,
    /// A transform of a later specification, kept as written: filters ignore it, and writing with it is refused.
    Unknown(Arc<str>),
}

impl Transform {
    /// Result type for a source of type `source`; `None` if the transform does not accept the type.
    ///
    /// The result of an unknown transform counts as a string, as in the reference implementation, since it is only ever
    /// displayed.
    pub fn result_type(&self, source: &Type) -> Option<Type> {
        use PrimitiveType as T;
        let primitive = source.as_primitive();
        match self {
            Self::Void => Some(source.clone()),
            Self::Unknown(_) => Some(T::String.into()),
            Self::Identity => match primitive? {
                T::Geometry { .. } | T::Geography { .. } | T::Unrecognized(_) => None,
                ty => Some(ty.clone().into()),
            },
            Self::Bucket(_) => match primitive? {
                T::Boolean | T::Float | T::Double => None,
                T::Unknown | T::Geometry { .. } | T::Geography { .. } | T::Unrecognized(_) => None,
                _ => Some(T::Int.into()),
            },
            Self::Truncate(_) => match primitive? {
                ty @ (T::Int | T::Long | T::Decimal { .. } | T::String | T::Binary) => Some(ty.clone().into()),
                _ => None,
            },
            Self::Year | Self::Month | Self::Day | Self::Hour => match primitive? {
                T::Date if *self == Self::Hour => None,
                T::Date | T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs => {
                    Some(if *self == Self::Day { T::Date.into() } else { T::Int.into() })
                }
                _ => None,
            },
        }
    }

    /// Whether `a <= b` implies that the result of `a` is not above the result of `b`.
    pub fn preserves_order(&self) -> bool {
        match self {
            Self::Identity | Self::Truncate(_) | Self::Year | Self::Month | Self::Day | Self::Hour => true,
            Self::Bucket(_) | Self::Void | Self::Unknown(_) => false,
        }
    }

    /// Whether data ordered by this transform's results is also ordered by those of `other`.
    pub fn satisfies_order_of(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let coarseness = |transform: &Self| match transform {
            Self::Hour => Some(0),
            Self::Day => Some(1),
            Self::Month => Some(2),
            Self::Year => Some(3),
            _ => None,
        };
        match (self, other) {
            (Self::Identity, other) => other.preserves_order(),
            (Self::Truncate(width), Self::Truncate(other)) => width >= other,
            _ => coarseness(self).zip(coarseness(other)).is_some_and(|(own, other)| own < other),
        }
    }

    /// A key that must be unique among the fields of one column in a partition spec.
    pub fn dedup_name(&self) -> String {
        match self {
            Self::Year | Self::Month | Self::Day | Self::Hour => "time".to_owned(),
            _ => self.to_string(),
        }
    }

    /// Whether this is the identity.
    pub fn is_identity(&self) -> bool {
        *self == Self::Identity
    }

    /// Whether every result is null.
    pub fn is_void(&self) -> bool {
        *self == Self::Void
    }

    /// Formats a result of the transform for people, before escaping; `source` is the type of the source column.
    pub fn to_human_string(&self, result: Option<&Value>, source: &PrimitiveType) -> String {
        match (self, result) {
            (_, None) => "null".to_owned(),
            (Self::Year, Some(Value::Int(ordinal))) => human::year(*ordinal),
            (Self::Month, Some(Value::Int(ordinal))) => human::month(*ordinal),
            (Self::Day, Some(Value::Int(ordinal))) => human::day(*ordinal),
            (Self::Hour, Some(Value::Int(ordinal))) => human::hour(*ordinal),
            (Self::Bucket(_), result) => human::to_human_string(result, &PrimitiveType::Int),
            (_, result) => human::to_human_string(result, source),
        }
    }
}
