//! The pieces of an Avro file that threads read, each from a block on, and what these threads have in common.

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

/// Bytes of a piece of a file, at the least, where several threads read it.
pub(super) const PIECE_BYTES: u64 = 4 << 20;

/// What the header of a file says.
pub(super) struct Header {
    pub(super) window: Window,
    pub(super) path: Arc<str>,
    pub(super) size: u64,
    pub(super) remote: bool,
    pub(super) record: Arc<RecordSchema>,
    pub(super) codec: Codec,
    pub(super) sync: [u8; SYNC_BYTES],
    /// Byte at which the first block begins.
    pub(super) first_block: u64,
    pub(super) limits: Limits,
}

/// Blocks that one thread reads.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    start: Start,
    /// The markers of its blocks begin in this range.
    pub(super) markers: Range<u64>,
}

/// Equal pieces of a range, each of which finds its first block by itself.
pub(super) fn pieces_by_bytes(range: &Range<u64>) -> Vec<Piece> {
    let length = range.end - range.start;
    let pieces = length / PIECE_BYTES;
    let cut = |piece: u64| range.start + (u128::from(length) * u128::from(piece) / u128::from(pieces)) as u64;
    let piece = |number| Piece { start: Start::Marker(cut(number)), markers: cut(number)..cut(number + 1) };
    (0..pieces).map(piece).collect()
}

/// What all threads that read a file have in common.
pub(super) struct Shared {
    pub(super) file: Header,
    pub(super) columns: Fields,
    pub(super) request: Request,
    /// The rows of the blocks that were passed, where all blocks of the file are.
    pub(super) counted: Option<Counted>,
}

/// Rows of all blocks of a file, counted by the threads that read its pieces, and the number that they must come to.
pub(super) struct Counted {
    expected: u64,
    found: AtomicU64,
    pieces: AtomicUsize,
}

impl Counted {
    /// None is counted yet.
    pub(super) fn new(expected: u64) -> Self {
        Self { expected, found: AtomicU64::new(0), pieces: AtomicUsize::new(0) }
    }

    /// Announces so many pieces.
    pub(super) fn expect(&self, pieces: usize) {
        self.pieces.store(pieces, Ordering::Release);
    }

    /// A piece has ended, in whose blocks there were so many rows; the last one says what is wrong with the sum.
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
    /// One piece; where rows are counted it begins with the first block of the file, whatever the range is.
    pub(super) fn whole(&self, counts: bool, range: &Range<u64>) -> Piece {
        // A range that begins within the header has the marker at its end.
        let start = match counts || range.start + SYNC_BYTES as u64 <= self.file.first_block {
            true => Start::Block(self.file.first_block, 0),
            false => Start::Marker(range.start),
        };
        Piece { start, markers: range.clone() }
    }

    pub(super) fn blocks(&self, piece: &Piece) -> Blocks {
        Blocks::new(self.file.window.clone(), self.file.sync, piece.start, piece.markers.end)
    }

    /// Pieces whose first rows are known, since all blocks before them were counted.
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

    /// Reads some leaves of the rows.
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
