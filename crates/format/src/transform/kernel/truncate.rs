//! `truncate` over Arrow arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, Decimal32Type, Decimal64Type, Decimal128Type, Int32Type,
    Int64Type, LargeBinaryType, LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, GenericByteViewArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::bytes::INLINE;
use super::remainder::{Remainder32, Remainder64};
use super::{by_block, vectorized};
use crate::error::{Error, Result};
use crate::value::bounds::truncate_bytes;

/// The values of `array` cut to `width`, or none where `truncate` does not take its type.
pub(super) fn kernel(array: &ArrayRef, width: u32) -> Result<Option<ArrayRef>> {
    let (Some(small), Some(large)) = (Remainder32::new(width), Remainder64::new(width)) else {
        return Err(Error::invalid(format!("truncate[{width}]: the number must be between 1 and {}", i32::MAX)));
    };
    let length = width as usize;
    Ok(Some(match array.data_type() {
        DataType::Int32 => numbers::<Int32Type>(array, |values, out| ints(values, out, small)),
        DataType::Int64 => numbers::<Int64Type>(array, |values, out| longs(values, out, large)),
        DataType::Decimal32(_, _) => numbers::<Decimal32Type>(array, |values, out| ints(values, out, small)),
        DataType::Decimal64(_, _) => numbers::<Decimal64Type>(array, |values, out| longs(values, out, large)),
        DataType::Decimal128(_, _) => numbers::<Decimal128Type>(array, |values, out| wide(values, out, large)),
        DataType::Utf8 => bytes(array, array.as_bytes::<Utf8Type>(), length, text_end),
        DataType::LargeUtf8 => bytes(array, array.as_bytes::<LargeUtf8Type>(), length, text_end),
        DataType::Binary => bytes(array, array.as_bytes::<BinaryType>(), length, bytes_end),
        DataType::LargeBinary => bytes(array, array.as_bytes::<LargeBinaryType>(), length, bytes_end),
        DataType::Utf8View => views(array, array.as_byte_view::<StringViewType>(), length, text_end),
        DataType::BinaryView => views(array, array.as_byte_view::<BinaryViewType>(), length, bytes_end),
        _ => return Ok(None),
    }))
}

/// Numbers: the result keeps precision, scale and all else of the type.
fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef, kernel: impl FnMut(&[T::Native], &mut [T::Native])) -> ArrayRef {
    let array = array.as_primitive::<T>();
    let values = by_block(array.values(), kernel);
    let truncated = PrimitiveArray::<T>::new(values.into(), array.nulls().cloned());
    Arc::new(truncated.with_data_type(array.data_type().clone()))
}

vectorized! {
    fn ints(values: &[i32], out: &mut [i32], width: Remainder32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = value.wrapping_sub(width.of_signed(*value));
        }
    }
}

vectorized! {
    fn longs(values: &[i64], out: &mut [i64], width: Remainder64) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = value.wrapping_sub(width.of_signed(*value));
        }
    }
}

fn wide(values: &[i128], out: &mut [i128], width: Remainder64) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = value.wrapping_sub(i128::from(width.of_wide(*value)));
    }
}

/// Where a text that is longer than `length` bytes ends when it is cut to `length` code points.
#[inline(always)]
fn text_end(text: &[u8], length: usize) -> usize {
    match text.get(..length) {
        // As many bytes as code points.
        Some(head) if head.is_ascii() => length,
        // The code point after the last one that stays begins with the first byte that continues none.
        _ => {
            let starts = text.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
            starts.map(|(start, _)| start).nth(length).unwrap_or(text.len())
        }
    }
}

#[inline(always)]
fn bytes_end(bytes: &[u8], length: usize) -> usize {
    truncate_bytes(bytes, length).len()
}

