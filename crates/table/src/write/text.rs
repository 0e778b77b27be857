//! Texts as producers hand them over: Arrow says that they are UTF-8, and nobody has looked.
//!
//! A text that is none would be written, and found by whoever reads it next.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericStringArray, OffsetSizeTrait, StringViewArray, UInt64Array};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::DataType;

use super::fault::Misfit;

/// The texts as they may be written. Those that are no UTF-8 are refused: the error names the first row with such a one.
/// What stands under a null is nobody's text.
pub(super) fn checked(array: &ArrayRef) -> Result<ArrayRef, Misfit> {
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        return check(array.as_ref()).map(|()| array.clone());
    };
    let values = dictionary.values();
    if check(values.as_ref()).is_ok() {
        return Ok(array.clone());
    }
    let faults: Vec<Option<Misfit>> = (0..values.len()).map(|text| check(&values.slice(text, 1)).err()).collect();
    for (row, key) in dictionary.normalized_keys().into_iter().enumerate().filter(|(row, _)| array.is_valid(*row)) {
        if let Some(Misfit::Row(_, what)) = faults.get(key).and_then(Option::as_ref) {
            return Err(Misfit::Row(row, what.clone()));
        }
    }
    // What only rows of other batches have: theirs is the error.
    let sound = faults.iter().enumerate().map(|(text, fault)| fault.is_none().then_some(text as u64));
    let sound = arrow_select::take::take(values, &sound.collect::<UInt64Array>(), None);
    Ok(dictionary.with_values(sound.map_err(|error| error.to_string())?))
}

/// Checks that the text of an array, plain or in a dictionary, is UTF-8.
///
/// # Errors
/// What is wrong, and the first row that has it.
pub fn check_text(array: &ArrayRef) -> Result<(), String> {
    match checked(array) {
        Ok(_) => Ok(()),
        Err(Misfit::Row(row, what)) => Err(format!("row {row} {what}")),
        Err(Misfit::Other(what)) => Err(what),
    }
}

/// Refuses texts that are no UTF-8, where there is no dictionary.
pub(super) fn check(array: &dyn Array) -> Result<(), Misfit> {
    let fault = match array.data_type() {
        DataType::Utf8 => fault_of_strings(array.as_string::<i32>()),
        DataType::LargeUtf8 => fault_of_strings(array.as_string::<i64>()),
        DataType::Utf8View => fault_of_views(array.as_string_view()),
        _ => None,
    };
    fault.map_or(Ok(()), |(row, fault)| Err(Misfit::Row(row, fault.to_owned())))
}

