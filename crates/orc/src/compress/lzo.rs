//! LZO1X, both ways: decompression, and compression by one hash table (the speed of LZO1X-1). Written from the description of the stream ("LZO stream format as understood by Linux' LZO
//! decompressor").
//!
//! A stream is a sequence of instructions; the top bits of the first byte say how far and how long a match is, its low
//! two bits how many literals (0 to 3) follow it. `state` carries that count, for instructions below 16 mean other
//! things after 0, 1 to 3 and 4 or more literals.

use super::Inflated;
use crate::error::{Error, Result};

/// The instructions that are left.
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

    /// A length whose short field was 0: each zero byte adds 255, the first other byte ends it.
    fn long_length(&mut self, base: usize) -> Result<usize> {
        let zeros = self.rest.iter().take_while(|byte| **byte == 0).count();
        self.take(zeros)?;
        Ok(base + zeros * 255 + self.byte()?)
    }

    /// Two bytes, little endian.
    fn pair(&mut self) -> Result<usize> {
        Ok(self.byte()? | self.byte()? << 8)
    }
}

fn cut() -> Error {
    Error::corrupt("", "compressed chunk: LZO ends inside an instruction")
}

/// What has been written, and where the room ends.
struct Output<'a> {
    room: &'a mut [u8],
    filled: usize,
}

impl Output<'_> {
    /// Copies literals; false where they do not fit.
    fn literals(&mut self, bytes: &[u8]) -> bool {
        let Some(target) = self.room.get_mut(self.filled..).and_then(|rest| rest.get_mut(..bytes.len())) else {
            return false;
        };
        target.copy_from_slice(bytes);
        self.filled += bytes.len();
        true
    }

    /// Copies `length` bytes from `distance` back, which may overlap; `None` for a distance before the start.
    fn copy(&mut self, distance: usize, length: usize) -> Option<bool> {
        let from = self.filled.checked_sub(distance)?;
        let end = self.filled + length;
        let Some(window) = self.room.get_mut(from..end) else { return Some(false) };
        if distance >= length {
            window.copy_within(..length, distance);
        } else {
            // The pattern doubles: what was copied is the source of the next, longer copy.
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

/// One match: how far back, how long, and how many literals follow.
struct Match {
    distance: usize,
    length: usize,
    literals: usize,
}

/// Reads the rest of an instruction that is a match; `None` is the end of the stream.
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
            // After four literals or more the short match reaches further and is a byte longer.
            let (distance, length) = if state >= 4 { (near + 0x801, 3) } else { (near + 1, 2) };
            Match { distance, length, literals }
        }
    }))
}

/// Decompresses one block into the front of `room`.
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

/// Bits of the table's index.
const TABLE_BITS: u32 = 14;
/// Matches are found by their first four bytes.
const MIN_MATCH: usize = 4;
/// The farthest match.
const MAX_DISTANCE: usize = 0xbfff;
/// The longest run of literals that the first instruction can hold.
const MAX_FIRST: usize = 238;

/// Compresses blocks; keeps its table.
pub(super) struct Encoder {
    /// The last place (and one) where bytes of this hash were seen in the block.
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

/// How many bytes at two places are the same.
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
    /// Compresses a block that is not empty; `out` holds nothing else afterwards.
    pub(super) fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) {
        out.clear();
        self.table.fill(0);
        let (mut at, mut done) = (0, 0);
        while let Some(word) = four(block, at) {
            let slot = (word.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)) as usize;
            let seen = self.table.get_mut(slot).map_or(0, |slot| std::mem::replace(slot, at as u32 + 1)) as usize;
            let before = seen.wrapping_sub(1);
            if seen == 0 || at - before > MAX_DISTANCE || four(block, before) != Some(word) {
                // The longer nothing is found, the larger the steps.
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

/// Literals: the first of a block have an instruction of their own, one to three stand in the match before them.
fn put_literals(literals: &[u8], first: bool, out: &mut Vec<u8>) {
    match literals.len() {
        count if first && count <= MAX_FIRST => out.push((17 + count) as u8),
        0 => {}
        count @ 1..=3 => {
            // The second byte from the end is a match's instruction, or the lower half of its pair.
            let place = out.len().saturating_sub(2);
            if let Some(byte) = out.get_mut(place) {
                *byte |= count as u8;
            }
        }
        count => put_length(0, count - 3, 15, out),
    }
    out.extend_from_slice(literals);
}

/// An instruction with a length in its low bits; a longer one follows in bytes of 255 each, written as zeros.
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
