//! Decodes flat boolean columns. PLAIN pages store booleans as Arrow does, one bit each.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type::BoolType;
use parquet::errors::{ParquetError, Result};

use super::column::{Bits, Values};
use super::runs::Runs;
use crate::file::parquet::guard::internal;

/// The decoded values of a column.
#[derive(Default)]
pub(in crate::file::parquet) struct Booleans {
    /// Appended values without nulls: full words, then the remaining bits and their number.
    words: Vec<u64>,
    last: u64,
    filled: usize,
}

impl Booleans {
    /// Appends a range of bits at any bit offset. For short runs this is five times as fast as Arrow's function.
    fn append_bits(&mut self, bytes: &[u8], mut bits: Range<usize>) -> Result<()> {
        if bits.end.div_ceil(8) > bytes.len() {
            return Err(internal("bits that are wanted and were not read"));
        }
        while !bits.is_empty() {
            let rest = bytes.get(bits.start / 8..).unwrap_or_default();
            // A word from any byte on; only at the end of the page are fewer bytes left.
            let word = match rest.first_chunk() {
                Some(word) => u64::from_le_bytes(*word),
                None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            };
            // Bits of the word before the range are not part of it.
            let count = bits.len().min(u64::BITS as usize - bits.start % 8);
            let taken = word >> (bits.start % 8) & (u64::MAX >> (u64::BITS as usize - count));
            self.last |= taken << self.filled;
            bits.start += count;
            self.filled += count;
            if let Some(behind) = self.filled.checked_sub(u64::BITS as usize) {
                // The bits that did not fit begin the next word. A shift by 64 would overflow.
                self.words.push(self.last);
                self.last = if behind == 0 { 0 } else { taken >> (count - behind) };
                self.filled = behind;
            }
        }
        Ok(())
    }
}

impl Values for Booleans {
    type Type = BoolType;
    type Page = Bits;

    fn clear_dictionary(&mut self) {}

    fn set_dictionary(&mut self, _: Bytes, _: usize) -> Result<()> {
        Err(ParquetError::General("booleans have no dictionary".to_owned()))
    }

    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Bits>> {
        let rows = bytes.len().saturating_mul(8);
        let bits = || Bits { bits: BooleanBuffer::new(Buffer::from(bytes), 0, rows), at: 0 };
        Ok((encoding == Encoding::PLAIN).then(bits))
    }

    fn decoded(values: Vec<bool>) -> Bits {
        Bits { bits: BooleanBuffer::from(values), at: 0 }
    }

    fn reserve(&mut self, count: usize) {
        self.words.reserve(count / u64::BITS as usize + 1);
    }

    fn append(&mut self, page: &mut Bits, runs: &Runs<'_>) -> Result<()> {
        let taken = page.take(runs.passed())?;
        let (bytes, first) = (taken.values(), taken.offset());
        runs.iter().try_for_each(|run| self.append_bits(bytes, first + run.start..first + run.end))
    }

    fn skip(&self, page: &mut Bits, count: usize) -> Result<()> {
        page.take(count).map(drop)
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let Self { mut words, last, filled } = std::mem::take(self);
        let count = words.len() * u64::BITS as usize + filled;
        if nulls.as_ref().is_some_and(|nulls| nulls.len() - nulls.null_count() != count) {
            return Err(internal("booleans that are not as many as rows have"));
        }
        words.push(last);
        let words: Vec<u64> = words.into_iter().map(u64::to_le).collect();
        let bits = BooleanBuffer::new(Buffer::from_vec(words), 0, count);
        let bits = match &nulls {
            None => bits,
            Some(nulls) => {
                let mut next = bits.iter();
                nulls.iter().map(|is_present| is_present && next.next().unwrap_or_default()).collect()
            }
        };
        Ok(Arc::new(BooleanArray::new(bits, nulls)))
    }
}
