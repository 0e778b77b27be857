//! Cuts files into pieces and packs pieces into tasks. The sizes come from metadata and may have any value.
//!
//! The fuzz target `plan_sizes` compiles this file alone, so it uses only the standard library.

use std::collections::VecDeque;

/// Maximum pieces of one plan; with the default split size, reached by more than 200 petabytes.
pub(super) const MOST_PIECES: usize = 1 << 21;

/// A data file: its size, and the split offsets in its manifest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes<'a> {
    /// Bytes of the file.
    pub size: i64,
    /// Offsets at which parts begin.
    pub offsets: Option<&'a [i64]>,
}

impl<'a> Sizes<'a> {
    /// The split offsets, if they ascend within the file.
    pub(super) fn sound_offsets(self) -> Option<&'a [i64]> {
        let offsets = self.offsets?;
        let ascending = offsets.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        let inside =
            offsets.first().is_some_and(|first| *first >= 0) && offsets.last().is_some_and(|last| *last < self.size);
        (ascending && inside).then_some(offsets)
    }

    /// The number of pieces, computed before cutting.
    pub(super) fn count(self, split_size: i64) -> usize {
        match self.sound_offsets() {
            Some(offsets) => offsets.len(),
            None => {
                let whole = self.size.max(0).checked_div(split_size).unwrap_or(i64::MAX);
                usize::try_from(whole).unwrap_or(usize::MAX).saturating_add(1)
            }
        }
    }

    /// Cuts the file at its split offsets if they are valid, otherwise into pieces of the split size; calls `piece`
    /// with start and length.
    pub(super) fn cut(self, split_size: i64, mut piece: impl FnMut(i64, i64)) {
        if let Some(offsets) = self.sound_offsets() {
            let ends = offsets.iter().skip(1).copied().chain([self.size]);
            offsets.iter().zip(ends).for_each(|(start, end)| piece(*start, end - start));
            return;
        }
        let mut start = 0;
        while start < self.size {
            let length = split_size.min(self.size - start);
            piece(start, length);
            start += length;
        }
    }
}

struct Bin<T> {
    weight: i64,
    pieces: Vec<T>,
}

/// First-fit packing over a limited number of open bins; when there is one too many, the heaviest is closed.
pub(super) struct Packer<T> {
    split_size: i64,
    lookback: usize,
    open: VecDeque<Bin<T>>,
    closed: Vec<Vec<T>>,
}

impl<T> Packer<T> {
    /// Bins of this weight, at most `lookback` open.
    pub(super) fn new(split_size: i64, lookback: usize) -> Self {
        Self { split_size, lookback, open: VecDeque::new(), closed: Vec::new() }
    }

    /// Packs a piece.
    pub(super) fn add(&mut self, piece: T, weight: i64) {
        let room = self.split_size.saturating_sub(weight);
        if let Some(bin) = self.open.iter_mut().find(|bin| bin.weight <= room) {
            bin.weight = bin.weight.saturating_add(weight);
            bin.pieces.push(piece);
            return;
        }
        self.open.push_back(Bin { weight, pieces: vec![piece] });
        if self.open.len() > self.lookback {
            let heaviest = self.open.iter().map(|bin| bin.weight).max().unwrap_or_default();
            let first = self.open.iter().position(|bin| bin.weight == heaviest);
            let bin = first.and_then(|place| self.open.remove(place));
            self.closed.extend(bin.map(|bin| bin.pieces));
        }
    }

    /// The tasks, in the order in which they were closed.
    pub(super) fn finish(mut self) -> Vec<Vec<T>> {
        self.closed.extend(self.open.into_iter().map(|bin| bin.pieces));
        self.closed
    }
}