/// Texts and bytes one after the other: their first parts are moved together.
fn bytes<T: ByteArrayType>(
    shared: &ArrayRef,
    array: &GenericByteArray<T>,
    length: usize,
    end_of: impl Fn(&[u8], usize) -> usize,
) -> ArrayRef {
    let (data, offsets) = (array.value_data(), array.value_offsets());
    let lengths = || offsets.windows(2).map(|pair| span(pair).map_or(0, |(start, end)| end - start));
    if lengths().max().unwrap_or(0) <= length {
        return shared.clone();
    }
    let most: usize = lengths().map(|own| own.min(length.saturating_mul(4))).sum();
    let mut out = Vec::with_capacity(most + STEP);
    let mut ends = Vec::with_capacity(offsets.len());
    ends.push(T::Offset::usize_as(0));
    for pair in offsets.windows(2) {
        let value = span(pair).and_then(|(start, end)| Some((start, data.get(start..end)?)));
        if let Some((start, value)) = value {
            let end = if value.len() <= length { value.len() } else { end_of(value, length) };
            append(&mut out, data, start, end);
        }
        // At most the end of the input's offset, so it fits the type.
        ends.push(T::Offset::usize_as(out.len()));
    }
    // SAFETY: the ends rise from 0 to the number of bytes; texts were cut from valid UTF-8 at code points.
    let array = unsafe {
        let ends = OffsetBuffer::new_unchecked(ScalarBuffer::from(ends));
        GenericByteArray::<T>::new_unchecked(ends, Buffer::from_vec(out), array.nulls().cloned())
    };
    Arc::new(array)
}

fn span<O: ArrowNativeType>(pair: &[O]) -> Option<(usize, usize)> {
    match pair {
        [start, end] => Some((start.as_usize(), end.as_usize())),
        _ => None,
    }
}

/// Bytes that are moved at once.
const STEP: usize = 16;

/// Appends `data[start..start + length]`. A short value is moved as a whole step and then cut: a copy of a length that is
/// known needs no call and no loop.
#[inline(always)]
fn append(out: &mut Vec<u8>, data: &[u8], start: usize, length: usize) {
    let from = data.get(start..).unwrap_or_default();
    match from.first_chunk::<STEP>() {
        Some(step) if length <= STEP => {
            let filled = out.len() + length;
            out.extend_from_slice(step);
            out.truncate(filled);
        }
        _ => out.extend_from_slice(from.get(..length).unwrap_or_default()),
    }
}

/// Views: the buffers are shared; a view only gets shorter.
fn views<T: ByteViewType>(
    shared: &ArrayRef,
    array: &GenericByteViewArray<T>,
    length: usize,
    end_of: impl Fn(&[u8], usize) -> usize,
) -> ArrayRef {
    let buffers = array.data_buffers();
    if array.views().iter().all(|view| *view as u32 as usize <= length) {
        return shared.clone();
    }
    let cut = |view: &u128| {
        let own = *view as u32 as usize;
        if own <= length { *view } else { shortened(*view, own, buffers, |value| end_of(value, length)) }
    };
    let views = array.views().iter().map(cut).collect::<Vec<_>>();
    // SAFETY: each view is one of the input or a first part of it that ends at a code point; the buffers are the same.
    let array =
        unsafe { GenericByteViewArray::<T>::new_unchecked(views.into(), Arc::clone(buffers), array.nulls().cloned()) };
    Arc::new(array)
}

/// The view of the first part of a value of `own` bytes.
#[inline(always)]
fn shortened(view: u128, own: usize, buffers: &[Buffer], end_of: impl Fn(&[u8]) -> usize) -> u128 {
    let in_view = view.to_le_bytes();
    let (_, inline) = in_view.split_at(4);
    let place = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
    let value = match own {
        0..=INLINE => inline.get(..own),
        _ => buffers.get(place.0).and_then(|buffer| buffer.get(place.1..place.1 + own)),
    };
    let Some(value) = value else { return 0 };
    let end = end_of(value);
    if end > INLINE {
        // Longer than fits a view: prefix, buffer and offset stay.
        return view & !u128::from(u32::MAX) | end as u128;
    }
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().skip(4).zip(value.iter().take(end)) {
        *to = *from;
    }
    u128::from_le_bytes(bytes) | end as u128
}
