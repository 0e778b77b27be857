//! Decodes small integers in runs and bit-packed groups of eight (Parquet's "RLE / Bit-packed hybrid"): definition
//! levels and dictionary keys.

use std::ops::Range;

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};

use super::runs::Runs;
use crate::file::parquet::guard::internal;
use crate::file::ranges::CLOSE;

/// A sequence of integers of a fixed bit width.
pub(in crate::file::parquet) struct Hybrid {
    rest: Bytes,
    width: usize,
    run: Run,
}

#[derive(Clone)]
enum Run {
    Same { value: u32, left: usize },
    Packed { bytes: Bytes, at: usize, left: usize },
}

/// A stretch of the sequence.
pub(super) enum Piece {
    /// A run: the value and its length.
    Same(u32, usize),
    /// Bit-packed integers: the bytes, the first integer's index, and the count.
    Packed(Bytes, usize, usize),
}

impl Hybrid {
    /// The integers in these bytes; `width` is at most 32.
    pub(super) fn new(rest: Bytes, width: u8) -> Result<Self> {
        if width > 32 {
            return Err(ParquetError::General(format!("a page has numbers of {width} bits")));
        }
        Ok(Self { rest, width: width.into(), run: Run::Same { value: 0, left: 0 } })
    }

    /// The next integers, at least one and at most `most`.
    pub(super) fn next(&mut self, most: usize) -> Result<Piece> {
        while let Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } = self.run {
            self.next_run()?;
        }
        Ok(match &mut self.run {
            Run::Same { value, left } => {
                let count = most.min(*left);
                *left -= count;
                Piece::Same(*value, count)
            }
            Run::Packed { bytes, at, left } => {
                let count = most.min(*left);
                let first = *at;
                *at += count;
                *left -= count;
                Piece::Packed(bytes.clone(), first, count)
            }
        })
    }

    /// Appends the next `count` integers.
    pub(super) fn append(&mut self, mut count: usize, out: &mut Vec<u32>) -> Result<()> {
        out.reserve(count);
        while count > 0 {
            count -= match self.next(count)? {
                Piece::Same(value, found) => {
                    out.resize(out.len() + found, value);
                    found
                }
                Piece::Packed(bytes, first, found) => {
                    unpack(&bytes, self.width, first, found, out)?;
                    found
                }
            };
        }
        Ok(())
    }

    /// Calls `give` with stretches of values that cover the selection, each with its selected values, and skips long
    /// gaps.
    pub(super) fn parts(
        &mut self,
        runs: &Runs<'_>,
        room: &mut Vec<u32>,
        mut give: impl FnMut(&[u32], &Runs<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut passed = 0;
        for part in runs.without_gaps(CLOSE) {
            self.skip(part.start() - runs.start() - passed)?;
            passed = part.start() - runs.start() + part.passed();
            room.clear();
            // Unpacking the gap between short runs is faster than starting inside a group of eight.
            self.append(part.passed(), room)?;
            give(room, &part)?;
        }
        self.skip(runs.passed() - passed)
    }

    /// Skips the next `count` integers.
    pub(super) fn skip(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            let (Piece::Same(_, found) | Piece::Packed(_, _, found)) = self.next(count)?;
            count -= found;
        }
        Ok(())
    }

    fn next_run(&mut self) -> Result<()> {
        let short = || ParquetError::EOF("a page has fewer levels or keys than values".to_owned());
        let header = varint(&mut self.rest).ok_or_else(short)?;
        let count = usize::try_from(header >> 1)?;
        self.run = if header & 1 == 1 {
            // Writers may leave out trailing bytes of the last group that no value needs.
            let bytes = self.rest.split_to(count.saturating_mul(self.width).min(self.rest.len()));
            let left = match self.width {
                0 => count.saturating_mul(8),
                width => bytes.len() * 8 / width,
            };
            Run::Packed { bytes, at: 0, left }
        } else {
            let mut value = [0; 4];
            let bytes = self.width.div_ceil(8);
            let room = value.get_mut(..bytes).ok_or_else(|| internal("numbers of more than 32 bits"))?;
            self.rest.try_copy_to_slice(room).map_err(|_| short())?;
            Run::Same { value: u32::from_le_bytes(value), left: count }
        };
        match self.run {
            Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => Err(short()),
            _ => Ok(()),
        }
    }
}

