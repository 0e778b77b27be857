//! Checks that the values of an array are within its data: offsets ascend and end inside the data, and views refer to
//! existing bytes.
//!
//! Arrays imported from other libraries are checked before anything follows their offsets. The checks read the
//! offsets once, without a branch per value, so they cost little compared with using the values. They only return a
//! verdict; the caller that refuses the array reports what is wrong and where.

use std::ops::BitOr;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_array::{Array, ArrowNativeTypeOp};
use arrow_buffer::Buffer;
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::DataType;

/// Values checked together; the check ends with the first faulty block.
const BLOCK: usize = 1 << 10;

/// Whether the strings or binaries of a plain array are within its data; true for other types.
pub fn are_sound(array: &dyn Array) -> bool {
    match array.data_type() {
        DataType::Utf8 => bytes::<Utf8Type>(array),
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(array),
        DataType::Binary => bytes::<BinaryType>(array),
        DataType::LargeBinary => bytes::<LargeBinaryType>(array),
        DataType::Utf8View => views::<StringViewType>(array),
        DataType::BinaryView => views::<BinaryViewType>(array),
        _ => true,
    }
}

fn bytes<T: ByteArrayType<Offset: ArrowNativeTypeOp + BitOr<Output = T::Offset>>>(array: &dyn Array) -> bool {
    let array = array.as_bytes::<T>();
    offsets_ascend(array.value_offsets(), array.value_data().len())
}

fn views<T: ByteViewType>(array: &dyn Array) -> bool {
    let array = array.as_byte_view::<T>();
    views_fit(array.views(), array.data_buffers())
}

/// Whether offsets ascend from at least 0 to at most `end`.
pub fn offsets_ascend<O: ArrowNativeTypeOp + BitOr<Output = O>>(offsets: &[O], end: usize) -> bool {
    let (Some((first, ends)), Some((last, starts))) = (offsets.split_first(), offsets.split_last()) else {
        return true;
    };
    let zero = O::default();
    if *first < zero || *last < zero || last.as_usize() > end {
        return false;
    }
    // Checks signs: no start is negative, no end is below its start. The compiler vectorizes this, for 64 bits too,
    // because both sides are slices; it does not if one iterator is a step ahead of the other.
    starts.chunks(BLOCK).zip(ends.chunks(BLOCK)).all(|(starts, ends)| {
        let pairs = starts.iter().zip(ends);
        pairs.fold(zero, |sign, (start, end)| sign | *start | end.sub_wrapping(*start)) >= zero
    })
}

/// Whether views are valid: short values are padded with zeros, long ones are within the buffers and have their first
/// bytes in the view.
pub fn views_fit(views: &[u128], buffers: &[Buffer]) -> bool {
    let fits = |view: &u128| odd_bits(*view) == 0 || is_long(*view, buffers);
    views
        .chunks(BLOCK)
        .all(|block| block.iter().fold(0, |odd, view| odd | odd_bits(*view)) == 0 || block.iter().all(fits))
}

/// Maximum length of values stored in their views.
const INLINE: usize = MAX_INLINE_VIEW_LEN as usize;

/// The padding bits of a view for each value length; all bits for values longer than a view.
const BEHIND: [u128; INLINE + 2] = {
    let mut masks = [u128::MAX; INLINE + 2];
    let mut length = 0;
    while length < INLINE {
        masks[length] <<= 32 + 8 * length;
        length += 1;
    }
    masks[INLINE] = 0;
    masks
};

/// Bits set in the padding of a view; non-zero if the value is long.
fn odd_bits(view: u128) -> u128 {
    let mask = BEHIND.get((view as u32 as usize).min(INLINE + 1));
    view & mask.copied().unwrap_or(u128::MAX)
}

fn is_long(view: u128, buffers: &[Buffer]) -> bool {
    let view = ByteView::from(view);
    let value = buffers.get(view.buffer_index as usize).and_then(|buffer| {
        let start = view.offset as usize;
        buffer.as_slice().get(start..start.checked_add(view.length as usize)?)
    });
    view.length > MAX_INLINE_VIEW_LEN && value.is_some_and(|value| value.starts_with(&view.prefix.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryViewArray, StringArray};
    use proptest::prelude::*;

    use super::*;

    /// Offsets that mostly ascend, with some arbitrary ones.
    fn numbers() -> impl Strategy<Value = Vec<i64>> {
        let step = prop_oneof![40 => 0..9_i64, 1 => any::<i64>()];
        proptest::collection::vec(step, 0..2 * BLOCK).prop_map(|steps| {
            let next = |at: &mut i64, step: i64| {
                *at = at.wrapping_add(step);
                Some(*at)
            };
            steps.into_iter().scan(0, next).collect()
        })
    }

    fn naive<O: ArrowNativeTypeOp>(offsets: &[O], end: usize) -> bool {
        let within = |offset: &O| *offset >= O::default() && offset.as_usize() <= end;
        offsets.iter().all(within) && offsets.is_sorted()
    }

    proptest! {
        #[test]
        fn offsets_are_what_their_words_say(long in numbers(), less in 0..3_usize) {
            let short: Vec<i32> = long.iter().map(|offset| *offset as i32).collect();
            let end = long.last().map_or(0, |last| usize::try_from(*last).unwrap_or(9)).saturating_sub(less / 2);
            prop_assert_eq!(offsets_ascend(&long, end), naive(&long, end));
            prop_assert_eq!(offsets_ascend(&short, end), naive(&short, end));
        }

        /// Views with one number changed, compared with Arrow's own check.
        #[test]
        fn views_are_what_arrow_says(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 1..40),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..128_u32), 0..3),
        ) {
            let array = BinaryViewArray::from_iter_values(&values);
            let mut views = array.views().to_vec();
            for (place, bit) in changes {
                views[place.index(values.len())] ^= 1 << bit;
            }
            let expected = arrow_data::validate_binary_view(&views, array.data_buffers()).is_ok();
            prop_assert_eq!(views_fit(&views, array.data_buffers()), expected);
        }
    }

    #[test]
    fn the_pair_between_two_blocks_is_looked_at() {
        let offsets = |fault: usize| {
            let mut offsets: Vec<i32> = (0..3 * BLOCK as i32).map(|row| 2 * row).collect();
            offsets[fault] -= 3;
            offsets
        };
        for fault in [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1] {
            assert!(!offsets_ascend(&offsets(fault), 6 * BLOCK), "{fault}");
        }
        assert!(offsets_ascend::<i32>(&[], 0) && offsets_ascend(&[7], 7) && !offsets_ascend(&[7], 6));
    }

    #[test]
    fn slices_are_judged_by_what_they_use() {
        // SAFETY: offsets that fall are what is checked here; nothing follows them.
        let array = unsafe {
            let offsets = arrow_buffer::OffsetBuffer::new_unchecked(vec![0, 5, 2, 4, 9].into());
            StringArray::new_unchecked(offsets, Buffer::from(b"abcd"), None)
        };
        assert!(!are_sound(&array) && !are_sound(&array.slice(0, 2)) && !are_sound(&array.slice(2, 2)));
        assert!(are_sound(&array.slice(2, 1)) && are_sound(&array.slice(2, 0)) && !are_sound(&array.slice(1, 0)));
    }
}
