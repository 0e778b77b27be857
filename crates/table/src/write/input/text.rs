//! Validates strings from other producers: Arrow declares them UTF-8, but an imported array is not checked.
//!
//! Otherwise invalid UTF-8 would be written and fail in the next reader.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array};

use super::fault::Misfit;
use crate::arrow::text::fault_of;

/// The strings, safe to write. Invalid UTF-8 is refused; the error names the first row that has it. Values under a
/// null are not checked.
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
    // Only rows of other batches use the value; their batch reports the error.
    let sound = faults.iter().enumerate().map(|(text, fault)| fault.is_none().then_some(text as u64));
    let sound = arrow_select::take::take(values, &sound.collect::<UInt64Array>(), None);
    Ok(dictionary.with_values(sound.map_err(|error| error.to_string())?))
}

/// Checks that the text of an array, plain or in a dictionary, is UTF-8.
///
/// # Errors
/// Invalid UTF-8, with the first row that has it.
pub fn check_text(array: &ArrayRef) -> Result<(), String> {
    match checked(array) {
        Ok(_) => Ok(()),
        Err(Misfit::Row(row, what)) => Err(format!("row {row} {what}")),
        Err(Misfit::Other(what)) => Err(what),
    }
}

/// Refuses invalid UTF-8 in an array without a dictionary.
pub(super) fn check(array: &dyn Array) -> Result<(), Misfit> {
    fault_of(array).map_or(Ok(()), |(row, fault)| Err(Misfit::Row(row, fault.to_owned())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        DictionaryArray, GenericStringArray, Int8Array, OffsetSizeTrait, StringArray, StringViewArray, make_array,
    };
    use arrow_buffer::{Buffer, OffsetBuffer};
    use arrow_data::ByteView;
    use arrow_schema::DataType;

    use super::*;
    use crate::arrow::text::{NO_TEXT, OUTSIDE};

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
            // Valid as a whole, but cut within a character: both halves are invalid.
            (&[Some(b"caf\xc3"), Some(b"\xa9")], Some(0)),
            // A surrogate, an overlong form, a value above the last code point.
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
