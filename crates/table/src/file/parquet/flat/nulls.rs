//! Puts the decoded values of a column, stored without gaps, at the rows that are not null.
//!
//! All functions take 64 rows of the null buffer at a time. A branch for each row would be mispredicted half of the
//! time in a column with many nulls, which took three times as long as the parquet crate's way.

use arrow_buffer::NullBuffer;

const WORD: usize = u64::BITS as usize;

/// The null buffer in words of 64 rows, the last one padded with nulls.
fn words(nulls: &NullBuffer) -> impl Iterator<Item = u64> {
    let chunks = nulls.inner().bit_chunks();
    let last = (chunks.remainder_len() > 0).then(|| chunks.remainder_bits());
    chunks.iter().chain(last)
}

/// The number of rows with a value in a word.
fn present(word: u64) -> usize {
    word.count_ones() as usize
}

/// Numbers, one for each row that is not null; other rows get the default.
pub(super) fn numbers<T: Copy + Default>(values: &[T], nulls: &NullBuffer) -> Vec<T> {
    let mut rows = Vec::with_capacity(nulls.len().next_multiple_of(WORD));
    let mut rest = values;
    for mut word in words(nulls) {
        let (next, behind) = rest.split_at(present(word).min(rest.len()));
        rest = behind;
        if word == u64::MAX {
            rows.extend_from_slice(next);
            continue;
        }
        rows.resize(rows.len() + WORD, T::default());
        let Some(room) = rows.last_chunk_mut::<WORD>() else { continue };
        for value in next {
            if let Some(row) = room.get_mut(word.trailing_zeros() as usize) {
                *row = *value;
            }
            word &= word.wrapping_sub(1);
        }
    }
    rows.truncate(nulls.len());
    rows
}

/// Bits, one for each row that is not null, in words of 64; other rows get 0.
pub(super) fn bits(values: &[u64], nulls: &NullBuffer) -> Vec<u64> {
    let mut at = 0;
    let spread = |word: u64| {
        let found = bits_from(values, at);
        at += present(word);
        match word {
            u64::MAX => found,
            word => deposit(found, word),
        }
    };
    words(nulls).map(spread).collect()
}

/// The 64 bits from any bit on; bits after the end are 0.
fn bits_from(words: &[u64], at: usize) -> u64 {
    let word = |place: usize| words.get(place).copied().unwrap_or(0);
    match at % WORD {
        0 => word(at / WORD),
        shift => word(at / WORD) >> shift | word(at / WORD + 1) << (WORD - shift),
    }
}

/// Moves the lowest bits to the places that are set in a mask.
fn deposit(mut bits: u64, mut mask: u64) -> u64 {
    let mut found = 0;
    while mask != 0 {
        let lowest = mask & mask.wrapping_neg();
        found |= lowest & (bits & 1).wrapping_neg();
        bits >>= 1;
        mask ^= lowest;
    }
    found
}

/// Offsets of values, each row's start and the last one's end; null rows are empty. `ends` has the start of the first
/// value and the end of each.
pub(super) fn offsets(ends: &[i32], nulls: &NullBuffer) -> Vec<i32> {
    let mut rows = Vec::with_capacity(nulls.len().next_multiple_of(WORD) + 1);
    rows.extend(ends.first());
    let mut rest = ends;
    for word in words(nulls) {
        // The values of a row and of those before it in the word.
        let until = |row: usize| present(word << (WORD - 1 - row));
        match (word, rest.get(1..=WORD), rest.first()) {
            (u64::MAX, Some(next), _) => rows.extend_from_slice(next),
            (0, _, Some(last)) => rows.extend([*last; WORD]),
            _ => match rest.first_chunk::<{ WORD + 1 }>() {
                Some(next) => {
                    let mut at = 0;
                    rows.extend((0..WORD).map(|row| {
                        at += (word >> row & 1) as usize;
                        next.get(at).copied().unwrap_or_default()
                    }));
                }
                None => rows.extend((0..WORD).filter_map(|row| rest.get(until(row)).or(rest.last()).copied())),
            },
        }
        rest = rest.get(present(word)..).unwrap_or_default();
    }
    rows.truncate(nulls.len() + 1);
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Nulls in runs and scattered, of any length, and not from the first bit of their buffer.
    fn nulls() -> impl Strategy<Value = NullBuffer> {
        let run = prop_oneof![
            2 => (any::<bool>(), 1..200_usize).prop_map(|(bit, count)| vec![bit; count]),
            2 => prop::collection::vec(any::<bool>(), 0..150),
            1 => prop::collection::vec(prop::bool::weighted(0.02), 0..150),
        ];
        (prop::collection::vec(run, 0..6), 0..70_usize).prop_map(|(runs, skipped)| {
            let rows = runs.concat();
            let skipped = skipped.min(rows.len());
            let count = rows.len() - skipped;
            NullBuffer::from(rows).slice(skipped, count)
        })
    }

    proptest! {
        #[test]
        fn values_are_at_the_rows_that_are_not_null(nulls in nulls(), seed in any::<u64>()) {
            let count = nulls.len() - nulls.null_count();
            let values: Vec<u64> = (1..=count as u64).map(|number| number.wrapping_mul(seed | 1)).collect();
            let mut next = values.iter().copied();
            let expected: Vec<u64> = nulls.iter().map(|is_present| if is_present { next.next().unwrap() } else { 0 }).collect();
            prop_assert_eq!(numbers(&values, &nulls), &*expected);

            let is_odd = |number: &u64| number & 1 << 40 != 0;
            let packed = |numbers: &[u64]| -> Vec<u64> {
                let word = |some: &[u64]| some.iter().rev().fold(0, |word, number| word << 1 | u64::from(is_odd(number)));
                numbers.chunks(WORD).map(word).collect()
            };
            prop_assert_eq!(bits(&packed(&values), &nulls), packed(&expected));

            let ends: Vec<i32> = values.iter().scan(0, |end, number| {
                *end += (number % 5) as i32;
                Some(*end)
            }).collect();
            let ends = [&[0], &*ends].concat();
            let mut at = 0;
            let rows: Vec<i32> = nulls.iter().map(|is_present| { at += usize::from(is_present); ends[at] }).collect();
            prop_assert_eq!(offsets(&ends, &nulls), [&[0], &*rows].concat());
        }
    }
}
