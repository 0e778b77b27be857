//! LZO1X: decompression, and compression with one hash table (as fast as LZO1X-1). Written from the description of the
//! stream ("LZO stream format as understood by Linux' LZO decompressor").
//!
//! A stream is a sequence of instructions. The top bits of the first byte encode distance and length of a match, its
//! low two bits the number of literals (0 to 3) after the match. `state` keeps this number, because the meaning of
//! instructions below 16 depends on whether 0, 1 to 3, or at least 4 literals precede them.

use super::Inflated;
use crate::error::{Error, Result};

/// The remaining instructions.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<usize> {
        let (first, rest) = self.rest.split_first().ok_or_else(cut)?;
        self.rest = rest;
        Ok(usize::from(*first))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or_else(cut)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads a length whose short field is 0: each zero byte adds 255, and the first other byte ends it.
    fn long_length(&mut self, base: usize) -> Result<usize> {
        let zeros = self.rest.iter().take_while(|byte| **byte == 0).count();
        self.take(zeros)?;
        Ok(base + zeros * 255 + self.byte()?)
    }

    /// Reads two bytes, little endian.
    fn pair(&mut self) -> Result<usize> {
        Ok(self.byte()? | self.byte()? << 8)
    }
}

fn cut() -> Error {
    Error::corrupt("", "compressed chunk: LZO ends inside an instruction")
}

/// The output buffer and the number of bytes written.
struct Output<'a> {
    room: &'a mut [u8],
    filled: usize,
}

impl Output<'_> {
    /// Copies literals; false if they do not fit.
    fn literals(&mut self, bytes: &[u8]) -> bool {
        let Some(target) = self.room.get_mut(self.filled..).and_then(|rest| rest.get_mut(..bytes.len())) else {
            return false;
        };
        target.copy_from_slice(bytes);
        self.filled += bytes.len();
        true
    }

    /// Copies `length` bytes from `distance` bytes back; the two may overlap. `None` if the distance reaches before the
    /// start.
    fn copy(&mut self, distance: usize, length: usize) -> Option<bool> {
        let from = self.filled.checked_sub(distance)?;
        let end = self.filled + length;
        let Some(window) = self.room.get_mut(from..end) else { return Some(false) };
        if distance >= length {
            window.copy_within(..length, distance);
        } else {
            // The pattern doubles: the copied bytes are the source of the next, longer copy.
            let mut have = distance;
            while have < window.len() {
                let step = have.min(window.len() - have);
                window.copy_within(..step, have);
                have += step;
            }
        }
        self.filled = end;
        Some(true)
    }
}

/// One match: its distance back, its length, and the number of literals after it.
struct Match {
    distance: usize,
    length: usize,
    literals: usize,
}

/// Reads the rest of an instruction that is a match; `None` at the end of the stream.
fn read_match(instruction: usize, state: usize, input: &mut Input<'_>) -> Result<Option<Match>> {
    let literals = instruction & 3;
    Ok(Some(match instruction {
        64.. => Match {
            distance: (input.byte()? << 3 | instruction >> 2 & 7) + 1,
            length: (instruction >> 5) + 1,
            literals,
        },
        32..64 => {
            let length = match instruction & 31 {
                0 => input.long_length(31)?,
                short => short,
            };
            let pair = input.pair()?;
            Match { distance: (pair >> 2) + 1, length: length + 2, literals: pair & 3 }
        }
        16..32 => {
            let length = match instruction & 7 {
                0 => input.long_length(7)?,
                short => short,
            };
            let pair = input.pair()?;
            let far = (instruction & 8) << 11 | pair >> 2;
            if far == 0 {
                return Ok(None);
            }
            Match { distance: far + 0x4000, length: length + 2, literals: pair & 3 }
        }
        _ => {
            let near = input.byte()? << 2 | instruction >> 2;
            // After four or more literals, a short match has a larger distance and is one byte longer.
            let (distance, length) = if state >= 4 { (near + 0x801, 3) } else { (near + 1, 2) };
            Match { distance, length, literals }
        }
    }))
}

/// Decompresses one block into the start of `room`.
pub(super) fn decompress(block: &[u8], room: &mut [u8]) -> Result<Inflated> {
    let mut input = Input { rest: block };
    let mut output = Output { room, filled: 0 };
    let mut state = 0;
    if let Some(&first) = block.first().filter(|first| **first > 17) {
        input.byte()?;
        let count = usize::from(first) - 17;
        if !output.literals(input.take(count)?) {
            return Ok(Inflated::NoRoom);
        }
        state = count.min(4);
    }
    while !input.rest.is_empty() {
        let instruction = input.byte()?;
        if instruction < 16 && state == 0 {
            let count = match instruction {
                0 => input.long_length(15)? + 3,
                short => short + 3,
            };
            if !output.literals(input.take(count)?) {
                return Ok(Inflated::NoRoom);
            }
            state = 4;
            continue;
        }
        let Some(found) = read_match(instruction, state, &mut input)? else { break };
        match output.copy(found.distance, found.length) {
            Some(true) => {}
            Some(false) => return Ok(Inflated::NoRoom),
            None => return Err(Error::corrupt("", "compressed chunk: an LZO match before the start")),
        }
        if !output.literals(input.take(found.literals)?) {
            return Ok(Inflated::NoRoom);
        }
        state = found.literals;
    }
    Ok(Inflated::Bytes(output.filled))
}

