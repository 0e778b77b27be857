//! The hash of `bucket`: murmur3, 32 bits, x86 variant, seed 0 ("Appendix B: 32-bit Hash Requirements").

/// Hashes `bytes`; the specification treats the hash as a signed number.
#[inline]
pub fn murmur3_32(bytes: &[u8]) -> u32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut hash = 0;
    for word in words {
        hash = absorb(hash, u32::from_le_bytes(*word));
    }
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash ^= scramble(word);
    }
    // The hash uses the length modulo 2^32.
    finish(hash ^ bytes.len() as u32)
}

/// Hashes the eight little-endian bytes of `value`: for `int`, `long`, `date`, `time` and all timestamps.
#[inline(always)]
pub fn hash_long(value: i64) -> u32 {
    let low = absorb(0, value as u32);
    let high = absorb(low, (value as u64 >> 32) as u32);
    finish(high ^ 8)
}

/// Hashes a double, or a float of the same value: all NaNs are equal, and so are both zeros. Appendix B defines it,
/// although partitions cannot use it.
pub fn hash_double(value: f64) -> u32 {
    let bits = if value.is_nan() {
        0x7ff8_0000_0000_0000
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    };
    hash_long(bits as i64)
}

/// Adds four bytes to the hash.
#[inline(always)]
pub(crate) fn absorb(hash: u32, word: u32) -> u32 {
    (hash ^ scramble(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[inline(always)]
pub(crate) fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[inline(always)]
pub(crate) fn finish(hash: u32) -> u32 {
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
