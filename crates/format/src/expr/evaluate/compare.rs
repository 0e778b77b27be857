//! Compares Arrow columns with literals, in every Arrow layout of a type.
//!
//! Nulls are ignored: the mask is meaningless where the value is null.

use std::hash::Hash;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal128Array, PrimitiveArray, UInt64Array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, i256};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use hashbrown::HashSet;

use crate::error::{Error, Result};
use crate::types::{PrimitiveType, Type};
use crate::value::Value;

use crate::expr::bind::ValueSet;
use crate::expr::datum::Datum;
use crate::expr::predicate::{Comparison, Test};

type BoundTest = Test<Value, Arc<ValueSet>>;

/// Evaluates a test of values on a column of type `ty`.
pub(super) fn evaluate(test: &BoundTest, ty: &Type, array: &dyn Array) -> Result<BooleanBuffer> {
    let len = array.len();
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(BooleanBuffer::new_unset(len));
            }
            let mask = evaluate(test, ty, dictionary.values())?;
            let keys = dictionary.normalized_keys();
            Ok(keys.iter().map(|key| mask.value(*key)).collect())
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => evaluate_runs::<Int16Type>(test, ty, array),
            DataType::Int32 => evaluate_runs::<Int32Type>(test, ty, array),
            _ => evaluate_runs::<Int64Type>(test, ty, array),
        },
        DataType::Boolean => evaluate_booleans(test, array.as_boolean()),
        DataType::Float16 => {
            Ok(evaluate_floats(test, len, |row| f64::from(array.as_primitive::<Float16Type>().value(row))))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            Ok(evaluate_floats(test, len, |row| f64::from(at(values, row))))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            Ok(evaluate_floats(test, len, |row| at(values, row)))
        }
        DataType::Utf8 => evaluate_bytes(test, array.as_string::<i32>()),
        DataType::LargeUtf8 => evaluate_bytes(test, array.as_string::<i64>()),
        DataType::Utf8View => evaluate_bytes(test, array.as_string_view()),
        DataType::Binary => evaluate_bytes(test, array.as_binary::<i32>()),
        DataType::LargeBinary => evaluate_bytes(test, array.as_binary::<i64>()),
        DataType::BinaryView => evaluate_bytes(test, array.as_binary_view()),
        DataType::FixedSizeBinary(_) => evaluate_bytes(test, array.as_fixed_size_binary()),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            evaluate_decimals(test, ty, array)
        }
        _ => evaluate_integers(test, ty, array),
    }
}

fn evaluate_runs<R: RunEndIndexType>(test: &BoundTest, ty: &Type, array: &dyn Array) -> Result<BooleanBuffer> {
    let runs = array.as_run::<R>();
    let mask = evaluate(test, ty, runs.values())?;
    Ok(BooleanBuffer::collect_bool(runs.len(), |row| mask.value(runs.get_physical_index(row))))
}

fn evaluate_booleans(test: &BoundTest, array: &BooleanArray) -> Result<BooleanBuffer> {
    let len = array.len();
    match test {
        Test::Compare(comparison, Value::Boolean(literal)) => {
            Ok(compare(len, |row| array.value(row), *comparison, *literal))
        }
        Test::In(set) => Ok(BooleanBuffer::collect_bool(len, |row| set.contains(Datum::Boolean(array.value(row))))),
        Test::NotIn(set) => Ok(BooleanBuffer::collect_bool(len, |row| !set.contains(Datum::Boolean(array.value(row))))),
        other => Err(unfit(other, array)),
    }
}

/// The value of a row.
#[inline]
#[expect(clippy::indexing_slicing, reason = "rows are counted up to the length of the array")]
fn at<T: Copy>(values: &[T], row: usize) -> T {
    values[row]
}

/// Compares the `key` of each row with a literal, in a branch-free loop for each comparison.
fn compare<K: PartialOrd + Copy>(
    len: usize,
    key: impl Fn(usize) -> K,
    comparison: Comparison,
    literal: K,
) -> BooleanBuffer {
    match comparison {
        Comparison::Lt => BooleanBuffer::collect_bool(len, |row| key(row) < literal),
        Comparison::LtEq => BooleanBuffer::collect_bool(len, |row| key(row) <= literal),
        Comparison::Gt => BooleanBuffer::collect_bool(len, |row| key(row) > literal),
        Comparison::GtEq => BooleanBuffer::collect_bool(len, |row| key(row) >= literal),
        Comparison::Eq => BooleanBuffer::collect_bool(len, |row| key(row) == literal),
        Comparison::NotEq => BooleanBuffer::collect_bool(len, |row| key(row) != literal),
    }
}

