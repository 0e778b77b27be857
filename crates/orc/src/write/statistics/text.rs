//! Statistics of text: minimum, maximum, total bytes. Long bounds are truncated.

use super::Summary;
use crate::proto::{ColumnStatistics as Message, StringStatistics};

/// Maximum bytes of a bound.
const MAX_BOUND: usize = 1024;

/// A bound, and whether it is exact, that is, one of the values.
#[derive(Debug, Clone)]
struct Bound {
    bytes: Vec<u8>,
    exact: bool,
    /// The first eight bytes, for fast comparisons.
    front: u64,
}

impl Bound {
    fn new(bytes: Vec<u8>, exact: bool) -> Self {
        Self { front: front(&bytes), bytes, exact }
    }

    fn lower(value: &[u8]) -> Self {
        match value.get(..MAX_BOUND) {
            Some(head) if value.len() > MAX_BOUND => Self::new(whole_characters(head).to_vec(), false),
            _ => Self::new(value.to_vec(), true),
        }
    }

    /// The upper bound of a value. A value that cannot be truncated and incremented is its own bound, however long.
    fn upper(value: &[u8]) -> Self {
        let cut = value.get(..MAX_BOUND).filter(|_| value.len() > MAX_BOUND);
        match cut.and_then(|head| increased(whole_characters(head))) {
            Some(bytes) => Self::new(bytes, false),
            None => Self::new(value.to_vec(), true),
        }
    }
}

/// The first eight bytes as a big-endian number; shorter values are padded with zeros.
#[inline]
fn front(value: &[u8]) -> u64 {
    if let Some(head) = value.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut word = [0; 8];
    word.iter_mut().zip(value).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(word)
}

/// The longest prefix that is UTF-8 and ends with a whole character.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes,
        Err(error) => bytes.get(..error.valid_up_to()).unwrap_or_default(),
    }
}

/// A text greater than all texts with this prefix: its last character is incremented. Characters without a successor
/// are dropped.
fn increased(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = std::str::from_utf8(bytes).ok()?.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            text.push(next);
            return Some(text.into_bytes());
        }
    }
    None
}

/// Statistics of `string`, `char` and `varchar`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    bounds: Option<(Bound, Bound)>,
    sum: u64,
}

impl Texts {
    /// Adds bytes to the sum.
    pub(crate) fn add_length(&mut self, bytes: u64) {
        self.sum += bytes;
    }

    /// Adds a value to the bounds.
    #[inline]
    pub(crate) fn add_bounds(&mut self, value: &[u8]) {
        let Some((low, high)) = &self.bounds else {
            self.bounds = Some((Bound::lower(value), Bound::upper(value)));
            return;
        };
        let own = front(value);
        if own > low.front && own < high.front {
            return;
        }
        self.widen(value);
    }

    fn widen(&mut self, value: &[u8]) {
        if let Some((low, high)) = &mut self.bounds {
            if value < low.bytes.as_slice() {
                *low = Bound::lower(value);
            }
            if value > high.bytes.as_slice() {
                *high = Bound::upper(value);
            }
        }
    }
}

impl Summary for Texts {
    fn merge(&mut self, later: &Self) {
        self.sum += later.sum;
        let Some((later_low, later_high)) = &later.bounds else { return };
        let Some((low, high)) = &mut self.bounds else {
            self.bounds.clone_from(&later.bounds);
            return;
        };
        if later_low.bytes < low.bytes {
            low.clone_from(later_low);
        }
        if later_high.bytes > high.bytes {
            high.clone_from(later_high);
        }
    }

    /// Writes the bounds. They must be text, so a value that is not UTF-8 is bounded by its valid prefix.
    fn put(&self, message: &mut Message) {
        let mut own = StringStatistics::default();
        if let Some((low, high)) = &self.bounds {
            let text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
            match low {
                Bound { bytes, exact: true, .. } if text(bytes) => own.minimum = Some(bytes.clone()),
                Bound { bytes, .. } => own.lower_bound = Some(whole_characters(bytes).to_vec()),
            }
            match high {
                Bound { bytes, exact: true, .. } if text(bytes) => own.maximum = Some(bytes.clone()),
                Bound { bytes, exact: true, .. } => {
                    own.upper_bound = increased(whole_characters(bytes)).or_else(|| Some(bytes.clone()));
                }
                Bound { bytes, .. } => own.upper_bound = Some(bytes.clone()),
            }
            own.sum = i64::try_from(self.sum).ok();
        }
        message.string_statistics = Some(Box::new(own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(values: &[&[u8]]) -> StringStatistics {
        let mut texts = Texts::default();
        values.iter().for_each(|value| texts.add_bounds(value));
        let mut message = Message::default();
        texts.put(&mut message);
        *message.string_statistics.unwrap()
    }

    #[test]
    fn long_bounds_are_cut_at_characters() {
        let long = |last: &str| format!("{}{last}tail", "x".repeat(MAX_BOUND - last.len())).into_bytes();
        for (last, next) in [("a", "b"), ("\u{7f}", "\u{80}"), ("\u{D7FF}", "\u{E000}"), ("\u{FFFF}", "\u{10000}")] {
            let own = bounds(&[&long(last)]);
            let head = "x".repeat(MAX_BOUND - last.len());
            assert_eq!((own.minimum, own.maximum), (None, None));
            assert_eq!(own.lower_bound.unwrap(), format!("{head}{last}").into_bytes());
            assert_eq!(own.upper_bound.unwrap(), format!("{head}{next}").into_bytes());
        }
        // The last character has no successor, so the one before it is incremented.
        let own = bounds(&[&long("\u{10FFFF}")]);
        assert_eq!(own.upper_bound.unwrap(), format!("{}y", "x".repeat(MAX_BOUND - 5)).into_bytes());
        // A character that does not fit completely is left out.
        let own = bounds(&[format!("{}é", "x".repeat(MAX_BOUND - 1)).as_bytes()]);
        assert_eq!(own.lower_bound.unwrap(), "x".repeat(MAX_BOUND - 1).into_bytes());
    }

    #[test]
    fn short_bounds_are_values() {
        let own = bounds(&[b"b", b"", b"abcdefgh", b"abcdefghi", b"\xf0\x9f\x99\x82"]);
        assert_eq!((own.minimum.unwrap(), own.maximum.unwrap()), (b"".to_vec(), b"\xf0\x9f\x99\x82".to_vec()));
        let own = bounds(&[b"ab\0", b"ab", b"ab\0\0"]);
        assert_eq!((own.minimum.unwrap(), own.maximum.unwrap()), (b"ab".to_vec(), b"ab\0\0".to_vec()));
        // No values, no bounds.
        assert_eq!(bounds(&[]), StringStatistics::default());
    }

    #[test]
    fn bytes_that_are_no_text_are_bounded_by_their_front() {
        let own = bounds(&[b"ab\xff", b"a\xfe"]);
        assert_eq!((own.lower_bound.unwrap(), own.upper_bound.unwrap()), (b"ab".to_vec(), b"b".to_vec()));
    }
}
