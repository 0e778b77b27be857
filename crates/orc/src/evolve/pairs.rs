//! Which types are read as which (`ConvertTreeReaderFactory.canConvert`).

use crate::types::Kind;

/// Whether values of one type can be read as another. Types with children are related child by child.
pub(super) fn converts(from: &Kind, to: &Kind) -> bool {
    use Kind::{
        Binary, Boolean, Byte, Char, Date, Decimal, Double, Float, Geography, Geometry, Int, Long, Short, String,
        Timestamp, TimestampInstant, Varchar,
    };
    let number = |kind: &Kind| matches!(kind, Boolean | Byte | Short | Int | Long | Float | Double | Decimal { .. });
    let text = |kind: &Kind| matches!(kind, String | Char { .. } | Varchar { .. });
    let time = |kind: &Kind| matches!(kind, Timestamp | TimestampInstant);
    match from {
        _ if number(from) => number(to) || text(to) || time(to),
        _ if text(from) => number(to) || text(to) || time(to) || matches!(to, Binary | Date),
        _ if time(from) => number(to) || text(to) || time(to) || *to == Date,
        Date => text(to) || time(to) || *to == Date,
        // orc-core also lists binary to date, and then fails to read it.
        Binary => text(to) || *to == Binary,
        Geometry { .. } => matches!(to, Geometry { .. }),
        Geography { .. } => matches!(to, Geography { .. }),
        _ => false,
    }
}

/// Whether a value, and its order among others, is the same in both types, so that statistics and Bloom filters of the
/// file hold for the converted values.
pub(super) fn keeps_order(from: &Kind, to: &Kind) -> bool {
    let width = |kind: &Kind| match kind {
        Kind::Byte => Some(1),
        Kind::Short => Some(2),
        Kind::Int => Some(4),
        Kind::Long => Some(8),
        _ => None,
    };
    match (from, to) {
        _ if from == to => true,
        (Kind::Varchar { .. }, Kind::String) => true,
        (Kind::Varchar { length: from }, Kind::Varchar { length: to }) => from <= to,
        _ => width(from).zip(width(to)).is_some_and(|(from, to)| from <= to),
    }
}