/// A row and what is wrong with it.
type Fault = (usize, &'static str);

const NO_TEXT: &str = "is no UTF-8: make the column binary, or mend the text";
const OUTSIDE: &str = "goes beyond the bytes that the data have";

fn is_text(bytes: &[u8]) -> bool {
    bytes.is_ascii() || simdutf8::basic::from_utf8(bytes).is_ok()
}

fn fault_of_strings<O: OffsetSizeTrait>(array: &GenericStringArray<O>) -> Option<Fault> {
    let (offsets, data) = (array.offsets(), array.values().as_slice());
    let range = |start: O, end: O| -> Range<usize> { start.as_usize()..end.as_usize() };
    // All at once: nearly at the speed of memory.
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
    // None where the bytes are not there.
    let sound = |view: &u128| -> Option<bool> {
        let bytes = view.to_le_bytes();
        let (length, inline) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        if length <= MAX_INLINE_VIEW_LEN {
            // Bytes of the view that no text uses are zero.
            return Some(inline.is_ascii() || is_text(inline.get(..length as usize)?));
        }
        let view = ByteView::from(*view);
        let start = view.offset as usize;
        let end = start.checked_add(length as usize)?;
        buffers.get(view.buffer_index as usize)?.as_slice().get(start..end).map(is_text)
    };
    if array.views().iter().all(|view| sound(view) == Some(true)) {
        return None;
    }
    first_fault(array, |row| sound(array.views().get(row)?))
}

/// The first row that has a text which is none; `is_sound` says so, or nothing where the text is not even there.
fn first_fault(array: &dyn Array, is_sound: impl Fn(usize) -> Option<bool>) -> Option<Fault> {
    let fault = |row: usize| match is_sound(row) {
        None => Some((row, OUTSIDE)),
        Some(false) => Some((row, NO_TEXT)),
        Some(true) => None,
    };
    (0..array.len()).filter(|row| array.is_valid(*row)).find_map(fault)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, StringArray, make_array};
    use arrow_buffer::{Buffer, OffsetBuffer};

    use super::*;

    type Texts<'a> = &'a [Option<&'a [u8]>];

    const LONG: &str = "a text that is longer than a view: é";

    fn strings<O: OffsetSizeTrait>(texts: Texts<'_>) -> ArrayRef {
        let offsets = OffsetBuffer::<O>::from_lengths(texts.iter().map(|text| text.map_or(0, <[u8]>::len)));
        let data: Vec<u8> = texts.iter().flatten().flat_map(|text| text.iter().copied()).collect();
        let nulls = texts.iter().map(Option::is_some).collect();
        // SAFETY: what a producer hands over by the C data interface is not looked at either.
        Arc::new(unsafe { GenericStringArray::new_unchecked(offsets, Buffer::from_vec(data), Some(nulls)) })
    }

    fn views(texts: Texts<'_>) -> ArrayRef {
        let made: arrow_array::BinaryViewArray = texts.iter().copied().collect();
        let data = made.into_data().into_builder().data_type(DataType::Utf8View);
        // SAFETY: as above.
        make_array(unsafe { data.build_unchecked() })
    }

    fn dictionary(texts: Texts<'_>) -> ArrayRef {
        let keys: Int8Array = (0..texts.len()).map(|key| i8::try_from(key).ok()).collect();
        Arc::new(DictionaryArray::new(keys, strings::<i32>(texts)))
    }

    #[test]
    fn every_layout() {
        let cases: &[(Texts<'_>, Option<usize>)] = &[
            (&[], None),
            (&[None], None),
            (&[Some(b""), None, Some(b"plain")], None),
            (&[Some("é".as_bytes()), Some(LONG.as_bytes()), Some("\u{10FFFF}".as_bytes())], None),
            (&[Some(b"a"), None, Some(b"\xff")], Some(2)),
            (&[Some(LONG.as_bytes()), Some(b"a text that is longer than a view\xc3")], Some(1)),
            // Sound as a whole, cut within a letter: both halves are none.
            (&[Some(b"caf\xc3"), Some(b"\xa9")], Some(0)),
            // A surrogate, a longer form than needed, above the last code point.
            (&[Some(b"\xed\xa0\x80")], Some(0)),
            (&[Some(b"\xc0\x80")], Some(0)),
            (&[Some(b"\xf4\x90\x80\x80")], Some(0)),
        ];
        for (texts, expected) in cases {
            for array in [strings::<i32>(texts), strings::<i64>(texts), views(texts), dictionary(texts)] {
                let found = checked(&array).map(drop);
                let what = format!("{texts:?} as {}", array.data_type());
                match expected {
                    None => assert_eq!(found, Ok(()), "{what}"),
                    Some(row) => assert_eq!(found, Err(Misfit::Row(*row, NO_TEXT.to_owned())), "{what}"),
                }
            }
        }
    }

    #[test]
    fn slices_and_what_stands_under_nulls() {
        let texts: Texts<'_> = &[Some(b"\xff"), Some("é".as_bytes()), Some(b"\xff\xff\xff")];
        for array in [strings::<i32>(texts), strings::<i64>(texts), views(texts)] {
            assert_eq!(check(&array.slice(1, 1)), Ok(()));
            assert_eq!(check(&array.slice(1, 2)), Err(Misfit::Row(1, NO_TEXT.to_owned())));
            let under = array.to_data().into_builder().nulls(Some(vec![false, true, false].into()));
            // SAFETY: as above.
            assert_eq!(check(&make_array(unsafe { under.build_unchecked() })), Ok(()));
        }
    }

    #[test]
    fn rows_whose_text_is_in_a_dictionary() {
        let texts = strings::<i32>(&[Some(b"a"), Some(b"\xff"), Some(b"b"), Some(b"\xfe")]);
        let keys = |keys: &[Option<i8>]| DictionaryArray::new(Int8Array::from(keys.to_vec()), texts.clone());
        let refused = |row: usize| Err(Misfit::Row(row, NO_TEXT.to_owned()));
        let array: ArrayRef = Arc::new(keys(&[Some(0), Some(2), None, Some(3), Some(1), Some(0)]));
        assert_eq!(checked(&array), refused(3));
        assert_eq!(checked(&array.slice(2, 3)), refused(1));
        assert_eq!(checked(&array.slice(4, 2)), refused(0));
        let sound = checked(&array.slice(0, 3)).unwrap();
        assert_eq!(sound.data_type(), array.data_type());
        sound.to_data().validate_full().unwrap();
        let texts: Vec<_> =
            sound.as_dictionary::<Int8Type>().downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(texts, [Some("a"), Some("b"), None]);
    }

    #[test]
    fn offsets_and_views_beyond_the_bytes() {
        let offsets = OffsetBuffer::new(vec![0, 1, 9].into());
        // SAFETY: as above.
        let wild = unsafe { StringArray::new_unchecked(offsets, Buffer::from(b"ab"), None) };
        assert_eq!(check(&wild), Err(Misfit::Row(1, OUTSIDE.to_owned())));
        let view = ByteView::new(40, b"abcd").with_buffer_index(0).with_offset(2);
        let buffers: Vec<Buffer> = vec![Buffer::from(&[b'a'; 41][..])];
        // SAFETY: as above.
        let wild = unsafe { StringViewArray::new_unchecked(vec![u128::from(view)].into(), buffers.into(), None) };
        assert_eq!(check(&wild), Err(Misfit::Row(0, OUTSIDE.to_owned())));
    }
}