/// Tests each row for membership in a set of any size by hashing.
fn is_in<K: Hash + Eq>(
    len: usize,
    key: impl Fn(usize) -> K,
    set: impl Iterator<Item = K>,
    negated: bool,
) -> BooleanBuffer {
    let set: HashSet<K> = set.collect();
    BooleanBuffer::collect_bool(len, |row| set.contains(&key(row)) != negated)
}

/// Maps a double to an integer of the same order: -0.0 below 0.0, and NaN at either end.
fn float_key(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

fn evaluate_floats(test: &BoundTest, len: usize, value: impl Fn(usize) -> f64) -> BooleanBuffer {
    let nan = || BooleanBuffer::collect_bool(len, |row| value(row).is_nan());
    let literals = |set: &ValueSet| {
        let keys = set.values().iter().filter_map(Datum::of).filter_map(|datum| match datum {
            Datum::Float(value) => Some(float_key(value)),
            _ => None,
        });
        keys.collect::<Vec<_>>()
    };
    let key = |row: usize| float_key(value(row));
    match test {
        Test::IsNan => nan(),
        Test::NotNan => !&nan(),
        Test::Compare(comparison, literal) => {
            let Some(Datum::Float(literal)) = Datum::of(literal) else { return BooleanBuffer::new_unset(len) };
            let mask = compare(len, key, *comparison, float_key(literal));
            match comparison {
                // Literals are never NaN, so NaN is already right here.
                Comparison::Eq | Comparison::NotEq => mask,
                _ => &mask & &!&nan(),
            }
        }
        Test::In(set) => is_in(len, key, literals(set).into_iter(), false),
        Test::NotIn(set) => is_in(len, key, literals(set).into_iter(), true),
        _ => BooleanBuffer::new_unset(len),
    }
}

/// The bytes of a value that is compared by bytes.
fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::String(text) => Some(text.as_bytes()),
        Value::Uuid(bytes) => Some(bytes),
        Value::Binary(bytes) => Some(bytes),
        _ => None,
    }
}

fn evaluate_bytes<'a, A>(test: &BoundTest, array: A) -> Result<BooleanBuffer>
where
    A: ArrayAccessor + Copy,
    A::Item: AsBytes<'a>,
{
    let len = array.len();
    let value = |row: usize| array.value(row).bytes();
    match test {
        Test::Compare(comparison, literal) => match bytes(literal) {
            Some(literal) => Ok(compare(len, value, *comparison, literal)),
            None => Err(unfit(test, &array)),
        },
        Test::StartsWith(Value::String(prefix)) => {
            Ok(BooleanBuffer::collect_bool(len, |row| value(row).starts_with(prefix.as_bytes())))
        }
        Test::NotStartsWith(Value::String(prefix)) => {
            Ok(BooleanBuffer::collect_bool(len, |row| !value(row).starts_with(prefix.as_bytes())))
        }
        Test::Intersects(envelope) | Test::Disjoint(envelope) => {
            let wanted = matches!(test, Test::Intersects(_));
            let meets = |row: usize| match array.is_null(row) {
                true => Ok(false),
                false => envelope.meets(value(row)).map(|met| met == wanted).ok_or_else(|| {
                    Error::corrupt("", format!("row {row} of a batch: its bytes are no geometry in well-known binary"))
                }),
            };
            Ok(BooleanBuffer::from((0..len).map(meets).collect::<Result<Vec<bool>>>()?))
        }
        Test::In(set) => Ok(is_in(len, value, set.values().iter().filter_map(bytes), false)),
        Test::NotIn(set) => Ok(is_in(len, value, set.values().iter().filter_map(bytes), true)),
        other => Err(unfit(other, &array)),
    }
}

/// Text and binary values as bytes, in all layouts.
trait AsBytes<'a> {
    fn bytes(self) -> &'a [u8];
}

impl<'a> AsBytes<'a> for &'a str {
    fn bytes(self) -> &'a [u8] {
        self.as_bytes()
    }
}

