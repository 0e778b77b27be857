//! Applies `truncate` to Arrow arrays.

use std::mem::MaybeUninit;
use std::ops::BitOr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, Decimal32Type, Decimal64Type, Decimal128Type, Int32Type,
    Int64Type, LargeBinaryType, LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, GenericByteArray, GenericByteViewArray, PrimitiveArray,
};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::bucket::narrowed;
use super::bytes::INLINE;
use super::remainder::{Remainder32, Remainder64};
use super::vectorized::{BLOCK, by_block, vectorized};
use crate::error::{Error, Result};
use crate::value::bounds::truncate_bytes;

/// Truncates the values of `array` to `width`; `None` if `truncate` does not accept its type.
pub(super) fn kernel(array: &ArrayRef, width: u32) -> Result<Option<ArrayRef>> {
    let (Some(small), Some(large)) = (Remainder32::new(width), Remainder64::new(width)) else {
        return Err(no_width(width));
    };
    let length = width as usize;
    Ok(Some(match array.data_type() {
        DataType::Int32 => numbers::<Int32Type>(array, |values, out| ints(values, out, small)),
        DataType::Int64 => numbers::<Int64Type>(array, |values, out| longs(values, out, large)),
        DataType::Decimal32(_, _) => numbers::<Decimal32Type>(array, |values, out| ints(values, out, small)),
        DataType::Decimal64(_, _) => numbers::<Decimal64Type>(array, |values, out| longs(values, out, large)),
        DataType::Decimal128(_, _) => numbers::<Decimal128Type>(array, |values, out| wide(values, out, large)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            let truncated = truncate_unchecked(array, width)?;
            truncated.ok_or_else(|| Error::invalid("the values of the array do not lie in its data"))?.results
        }
        DataType::Utf8View => views(array, array.as_byte_view::<StringViewType>(), length, true, text_end),
        DataType::BinaryView => views(array, array.as_byte_view::<BinaryViewType>(), length, false, bytes_end),
        _ => return Ok(None),
    }))
}

fn no_width(width: u32) -> Error {
    Error::invalid(format!("truncate[{width}]: the number must be between 1 and {}", i32::MAX))
}

/// Truncates numbers; the result keeps the type with its precision and scale.
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

/// Truncates 128-bit decimals. A block whose values all fit in 64 bits, as almost always, takes a fast path.
fn wide(values: &[i128], out: &mut [i128], width: Remainder64) {
    let mut narrow = [0; BLOCK];
    let (narrow, _) = narrow.split_at_mut(values.len());
    if narrowed(values, narrow) {
        remainders(narrow, width);
        for ((out, value), remainder) in out.iter_mut().zip(values).zip(narrow) {
            *out = value.wrapping_sub(i128::from(*remainder));
        }
    } else {
        for (out, value) in out.iter_mut().zip(values) {
            *out = value.wrapping_sub(i128::from(width.of_wide(*value)));
        }
    }
}

vectorized! {
    fn remainders(values: &mut [i64], width: Remainder64) {
        for value in values {
            *value = width.of_signed(*value);
        }
    }
}

/// Returns where to cut a text longer than `length` bytes to `length` code points. Sets `is_ascii` to false if the
/// result may not be ASCII.
#[inline(always)]
fn text_end(text: &[u8], length: usize, is_ascii: &mut bool) -> usize {
    match text.get(..length) {
        // One byte per code point.
        Some(head) if head.is_ascii() => length,
        // The next code point starts at the first byte that is not a continuation byte.
        _ => {
            *is_ascii = false;
            let starts = text.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
            starts.map(|(start, _)| start).nth(length).unwrap_or(text.len())
        }
    }
}

#[inline(always)]
fn bytes_end(bytes: &[u8], length: usize, _: &mut bool) -> usize {
    truncate_bytes(bytes, length).len()
}

/// Result of `truncate` for texts or bytes.
#[derive(Debug, Clone)]
pub struct Truncated {
    /// The results, as from [`Transform::kernel`](crate::transform::Transform::kernel).
    pub results: ArrayRef,
    /// Whether all results are known to be ASCII and need no UTF-8 check.
    pub is_ascii: bool,
}

