//! Order of values in bounds, sorted files and filters ("Sorting"; "Data File Fields", note 2).

use std::cmp::Ordering;

use crate::primitive::PrimitiveType;
use crate::value::Value;

/// Compares two values of type `ty`.
///
/// `-0.0` precedes `0.0`, and every NaN follows all other values. Strings compare by code point, uuids and bytes as
/// unsigned bytes. Values of different kinds, which never come from the same column, are ordered by kind, so that the
/// order is total for any input.
pub fn compare(ty: &PrimitiveType, a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Long(a), Value::Long(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (Value::Double(a), Value::Double(b)) => compare_floats(*a, *b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        _ => nested(ty, a, b),
    }
}

/// Compares floats: `-0.0 < 0.0`, and NaNs are equal and above all numbers.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a, b) => a.cmp(&b),
    }
}

/// Compares nested values element by element, nulls first. The specification has no rule for them, but a total order
/// needs one.
fn nested(ty: &PrimitiveType, a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Struct(a), Value::Struct(b)) | (Value::List(a), Value::List(b)) => {
            let both = a.iter().zip(b).map(|(a, b)| optional(ty, a.as_ref(), b.as_ref()));
            both.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let both = a.iter().zip(b).map(|((key_a, value_a), (key_b, value_b))| {
                compare(ty, key_a, key_b).then(optional(ty, value_a.as_ref(), value_b.as_ref()))
            });
            both.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Variant { metadata: a, value: b }, Value::Variant { metadata: c, value: d }) => a.cmp(c).then(b.cmp(d)),
        _ => a.kind().cmp(b.kind()),
    }
}

fn optional(ty: &PrimitiveType, a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(ty, a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}
