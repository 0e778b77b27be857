//! Checks that strings are UTF-8.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericStringArray, OffsetSizeTrait, StringViewArray};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::DataType;

/// Views checked together.
const BLOCK: usize = 1 << 10;

/// A row and its fault.
pub type Fault = (usize, &'static str);

pub(crate) const NO_TEXT: &str = "is no UTF-8: make the column binary, or mend the text";
pub(crate) const OUTSIDE: &str = "goes beyond the bytes that the data have";

/// The first string of a plain top-level array that is not UTF-8; values under a null are ignored.
pub fn fault_of(array: &dyn Array) -> Option<Fault> {
    match array.data_type() {
        DataType::Utf8 => fault_of_strings(array.as_string::<i32>()),
        DataType::LargeUtf8 => fault_of_strings(array.as_string::<i64>()),
        DataType::Utf8View => fault_of_views(array.as_string_view()),
        _ => None,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.is_ascii() || simdutf8::basic::from_utf8(bytes).is_ok()
}

fn fault_of_strings<O: OffsetSizeTrait>(array: &GenericStringArray<O>) -> Option<Fault> {
    let (offsets, data) = (array.offsets(), array.values().as_slice());
    let range = |start: O, end: O| -> Range<usize> { start.as_usize()..end.as_usize() };
    // Check all at once, nearly at memory speed.
    if let Some(all) = data.get(range(offsets.first(), offsets.last())) {
        let starts_text = |offset: &O| data.get(offset.as_usize()).is_none_or(|byte| byte & 0xC0 != 0x80);
        if all.is_ascii() || (simdutf8::basic::from_utf8(all).is_ok() && offsets.iter().all(starts_text)) {
            return None;
        }
    }
    first_fault(array, |row| {
        let (start, end) = (offsets.get(row)?, offsets.get(row + 1)?);
        data.get(range(*start, *end)).map(is_text)
    })
}

fn fault_of_views(array: &StringViewArray) -> Option<Fault> {
    let buffers = array.data_buffers();
    // None if the bytes are missing.
    let sound = |view: &u128| -> Option<bool> {
        let bytes = view.to_le_bytes();
        let (length, inline) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        if length <= MAX_INLINE_VIEW_LEN {
            // Padding bytes of the view are zero, so they do not matter.
            return Some(inline.is_ascii() || is_text(inline.get(..length as usize)?));
        }
        let view = ByteView::from(*view);
        let start = view.offset as usize;
        let end = start.checked_add(length as usize)?;
        buffers.get(view.buffer_index as usize)?.as_slice().get(start..end).map(is_text)
    };
    let is_sound = |block: &[u128]| are_short_ascii(block) || block.iter().all(|view| sound(view) == Some(true));
    if array.views().chunks(BLOCK).all(is_sound) {
        return None;
    }
    first_fault(array, |row| sound(array.views().get(row)?))
}

/// Whether all values are stored in their views and are ASCII, without a branch per value.
fn are_short_ascii(views: &[u128]) -> bool {
    let either = |(bits, longest): (u128, u32), view: &u128| (bits | *view, longest.max(*view as u32));
    let (bits, longest) = views.iter().fold((0, 0), either);
    longest <= MAX_INLINE_VIEW_LEN && bits >> 32 & (u128::from_le_bytes([0x80; 16]) >> 32) == 0
}

/// The first row with an invalid string; `is_sound` checks a row and returns `None` if its bytes are missing.
fn first_fault(array: &dyn Array, is_sound: impl Fn(usize) -> Option<bool>) -> Option<Fault> {
    let fault = |row: usize| match is_sound(row) {
        None => Some((row, OUTSIDE)),
        Some(false) => Some((row, NO_TEXT)),
        Some(true) => None,
    };
    (0..array.len()).filter(|row| array.is_valid(*row)).find_map(fault)
}
