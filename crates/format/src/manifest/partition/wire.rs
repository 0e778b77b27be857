//! How partition values stand in the bytes of a manifest, by the writer's schema.

use crate::avro::{Logical, Schema, Skip};
use crate::types::PrimitiveType;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// How the bytes of `fixed` values stand in a manifest. The Java library writes a length before them although its schema
/// says `fixed`; other writers do as the schema says. Both are read: see `entries::read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest) enum FixedForm {
    Plain,
    Prefixed,
}

/// How a value stands in the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wire {
    Boolean,
    /// A number of at most 32 bits.
    Int,
    /// A number, and what it is multiplied by.
    Long(i64),
    Float,
    Double,
    /// A length and bytes.
    Prefixed,
    /// So many bytes.
    Fixed(u64),
    /// So many bytes, or a length and as many bytes.
    FixedEither(u64),
    /// A uuid as text.
    UuidText,
    /// A value of this type, which is read as text.
    Shown(PrimitiveType, Box<Wire>),
    /// What is not wanted.
    Skip(Skip),
}

impl Wire {
    /// Whether a length may stand before the bytes.
    pub(super) fn is_fixed_either(&self) -> bool {
        match self {
            Self::FixedEither(_) => true,
            Self::Shown(_, wire) => wire.is_fixed_either(),
            _ => false,
        }
    }
}

/// How a value of the target's type is made of what was written, or `None` where that makes no sense.
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
