//! Tests whether bytes are UTF-8, for reading and writing ("Column Encodings": `string`, `char`, `varchar`).

use arrow_buffer::ArrowNativeType;

/// Whether bytes are UTF-8.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    bytes.is_ascii() || simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Whether the bytes between the offsets are UTF-8 and no offset splits a character; nearly as fast as memory.
pub(crate) fn all_text<O: ArrowNativeType>(offsets: &[O], bytes: &[u8]) -> bool {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return true };
    let Some(all) = bytes.get(first.as_usize()..last.as_usize()) else { return false };
    // A byte is 0b10xx_xxxx only if it continues a character.
    let starts_text = |offset: &O| bytes.get(offset.as_usize()).is_none_or(|byte| byte & 0xC0 != 0x80);
    // Most text is ASCII, which is tested first: the general test would cost a second pass (30 GB/s instead of 65).
    all.is_ascii() || (simdutf8::basic::from_utf8(all).is_ok() && offsets.iter().all(starts_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits every text at every position: the whole may be UTF-8 although its parts are not.
    #[test]
    fn all_are_texts_where_each_is() {
        let wholes: [&[u8]; 6] =
            [b"", b"ascii", "a\u{e9}\u{65e5}\u{10ffff}z".as_bytes(), b"\xff", b"caf\xc3", b"ab\xed\xa0\x80c"];
        let mut texts = 0;
        for whole in wholes {
            for (first, last) in
                (0..=whole.len()).flat_map(|first| (first..=whole.len()).map(move |last| (first, last)))
            {
                for cut in first..=last {
                    let each = is_text(&whole[first..cut]) && is_text(&whole[cut..last]);
                    let offsets = [first, cut, last].map(|offset| offset as i32);
                    assert_eq!(all_text(&offsets, whole), each, "{whole:x?} {offsets:?}");
                    assert_eq!(all_text(&offsets.map(i64::from), whole), each, "{whole:x?} {offsets:?}");
                    texts += usize::from(each);
                }
            }
        }
        assert!(texts > 100, "{texts}");
        assert!(all_text::<i32>(&[], b""));
        assert!(!all_text(&[0, 3], b"ab"));
        assert!(!all_text(&[-1, 2], b"ab"));
    }
}
