//! Booleans ("Boolean Run Length Encoding"): bits starting at the top of each byte; the bytes are run-length encoded.

use arrow_buffer::{BooleanBuffer, Buffer};

use super::byte::ByteReader;
use crate::error::{Error, Result};
use crate::stream::{ByteStream, Context, Positions};

/// Reads a bit stream.
#[derive(Debug)]
pub struct BooleanReader {
    bytes: ByteReader,
    /// The current byte, reversed so that its first bit is the lowest.
    begun: u8,
    /// The number of bits used in the current byte; 8 if the next byte is needed.
    used: usize,
}

impl BooleanReader {
    /// A reader of a stream.
    pub fn new(stream: ByteStream) -> Self {
        Self { bytes: ByteReader::new(stream), begun: 0, used: 8 }
    }

    /// Reads the next `count` bits, in Arrow's order.
    pub fn read(&mut self, count: usize, context: &mut Context) -> Result<BooleanBuffer> {
        let offset = self.used % 8;
        let mut bytes = Vec::new();
        if offset > 0 {
            bytes.push(self.begun);
        }
        let more = (offset + count).div_ceil(8) - bytes.len();
        let have = bytes.len();
        self.bytes.read_onto(more, &mut bytes, context)?;
        for byte in bytes.iter_mut().skip(have) {
            *byte = byte.reverse_bits();
        }
        if let Some(last) = bytes.last() {
            self.begun = *last;
            self.used = match (offset + count) % 8 {
                0 => 8,
                used => used,
            };
        }
        Ok(BooleanBuffer::new(Buffer::from_vec(bytes), offset, count))
    }

    /// Skips bits.
    pub fn skip(&mut self, count: usize, context: &mut Context) -> Result<()> {
        let left = 8 - self.used;
        if count <= left {
            self.used += count;
            return Ok(());
        }
        let count = count - left;
        self.used = 8;
        self.bytes.skip(count / 8, context)?;
        if !count.is_multiple_of(8) {
            self.read(count % 8, context)?;
        }
        Ok(())
    }

    /// Seeks to a position: that of the byte stream, then the number of bits to skip.
    pub fn seek(&mut self, positions: &mut Positions<'_>, context: &mut Context) -> Result<()> {
        self.bytes.seek(positions, context)?;
        (self.used, self.begun) = (8, 0);
        match positions.take()? {
            bits @ 0..=8 => self.skip(bits, context),
            bits => Err(Error::corrupt("row index", format!("invalid bit position {bits}"))),
        }
    }
}
