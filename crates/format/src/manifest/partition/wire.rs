//! Encodings of partition values in manifests, derived from the writer's schema.

use crate::avro::{Logical, Schema, Skip};
use crate::types::PrimitiveType;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Encoding of `fixed` values in a manifest. The Java library writes a length before them although its schema says
/// `fixed`; other writers follow the schema. Both are read: see `entries::read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest) enum FixedForm {
    Plain,
    Prefixed,
}

/// Encoding of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wire {
    Boolean,
    /// A number of at most 32 bits.
    Int,
    /// A number, and the factor that converts it to the target's unit.
    Long(i64),
    Float,
    Double,
    /// A length, followed by that number of bytes.
    Prefixed,
    /// This number of bytes.
    Fixed(u64),
    /// This number of bytes, or a length followed by as many bytes.
    FixedEither(u64),
    /// A uuid as text.
    UuidText,
    /// A value of this type, read as text.
    Shown(PrimitiveType, Box<Wire>),
    /// A value to skip.
    Skip(Skip),
}

impl Wire {
    /// Whether a length may precede the bytes.
    pub(super) fn is_fixed_either(&self) -> bool {
        match self {
            Self::FixedEither(_) => true,
            Self::Shown(_, wire) => wire.is_fixed_either(),
            _ => false,
        }
    }
}

/// Determines how to read a value of the target's type from what was written; `None` if the two do not fit.
pub(super) fn wire(schema: &Schema, target: &PrimitiveType) -> Option<Wire> {
    use PrimitiveType as P;
    Some(match (target, schema) {
        (P::Boolean, Schema::Boolean) => Wire::Boolean,
        (P::Int | P::Date, Schema::Int(_) | Schema::Long(_)) => Wire::Int,
        (P::Long, Schema::Int(_) | Schema::Long(_)) => Wire::Long(1),
        (P::Time, Schema::Int(logical) | Schema::Long(logical)) => match logical {
            Some(Logical::TimeMillis) => Wire::Long(1000),
            _ => Wire::Long(1),
        },
        (P::Timestamp | P::Timestamptz, Schema::Int(_)) => Wire::Long(MICROS_PER_DAY),
        (P::Timestamp | P::Timestamptz, Schema::Long(logical)) => match logical {
            Some(Logical::TimestampMillis { .. }) => Wire::Long(1000),
            Some(Logical::TimestampNanos { .. }) => return None,
            _ => Wire::Long(1),
        },
        (P::TimestampNs | P::TimestamptzNs, Schema::Int(_)) => Wire::Long(MICROS_PER_DAY * 1000),
        (P::TimestampNs | P::TimestamptzNs, Schema::Long(logical)) => match logical {
            Some(Logical::TimestampMillis { .. }) => Wire::Long(1_000_000),
            Some(Logical::TimestampMicros { .. }) => Wire::Long(1000),
            _ => Wire::Long(1),
        },
        (P::Float | P::Double, Schema::Float) => Wire::Float,
        (P::Double, Schema::Double) => Wire::Double,
        (P::Decimal { .. }, Schema::Fixed(size, _)) => Wire::Fixed(*size),
        (P::Uuid, Schema::Fixed(16, _)) => Wire::Fixed(16),
        (P::Uuid, Schema::String(_)) => Wire::UuidText,
        (P::Fixed(_) | P::Binary | P::Geometry { .. } | P::Geography { .. }, Schema::Fixed(size, _)) => {
            Wire::FixedEither(*size)
        }
        (P::Decimal { .. } | P::Uuid | P::Fixed(_), Schema::Bytes(_)) => Wire::Prefixed,
        (P::String | P::Binary | P::Geometry { .. } | P::Geography { .. }, Schema::String(_) | Schema::Bytes(_)) => {
            Wire::Prefixed
        }
        _ => return None,
    })
}
