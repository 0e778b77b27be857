//! Reads values from the bytes of a header or block, within their bounds (Avro, "Binary Encoding").

use crate::Error;

/// High bit of each byte of a word, which is set in a varint byte that is followed by another.
const GOES_ON: u64 = 0x8080_8080_8080_8080;
/// One in each byte of a word: multiplication by it adds all bytes in the highest byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Why a value could not be decoded. Small and without a position, which is added once, by [`Fault::at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The input ends inside a value.
    End,
    /// A varint of more than ten bytes, or a number that does not fit in 64 bits.
    LongVarint,
    /// A negative length or count.
    Negative,
    /// A length or count that exceeds the remaining bytes.
    TooLong,
    /// A number that does not fit the column's type.
    Range,
    /// A union branch that does not exist, or null for a required value.
    Branch,
    /// A boolean other than 0 and 1.
    Boolean,
    /// Bytes that do not have the length of the type.
    Length,
    /// Text that is not UTF-8, or not a text form of the type.
    Text,
}

impl Fault {
    /// Message of one sentence.
    pub fn message(self) -> &'static str {
        match self {
            Self::End => "the input ends within a value",
            Self::LongVarint => "a varint does not fit 64 bits",
            Self::Negative => "a length or count is negative",
            Self::TooLong => "a length or count exceeds what is left",
            Self::Range => "a number is out of range for its type",
            Self::Branch => "a union names a branch that it does not have, or null where a value is required",
            Self::Boolean => "a boolean is neither 0 nor 1",
            Self::Length => "bytes do not have the length of their type",
            Self::Text => "text is not valid UTF-8",
        }
    }

    /// Creates the error for this fault at an offset in a named part.
    #[cold]
    pub fn at(self, place: impl Into<String>, offset: u64) -> Error {
        Error::corrupt_at(place, offset, self.message())
    }
}

/// The remaining bytes. After a failed read the cursor is still at the value that failed.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes between an earlier state of this cursor and the current one.
    pub fn since(&self, earlier: &Self) -> &'a [u8] {
        let taken = earlier.rest.len().saturating_sub(self.rest.len());
        earlier.rest.get(..taken).unwrap_or_default()
    }

    /// Reads `n` bytes. All lengths from the input are checked here.
    #[inline]
    pub fn take(&mut self, n: u64) -> Result<&'a [u8], Fault> {
        let n = usize::try_from(n).map_err(|_| Fault::TooLong)?;
        let (head, tail) = self.rest.split_at_checked(n).ok_or(Fault::TooLong)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Fault::End)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads a zigzag varint: Avro's `int` and `long`.
    #[inline]
    pub fn long(&mut self) -> Result<i64, Fault> {
        match *self.rest {
            [a, ref tail @ ..] if a < 0x80 => {
                self.rest = tail;
                Ok(unzigzag(u64::from(a)))
            }
            [a, b, ref tail @ ..] if b < 0x80 => {
                self.rest = tail;
                Ok(unzigzag(u64::from(a & 0x7f) | u64::from(b) << 7))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<i64, Fault> {
        let mut bits = 0u64;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            if index == 9 && byte > 1 {
                return Err(Fault::LongVarint);
            }
            bits |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(unzigzag(bits));
            }
        }
        Err(if self.rest.len() < 10 { Fault::End } else { Fault::LongVarint })
    }

    /// Reads Avro's `int`.
    #[inline]
    pub fn int(&mut self) -> Result<i32, Fault> {
        let before = *self;
        i32::try_from(self.long()?).map_err(|_| {
            *self = before;
            Fault::Range
        })
    }

    /// Reads a length: a varint that is not negative.
    #[inline]
    pub fn length(&mut self) -> Result<u64, Fault> {
        let before = *self;
        u64::try_from(self.long()?).map_err(|_| {
            *self = before;
            Fault::Negative
        })
    }

    /// Reads Avro's `bytes` or `string`: a length, followed by that number of bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let before = *self;
        let length = self.length()?;
        self.take(length).inspect_err(|_| *self = before)
    }

    /// Reads Avro's `boolean`.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, Fault> {
        match *self.rest {
            [byte @ 0..=1, ref tail @ ..] => {
                self.rest = tail;
                Ok(byte == 1)
            }
            [] => Err(Fault::End),
            _ => Err(Fault::Boolean),
        }
    }

    /// Reads the start of a block in an array or map: the number of items, and their size in bytes if the writer added
    /// it. A block without items ends the array.
    #[inline]
    pub fn items(&mut self) -> Result<(u64, Option<u64>), Fault> {
        let count = self.long()?;
        if count >= 0 {
            return Ok((count.unsigned_abs(), None));
        }
        Ok((count.unsigned_abs(), Some(self.length()?)))
    }

    /// Skips `n` varints, eight bytes at a time.
    #[inline]
    pub fn skip_varints(&mut self, n: u64) -> Result<(), Fault> {
        let mut left = n;
        let mut rest = self.rest;
        while left > 0 {
            let Some((word, tail)) = rest.split_first_chunk::<8>() else { return self.skip_last_varints(rest, left) };
            // One bit for each byte that ends a varint.
            let mut ends = !u64::from_le_bytes(*word) & GOES_ON;
            let ended = (ends >> 7).wrapping_mul(ONES) >> 56;
            if ended < left {
                left -= ended;
                rest = tail;
                continue;
            }
            for _ in 1..left {
                ends &= ends - 1;
            }
            let bytes = ends.trailing_zeros() as usize / 8 + 1;
            self.rest = rest.get(bytes..).ok_or(Fault::End)?;
            return Ok(());
        }
        self.rest = rest;
        Ok(())
    }

    /// The end of [`Cursor::skip_varints`], when fewer than eight bytes remain.
    fn skip_last_varints(&mut self, rest: &'a [u8], mut left: u64) -> Result<(), Fault> {
        for (index, &byte) in rest.iter().enumerate() {
            if byte < 0x80 {
                left -= 1;
                if left == 0 {
                    self.rest = rest.get(index + 1..).unwrap_or_default();
                    return Ok(());
                }
            }
        }
        Err(Fault::End)
    }
}