impl<'a> AsBytes<'a> for &'a [u8] {
    fn bytes(self) -> &'a [u8] {
        self
    }
}

fn evaluate_integers(test: &BoundTest, ty: &Type, array: &dyn Array) -> Result<BooleanBuffer> {
    macro_rules! plain {
        ($($layout:pat => $native:ty),* $(,)?) => {
            match array.data_type() {
                $($layout => evaluate_primitives(test, array.as_primitive::<$native>(), |value| i64::from(value)),)*
                other => evaluate_moments(test, ty, array, other),
            }
        };
    }
    plain! {
        DataType::Int8 => Int8Type,
        DataType::Int16 => Int16Type,
        DataType::Int32 => Int32Type,
        DataType::Int64 => Int64Type,
        DataType::UInt8 => UInt8Type,
        DataType::UInt16 => UInt16Type,
        DataType::UInt32 => UInt32Type,
        DataType::Date32 => Date32Type,
    }
}

/// Evaluates times and timestamps in the unit of the table's type, whatever the unit of the array.
fn evaluate_moments(test: &BoundTest, ty: &Type, array: &dyn Array, layout: &DataType) -> Result<BooleanBuffer> {
    use TimeUnit as U;
    let nanos = matches!(ty, Type::Primitive(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs));
    let per_second: i64 = if nanos { 1_000_000_000 } else { 1_000_000 };
    let larger = |units_per_second: i64| move |value: i64| value.saturating_mul(per_second / units_per_second);
    match layout {
        // Values above i64::MAX are clamped to it, since literals are never larger.
        DataType::UInt64 => {
            let widen = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            evaluate_primitives(test, array.as_primitive::<UInt64Type>(), widen)
        }
        DataType::Date64 => {
            evaluate_primitives(test, array.as_primitive::<Date64Type>(), |ms| ms.div_euclid(86_400_000))
        }
        DataType::Time32(U::Second) => {
            evaluate_primitives(test, array.as_primitive::<Time32SecondType>(), |v| larger(1)(i64::from(v)))
        }
        DataType::Time32(_) => {
            evaluate_primitives(test, array.as_primitive::<Time32MillisecondType>(), |v| larger(1000)(i64::from(v)))
        }
        DataType::Time64(U::Nanosecond) => {
            evaluate_primitives(test, array.as_primitive::<Time64NanosecondType>(), |v| v.div_euclid(1000))
        }
        DataType::Time64(_) => evaluate_primitives(test, array.as_primitive::<Time64MicrosecondType>(), |v| v),
        DataType::Timestamp(U::Second, _) => {
            evaluate_primitives(test, array.as_primitive::<TimestampSecondType>(), larger(1))
        }
        DataType::Timestamp(U::Millisecond, _) => {
            evaluate_primitives(test, array.as_primitive::<TimestampMillisecondType>(), larger(1000))
        }
        DataType::Timestamp(U::Microsecond, _) => {
            evaluate_primitives(test, array.as_primitive::<TimestampMicrosecondType>(), larger(1_000_000))
        }
        DataType::Timestamp(U::Nanosecond, _) if nanos => {
            evaluate_primitives(test, array.as_primitive::<TimestampNanosecondType>(), |v| v)
        }
        DataType::Timestamp(U::Nanosecond, _) => {
            evaluate_primitives(test, array.as_primitive::<TimestampNanosecondType>(), |v| v.div_euclid(1000))
        }
        _ => Err(unfit(test, array)),
    }
}

/// Maximum range of a set of integers for which a bitmap is used.
const BITMAP_SPAN: u64 = 1 << 16;

fn evaluate_primitives<T>(
    test: &BoundTest,
    array: &PrimitiveArray<T>,
    widen: impl Fn(T::Native) -> i64,
) -> Result<BooleanBuffer>
where
    T: ArrowPrimitiveType,
    T::Native: ArrowNativeType,
{
    let values = array.values();
    let key = |row: usize| widen(at(values, row));
    let integers = |set: &ValueSet| {
        let integer = |datum| if let Datum::Integer(value) = datum { Some(value) } else { None };
        set.values().iter().filter_map(Datum::of).filter_map(integer).collect::<Vec<i64>>()
    };
    match test {
        Test::Compare(comparison, literal) => match Datum::of(literal) {
            Some(Datum::Integer(literal)) => Ok(compare(values.len(), key, *comparison, literal)),
            _ => Err(unfit(test, array)),
        },
        Test::In(set) => Ok(integers_in(values.len(), key, &integers(set), false)),
        Test::NotIn(set) => Ok(integers_in(values.len(), key, &integers(set), true)),
        other => Err(unfit(other, array)),
    }
}

