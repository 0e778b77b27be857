//! LZO1X decompression, written from the description of the stream ("LZO stream format as understood by Linux' LZO
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
