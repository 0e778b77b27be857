//! Hashes texts and bytes in Arrow's buffers.

use arrow_buffer::Buffer;

use crate::transform::murmur3::{absorb, finish, murmur3_32, scramble};

/// Maximum length of a value that is stored in its view.
pub(super) const INLINE: usize = 12;

/// Hashes `data[start..end]`.
///
/// The last bytes are read as one word together with the bytes after them in the buffer, and masked: a loop over one,
/// two or three bytes would mispredict every other value.
#[inline]
pub(super) fn hash_at(data: &[u8], start: usize, end: usize) -> u32 {
    let Some(value) = data.get(start..end) else { return murmur3_32(&[]) };
    let (words, rest) = value.as_chunks::<4>();
    let hash = words.iter().fold(0, |hash, word| absorb(hash, u32::from_le_bytes(*word)));
    let tail = match data.get(end - rest.len()..).and_then(<[u8]>::first_chunk) {
        Some(word) => u32::from_le_bytes(*word) & low_bytes(rest.len()),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)),
    };
    // A tail of length zero is zero, which leaves the hash unchanged.
    finish(hash ^ scramble(tail) ^ value.len() as u32)
}

/// Hashes the value of a view.
#[inline]
pub(super) fn hash_view(view: u128, buffers: &[Buffer]) -> u32 {
    let length = view as u32;
    if length as usize <= INLINE {
        return hash_inline(view, length);
    }
    let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
    match buffers.get(buffer) {
        Some(buffer) => hash_at(buffer, offset, offset + length as usize),
        None => murmur3_32(&[]),
    }
}

/// Hashes a value stored in its view. By Arrow's format the bytes after its end are zero.
#[inline(always)]
fn hash_inline(view: u128, length: u32) -> u32 {
    let words = [(view >> 32) as u32, (view >> 64) as u32, (view >> 96) as u32];
    let whole = length / 4;
    let (mut hash, mut rest) = (0, 0);
    for (place, word) in (0..).zip(words) {
        hash = if place < whole { absorb(hash, word) } else { hash };
        rest = if place == whole { word } else { rest };
    }
    finish(hash ^ scramble(rest) ^ length)
}

/// Mask of the low `count` bytes, up to three.
#[inline(always)]
fn low_bytes(count: usize) -> u32 {
    (1u32 << (8 * (count & 3))) - 1
}
