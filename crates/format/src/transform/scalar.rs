//! Defines each transform for a single value ("Bucket Transform Details", "Truncate Transform Details").

use crate::error::{Error, Result};
use crate::transform::Transform;
use crate::transform::murmur3::{hash_long, murmur3_32};
use crate::types::{PrimitiveType, Type};
use crate::value::calendar::{CivilDate, MICROS_PER_DAY, NANOS_PER_DAY};
use crate::value::{Value, bounds, decimal};

impl Transform {
    /// Applies the transform to a value of a column of type `source`; null for null.
    ///
    /// # Errors
    /// `Invalid` if the transform does not accept the type, the value is not of the type, or the result does not fit
    /// its type (hours beyond the year 246,953); `Unsupported` for an unknown transform.
    pub fn apply(&self, source: &Type, value: Option<&Value>) -> Result<Option<Value>> {
        if let Self::Unknown(text) = self {
            return Err(Error::unsupported(format!("unknown transform {text}")));
        }
        let refused = || Error::invalid(format!("transform {self} does not take type {source}"));
        if self.result_type(source).is_none() {
            return Err(refused());
        }
        let (Some(value), false) = (value, self.is_void()) else { return Ok(None) };
        let source = source.as_primitive().ok_or_else(refused)?;
        let result = match self {
            Self::Bucket(buckets) => bucket_hash(value, source).map(|hash| bucket_of(hash, *buckets)).map(Value::Int),
            Self::Truncate(width) => truncate(value, *width),
            Self::Year | Self::Month | Self::Day => days(value, source).and_then(|days| self.of_days(days)),
            Self::Hour => hours(value, source).and_then(|hours| i32::try_from(hours).ok()).map(Value::Int),
            Self::Identity | Self::Void | Self::Unknown(_) => Some(value.clone()),
        };
        result
            .map(Some)
            .ok_or_else(|| Error::invalid(format!("transform {self} of a {} as {source} has no result", value.kind())))
    }

    /// Whether results for a type may wrap around, as `truncate` of numbers does near the smallest number.
    pub(crate) fn may_wrap(&self, source: &Type) -> bool {
        matches!((self, source.as_primitive()), (Self::Truncate(_), Some(PrimitiveType::Int | PrimitiveType::Long)))
    }

    /// Whether the result for this value wraps around: then it is above the value, and in all other cases it is not.
    pub(crate) fn wraps(&self, value: &Value) -> bool {
        let Self::Truncate(width) = self else { return false };
        match (value, truncate(value, *width)) {
            (Value::Int(value), Some(Value::Int(result))) => result > *value,
            (Value::Long(value), Some(Value::Long(result))) => result > *value,
            _ => false,
        }
    }

    /// The result that values near the smallest number wrap around to; no other value has this result.
    pub(crate) fn wrapped(&self, source: &Type) -> Option<Value> {
        let smallest = match source.as_primitive()? {
            PrimitiveType::Int => Value::Int(i32::MIN),
            PrimitiveType::Long => Value::Long(i64::MIN),
            _ => return None,
        };
        if self.wraps(&smallest) { self.apply(source, Some(&smallest)).ok()? } else { None }
    }

    /// The wrapped result of an `int`, as the `long` that its column was promoted to. Partitions from before the
    /// promotion may have it, although no `long` has this result.
    pub(crate) fn wrapped_before_promotion(&self, source: &Type) -> Option<Value> {
        if source.as_primitive()? != &PrimitiveType::Long {
            return None;
        }
        match self.wrapped(&Type::Primitive(PrimitiveType::Int))? {
            Value::Int(result) => Some(Value::Long(i64::from(result))),
            _ => None,
        }
    }

    fn of_days(&self, days: i64) -> Option<Value> {
        let date = CivilDate::from_days(days);
        let ordinal = match self {
            Self::Year => date.year - 1970,
            Self::Month => (date.year - 1970) * 12 + i64::from(date.month) - 1,
            _ => days,
        };
        i32::try_from(ordinal).ok().map(Value::Int)
    }
}

/// The bucket of a hash.
#[inline]
pub(crate) fn bucket_of(hash: u32, buckets: u32) -> i32 {
    // Both are below 2^31.
    ((hash & 0x7fff_ffff) % buckets.max(1)) as i32
}

/// Hashes a value of a type that `bucket` accepts.
fn bucket_hash(value: &Value, source: &PrimitiveType) -> Option<u32> {
    use PrimitiveType as T;
    Some(match (source, value) {
        (T::Int | T::Date, Value::Int(v)) => hash_long(i64::from(*v)),
        (T::Long | T::Time | T::Timestamp | T::Timestamptz, Value::Long(v)) => hash_long(*v),
        (T::TimestampNs | T::TimestamptzNs, Value::Long(v)) => hash_long(v.div_euclid(1000)),
        (T::Decimal { .. }, Value::Decimal(v)) => murmur3_32(decimal::minimal_bytes(*v).as_slice()),
        (T::String, Value::String(v)) => murmur3_32(v.as_bytes()),
        (T::Uuid, Value::Uuid(v)) => murmur3_32(v),
        (T::Fixed(_) | T::Binary, Value::Binary(v)) => murmur3_32(v),
        _ => return None,
    })
}

/// Computes `v - (v mod width)` with a non-negative remainder, or cuts text and bytes to a length.
///
/// Near the smallest number of the type the result wraps around, as in the reference implementation.
fn truncate(value: &Value, width: u32) -> Option<Value> {
    Some(match value {
        Value::Int(v) => Value::Int(v.wrapping_sub(i64::from(*v).rem_euclid(i64::from(width.max(1))) as i32)),
        Value::Long(v) => Value::Long(v.wrapping_sub(v.rem_euclid(i64::from(width.max(1))))),
        Value::Decimal(v) => Value::Decimal(v.wrapping_sub(v.rem_euclid(i128::from(width.max(1))))),
        Value::String(v) => Value::String(bounds::truncate_text(v, width as usize).to_owned()),
        Value::Binary(v) => Value::Binary(bounds::truncate_bytes(v, width as usize).to_vec()),
        _ => return None,
    })
}

fn days(value: &Value, source: &PrimitiveType) -> Option<i64> {
    use PrimitiveType as T;
    Some(match (source, value) {
        (T::Date, Value::Int(days)) => i64::from(*days),
        (T::Timestamp | T::Timestamptz, Value::Long(micros)) => micros.div_euclid(MICROS_PER_DAY),
        (T::TimestampNs | T::TimestamptzNs, Value::Long(nanos)) => nanos.div_euclid(NANOS_PER_DAY),
        _ => return None,
    })
}

fn hours(value: &Value, source: &PrimitiveType) -> Option<i64> {
    use PrimitiveType as T;
    Some(match (source, value) {
        (T::Timestamp | T::Timestamptz, Value::Long(micros)) => micros.div_euclid(MICROS_PER_DAY / 24),
        (T::TimestampNs | T::TimestamptzNs, Value::Long(nanos)) => nanos.div_euclid(NANOS_PER_DAY / 24),
        _ => return None,
    })
}
