//! Type promotions ("Schema Evolution", "Type Promotion").

use super::{PrimitiveType, Type};
use crate::error::{Error, Result};
use crate::primitive::MAX_DECIMAL_PRECISION;
use crate::value::Value;
use PrimitiveType as P;

const MICROS_PER_DAY: i64 = 86_400_000_000;
const NANOS_PER_DAY: i64 = MICROS_PER_DAY * 1000;

/// Whether a column of type `from` may be changed to type `to` in a table of this format version.
///
/// Every primitive type may stay the same. Nested types and variant are never promoted, not even to themselves.
pub fn is_promotion_allowed(from: &Type, to: &PrimitiveType, format_version: u8) -> bool {
    let Type::Primitive(from) = from else { return false };
    if from == to {
        return true;
    }
    match (from, to) {
        (P::Int, P::Long) | (P::Float, P::Double) => true,
        (P::Decimal { precision: p, scale: s }, P::Decimal { precision: q, scale: t }) => s == t && p <= q,
        // Not to types with a zone, since a date has no zone.
        (P::Date, P::Timestamp | P::TimestampNs) => format_version >= 3,
        (P::Unknown, to) => format_version >= 3 && !matches!(to, P::Unrecognized(_)),
        _ => false,
    }
}

/// Describes the types that a column of type `from` may be changed to; `None` if there are no such types.
pub(crate) fn promotions(from: &Type, format_version: u8) -> Option<String> {
    let text = match from.as_primitive()? {
        P::Int => "long".to_owned(),
        P::Float => "double".to_owned(),
        P::Decimal { precision, scale } if *precision < MAX_DECIMAL_PRECISION => {
            format!("decimal(P, {scale}) with P above {precision}")
        }
        P::Date if format_version >= 3 => "timestamp or timestamp_ns".to_owned(),
        P::Date => "timestamp or timestamp_ns from format version 3 on".to_owned(),
        P::Unknown => "any primitive type".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// Converts a value of type `from` to type `to`, which must be an allowed promotion.
pub fn promote(value: &Value, from: &Type, to: &PrimitiveType) -> Result<Value> {
    let out_of_range = || Error::invalid(format!("{value:?} of type {from} is out of the range of {to}"));
    let scaled = |days: i32, units: i64| i64::from(days).checked_mul(units).map(Value::Long).ok_or_else(out_of_range);
    match (value, to) {
        (Value::Int(value), P::Long) => Ok(Value::Long(i64::from(*value))),
        (Value::Float(value), P::Double) => Ok(Value::Double(f64::from(*value))),
        (Value::Int(days), P::Timestamp) => scaled(*days, MICROS_PER_DAY),
        (Value::Int(days), P::TimestampNs) => scaled(*days, NANOS_PER_DAY),
        _ => Ok(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/types.md");

    /// Whether a cell of the document names a type.
    fn named(cell: &str, from: &PrimitiveType, to: &PrimitiveType) -> bool {
        match (cell, from, to) {
            ("every primitive type", _, _) => true,
            (
                "`decimal(Q, S)` with `Q` not below `P`",
                P::Decimal { precision: p, scale: s },
                P::Decimal { precision: q, scale: t },
            ) => s == t && q >= p,
            (names, _, to) => names.split(", ").any(|name| name == format!("`{to}`")),
        }
    }

    #[test]
    fn promotions_are_those_of_the_document() {
        let section = DOCUMENT.split("\n## ").find(|section| section.starts_with("Promotions")).unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
        assert_eq!(rows.len(), 5);
        let types = "boolean int long float double decimal(9,2) decimal(10,2) decimal(10,3) date time timestamp timestamptz \
                     timestamp_ns timestamptz_ns string uuid fixed[5] fixed[6] binary unknown geometry geography";
        let types: Vec<PrimitiveType> = types.split(' ').map(|name| PrimitiveType::parse(name).unwrap()).collect();
        for (from, to) in types.iter().flat_map(|from| types.iter().map(move |to| (from, to))) {
            for version in 1..=3 {
                let of = |cell: &str| match from {
                    P::Decimal { .. } => cell == "decimal(P, S)`",
                    other => cell == format!("{other}`"),
                };
                let in_version = |cell: &str| cell == "all" || cell.starts_with(&format!("{version}"));
                let expected = rows.iter().any(|row| of(row[0]) && named(row[1], from, to) && in_version(row[2]));
                let found = is_promotion_allowed(&from.clone().into(), to, version);
                assert_eq!(found, expected || from == to, "{from} to {to} in version {version}");
            }
        }
    }
}