/// Truncates unchecked strings or binaries to `width`; `None` if their offsets do not ascend within the data of the
/// array. The kernel visits all offsets anyway and reads most bytes, so checking both at the same time costs almost
/// nothing. A string that is not valid UTF-8 may give a result that is not.
///
/// # Errors
/// `Invalid` for an array without offsets (views, other types), and for a width that `truncate` does not accept.
pub fn truncate_unchecked(array: &ArrayRef, width: u32) -> Result<Option<Truncated>> {
    if Remainder32::new(width).is_none() {
        return Err(no_width(width));
    }
    let length = width as usize;
    Ok(match array.data_type() {
        DataType::Utf8 => bytes(array, array.as_bytes::<Utf8Type>(), length, true, text_end),
        DataType::LargeUtf8 => bytes(array, array.as_bytes::<LargeUtf8Type>(), length, true, text_end),
        DataType::Binary => bytes(array, array.as_bytes::<BinaryType>(), length, false, bytes_end),
        DataType::LargeBinary => bytes(array, array.as_bytes::<LargeBinaryType>(), length, false, bytes_end),
        other => return Err(Error::invalid(format!("expected texts or bytes with offsets, got {other}"))),
    })
}

/// Truncates texts or bytes and concatenates their heads. With `ascii_only` a byte counts as a code point only if it is
/// ASCII. `None` if offsets do not ascend within the data.
fn bytes<T: ByteArrayType<Offset: ArrowNativeTypeOp + BitOr<Output = T::Offset>>>(
    shared: &ArrayRef,
    array: &GenericByteArray<T>,
    length: usize,
    ascii_only: bool,
    end_of: impl Fn(&[u8], usize, &mut bool) -> usize,
) -> Option<Truncated> {
    let (data, offsets) = (array.value_data(), array.value_offsets());
    let last = *offsets.last()?;
    if last < T::Offset::default() || last.as_usize() > data.len() {
        return None;
    }
    let is_short = |(start, end): (&T::Offset, &T::Offset)| end.as_usize().wrapping_sub(start.as_usize()) <= length;
    if offsets.iter().zip(offsets.iter().skip(1)).all(is_short) {
        return ascend(offsets).then(|| Truncated { results: shared.clone(), is_ascii: false });
    }
    let mut out = Vec::with_capacity(data.len().min(array.len().saturating_mul(length)));
    let mut ends = Vec::with_capacity(offsets.len());
    ends.push(T::Offset::usize_as(0));
    let mut is_ascii = ascii_only;
    let mut few = [0; BLOCK];
    let mut heads = [0; BLOCK * SHORT_HEAD];
    for block in Blocks(offsets) {
        let (few, _) = few.split_at_mut(block.len() - 1);
        let equal = equal_heads(block, data, length, ascii_only, &mut heads);
        if equal.is_some() {
            few.iter_mut().zip(1..).for_each(|(end, place)| *end = place * length as u32);
        }
        if let Some(used) = equal.or_else(|| short_heads(block, data, length, ascii_only, few, &mut heads)) {
            let before = out.len();
            out.extend_from_slice(heads.get(..used).unwrap_or_default());
            ends.extend(few.iter().map(|end| T::Offset::usize_as(before + *end as usize)));
            continue;
        }
        // The faster functions above check all offsets themselves.
        if !ascend(block) {
            return None;
        }
        let (before, mut has_whole) = (out.len(), false);
        for (start, end) in block.iter().zip(block.iter().skip(1)) {
            let value = data.get(start.as_usize()..end.as_usize()).unwrap_or_default();
            let is_whole = value.len() <= length;
            let end = if is_whole { value.len() } else { end_of(value, length, &mut is_ascii) };
            has_whole |= is_whole;
            out.extend_from_slice(value.get(..end).unwrap_or_default());
            // No larger than the input's offset, so it fits the type.
            ends.push(T::Offset::usize_as(out.len()));
        }
        // Values that are not cut were not checked yet.
        is_ascii = is_ascii && (!has_whole || out.get(before..).is_some_and(<[u8]>::is_ascii));
    }
    // SAFETY: the ends ascend from 0 to the number of bytes; texts were cut at code points, and are valid UTF-8 unless
    // the caller of `truncate_unchecked` finds that they are not.
    let array = unsafe {
        let ends = OffsetBuffer::new_unchecked(ScalarBuffer::from(ends));
        GenericByteArray::<T>::new_unchecked(ends, Buffer::from_vec(out), array.nulls().cloned())
    };
    Some(Truncated { results: Arc::new(array), is_ascii })
}

