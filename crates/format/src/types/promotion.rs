//! Which type may take the place of which ("Schema Evolution", "Type Promotion").

use super::{PrimitiveType, Type};
use PrimitiveType as P;

/// Whether a column of type `from` may become one of type `to` in a table of this format version.
///
/// A type may always stay what it is, but nested types and variant are not promoted at all, not even to themselves.
pub fn is_promotion_allowed(from: &Type, to: &PrimitiveType, format_version: u8) -> bool {
    let Type::Primitive(from) = from else { return false };
    if from == to {
        return true;
    }
    match (from, to) {
        (P::Int, P::Long) | (P::Float, P::Double) => true,
        (P::Decimal { precision: p, scale: s }, P::Decimal { precision: q, scale: t }) => s == t && p <= q,
        // not to the types with a zone: a date has none
        (P::Date, P::Timestamp | P::TimestampNs) => format_version >= 3,
        (P::Unknown, to) => format_version >= 3 && !matches!(to, P::Unrecognized(_)),
        _ => false,
    }
}
