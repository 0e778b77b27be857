//! Packs big-endian bit fields, with one function per width, so that all shifts are constants.

/// Appends fields of `width` bits, which must be a width of the table; higher bits are dropped. The last byte is padded
/// with zeros.
pub(super) fn pack(values: &[u64], width: usize, out: &mut Vec<u8>) {
    macro_rules! widths {
        ($($width:literal)*) => {
            match width {
                8 => whole(values, out, |value| [value as u8]),
                16 => whole(values, out, |value| (value as u16).to_be_bytes()),
                32 => whole(values, out, |value| (value as u32).to_be_bytes()),
                64 => whole(values, out, u64::to_be_bytes),
                $($width => fields::<$width>(values, out),)*
                _ => {}
            }
        };
    }
    widths!(1 2 3 4 5 6 7 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 26 28 30 40 48 56);
}

fn whole<const N: usize>(values: &[u64], out: &mut Vec<u8>, write: impl Fn(u64) -> [u8; N]) {
    let start = out.len();
    out.resize(start + values.len() * N, 0);
    let (room, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<N>();
    for (slot, value) in room.iter_mut().zip(values) {
        *slot = write(*value);
    }
}

/// Packs groups of eight fields, which take exactly `W` bytes. The fields are joined in words; the next group
/// overwrites the surplus bytes of the last word.
fn fields<const W: usize>(values: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    let length = (values.len() * W).div_ceil(8);
    out.resize(start + length + 72, 0);
    let mut room = out.get_mut(start..).unwrap_or_default();
    let (groups, rest) = values.as_chunks::<8>();
    for group in groups {
        group_of_eight::<W>(group, room);
        room = std::mem::take(&mut room).get_mut(W..).unwrap_or_default();
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(slot, value)| *slot = *value);
        group_of_eight::<W>(&last, room);
    }
    out.truncate(start + length);
}

#[inline(always)]
fn group_of_eight<const W: usize>(group: &[u64; 8], room: &mut [u8]) {
    let mut words = [0u64; 8];
    for (index, value) in group.iter().enumerate() {
        let value = value & (u64::MAX >> (64 - W));
        let (word, end) = (index * W / 64, index * W % 64 + W);
        // `W` is a constant, so the compiler knows the words and removes the bounds checks.
        match words.get_mut(word..) {
            Some([own, ..]) if end <= 64 => *own |= value << (64 - end),
            Some([own, next, ..]) => {
                *own |= value >> (end - 64);
                *next |= value << (128 - end);
            }
            _ => {}
        }
    }
    let (room, _) = room.as_chunks_mut::<8>();
    for (slot, word) in room.iter_mut().zip(words).take(W.div_ceil(8)) {
        *slot = word.to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rle::WIDTHS;
    use crate::rle::unpack::unpack;

    #[test]
    fn every_width_and_count_is_unpacked_again() {
        let noise: Vec<u64> = (1u64..513).map(|index| index.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        for width in WIDTHS.map(usize::from) {
            for count in [0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 511, 512] {
                let mut packed = vec![0xff; 3];
                pack(&noise[..count], width, &mut packed);
                assert_eq!(packed.len(), 3 + (width * count).div_ceil(8), "width {width}, {count} values");
                let mut values = vec![0; count];
                unpack(&packed[3..], width, &mut values);
                let expected: Vec<i64> =
                    noise[..count].iter().map(|value| (value & (u64::MAX >> (64 - width))) as i64).collect();
                assert_eq!(values, expected, "width {width}, {count} values");
                let unused = packed.len() * 8 - 24 - width * count;
                assert_eq!(packed.last().map_or(0, |last| last & ((1 << unused) - 1)) & u8::from(count > 0), 0);
            }
        }
    }
}