/// Tests integers for membership in a set, ascending in `set`. Buckets, days and similar values are close together, so
/// a bitmap beats hashing.
fn integers_in(len: usize, key: impl Fn(usize) -> i64, set: &[i64], negated: bool) -> BooleanBuffer {
    let (Some(first), Some(last)) = (set.first().copied(), set.last().copied()) else {
        return if negated { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) };
    };
    let span = last.abs_diff(first);
    if span >= BITMAP_SPAN {
        return is_in(len, key, set.iter().copied(), negated);
    }
    let mut bits = vec![false; span as usize + 1];
    for value in set {
        if let Some(bit) = bits.get_mut(value.abs_diff(first) as usize) {
            *bit = true;
        }
    }
    BooleanBuffer::collect_bool(len, |row| {
        let key = key(row);
        let found = key >= first && bits.get(key.abs_diff(first) as usize).copied().unwrap_or(false);
        found != negated
    })
}

fn evaluate_decimals(test: &BoundTest, ty: &Type, array: &dyn Array) -> Result<BooleanBuffer> {
    let Type::Primitive(PrimitiveType::Decimal { scale, .. }) = ty else { return Err(unfit(test, array)) };
    let scale = i32::from(*scale);
    match array.data_type() {
        DataType::Decimal32(_, own) => {
            let values = array.as_primitive::<Decimal32Type>().values();
            evaluate_scaled(test, array, |row| i128::from(at(values, row)), scale, i32::from(*own))
        }
        DataType::Decimal64(_, own) => {
            let values = array.as_primitive::<Decimal64Type>().values();
            evaluate_scaled(test, array, |row| i128::from(at(values, row)), scale, i32::from(*own))
        }
        DataType::Decimal128(_, own) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            evaluate_scaled(test, array, |row| at(values, row), scale, i32::from(*own))
        }
        DataType::Decimal256(_, own) => {
            let values = array.as_primitive::<Decimal256Type>().values();
            evaluate_wide(test, array, |row| at(values, row), scale, i32::from(*own))
        }
        _ => Err(unfit(test, array)),
    }
}

fn evaluate_scaled(
    test: &BoundTest,
    array: &dyn Array,
    key: impl Fn(usize) -> i128,
    scale: i32,
    own: i32,
) -> Result<BooleanBuffer> {
    if scale != own {
        return evaluate_wide(test, array, |row| i256::from_i128(key(row)), scale, own);
    }
    let len = array.len();
    match test {
        Test::Compare(comparison, Value::Decimal(literal)) => Ok(compare(len, key, *comparison, *literal)),
        Test::In(set) => Ok(is_in(len, key, set.values().iter().filter_map(decimal), false)),
        Test::NotIn(set) => Ok(is_in(len, key, set.values().iter().filter_map(decimal), true)),
        other => Err(unfit(other, array)),
    }
}

/// Compares decimals of a scale other than the table's, or wider ones, at the larger of the two scales.
fn evaluate_wide(
    test: &BoundTest,
    array: &dyn Array,
    key: impl Fn(usize) -> i256,
    scale: i32,
    own: i32,
) -> Result<BooleanBuffer> {
    let power = |by: i32| i256::from_i128(10).checked_pow(u32::try_from(by).unwrap_or(0));
    let (Some(values), Some(literals)) = (power(scale - own), power(own - scale)) else {
        return Err(unfit(test, array));
    };
    let key = |row: usize| key(row).wrapping_mul(values);
    let literal = |value: i128| i256::from_i128(value).wrapping_mul(literals);
    let len = array.len();
    match test {
        Test::Compare(comparison, Value::Decimal(value)) => Ok(compare(len, key, *comparison, literal(*value))),
        Test::In(set) => Ok(is_in(len, key, set.values().iter().filter_map(decimal).map(literal), false)),
        Test::NotIn(set) => Ok(is_in(len, key, set.values().iter().filter_map(decimal).map(literal), true)),
        other => Err(unfit(other, array)),
    }
}

