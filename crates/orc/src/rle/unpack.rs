//! Unpacks big-endian bit fields, with one function per width, so that all shifts are constants.

/// Fills `out` with fields of `width` bits (1 to 64) from the start of `packed`, which must contain them all. It is
/// faster if `packed` has more bytes after the fields, because whole words can then be loaded to the end.
pub(super) fn unpack(packed: &[u8], width: usize, out: &mut [i64]) {
    macro_rules! widths {
        ($($width:literal)*) => {
            match width {
                8 => bytes(packed, out),
                16 => whole::<2>(packed, out, |bytes| i64::from(u16::from_be_bytes(bytes))),
                32 => whole::<4>(packed, out, |bytes| i64::from(u32::from_be_bytes(bytes))),
                64 => whole::<8>(packed, out, i64::from_be_bytes),
                $($width => fields::<$width>(packed, out),)*
                _ => out.fill(0),
            }
        };
    }
    widths!(1 2 3 4 5 6 7 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 33 34 35 36 37 38 39 40
        41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
}

fn bytes(packed: &[u8], out: &mut [i64]) {
    for (slot, byte) in out.iter_mut().zip(packed) {
        *slot = i64::from(*byte);
    }
}

fn whole<const N: usize>(packed: &[u8], out: &mut [i64], read: impl Fn([u8; N]) -> i64) {
    for (slot, field) in out.iter_mut().zip(packed.as_chunks::<N>().0) {
        *slot = read(*field);
    }
}

/// Unpacks groups of eight fields, which take exactly `W` bytes. A field of at most 57 bits needs one load of eight
/// bytes, a wider one two.
fn fields<const W: usize>(packed: &[u8], out: &mut [i64]) {
    let mut at = 0;
    for group in out.chunks_mut(8) {
        // One group, plus the eight bytes that the last load may read beyond it; near the end these are zeros.
        if let (Some(block), 8) = (packed.get(at..at + W + 8), group.len()) {
            for (index, slot) in group.iter_mut().enumerate() {
                *slot = field::<W>(block, index * W) as i64;
            }
        } else {
            let mut block = [0u8; 72];
            let rest = packed.get(at..).unwrap_or_default();
            block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            for (index, slot) in group.iter_mut().enumerate() {
                *slot = field::<W>(&block, index * W) as i64;
            }
        }
        at += W;
    }
}

#[inline(always)]
fn field<const W: usize>(block: &[u8], bit: usize) -> u64 {
    let load = |at: usize| {
        block.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |word| u64::from_be_bytes(*word))
    };
    let (at, shift) = (bit / 8, bit % 8);
    let high = load(at) << shift >> (64 - W);
    if shift + W <= 64 {
        return high;
    }
    let missing = shift + W - 64;
    high | u64::from(block.get(at + 8).copied().unwrap_or_default()) >> (8 - missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation: one bit at a time.
    fn reference(packed: &[u8], width: usize, count: usize) -> Vec<i64> {
        let bit = |index: usize| u64::from(packed[index / 8] >> (7 - index % 8) & 1);
        (0..count).map(|value| (0..width).fold(0, |word, step| word << 1 | bit(value * width + step)) as i64).collect()
    }

    #[test]
    fn every_width_and_count_agrees_with_one_bit_at_a_time() {
        let noise: Vec<u8> =
            (0u64..700 * 8).map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 37) as u8).collect();
        for width in 1..=64usize {
            for count in [0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 511, 512] {
                let packed = &noise[..(width * count).div_ceil(8)];
                let mut out = vec![0; count];
                unpack(packed, width, &mut out);
                assert_eq!(out, reference(packed, width, count), "width {width}, {count} values");
            }
        }
    }
}
