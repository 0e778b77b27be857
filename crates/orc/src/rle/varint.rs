//! Base 128 varints and zigzag ("Base 128 Varint"), and the encoding of nanoseconds in SECONDARY.

/// Maximum bytes of a 128-bit varint.
const MAX_BYTES_128: usize = 19;

/// Decodes zigzag.
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Decodes zigzag of 128 bits.
#[inline]
pub fn unzigzag128(value: u128) -> i128 {
    (value >> 1) as i128 ^ -((value & 1) as i128)
}

/// Encodes zigzag: small magnitudes of either sign become small numbers.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Encodes zigzag of 128 bits.
#[inline]
pub fn zigzag128(value: i128) -> u128 {
    (value << 1 ^ value >> 127) as u128
}

/// Appends a varint.
#[inline]
pub fn write_varint64(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint of up to 128 bits.
#[inline]
pub fn write_varint128(mut value: u128, out: &mut Vec<u8>) {
    while value > u128::from(u64::MAX) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    write_varint64(value as u64, out);
}

/// Encodes nanoseconds below 10^9 for SECONDARY: two to eight trailing zeros are removed and counted in the low three
/// bits.
pub fn nanos_to_secondary(nanos: u32) -> u64 {
    if nanos == 0 || !nanos.is_multiple_of(100) {
        return u64::from(nanos) << 3;
    }
    let (mut rest, mut zeros) = (nanos / 100, 1);
    while rest.is_multiple_of(10) && zeros < 7 {
        rest /= 10;
        zeros += 1;
    }
    u64::from(rest) << 3 | zeros
}

/// Reads a 64-bit varint at the start of `bytes`, and its length; `None` if it is truncated or longer than ten bytes.
#[inline]
pub fn read_varint64(bytes: &[u8]) -> Option<(u64, usize)> {
    if let Some(found) = read_short_varint(bytes) {
        return Some(found);
    }
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (index * 7);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

/// Reads a varint of at most eight bytes with one load; `None` if it is longer, or `bytes` has fewer than eight bytes.
#[inline]
pub(crate) fn read_short_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    // The payload bits up to the first byte that ends a varint.
    let kept = word & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    Some((join_sevens(kept), (ends.trailing_zeros() / 8 + 1) as usize))
}

/// Reads a varint of up to 128 bits, and its length; `None` if it is truncated or longer than 19 bytes.
#[inline]
pub fn read_varint128(bytes: &[u8]) -> Option<(u128, usize)> {
    if let Some((value, length)) = read_short_varint(bytes) {
        return Some((u128::from(value), length));
    }
    let mut value = 0u128;
    for (index, &byte) in bytes.iter().take(MAX_BYTES_128).enumerate() {
        value |= u128::from(byte & 0x7f) << (index * 7);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

/// The top bits of eight bytes; a byte that ends a varint has this bit unset.
pub(super) const ENDS: u64 = 0x8080_8080_8080_8080;

/// Appends up to `count` varints, not zigzag-decoded, from the start of `bytes`; returns the number of bytes read. It
/// stops before a varint that is truncated or longer than eight bytes. It may stop earlier, but only after at least one
/// varint.
///
/// Most decimals are varints of one or two bytes: eight or four of these are decoded at once. Others are extracted from
/// a word that was loaded once. This is faster than a load per varint, which would have to wait for the length of the
/// varint before it.
pub(crate) fn read_short_varints(bytes: &[u8], count: usize, out: &mut Vec<u64>) -> usize {
    let until = out.len() + count;
    out.reserve(count);
    let mut rest = bytes;
    while let Some(chunk) = rest.first_chunk::<8>() {
        let left = until - out.len();
        let word = u64::from_le_bytes(*chunk);
        let ends = !word & ENDS;
        let used = match ends {
            _ if left == 0 => break,
            ENDS if left >= 8 => {
                out.extend(chunk.iter().map(|byte| u64::from(*byte)));
                8
            }
            0x8000_8000_8000_8000 if left >= 4 => {
                let joined = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
                out.extend([0, 16, 32, 48].map(|shift| joined >> shift & 0xffff));
                8
            }
            0 => break,
            _ => {
                let (mut ends, mut word, mut used) = (ends, word, 0);
                for _ in 0..left {
                    let Some(bits) = ends.trailing_zeros().checked_add(1).filter(|bits| *bits <= 64) else { break };
                    let kept = if bits == 64 { word } else { word & ((1 << bits) - 1) };
                    out.push(join_sevens(kept & !ENDS));
                    used += bits as usize / 8;
                    (ends, word) = (ends.checked_shr(bits).unwrap_or(0), word.checked_shr(bits).unwrap_or(0));
                }
                used
            }
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    bytes.len() - rest.len()
}

/// Joins eight groups of seven bits, each in the low bits of a byte.
#[inline]
fn join_sevens(groups: u64) -> u64 {
    let pairs = (groups & 0x007f_007f_007f_007f) | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_paths_agree() {
        for value in [0u128, 1, 127, 128, 16_383, 16_384, 1 << 34, (1 << 56) - 1, 1 << 56, u64::MAX.into(), u128::MAX] {
            let mut bytes = Vec::new();
            let mut rest = value;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            let length = bytes.len();
            assert_eq!(read_varint128(&bytes), Some((value, length)));
            assert_eq!(read_varint128(&bytes[..length - 1]), None);
            bytes.extend([0xff; 8]);
            assert_eq!(read_varint128(&bytes), Some((value, length)));
        }
        assert_eq!(read_varint128(&[0xff; 30]), None);
    }

    #[test]
    fn many_at_once_are_those_read_one_by_one() {
        let mut state = 9u64;
        for round in 0..400 {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for _ in 0..50 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let bits = [7, 14, 14 - state as u32 % 2 * 7, 1 + state as u32 % 56][round % 4];
                let mut value = (state >> 8) & ((1 << bits) - 1);
                expected.push(value);
                while value >= 0x80 {
                    bytes.push(value as u8 | 0x80);
                    value >>= 7;
                }
                bytes.push(value as u8);
            }
            let count = round % 60;
            bytes.extend([0x80; 8]);
            let mut out = vec![1];
            let used = read_short_varints(&bytes, count, &mut out);
            assert_eq!(out[1..], expected[..count.min(50)], "round {round}");
            let mut rest = &bytes[..];
            (0..count.min(50)).for_each(|_| rest = &rest[read_varint64(rest).unwrap().1..]);
            assert_eq!(used, bytes.len() - rest.len());
        }
    }

    #[test]
    fn endless_varints_are_none() {
        assert_eq!(read_short_varints(&[0xff; 30], 9, &mut Vec::new()), 0);
        assert_eq!(read_varint64(&[0x80; 10]), None);
    }
}