/// Converts a column to the layout that transforms expect: one value per row, days for dates, and decimals at the
/// table's scale, rounded down.
pub(super) fn canonical(array: &ArrayRef, ty: &PrimitiveType) -> Result<ArrayRef> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return Ok(dictionary.with_values(canonical(dictionary.values(), ty)?));
    }
    match (ty, array.data_type()) {
        (_, DataType::RunEndEncoded(ends, _)) => match ends.data_type() {
            DataType::Int16 => canonical(&expanded::<Int16Type>(array)?, ty),
            DataType::Int32 => canonical(&expanded::<Int32Type>(array)?, ty),
            _ => canonical(&expanded::<Int64Type>(array)?, ty),
        },
        (PrimitiveType::Date, DataType::Date64) => {
            let days = |ms: i64| i32::try_from(ms.div_euclid(86_400_000)).unwrap_or(i32::MAX);
            Ok(Arc::new(array.as_primitive::<Date64Type>().unary::<_, Date32Type>(days)))
        }
        (
            PrimitiveType::Decimal { precision, scale },
            DataType::Decimal32(_, own)
            | DataType::Decimal64(_, own)
            | DataType::Decimal128(_, own)
            | DataType::Decimal256(_, own),
        ) => {
            let wanted = i8::try_from(*scale).map_err(|_| Error::invalid(format!("invalid type {ty}")))?;
            if *own == wanted && !matches!(array.data_type(), DataType::Decimal256(..)) {
                return Ok(Arc::clone(array));
            }
            let values = rescaled(array, wanted.saturating_sub(*own), ty)?;
            let typed = values.with_precision_and_scale(*precision, wanted);
            Ok(Arc::new(typed.map_err(|error| Error::invalid(error.to_string()))?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// Expands a run-end encoded column to one value per row.
fn expanded<R: RunEndIndexType>(array: &ArrayRef) -> Result<ArrayRef> {
    let runs = array.as_run::<R>();
    let rows = (0..runs.len()).map(|row| u64::try_from(runs.get_physical_index(row)).ok());
    take(runs.values(), &rows.collect::<UInt64Array>(), None).map_err(|error| Error::invalid(error.to_string()))
}

/// Changes the scale of decimals by `by` digits.
fn rescaled(array: &ArrayRef, by: i8, ty: &PrimitiveType) -> Result<Decimal128Array> {
    let power = |by: i8| i256::from_i128(10).checked_pow(u32::try_from(by).unwrap_or(0)).unwrap_or(i256::ONE);
    let (up, down) = (power(by), power(by.saturating_neg()));
    let value = |row: usize| {
        if array.is_null(row) {
            return Ok(None);
        }
        let value = wide_value(array, row).wrapping_mul(up);
        let (whole, rest) = (value.wrapping_div(down), value.wrapping_rem(down));
        let floor = if rest < i256::ZERO { whole.wrapping_sub(i256::ONE) } else { whole };
        floor.to_i128().map(Some).ok_or_else(|| Error::invalid(format!("the value in row {row} does not fit {ty}")))
    };
    (0..array.len()).map(value).collect()
}

/// The unscaled value of a decimal of any width; 0 for other types.
fn wide_value(array: &ArrayRef, row: usize) -> i256 {
    match array.data_type() {
        DataType::Decimal32(..) => i256::from_i128(array.as_primitive::<Decimal32Type>().value(row).into()),
        DataType::Decimal64(..) => i256::from_i128(array.as_primitive::<Decimal64Type>().value(row).into()),
        DataType::Decimal128(..) => i256::from_i128(array.as_primitive::<Decimal128Type>().value(row)),
        DataType::Decimal256(..) => array.as_primitive::<Decimal256Type>().value(row),
        _ => i256::ZERO,
    }
}

fn decimal(value: &Value) -> Option<i128> {
    if let Value::Decimal(value) = value { Some(*value) } else { None }
}

fn unfit(test: &BoundTest, array: &dyn Array) -> Error {
    Error::invalid(format!(
        "{} cannot be asked of a column that is {} in Arrow",
        test.operation().name(),
        array.data_type()
    ))
}