/// Bits of an index into the hash table.
const TABLE_BITS: u32 = 14;
/// Minimum length of a match: the hash covers four bytes.
const MIN_MATCH: usize = 4;
/// Maximum distance of a match.
const MAX_DISTANCE: usize = 0xbfff;
/// Maximum number of literals in the first instruction of a block.
const MAX_FIRST: usize = 238;

/// Compresses blocks, reusing one hash table.
pub(super) struct Encoder {
    /// By hash: the last position in the block of four bytes with this hash, plus one; 0 if none.
    table: Vec<u32>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { table: vec![0; 1 << TABLE_BITS] }
    }
}

fn four(block: &[u8], at: usize) -> Option<u32> {
    block.get(at..)?.first_chunk::<MIN_MATCH>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// The number of equal bytes at two positions.
fn common(block: &[u8], before: usize, at: usize) -> usize {
    let (one, other) = (block.get(before..).unwrap_or_default(), block.get(at..).unwrap_or_default());
    let (words, _) = other.as_chunks::<8>();
    let mut same = 0;
    for (word, twin) in words.iter().zip(one.as_chunks::<8>().0) {
        let differ = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*twin);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let rest = other.iter().zip(one).skip(same);
    same + rest.take_while(|(byte, twin)| byte == twin).count()
}

impl Encoder {
    /// Compresses a block that is not empty, and replaces the contents of `out` by the result.
    pub(super) fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) {
        out.clear();
        self.table.fill(0);
        let (mut at, mut done) = (0, 0);
        while let Some(word) = four(block, at) {
            let slot = (word.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)) as usize;
            let seen = self.table.get_mut(slot).map_or(0, |slot| std::mem::replace(slot, at as u32 + 1)) as usize;
            let before = seen.wrapping_sub(1);
            if seen == 0 || at - before > MAX_DISTANCE || four(block, before) != Some(word) {
                // Take larger steps the longer no match is found, so that incompressible bytes cost little time.
                at += 1 + ((at - done) >> 6);
                continue;
            }
            put_literals(block.get(done..at).unwrap_or_default(), done == 0, out);
            let length = MIN_MATCH + common(block, before + MIN_MATCH, at + MIN_MATCH);
            put_match(at - before, length, out);
            at += length;
            done = at;
        }
        put_literals(block.get(done..).unwrap_or_default(), done == 0, out);
        out.extend_from_slice(&[17, 0, 0]);
    }
}

/// Writes literals. Those at the start of a block may have a special instruction; one to three literals later on are
/// counted in the match before them.
fn put_literals(literals: &[u8], first: bool, out: &mut Vec<u8>) {
    match literals.len() {
        count if first && count <= MAX_FIRST => out.push((17 + count) as u8),
        0 => {}
        count @ 1..=3 => {
            // The second byte from the end is the instruction of the match, or the low byte of its distance.
            let place = out.len().saturating_sub(2);
            if let Some(byte) = out.get_mut(place) {
                *byte |= count as u8;
            }
        }
        count => put_length(0, count - 3, 15, out),
    }
    out.extend_from_slice(literals);
}

/// Writes an instruction with a length in its low bits; for a longer one, these are 0, and each zero byte after it adds
/// 255.
fn put_length(instruction: u8, length: usize, short: usize, out: &mut Vec<u8>) {
    if length <= short {
        return out.push(instruction | length as u8);
    }
    let more = length - short - 1;
    out.push(instruction);
    out.resize(out.len() + more / 255, 0);
    out.push((more % 255 + 1) as u8);
}

fn put_match(distance: usize, length: usize, out: &mut Vec<u8>) {
    let pair = |near: usize| ((near << 2) as u16).to_le_bytes();
    match distance {
        ..=0x800 if length <= 8 => {
            let near = distance - 1;
            out.extend_from_slice(&[((length - 1) << 5 | (near & 7) << 2) as u8, (near >> 3) as u8]);
        }
        ..=0x4000 => {
            put_length(32, length - 2, 31, out);
            out.extend_from_slice(&pair(distance - 1));
        }
        _ => {
            let far = distance - 0x4000;
            put_length(16 | (far >> 11 & 8) as u8, length - 2, 7, out);
            out.extend_from_slice(&pair(far & 0x3fff));
        }
    }
}