/// Decodes a zigzag-encoded number.
#[inline]
pub fn unzigzag(bits: u64) -> i64 {
    (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::avro::Encoder;

    fn encoded(values: &[i64]) -> Vec<u8> {
        let mut out = Encoder::default();
        values.iter().for_each(|&value| out.long(value));
        out.into_bytes()
    }

    #[test]
    fn extreme_longs_come_back() {
        for value in [0, -1, 1, 63, 64, -64, -65, 8191, 8192, i64::from(i32::MIN), i64::MAX, i64::MIN] {
            let bytes = encoded(&[value]);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.long(), Ok(value));
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn faults_leave_the_cursor_where_it_was() {
        for (bytes, fault) in [
            (&[][..], Fault::End),
            (&[0x80, 0x80], Fault::End),
            (&[0xff; 11], Fault::LongVarint),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], Fault::LongVarint),
        ] {
            let mut cursor = Cursor::new(bytes);
            assert_eq!(cursor.long(), Err(fault));
            assert_eq!(cursor.rest(), bytes);
        }
        let mut cursor = Cursor::new(&[0x01]);
        assert_eq!(cursor.bytes(), Err(Fault::Negative));
        let mut cursor = Cursor::new(&[0x06, b'a', b'b']);
        assert_eq!(cursor.bytes(), Err(Fault::TooLong));
        assert_eq!(cursor.rest().len(), 3);
        assert_eq!(Cursor::new(&[2]).boolean(), Err(Fault::Boolean));
    }

    proptest! {
        #[test]
        fn skipping_varints_is_reading_them(values in prop::collection::vec(any::<i64>().prop_map(|v| v >> (v & 63)), 0..80), n in 0u64..90) {
            let bytes = encoded(&values);
            let (mut skipped, mut read) = (Cursor::new(&bytes), Cursor::new(&bytes));
            let outcome = skipped.skip_varints(n);
            let wanted = (0..n).try_for_each(|_| read.long().map(|_| ()));
            prop_assert_eq!(outcome.is_ok(), wanted.is_ok());
            if outcome.is_ok() {
                prop_assert_eq!(skipped.rest(), read.rest());
            }
        }
    }
}