/// Whether no offset is negative or less than the one before it.
fn ascend<O: ArrowNativeTypeOp + BitOr<Output = O>>(offsets: &[O]) -> bool {
    let Some((_, starts)) = offsets.split_last() else { return true };
    // The sign bit of all values at once.
    let sign = starts.iter().zip(offsets.iter().skip(1));
    sign.fold(O::default(), |sign, (start, end)| sign | *start | *end | end.sub_wrapping(*start)) >= O::default()
}

/// Writes the first `length` bytes of all values to `out`, which must have exactly that size: the results of `truncate`
/// if no value is shorter. Returns false if a value is shorter, if the first bytes of a text are not its first code
/// points, or if `length` exceeds [`SHORT_HEAD`]; the contents of `out` are unspecified then.
pub fn truncate_equally<T>(array: &GenericByteArray<T>, length: usize, out: &mut [MaybeUninit<u8>]) -> bool
where
    T: ByteArrayType<Offset: ArrowNativeTypeOp + BitOr<Output = T::Offset>>,
{
    let ascii_only = matches!(T::DATA_TYPE, DataType::Utf8 | DataType::LargeUtf8);
    let mut heads = [0; BLOCK * SHORT_HEAD];
    let mut rest = out;
    for block in Blocks(array.value_offsets()) {
        let used = equal_heads(block, array.value_data(), length, ascii_only, &mut heads);
        let place = used.and_then(|used| heads.get(..used).zip(std::mem::take(&mut rest).split_at_mut_checked(used)));
        let Some((found, (place, behind))) = place else { return false };
        place.write_copy_of_slice(found);
        rest = behind;
    }
    rest.is_empty()
}

/// Offsets in blocks; each block starts with the end of the previous one.
struct Blocks<'a, O>(&'a [O]);

impl<'a, O> Iterator for Blocks<'a, O> {
    type Item = &'a [O];

    fn next(&mut self) -> Option<&'a [O]> {
        let values = self.0.len().saturating_sub(1).min(BLOCK);
        let block = self.0.get(..=values).filter(|_| values > 0)?;
        self.0 = self.0.get(values..).unwrap_or_default();
        Some(block)
    }
}

/// Number of bytes of a long value that its view contains.
const PREFIX: usize = 4;
/// Maximum length of heads that are read at once.
pub const SHORT_HEAD: usize = 16;

/// [`short_heads`] for a block without values shorter than `length`: all heads have the same length, so they only need
/// to be read. For long values each read is a cache miss. The CPU has more of them in flight if there are fewer
/// instructions between two reads and fewer heads cross a cache line. So all checks come first, no head is read wider
/// than necessary, and all further work comes after the reads (1.5 to 2 times the throughput of a single loop).
fn equal_heads<O: ArrowNativeTypeOp + BitOr<Output = O>>(
    offsets: &[O],
    data: &[u8],
    length: usize,
    ascii_only: bool,
    heads: &mut [u8; BLOCK * SHORT_HEAD],
) -> Option<usize> {
    match length {
        0..=4 => heads_of::<O, 4>(offsets, data, length, ascii_only, heads),
        5..=8 => heads_of::<O, 8>(offsets, data, length, ascii_only, heads),
        9..=SHORT_HEAD => heads_of::<O, SHORT_HEAD>(offsets, data, length, ascii_only, heads),
        _ => None,
    }
}

