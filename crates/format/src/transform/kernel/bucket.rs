//! Applies `bucket` to Arrow arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::types::{
    BinaryViewType, ByteArrayType, ByteViewType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Int32Type,
    Int64Type, StringViewType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray, Int32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::bytes::{hash_at, hash_view};
use super::remainder::Remainder32;
use super::vectorized::{BLOCK, by_block, vectorized};
use crate::error::{Error, Result};
use crate::transform::murmur3::{absorb, finish, hash_long, murmur3_32, scramble};
use crate::value::decimal;

/// Computes the buckets of `array`; `None` if `bucket` does not accept its type.
pub(super) fn kernel(array: &ArrayRef, buckets: u32) -> Result<Option<ArrayRef>> {
    let Some(buckets) = Remainder32::new(buckets) else {
        return Err(Error::invalid(format!("bucket[{buckets}]: the number must be between 1 and {}", i32::MAX)));
    };
    let nulls = array.nulls();
    let results = match array.data_type() {
        DataType::Int32 => of_ints(array.as_primitive::<Int32Type>().values(), buckets),
        DataType::Date32 => of_ints(array.as_primitive::<Date32Type>().values(), buckets),
        DataType::Int64 => of_longs(array.as_primitive::<Int64Type>().values(), buckets),
        DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(_, _) => {
            match of_times(array, nulls, buckets)? {
                Some(results) => results,
                None => return Ok(None),
            }
        }
        DataType::Decimal32(_, _) => {
            let values = array.as_primitive::<Decimal32Type>().values();
            by_block(values, |values, out| small_decimals(values, out, buckets))
        }
        DataType::Decimal64(_, _) => {
            let values = array.as_primitive::<Decimal64Type>().values();
            by_block(values, |values, out| decimals(values, out, buckets))
        }
        DataType::Decimal128(_, _) => of_wide_decimals(array.as_primitive::<Decimal128Type>().values(), buckets),
        DataType::Utf8 => of_bytes(array.as_bytes::<Utf8Type>(), buckets),
        DataType::LargeUtf8 => of_bytes(array.as_bytes::<LargeUtf8Type>(), buckets),
        DataType::Binary => of_bytes(array.as_bytes::<BinaryType>(), buckets),
        DataType::LargeBinary => of_bytes(array.as_bytes::<LargeBinaryType>(), buckets),
        DataType::Utf8View => of_views(array.as_byte_view::<StringViewType>(), buckets),
        DataType::BinaryView => of_views(array.as_byte_view::<BinaryViewType>(), buckets),
        DataType::FixedSizeBinary(_) => of_fixed(array.as_fixed_size_binary(), buckets),
        _ => return Ok(None),
    };
    Ok(Some(Arc::new(Int32Array::new(results.into(), nulls.cloned()))))
}

fn of_ints(values: &[i32], buckets: Remainder32) -> Vec<i32> {
    by_block(values, |values, out| ints(values, out, buckets))
}

fn of_longs(values: &[i64], buckets: Remainder32) -> Vec<i32> {
    by_block(values, |values, out| longs(values, out, buckets))
}

/// Times and timestamps: microseconds are hashed, whatever the unit.
fn of_times(array: &ArrayRef, nulls: Option<&NullBuffer>, buckets: Remainder32) -> Result<Option<Vec<i32>>> {
    Ok(Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            of_longs(array.as_primitive::<TimestampMicrosecondType>().values(), buckets)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            of_nanos(array.as_primitive::<TimestampNanosecondType>().values(), buckets)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            of_coarse::<1_000>(array.as_primitive::<TimestampMillisecondType>().values(), nulls, buckets)?
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            of_coarse::<1_000_000>(array.as_primitive::<TimestampSecondType>().values(), nulls, buckets)?
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            of_longs(array.as_primitive::<Time64MicrosecondType>().values(), buckets)
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            of_nanos(array.as_primitive::<Time64NanosecondType>().values(), buckets)
        }
        DataType::Time32(TimeUnit::Millisecond) => {
            of_times_of_day::<1_000>(array.as_primitive::<Time32MillisecondType>().values(), buckets)
        }
        DataType::Time32(TimeUnit::Second) => {
            of_times_of_day::<1_000_000>(array.as_primitive::<Time32SecondType>().values(), buckets)
        }
        _ => return Ok(None),
    }))
}

fn of_nanos(values: &[i64], buckets: Remainder32) -> Vec<i32> {
    let mut micros = [0; BLOCK];
    by_block(values, |values, out| {
        for (micros, nanos) in micros.iter_mut().zip(values) {
            *micros = nanos.div_euclid(1000);
        }
        let (micros, _) = micros.split_at(values.len());
        longs(micros, out, buckets);
    })
}

/// Computes buckets of timestamps whose unit is `MICROS` microseconds; refuses those outside the range of microseconds.
fn of_coarse<const MICROS: i64>(values: &[i64], nulls: Option<&NullBuffer>, buckets: Remainder32) -> Result<Vec<i32>> {
    let beyond = |value: &i64| value.checked_mul(MICROS).is_none();
    let valid = |i: usize| nulls.is_none_or(|nulls| nulls.is_valid(i));
    if let Some((_, value)) = values.iter().enumerate().find(|(i, value)| beyond(value) && valid(*i)) {
        return Err(Error::invalid(format!("timestamp {value} (of {MICROS} µs) does not fit 64 bits of microseconds")));
    }
    let mut micros = [0; BLOCK];
    Ok(by_block(values, |values, out| {
        for (micros, value) in micros.iter_mut().zip(values) {
            *micros = value.wrapping_mul(MICROS);
        }
        let (micros, _) = micros.split_at(values.len());
        longs(micros, out, buckets);
    }))
}

