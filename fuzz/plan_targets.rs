//! What the fuzz target of planning does with its input: sizes and offsets of any value are cut and packed.
//!
//! The fuzz target calls this, and so does `crates/table/tests/fuzz_corpus.rs`, which runs it over the stored corpus and over
//! mutations of it in the ordinary tests.

#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "../crates/table/src/plan/tasks/cut.rs"]
mod cut;

use cut::{MOST_PIECES, Packer, Sizes};

/// Takes any bytes; it may refuse them, it may not panic.
pub type Target = fn(&[u8]);

/// Every target; the corpus of each is `corpus/NAME`.
#[allow(dead_code)]
pub const ALL: &[(&str, Target)] = &[("plan_sizes", plan_sizes)];

/// Enough pieces to see what becomes of them.
const ENOUGH: usize = 10_000;

/// Numbers of eight bytes: size of a split, bins that are open, least weight; then files, each with its size and its offsets.
pub fn plan_sizes(data: &[u8]) {
    let mut words = data.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().expect("eight bytes")));
    let (Some(split_size), Some(lookback), Some(least)) = (words.next(), words.next(), words.next()) else { return };
    if split_size <= 0 {
        return;
    }
    let mut packer = Packer::new(split_size, 1 + lookback.unsigned_abs() as usize % 20);
    let (mut total, mut made) = (0usize, 0usize);
    while let Some(size) = words.next() {
        let count = words.next().map_or(0, |count| count.unsigned_abs() as usize % 5);
        let offsets: Vec<i64> = words.by_ref().take(count).collect();
        let sizes = Sizes { size, offsets: (count > 0).then_some(&offsets) };
        total = total.saturating_add(sizes.count(split_size));
        if total > MOST_PIECES.min(ENOUGH) {
            return;
        }
        let mut next = sizes.sound_offsets().map_or(0, |offsets| offsets[0]);
        sizes.cut(split_size, |start, length| {
            assert_eq!(start, next, "pieces follow each other");
            assert!(length > 0);
            next = start + length;
            packer.add((start, length), length.saturating_add(least).max(least));
            made += 1;
        });
        assert!(size <= 0 || next == size, "the last piece ends with the file");
        assert!(made <= total, "no more pieces than were counted");
    }
    let packed: usize = packer.finish().iter().map(Vec::len).sum();
    assert_eq!(packed, made, "every piece is in one task");
}