/// The heads of [`equal_heads`], read as `WIDTH` bytes each.
fn heads_of<O: ArrowNativeTypeOp + BitOr<Output = O>, const WIDTH: usize>(
    offsets: &[O],
    data: &[u8],
    length: usize,
    ascii_only: bool,
    heads: &mut [u8; BLOCK * SHORT_HEAD],
) -> Option<usize> {
    let least = O::usize_as(length);
    let (_, starts) = offsets.split_last()?;
    // The sign bit of all values at once: no offset is negative or less than the one before it, and no value is shorter
    // than `length`.
    let sign = starts.iter().zip(offsets.iter().skip(1)).fold(O::default(), |sign, (start, end)| {
        let size = end.sub_wrapping(*start);
        sign | *start | *end | size | size.sub_wrapping(least)
    });
    if sign < O::default() || starts.last()?.as_usize() > data.len().checked_sub(WIDTH)? {
        return None;
    }
    let (slots, _) = heads.as_chunks_mut::<WIDTH>();
    let slots = slots.get_mut(..starts.len())?;
    for (slot, start) in slots.iter_mut().zip(starts) {
        // SAFETY: the starts ascend from 0 or more, and there are `WIDTH` bytes after the last one; both were checked
        // above.
        *slot = unsafe { data.as_ptr().add(start.as_usize()).cast::<[u8; WIDTH]>().read() };
    }
    if length < WIDTH {
        for place in 0..starts.len() {
            heads.copy_within(place * WIDTH..(place + 1) * WIDTH, place * length);
        }
    }
    let used = starts.len() * length;
    (!ascii_only || heads.get(..used)?.is_ascii()).then_some(used)
}

/// Concatenates the first `length` bytes of each value of a block, and returns their total; `None` if any value is less
/// simple.
///
/// Every head is copied at full width, and the next one overwrites the excess: this avoids a branch on the lengths,
/// which are unpredictable. Long values are limited by memory, where prefetching gains nothing.
fn short_heads<O: ArrowNativeType>(
    offsets: &[O],
    data: &[u8],
    length: usize,
    ascii_only: bool,
    ends: &mut [u32],
    heads: &mut [u8; BLOCK * SHORT_HEAD],
) -> Option<usize> {
    if length > SHORT_HEAD {
        return None;
    }
    let mut used = 0;
    for ((start, end), out) in offsets.iter().zip(offsets.iter().skip(1)).zip(ends) {
        let (start, end) = (start.as_usize(), end.as_usize());
        let step: &[u8; SHORT_HEAD] = data.get(start..)?.first_chunk()?;
        let head = end.checked_sub(start)?.min(length);
        heads.get_mut(used..)?.first_chunk_mut::<SHORT_HEAD>()?.copy_from_slice(step);
        used += head;
        *out = used as u32;
    }
    (!ascii_only || heads.get(..used)?.is_ascii()).then_some(used)
}

/// Truncates views. The result shares the buffers; only the lengths in the views change. `ascii_only` as in [`bytes`].
fn views<T: ByteViewType>(
    shared: &ArrayRef,
    array: &GenericByteViewArray<T>,
    length: usize,
    ascii_only: bool,
    end_of: impl Fn(&[u8], usize, &mut bool) -> usize,
) -> ArrayRef {
    let buffers = array.data_buffers();
    if array.views().iter().all(|view| *view as u32 as usize <= length) {
        return shared.clone();
    }
    // After its length, a view contains the value, or the first bytes of a longer one.
    let head = if length <= INLINE { (1 << (8 * length)) - 1 } else { 0 };
    let odd = if ascii_only { u128::from_le_bytes([0x80; 16]) } else { 0 };
    let cut = |view: &u128| {
        let (own, head) = (*view as u32 as usize, *view >> 32 & head);
        let in_view = length <= PREFIX || length <= INLINE && own <= INLINE;
        if (own <= length) | (in_view & (head & odd == 0)) {
            // Branch-free, because it is unpredictable which values are short.
            let cut = head << 32 | length as u128;
            return std::hint::select_unpredictable(own <= length, *view, cut);
        }
        shortened(*view, own, buffers, |value| end_of(value, length, &mut true))
    };
    let views = array.views().iter().map(cut).collect::<Vec<_>>();
    // SAFETY: each view is a view of the input, or its prefix that ends at a code point; the buffers are the same.
    let array =
        unsafe { GenericByteViewArray::<T>::new_unchecked(views.into(), Arc::clone(buffers), array.nulls().cloned()) };
    Arc::new(array)
}

/// Shortens the view of a value of `own` bytes.
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
        // Too long to be stored in the view: prefix, buffer and offset stay.
        return view & !u128::from(u32::MAX) | end as u128;
    }
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().skip(4).zip(value.iter().take(end)) {
        *to = *from;
    }
    u128::from_le_bytes(bytes) | end as u128
}
