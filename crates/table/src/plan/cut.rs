//! Files are cut into pieces, and pieces are packed into tasks: arithmetic on sizes that metadata name, whatever they are.
//!
//! The fuzz target `plan_sizes` runs this file by itself, so that nothing but the standard library is used here.

use std::collections::VecDeque;

/// Pieces of one plan, at the most: with the default size of a split those of more than 200 petabytes.
pub(super) const MOST_PIECES: usize = 1 << 21;

/// A data file: its bytes, and where its manifest says that it may be cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes<'a> {
    /// Bytes of the file.
    pub size: i64,
    /// Offsets at which parts begin.
    pub offsets: Option<&'a [i64]>,
}

impl<'a> Sizes<'a> {
    /// The split offsets, where they ascend within the file.
    pub(super) fn sound_offsets(self) -> Option<&'a [i64]> {
        let offsets = self.offsets?;
        let ascending = offsets.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        let inside =
            offsets.first().is_some_and(|first| *first >= 0) && offsets.last().is_some_and(|last| *last < self.size);
        (ascending && inside).then_some(offsets)
    }

    /// How many pieces there are; known before they are made.
    pub(super) fn count(self, split_size: i64) -> usize {
        match self.sound_offsets() {
            Some(offsets) => offsets.len(),
            None => {
                let whole = self.size.max(0).checked_div(split_size).unwrap_or(i64::MAX);
                usize::try_from(whole).unwrap_or(usize::MAX).saturating_add(1)
            }
        }
    }

    /// Cuts the file at its split offsets if it has sound ones, else into pieces of the split size: start and length.
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

/// First fit among the open bins; when one too many is open, the heaviest is closed.
pub(super) struct Packer<T> {
    split_size: i64,
    lookback: usize,
    open: VecDeque<Bin<T>>,
    closed: Vec<Vec<T>>,
}

impl<T> Packer<T> {
    /// Bins of this weight, of which so many are open at a time.
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
