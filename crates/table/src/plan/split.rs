//! Files to tasks: large files are cut at their split offsets, small pieces are packed together, as Java's `planTasks` does.

use std::collections::VecDeque;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{Property, SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_SIZE};

use super::{Plan, PlannedManifest};
use crate::error::{Error, Result};

/// How files are cut and packed (`read.split.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// Weight that a task should have, in bytes.
    pub split_size: i64,
    /// Tasks that are open for more pieces at a time.
    pub lookback: usize,
    /// Least weight of a piece, in bytes: what opening a file costs.
    pub open_file_cost: i64,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { split_size: 128 << 20, lookback: 10, open_file_cost: 4 << 20 }
    }
}

impl SplitOptions {
    /// The options that the table's properties set.
    pub fn of_table(metadata: &TableMetadata) -> Self {
        let number = |property: Property<i64>| property.read(metadata.properties()).ok();
        let default = Self::default();
        Self {
            split_size: number(SPLIT_SIZE).filter(|size| *size > 0).unwrap_or(default.split_size),
            lookback: number(SPLIT_LOOKBACK)
                .and_then(|count| usize::try_from(count).ok())
                .filter(|count| *count > 0)
                .unwrap_or(default.lookback),
            open_file_cost: number(SPLIT_OPEN_FILE_COST).filter(|cost| *cost >= 0).unwrap_or(default.open_file_cost),
        }
    }
}

/// A part of a data file: what begins within these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Place of the manifest in the plan.
    pub manifest: usize,
    /// Place of the file in the manifest.
    pub row: usize,
    /// First byte.
    pub start: i64,
    /// Bytes.
    pub length: i64,
}

impl Plan {
    /// Cuts and packs the files of the plan.
    pub fn tasks(&self, options: &SplitOptions) -> Result<Vec<Vec<Piece>>> {
        if options.split_size <= 0 || options.lookback == 0 || options.open_file_cost < 0 {
            return Err(Error::invalid(format!(
                "cannot split into tasks of {} bytes, of {} at a time, with {} bytes for opening a file: all must be positive",
                options.split_size, options.lookback, options.open_file_cost
            )));
        }
        let mut packer = Packer { options, open: VecDeque::new(), closed: Vec::new() };
        let mut pieces = Vec::new();
        for (place, manifest) in self.manifests.iter().enumerate() {
            for row in 0..manifest.entries.len() {
                let (count, bytes) = self.deletes_of(manifest, row);
                let least = options.open_file_cost.saturating_mul(1 + count);
                pieces.clear();
                cut(manifest, row, options.split_size, |start, length| {
                    pieces.push(Piece { manifest: place, row, start, length });
                });
                for piece in &pieces {
                    packer.add(*piece, piece.length.saturating_add(bytes).max(least));
                }
            }
        }
        Ok(packer.finish())
    }

    /// Number and bytes of the deletes of a file.
    fn deletes_of(&self, manifest: &PlannedManifest, row: usize) -> (i64, i64) {
        let places = manifest.deletes.as_ref().map(|links| links.of(row)).unwrap_or_default();
        let sizes = places.iter().map(|place| self.deletes.content_size(*place));
        let bytes = sizes.fold(0i64, |sum, size| sum.saturating_add(size.unwrap_or(0)));
        (i64::try_from(places.len()).unwrap_or(i64::MAX - 1), bytes)
    }
}

/// Cuts a file at its split offsets if it has sound ones, else into pieces of the split size.
fn cut(manifest: &PlannedManifest, row: usize, split_size: i64, mut piece: impl FnMut(i64, i64)) {
    let size = manifest.entries.file_size_in_bytes.value(row);
    let offsets = &manifest.entries.split_offsets;
    if offsets.is_valid(row) {
        let list = offsets.value(row);
        let offsets = list.as_primitive::<Int64Type>().values();
        let ascending = offsets.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        let inside =
            offsets.first().is_some_and(|first| *first >= 0) && offsets.last().is_some_and(|last| *last < size);
        if ascending && inside {
            let ends = offsets.iter().skip(1).copied().chain([size]);
            offsets.iter().zip(ends).for_each(|(start, end)| piece(*start, end - start));
            return;
        }
    }
    let mut start = 0;
    while start < size {
        let length = split_size.min(size - start);
        piece(start, length);
        start += length;
    }
}

struct Bin {
    weight: i64,
    pieces: Vec<Piece>,
}

/// First fit among the open bins; when one too many is open, the heaviest is closed.
struct Packer<'a> {
    options: &'a SplitOptions,
    open: VecDeque<Bin>,
    closed: Vec<Vec<Piece>>,
}

impl Packer<'_> {
    fn add(&mut self, piece: Piece, weight: i64) {
        let room = self.options.split_size.saturating_sub(weight);
        if let Some(bin) = self.open.iter_mut().find(|bin| bin.weight <= room) {
            bin.weight = bin.weight.saturating_add(weight);
            bin.pieces.push(piece);
            return;
        }
        self.open.push_back(Bin { weight, pieces: vec![piece] });
        if self.open.len() > self.options.lookback {
            let heaviest = self.open.iter().map(|bin| bin.weight).max().unwrap_or_default();
            let first = self.open.iter().position(|bin| bin.weight == heaviest);
            let bin = first.and_then(|place| self.open.remove(place));
            self.closed.extend(bin.map(|bin| merged(bin.pieces)));
        }
    }

    fn finish(mut self) -> Vec<Vec<Piece>> {
        self.closed.extend(self.open.into_iter().map(|bin| merged(bin.pieces)));
        self.closed
    }
}

/// Neighbouring pieces of one file become one.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match out.last_mut() {
            Some(last)
                if (last.manifest, last.row) == (piece.manifest, piece.row)
                    && last.start + last.length == piece.start =>
            {
                last.length += piece.length;
            }
            _ => out.push(piece),
        }
    }
    out
}
