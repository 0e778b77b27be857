//! Access to the values of text and binary arrays of any Arrow type, as slices of bytes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::utf8::{all_text, is_text};

/// The values of one array.
#[derive(Debug)]
pub(crate) enum Spans<'a> {
    /// `Utf8`, `Binary`.
    Short(&'a [i32], &'a [u8]),
    /// `LargeUtf8`, `LargeBinary`.
    Large(&'a [i64], &'a [u8]),
    /// `Utf8View`, `BinaryView`.
    View(BinaryViewArray),
    /// `FixedSizeBinary`: the width, the bytes, the number of values.
    Fixed(usize, &'a [u8], usize),
}

impl<'a> Spans<'a> {
    /// The values of an array that is not a dictionary; `None` for arrays of other types.
    pub(crate) fn new(array: &'a ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 => {
                let array = array.as_string::<i32>();
                Self::Short(array.value_offsets(), array.value_data())
            }
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                Self::Short(array.value_offsets(), array.value_data())
            }
            DataType::LargeUtf8 => {
                let array = array.as_string::<i64>();
                Self::Large(array.value_offsets(), array.value_data())
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                Self::Large(array.value_offsets(), array.value_data())
            }
            DataType::Utf8View => Self::View(array.as_string_view().clone().to_binary_view()),
            DataType::BinaryView => Self::View(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(width) => {
                Self::Fixed(usize::try_from(*width).ok()?, array.as_fixed_size_binary().value_data(), array.len())
            }
            _ => return None,
        })
    }

    /// The number of values, including nulls.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Short(offsets, _) => offsets.len().saturating_sub(1),
            Self::Large(offsets, _) => offsets.len().saturating_sub(1),
            Self::View(array) => array.len(),
            Self::Fixed(_, _, count) => *count,
        }
    }

    /// The value at an index.
    pub(crate) fn value(&self, index: usize) -> &[u8] {
        match self {
            Self::Short(offsets, bytes) => {
                let (Some(start), Some(end)) = (offsets.get(index), offsets.get(index + 1)) else { return &[] };
                bytes.get(*start as usize..*end as usize).unwrap_or_default()
            }
            Self::Large(offsets, bytes) => {
                let (Some(start), Some(end)) = (offsets.get(index), offsets.get(index + 1)) else { return &[] };
                bytes.get(*start as usize..*end as usize).unwrap_or_default()
            }
            Self::View(array) => array.value(index),
            Self::Fixed(width, bytes, _) => bytes.get(index * width..(index + 1) * width).unwrap_or_default(),
        }
    }

    /// Whether all values are UTF-8, including those of null slots.
    pub(crate) fn all_text(&self) -> bool {
        match self {
            Self::Short(offsets, bytes) => all_text(offsets, bytes),
            Self::Large(offsets, bytes) => all_text(offsets, bytes),
            Self::View(_) | Self::Fixed(..) => (0..self.len()).all(|index| is_text(self.value(index))),
        }
    }

    /// Calls `each` with every value that is not null.
    pub(crate) fn for_each(&self, nulls: Option<&NullBuffer>, mut each: impl FnMut(&[u8])) {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        match self {
            Self::Short(offsets, bytes) => {
                let mut value = |index: usize| {
                    if let (Some(start), Some(end)) = (offsets.get(index), offsets.get(index + 1)) {
                        each(bytes.get(*start as usize..*end as usize).unwrap_or_default());
                    }
                };
                indices(self.len(), nulls, &mut value);
            }
            _ => indices(self.len(), nulls, &mut |index| each(self.value(index))),
        }
    }
}

#[inline]
fn indices(count: usize, nulls: Option<&NullBuffer>, value: &mut impl FnMut(usize)) {
    match nulls {
        None => (0..count).for_each(value),
        Some(nulls) => nulls.valid_slices().for_each(|(start, end)| (start..end).for_each(&mut *value)),
    }
}