fn of_times_of_day<const MICROS: i64>(values: &[i32], buckets: Remainder32) -> Vec<i32> {
    values.iter().map(|value| buckets.of(positive(hash_long(i64::from(*value) * MICROS))) as i32).collect()
}

/// Computes buckets of 128-bit decimals. A block whose values all fit in 64 bits, as almost always, takes a fast path.
fn of_wide_decimals(values: &[i128], buckets: Remainder32) -> Vec<i32> {
    let mut narrow = [0; BLOCK];
    by_block(values, |values, out| {
        let (narrow, _) = narrow.split_at_mut(values.len());
        if narrowed(values, narrow) {
            decimals(narrow, out, buckets);
        } else {
            for (out, value) in out.iter_mut().zip(values) {
                let hash = murmur3_32(decimal::minimal_bytes(*value).as_slice());
                *out = buckets.of(positive(hash)) as i32;
            }
        }
    })
}

fn of_bytes<T: ByteArrayType>(array: &GenericByteArray<T>, buckets: Remainder32) -> Vec<i32> {
    use arrow_buffer::ArrowNativeType;
    let (data, offsets) = (array.value_data(), array.value_offsets());
    let bucket = |window: &[T::Offset]| match window {
        [start, end] => buckets.of(positive(hash_at(data, start.as_usize(), end.as_usize()))) as i32,
        _ => 0,
    };
    offsets.windows(2).map(bucket).collect()
}

fn of_views<T: ByteViewType>(array: &GenericByteViewArray<T>, buckets: Remainder32) -> Vec<i32> {
    let buffers = array.data_buffers();
    array.views().iter().map(|view| buckets.of(positive(hash_view(*view, buffers))) as i32).collect()
}

fn of_fixed(array: &FixedSizeBinaryArray, buckets: Remainder32) -> Vec<i32> {
    let width = usize::try_from(array.value_length()).unwrap_or(0);
    if width == 0 {
        return vec![buckets.of(positive(murmur3_32(&[]))) as i32; array.len()];
    }
    // The values of a sliced array are those of the slice.
    let (uuids, []) = array.value_data().as_chunks::<16>() else {
        return array.value_data().chunks_exact(width).map(|v| buckets.of(positive(murmur3_32(v))) as i32).collect();
    };
    if width == 16 {
        return by_block(uuids, |values, out| of_16_bytes(values, out, buckets));
    }
    array.value_data().chunks_exact(width).map(|v| buckets.of(positive(murmur3_32(v))) as i32).collect()
}

/// Clears the sign bit of a hash.
#[inline(always)]
fn positive(hash: u32) -> u32 {
    hash & 0x7fff_ffff
}

vectorized! {
    fn ints(values: &[i32], out: &mut [i32], buckets: Remainder32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = buckets.of(positive(hash_long(i64::from(*value)))) as i32;
        }
    }
}

vectorized! {
    fn longs(values: &[i64], out: &mut [i32], buckets: Remainder32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = buckets.of(positive(hash_long(*value))) as i32;
        }
    }
}

vectorized! {
    fn of_16_bytes(values: &[[u8; 16]], out: &mut [i32], buckets: Remainder32) {
        for (out, value) in out.iter_mut().zip(values) {
            let value = u128::from_le_bytes(*value);
            let hash = absorb(absorb(0, value as u32), (value >> 32) as u32);
            let hash = absorb(absorb(hash, (value >> 64) as u32), (value >> 96) as u32);
            *out = buckets.of(positive(finish(hash ^ 16))) as i32;
        }
    }
}

vectorized! {
    /// Computes buckets of decimals that fit in 64 bits.
    fn decimals(values: &[i64], out: &mut [i32], buckets: Remainder32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = buckets.of(positive(hash_decimal(*value))) as i32;
        }
    }
}

vectorized! {
    fn small_decimals(values: &[i32], out: &mut [i32], buckets: Remainder32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = buckets.of(positive(hash_decimal(i64::from(*value)))) as i32;
        }
    }
}

vectorized! {
    /// Writes the low halves of `values`; returns whether nothing is lost.
    fn narrowed(values: &[i128], out: &mut [i64]) -> bool {
        let mut lost = 0;
        for (out, value) in out.iter_mut().zip(values) {
            *out = *value as i64;
            lost |= (*value >> 64) as i64 ^ (*out >> 63);
        }
        lost == 0
    }
}

/// Hashes the minimal big-endian bytes of a 64-bit number without branches.
///
/// The number is shifted left until its first significant byte is on top. The words to hash are then its two halves
/// with bytes swapped, and a partial word is already padded with zeros as the hash requires.
#[inline(always)]
fn hash_decimal(value: i64) -> u32 {
    let value_bits = 64 - (value ^ value >> 63).leading_zeros();
    let bytes = value_bits / 8 + 1;
    let aligned = (value as u64) << (64 - 8 * bytes);
    let (first, second) = (((aligned >> 32) as u32).swap_bytes(), (aligned as u32).swap_bytes());
    let whole_first = bytes >= 4;
    let hash = if whole_first { absorb(0, first) } else { 0 };
    let rest = if whole_first { second } else { first };
    // An empty rest is zero and changes nothing; eight bytes end with a whole word.
    let hash = if bytes == 8 { absorb(hash, rest) } else { hash ^ scramble(rest) };
    finish(hash ^ bytes)
}
