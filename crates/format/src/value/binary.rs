//! Binary form of single values ("Appendix D: Binary single-value serialization").

use crate::error::{Error, Result};
use crate::primitive::PrimitiveType;
use crate::value::calendar::{MICROS_PER_DAY, NANOS_PER_DAY};
use crate::value::{Value, decimal};

/// Writes `value`, of type `ty`, as bytes.
///
/// # Errors
/// `Invalid` if the value is not of the type, `Unsupported` for a type without a binary form.
pub fn to_bytes(value: &Value, ty: &PrimitiveType) -> Result<Vec<u8>> {
    use PrimitiveType as T;
    match (ty, value) {
        (T::Boolean, Value::Boolean(v)) => Ok(vec![u8::from(*v)]),
        (T::Int | T::Date, Value::Int(v)) => Ok(v.to_le_bytes().to_vec()),
        (T::Long | T::Time | T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs, Value::Long(v)) => {
            Ok(v.to_le_bytes().to_vec())
        }
        (T::Float, Value::Float(v)) => Ok(v.to_le_bytes().to_vec()),
        (T::Double, Value::Double(v)) => Ok(v.to_le_bytes().to_vec()),
        (T::Decimal { .. }, Value::Decimal(v)) => Ok(decimal::minimal_bytes(*v).as_slice().to_vec()),
        (T::String, Value::String(v)) => Ok(v.as_bytes().to_vec()),
        (T::Uuid, Value::Uuid(v)) => Ok(v.to_vec()),
        (T::Fixed(_) | T::Binary | T::Geometry { .. } | T::Geography { .. }, Value::Binary(v)) => Ok(v.clone()),
        (T::Unknown | T::Unrecognized(_), _) => Err(Error::unsupported(format!("type {ty} has no binary form"))),
        _ => Err(Error::invalid(format!("a {} is not a value of type {ty}", value.kind()))),
    }
}

/// Reads a value of type `ty` from bytes.
///
/// Also reads bytes written before the column's type was promoted: four bytes of a `long` are an `int`, four bytes of a
/// `double` a `float`, four bytes of a `timestamp` or `timestamp_ns` the days of a `date`. Bytes after a value of fixed
/// width are ignored, as in the reference implementation.
///
/// # Errors
/// `Corrupt` if there are too few bytes, if they are not text, or if the promoted type cannot hold a date;
/// `Unsupported` for a type without a binary form.
pub fn from_bytes(bytes: &[u8], ty: &PrimitiveType) -> Result<Value> {
    use PrimitiveType as T;
    Ok(match ty {
        T::Boolean => Value::Boolean(head::<1>(bytes, ty)? != [0]),
        T::Int | T::Date => Value::Int(i32::from_le_bytes(head(bytes, ty)?)),
        T::Long | T::Time | T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs => {
            Value::Long(match bytes.first_chunk() {
                Some(chunk) => i64::from_le_bytes(*chunk),
                None => {
                    let number = i32::from_le_bytes(head(bytes, ty)?);
                    promoted_int(number, ty).ok_or_else(|| {
                        Error::corrupt("", format!("the date {number} days after 1970-01-01 does not fit type {ty}"))
                    })?
                }
            })
        }
        T::Float => Value::Float(f32::from_le_bytes(head(bytes, ty)?)),
        T::Double => Value::Double(match bytes.first_chunk() {
            Some(chunk) => f64::from_le_bytes(*chunk),
            None => f64::from(f32::from_le_bytes(head(bytes, ty)?)),
        }),
        T::Decimal { .. } => match decimal::from_big_endian(bytes) {
            Some(unscaled) => Value::Decimal(unscaled),
            None => {
                return Err(Error::corrupt(
                    "",
                    format!("expected at most 16 bytes for a decimal, got {}", bytes.len()),
                ));
            }
        },
        T::String => match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Value::String(text.to_owned()),
            Err(_) => return Err(Error::corrupt("", format!("a string of {} bytes is not UTF-8", bytes.len()))),
        },
        T::Uuid => Value::Uuid(head(bytes, ty)?),
        T::Fixed(_) | T::Binary | T::Geometry { .. } | T::Geography { .. } => Value::Binary(bytes.to_vec()),
        T::Unknown | T::Unrecognized(_) => {
            return Err(Error::unsupported(format!("type {ty} has no binary form")));
        }
    })
}

/// Reads a bound of type `ty`; `None` if it is a date that the promoted type cannot hold.
///
/// # Errors
/// As [`from_bytes`].
pub fn bound_from_bytes(bytes: &[u8], ty: &PrimitiveType) -> Result<Option<Value>> {
    let promoted = <[u8; 4]>::try_from(bytes).ok().map(i32::from_le_bytes);
    if matches!(ty, PrimitiveType::Timestamp | PrimitiveType::TimestampNs)
        && promoted.is_some_and(|days| promoted_int(days, ty).is_none())
    {
        return Ok(None);
    }
    from_bytes(bytes, ty).map(Some)
}

/// Converts a four-byte number to an eight-byte type: days to the midnight of a `date` promoted to a timestamp ("Schema
/// Evolution"), otherwise the number itself. `None` if the midnight is outside the type.
pub(crate) fn promoted_int(number: i32, ty: &PrimitiveType) -> Option<i64> {
    let number = i64::from(number);
    match ty {
        PrimitiveType::Timestamp => number.checked_mul(MICROS_PER_DAY),
        PrimitiveType::TimestampNs => number.checked_mul(NANOS_PER_DAY),
        _ => Some(number),
    }
}

/// Returns the first `N` bytes.
fn head<const N: usize>(bytes: &[u8], ty: &PrimitiveType) -> Result<[u8; N]> {
    match bytes.first_chunk() {
        Some(chunk) => Ok(*chunk),
        None => Err(Error::corrupt("", format!("expected {N} bytes for a value of type {ty}, got {}", bytes.len()))),
    }
}
