//! Compares two columns row by row, with the semantics of SQL.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp::{eq, gt, gt_eq, lt, lt_eq, neq};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use icefield_format::expr::Comparison;

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// The common type in which the values of two columns are compared.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::operation) enum ComparedAs {
    /// Values of an Arrow type.
    Type(DataType),
    /// Nanoseconds since 1970 in more than 64 bits, which cannot hold all dates and timestamps of other units.
    Nanoseconds,
}

impl ComparedAs {
    /// The common type of two columns; `None` if their values are not comparable. Conversion is lossless, except of
    /// integers and decimals that are compared with floating-point numbers.
    pub(in crate::operation) fn of(left: &DataType, right: &DataType) -> Option<Self> {
        use DataType as D;
        let (left, right) = (plain(left), plain(right));
        if left.is_nested() || right.is_nested() {
            return None;
        }
        if left.is_floating() || right.is_floating() {
            let comparable = |ty: &D| ty.is_numeric() || *ty == D::Null;
            return (comparable(left) && comparable(right)).then_some(Self::Type(D::Float64));
        }
        if let (Some(left), Some(right)) = (digits(left), digits(right)) {
            let scale = left.1.max(right.1);
            let whole = (i16::from(left.0) - i16::from(left.1)).max(i16::from(right.0) - i16::from(right.1));
            let precision = u8::try_from(whole + i16::from(scale)).ok()?;
            return match (scale, precision) {
                (0, ..=19) if left.1 == 0 && right.1 == 0 => Some(Self::Type(D::Int64)),
                (_, ..=38) => Some(Self::Type(D::Decimal128(precision, scale))),
                (_, ..=76) => Some(Self::Type(D::Decimal256(precision, scale))),
                _ => None,
            };
        }
        Some(Self::Type(match (left, right) {
            (D::Null, D::Null) => D::Boolean,
            (D::Null, other) | (other, D::Null) => other.clone(),
            (D::LargeUtf8, D::LargeUtf8) | (D::LargeBinary, D::LargeBinary) | (D::Boolean, D::Boolean) => left.clone(),
            (D::Date32 | D::Date64, D::Date32 | D::Date64) => D::Date32,
            (D::Date32 | D::Date64, D::Timestamp(_, None)) | (D::Timestamp(_, None), D::Date32 | D::Date64) => {
                return Some(Self::Nanoseconds);
            }
            (D::Timestamp(one, zone), D::Timestamp(other, other_zone)) if zone.is_some() == other_zone.is_some() => {
                if one != other {
                    return Some(Self::Nanoseconds);
                }
                left.clone()
            }
            (D::Time32(_) | D::Time64(_), D::Time32(_) | D::Time64(_)) => D::Time64(TimeUnit::Nanosecond),
            _ => return None,
        }))
    }

    /// The rows for which a comparison of two columns is true. A comparison with null is never true. NaN equals NaN and
    /// is greater than all other numbers; zeros of both signs are equal.
    ///
    /// # Errors
    /// A value that the common type cannot hold.
    pub(in crate::operation) fn matching(
        &self,
        left: &ArrayRef,
        comparison: Comparison,
        right: &ArrayRef,
    ) -> Result<BooleanBuffer, ArrowError> {
        let (left, right) = (self.values(left)?, self.values(right)?);
        let found: BooleanArray = match comparison {
            Comparison::Lt => lt(&left, &right),
            Comparison::LtEq => lt_eq(&left, &right),
            Comparison::Gt => gt(&left, &right),
            Comparison::GtEq => gt_eq(&left, &right),
            Comparison::Eq => eq(&left, &right),
            Comparison::NotEq => neq(&left, &right),
        }?;
        Ok(match found.nulls() {
            Some(nulls) => found.values() & nulls.inner(),
            None => found.values().clone(),
        })
    }

    fn values(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Nanoseconds => nanoseconds(array),
            Self::Type(ty) => Ok(with_one_zero(strictly(array, ty)?)),
        }
    }
}

/// Error text for unsupported comparisons.
pub(in crate::operation) const ONLY_COLUMNS: &str =
    "only a comparison with a literal is supported; compare columns themselves, or pass a function";