/// Unpacks integers of `width` bits, starting from the lowest bit of each byte.
fn unpack(bytes: &[u8], width: usize, first: usize, count: usize, out: &mut Vec<u32>) -> Result<()> {
    if bytes.len() * 8 < (first + count) * width {
        return Err(internal("packed numbers beyond those of their run"));
    }
    // Values up to a group boundary, then whole groups, then the rest.
    let before = first.next_multiple_of(8).min(first + count);
    one_by_one(bytes, width, first..before, out);
    let end = before + (first + count - before) / 8 * 8;
    let groups = bytes.get(before / 8 * width..end / 8 * width).unwrap_or_default();
    let unpacked = match width {
        1 => groups_of::<1>(groups, out),
        2 => groups_of::<2>(groups, out),
        3 => groups_of::<3>(groups, out),
        4 => groups_of::<4>(groups, out),
        5 => groups_of::<5>(groups, out),
        6 => groups_of::<6>(groups, out),
        7 => groups_of::<7>(groups, out),
        8 => groups_of::<8>(groups, out),
        9 => groups_of::<9>(groups, out),
        10 => groups_of::<10>(groups, out),
        11 => groups_of::<11>(groups, out),
        12 => groups_of::<12>(groups, out),
        13 => groups_of::<13>(groups, out),
        14 => groups_of::<14>(groups, out),
        15 => groups_of::<15>(groups, out),
        16 => groups_of::<16>(groups, out),
        _ => 0,
    };
    one_by_one(bytes, width, before + unpacked..first + count, out);
    Ok(())
}

/// Unpacks whole groups of eight integers of `WIDTH` bits (at most 16), `WIDTH` bytes per group. Returns the number
/// of integers.
fn groups_of<const WIDTH: usize>(bytes: &[u8], out: &mut Vec<u32>) -> usize {
    let (groups, _) = bytes.as_chunks::<WIDTH>();
    for group in groups {
        let mut numbers = [0; 8];
        if WIDTH <= 8 {
            let word = group.iter().rev().fold(0_u64, |word, byte| word.wrapping_shl(8) | u64::from(*byte));
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = (word >> (at * WIDTH) & ((1 << WIDTH) - 1)) as u32;
            }
        } else {
            let word = group.iter().rev().fold(0_u128, |word, byte| word << 8 | u128::from(*byte));
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = (word >> (at * WIDTH) & ((1 << WIDTH) - 1)) as u32;
            }
        }
        out.extend_from_slice(&numbers);
    }
    8 * groups.len()
}

fn one_by_one(bytes: &[u8], width: usize, numbers: Range<usize>, out: &mut Vec<u32>) {
    let mask = (1_u64 << width) - 1;
    out.extend(numbers.map(|number| {
        let bit = number * width;
        let rest = bytes.get(bit / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        (word >> (bit % 8) & mask) as u32
    }));
}

/// Reads a varint: seven bits per byte, lowest first.
pub(in crate::file::parquet) fn varint(bytes: &mut impl Buf) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &'static [u8], width: u8, count: usize) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        Hybrid::new(Bytes::from_static(bytes), width)?.append(count, &mut found)?;
        Ok(found)
    }

    #[test]
    fn runs_and_packed_groups() {
        // Five times 3, then 0 to 7 in three bits each.
        let mixed = &[5 << 1, 3, 1 << 1 | 1, 0x88, 0xc6, 0xfa];
        assert_eq!(numbers(mixed, 3, 13).unwrap(), [3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(numbers(mixed, 3, 7).unwrap(), [3, 3, 3, 3, 3, 0, 1]);
        assert!(numbers(mixed, 3, 14).is_err());
        assert_eq!(numbers(&[2 << 1, 1, 2, 3, 4], 32, 2).unwrap(), [0x0403_0201; 2]);
        assert_eq!(numbers(&[9 << 1], 0, 9).unwrap(), [0; 9]);
        assert_eq!(numbers(&[1 << 1 | 1], 0, 8).unwrap(), [0; 8]);
        // A group that has only its first three bytes.
        assert_eq!(numbers(&[1 << 1 | 1, 1, 2, 3], 8, 3).unwrap(), [1, 2, 3]);
        assert!(numbers(&[1 << 1 | 1, 1, 2, 3], 8, 4).is_err());
    }

    #[test]
    fn numbers_of_every_width_are_those_that_were_packed() {
        for width in 1..=32_u8 {
            let values: Vec<u32> = (0..64_u32).map(|at| (at.wrapping_mul(0x9e37_79b9)) >> (32 - width)).collect();
            let mut bits: Vec<bool> = Vec::new();
            for value in &values {
                bits.extend((0..width).map(|bit| value >> bit & 1 == 1));
            }
            let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte: u8, bit| byte << 1 | u8::from(*bit));
            let packed = [&[8 << 1 | 1][..], &bits.chunks(8).map(byte).collect::<Vec<_>>()].concat();
            for skipped in [0, 1, 7, 63] {
                let mut hybrid = Hybrid::new(packed.clone().into(), width).unwrap();
                hybrid.skip(skipped).unwrap();
                let mut found = Vec::new();
                hybrid.append(64 - skipped, &mut found).unwrap();
                assert_eq!(found, values[skipped..], "{width} bits");
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for bytes in [&[][..], &[0, 0], &[1], &[0xff; 12], &[5 << 1]] {
            assert!(numbers(bytes, 3, 3).is_err(), "{bytes:?}");
        }
        assert!(Hybrid::new(Bytes::new(), 33).is_err());
    }
}
