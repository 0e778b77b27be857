//! Booleans ("Boolean Run Length Encoding"): bits starting at the top of each byte.

use arrow_buffer::BooleanBuffer;

use super::ByteWriter;

/// Writes a bit stream.
#[derive(Debug, Default)]
pub struct BooleanWriter {
    bytes: ByteWriter,
    /// The current byte, filled from the top.
    begun: u8,
    /// The number of bits used in the current byte, less than 8.
    used: u32,
}

impl BooleanWriter {
    /// Adds bits, and appends the complete runs to `out`.
    pub fn write(&mut self, bits: &BooleanBuffer, out: &mut Vec<u8>) {
        let chunks = bits.bit_chunks();
        for word in chunks.iter() {
            // The first bit is the lowest in Arrow, and the highest in ORC.
            let word = word.reverse_bits();
            let joined = u64::from(self.begun) << 56 | word >> self.used;
            self.bytes.write(&joined.to_be_bytes(), out);
            self.begun = (u128::from(word) << (64 - self.used) >> 56) as u8;
        }
        self.push(chunks.remainder_bits().reverse_bits(), chunks.remainder_len() as u32, out);
    }

    /// Adds the same bit `count` times.
    pub fn write_run(&mut self, bit: bool, count: usize, out: &mut Vec<u8>) {
        let word = if bit { u64::MAX } else { 0 };
        let head = count.min((8 - self.used as usize) % 8);
        self.push(word, head as u32, out);
        let whole = (count - head) / 8;
        self.bytes.write_run(word as u8, whole, out);
        self.push(word, (count - head - whole * 8) as u32, out);
    }

    /// Adds the top `count` bits of a word, fewer than 64.
    fn push(&mut self, word: u64, count: u32, out: &mut Vec<u8>) {
        let kept = u128::from(word) & !(u128::from(u64::MAX) >> count);
        // Joins both in 128 bits: the current byte at the top, and the word after its used bits.
        let joined = u128::from(self.begun) << 120 | kept << 64 >> self.used;
        let (whole, used) = ((self.used + count) / 8, (self.used + count) % 8);
        let bytes = joined.to_be_bytes();
        self.bytes.write(bytes.get(..whole as usize).unwrap_or_default(), out);
        self.begun = bytes.get(whole as usize).copied().unwrap_or_default();
        self.used = used;
    }

    /// The number of bytes added but not yet appended, and of bits used in the current byte.
    pub fn pending(&self) -> (usize, usize) {
        (self.bytes.pending(), self.used as usize)
    }

    /// Appends the pending values, with zeros in the rest of the last byte, and resets the writer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.used > 0 {
            self.bytes.write(&[self.begun], out);
        }
        self.bytes.finish(out);
        (self.begun, self.used) = (0, 0);
    }
}