fn strictly(array: &ArrayRef, ty: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, ty, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Converts dates and timestamps to nanoseconds.
fn nanoseconds(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let (array, unit) = match plain(array.data_type()) {
        DataType::Date32 | DataType::Date64 => (strictly(array, &DataType::Date32)?, DAY),
        ty @ DataType::Timestamp(unit, _) => {
            let unit = match unit {
                TimeUnit::Second => SECOND,
                TimeUnit::Millisecond => SECOND / 1_000,
                TimeUnit::Microsecond => SECOND / 1_000_000,
                TimeUnit::Nanosecond => 1,
            };
            (strictly(array, ty)?, unit)
        }
        other => return Err(ArrowError::CastError(format!("{other} is no point in time"))),
    };
    let units = strictly(&array, &DataType::Int64)?;
    let units = units.as_primitive::<Int64Type>();
    let numbers = units.unary::<_, Decimal128Type>(|number| i128::from(number) * unit);
    Ok(Arc::new(numbers.with_precision_and_scale(38, 0)?))
}

/// Maps both zeros to 0.0, and all NaNs to a positive one: Arrow orders -0.0 before 0.0, and a negative NaN before all
/// numbers.
fn with_one_zero(array: ArrayRef) -> ArrayRef {
    let one = |number: f64| if number.is_nan() { f64::NAN } else { number + 0.0 };
    match array.as_primitive_opt::<Float64Type>() {
        Some(numbers) => Arc::new(numbers.unary::<_, Float64Type>(one)),
        None => array,
    }
}

/// Maps all layouts of strings to one type, and all layouts of bytes to one.
fn plain(ty: &DataType) -> &DataType {
    use DataType as D;
    match ty {
        D::Dictionary(_, values) => plain(values),
        D::Utf8 | D::LargeUtf8 | D::Utf8View => &D::LargeUtf8,
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => &D::LargeBinary,
        other => other,
    }
}

/// Precision and scale of integers and decimals.
fn digits(ty: &DataType) -> Option<(u8, i8)> {
    use DataType as D;
    match ty {
        D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::UInt8 | D::UInt16 | D::UInt32 => Some((19, 0)),
        D::UInt64 => Some((20, 0)),
        D::Decimal32(precision, scale)
        | D::Decimal64(precision, scale)
        | D::Decimal128(precision, scale)
        | D::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Date32Array, Float64Array, NullArray, TimestampMicrosecondArray, TimestampNanosecondArray};

    use super::*;

    #[test]
    fn what_types_are_compared_as() {
        use DataType as D;
        let (us, ns) = (TimeUnit::Microsecond, TimeUnit::Nanosecond);
        let zone = || Some("UTC".into());
        let dictionary = D::Dictionary(Box::new(D::Int8), Box::new(D::Utf8));
        let cases = [
            (D::Int32, D::Int64, Some(D::Int64)),
            (D::UInt64, D::Int64, Some(D::Decimal128(20, 0))),
            (D::Int64, D::Float32, Some(D::Float64)),
            (D::Null, D::Float32, Some(D::Float64)),
            (D::Float64, D::Decimal128(9, 2), Some(D::Float64)),
            (D::Decimal128(9, 2), D::Int32, Some(D::Decimal128(21, 2))),
            (D::Decimal128(38, 0), D::Decimal128(38, 10), Some(D::Decimal256(48, 10))),
            (D::Decimal128(5, 0), D::Int32, Some(D::Int64)),
            (dictionary, D::Utf8View, Some(D::LargeUtf8)),
            (D::FixedSizeBinary(16), D::Binary, Some(D::LargeBinary)),
            (D::Timestamp(us, zone()), D::Timestamp(us, zone()), Some(D::Timestamp(us, zone()))),
            (D::Timestamp(us, zone()), D::Timestamp(us, None), None),
            (D::Date32, D::Timestamp(us, zone()), None),
            (D::Date32, D::Int32, None),
            (D::Utf8, D::Int32, None),
            (D::Utf8, D::Float32, None),
            (D::Boolean, D::Boolean, Some(D::Boolean)),
            (D::Null, D::Utf8, Some(D::LargeUtf8)),
            (D::Null, D::Null, Some(D::Boolean)),
        ];
        for (left, right, expected) in cases {
            let expected = expected.map(ComparedAs::Type);
            assert_eq!(ComparedAs::of(&left, &right), expected, "{left} and {right}");
            assert_eq!(ComparedAs::of(&right, &left), expected, "{right} and {left}");
        }
        for other in [D::Timestamp(us, None), D::Date32] {
            assert_eq!(ComparedAs::of(&D::Timestamp(ns, None), &other), Some(ComparedAs::Nanoseconds));
        }
    }

    #[track_caller]
    fn check(left: impl Array + 'static, comparison: Comparison, right: impl Array + 'static, expected: &[bool]) {
        let (left, right): (ArrayRef, ArrayRef) = (Arc::new(left), Arc::new(right));
        let ty = ComparedAs::of(left.data_type(), right.data_type()).unwrap();
        let found = ty.matching(&left, comparison, &right).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        let found = ty.matching(&right, comparison.flip(), &left).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "the other way round");
    }

    #[test]
    fn points_in_time_are_compared_exactly_however_late() {
        let midnight = || TimestampNanosecondArray::from(vec![Some(0), Some(1), None]);
        check(Date32Array::from(vec![0, 0, 0]), Comparison::Eq, midnight(), &[true, false, false]);
        check(Date32Array::from(vec![i32::MAX, i32::MIN, 0]), Comparison::Gt, midnight(), &[true, false, false]);
        let late = TimestampMicrosecondArray::from(vec![i64::MAX, 0, 0]);
        check(late, Comparison::LtEq, midnight(), &[false, true, false]);
    }

    #[test]
    fn there_is_one_nan_one_zero_and_null_beside_nothing() {
        let left = Float64Array::from(vec![Some(-f64::NAN), Some(-0.0), Some(-f64::NAN), None]);
        let right = Float64Array::from(vec![Some(f64::NAN), Some(0.0), Some(f64::INFINITY), None]);
        check(left.clone(), Comparison::Eq, right.clone(), &[true, true, false, false]);
        check(left, Comparison::Gt, right, &[false, false, true, false]);
        check(NullArray::new(2), Comparison::Eq, NullArray::new(2), &[false, false]);
        check(NullArray::new(2), Comparison::NotEq, Float64Array::from(vec![1.0, 2.0]), &[false, false]);
    }
}
