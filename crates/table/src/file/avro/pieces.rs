//! Pieces of an Avro file for several threads, each starting at a block, and their shared state.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow_schema::Fields;
use icefield_format::Limits;
use icefield_format::avro::container::SYNC_BYTES;
use icefield_format::avro::{Codec, RecordSchema};

use super::blocks::{Blocks, Start, Window};
use super::decode::Decoder;
use crate::error::{Error, Result};
use crate::file::{Request, other_rows};

/// Minimum bytes of a piece when several threads read a file.
pub(super) const PIECE_BYTES: u64 = 4 << 20;

/// The header of a file.
pub(super) struct Header {
    pub(super) window: Window,
    pub(super) path: Arc<str>,
    pub(super) size: u64,
    pub(super) remote: bool,
    pub(super) record: Arc<RecordSchema>,
    pub(super) codec: Codec,
    pub(super) sync: [u8; SYNC_BYTES],
    /// Offset of the first block.
    pub(super) first_block: u64,
    pub(super) limits: Limits,
}

/// Blocks that one thread reads.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    start: Start,
    /// The range in which the markers of its blocks begin.
    pub(super) markers: Range<u64>,
}

/// Equal pieces of a range; each finds its first block itself.
pub(super) fn pieces_by_bytes(range: &Range<u64>) -> Vec<Piece> {
    let length = range.end - range.start;
    let pieces = length / PIECE_BYTES;
    let cut = |piece: u64| range.start + (u128::from(length) * u128::from(piece) / u128::from(pieces)) as u64;
    let piece = |number| Piece { start: Start::Marker(cut(number)), markers: cut(number)..cut(number + 1) };
    (0..pieces).map(piece).collect()
}

/// Shared by all threads that read a file.
pub(super) struct Shared {
    pub(super) file: Header,
    pub(super) columns: Fields,
    pub(super) request: Request,
    /// Counts the rows of all blocks, if all blocks of the file are read.
    pub(super) counted: Option<Counted>,
}

/// Rows of all blocks of a file, counted by the threads that read its pieces, and the expected number.
pub(super) struct Counted {
    expected: u64,
    found: AtomicU64,
    pieces: AtomicUsize,
}

impl Counted {
    /// Nothing counted yet.
    pub(super) fn new(expected: u64) -> Self {
        Self { expected, found: AtomicU64::new(0), pieces: AtomicUsize::new(0) }
    }

    /// Registers pieces.
    pub(super) fn expect(&self, pieces: usize) {
        self.pieces.store(pieces, Ordering::Release);
    }

    /// Ends a piece whose blocks had this many rows; the last piece returns an error if the sum is wrong.
    pub(super) fn end(&self, rows: u64, path: &str) -> Result<()> {
        let before = self.found.fetch_add(rows, Ordering::AcqRel);
        let is_last = self.pieces.fetch_sub(1, Ordering::AcqRel) == 1;
        match before.saturating_add(rows) {
            found if is_last && found != self.expected => Err(other_rows(path, found, self.expected)),
            _ => Ok(()),
        }
    }
}

impl Shared {
    /// A single piece; if rows are counted it begins with the file's first block, whatever the range.
    pub(super) fn whole(&self, counts: bool, range: &Range<u64>) -> Piece {
        // If a range begins inside the header, the marker is at the header's end.
        let start = match counts || range.start + SYNC_BYTES as u64 <= self.file.first_block {
            true => Start::Block(self.file.first_block, 0),
            false => Start::Marker(range.start),
        };
        Piece { start, markers: range.clone() }
    }

    pub(super) fn blocks(&self, piece: &Piece) -> Blocks {
        Blocks::new(self.file.window.clone(), self.file.sync, piece.start, piece.markers.end)
    }

    /// Pieces with known row numbers, from counting all earlier blocks.
    pub(super) fn pieces_by_blocks(&self, range: &Range<u64>) -> Result<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut blocks = self.blocks(&self.whole(true, range));
        while let Some((marker, block)) = blocks.next()? {
            if marker >= range.start {
                let full = pieces.last().is_none_or(|last| marker - last.markers.start >= PIECE_BYTES);
                if full {
                    pieces.iter_mut().last().into_iter().for_each(|last| last.markers.end = marker);
                    let start = Start::Block(marker + SYNC_BYTES as u64, block.first_row);
                    pieces.push(Piece { start, markers: marker..range.end });
                }
            }
        }
        Ok(pieces)
    }

    /// A decoder for some leaves.
    pub(super) fn decoder(&self, leaves: &[usize]) -> Result<Decoder> {
        let path = &*self.file.path;
        let Header { record, limits, .. } = &self.file;
        let made = Decoder::new(record, &self.columns, leaves, self.request.batch_rows, limits);
        made.map_err(|error| match error {
            Error::Invalid(message) => Error::corrupt_file(path, message),
            Error::Unsupported(message) => Error::unsupported(format!("{path}: {message}")),
            other => other,
        })
    }
}
