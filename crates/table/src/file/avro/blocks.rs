//! The blocks of an Avro file, found without decompressing them.
//!
//! A block belongs to the byte range in which the sync marker before it begins, as in the Java library: over any cut of a file each
//! block is in one part.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use icefield_format::avro::container::SYNC_BYTES;
use icefield_format::avro::cursor::{Cursor, Fault};

use crate::error::{Error, Result};
use crate::storage::Storage;

/// Bytes fetched at once, at the least.
const CHUNK: u64 = 1 << 20;

/// Bytes of the two numbers before a block, at the most.
const HEAD_BYTES: u64 = 20;

const SYNC: u64 = SYNC_BYTES as u64;

/// A file of the storage, of which some bytes are held.
#[derive(Debug, Clone)]
pub(super) struct Window {
    storage: Storage,
    path: Arc<str>,
    size: u64,
    start: u64,
    held: Bytes,
}

impl Window {
    /// A file of which nothing is held.
    pub(super) fn new(storage: &Storage, path: Arc<str>, size: u64) -> Self {
        Self { storage: storage.clone(), path, size, start: 0, held: Bytes::new() }
    }

    /// The bytes of a range, or as many as the file has.
    pub(super) fn bytes(&mut self, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(self.size);
        let start = range.start.min(end);
        if start < self.start || end > self.start + self.held.len() as u64 {
            let until = end.max(start.saturating_add(CHUNK)).min(self.size);
            self.held = self.storage.range(&self.path, start..until)?;
            self.start = start;
        }
        let place = |at: u64| usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(self.held.slice(place(start)..place(end)))
    }
}

/// A block, still compressed.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Number of its first row in the file, where rows are counted.
    pub first_row: u64,
    /// Its rows; nothing may be allocated from this number.
    pub rows: u64,
    /// Bytes of the file that hold them.
    pub data: Range<u64>,
}

/// Where to begin with the blocks of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// At the first sync marker from this byte on; rows are not counted.
    Marker(u64),
    /// At a block that begins at this byte with a row of this number.
    Block(u64, u64),
}

/// The blocks of a part of a file, in order.
#[derive(Debug)]
pub(super) struct Blocks {
    window: Window,
    sync: [u8; SYNC_BYTES],
    /// Byte at which the next block begins; `None` until its marker was found.
    at: Option<u64>,
    search: u64,
    row: u64,
    /// Markers that begin at this byte or behind it belong to another part.
    end: u64,
}

impl Blocks {
    /// The blocks whose sync markers begin before `end`.
    pub(super) fn new(window: Window, sync: [u8; SYNC_BYTES], start: Start, end: u64) -> Self {
        let (at, search, row) = match start {
            Start::Marker(from) => (None, from, 0),
            Start::Block(at, row) => (Some(at), at, row),
        };
        Self { window, sync, at, search, row, end }
    }

    /// The compressed rows of a block.
    pub(super) fn data(&mut self, block: &Block) -> Result<Bytes> {
        self.window.bytes(block.data.clone())
    }

    /// The next block, and the byte at which the marker before it begins.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Block)>> {
        let at = match self.at {
            Some(at) => at,
            None => match self.find_marker()? {
                Some(marker) => marker + SYNC,
                None => return Ok(None),
            },
        };
        self.at = Some(at);
        if at >= self.window.size || at.saturating_sub(SYNC) >= self.end {
            return Ok(None);
        }
        let (rows, data) = self.head(at)?;
        let marker = self.window.bytes(data.end..data.end.saturating_add(SYNC))?;
        if *marker != self.sync {
            let message = if (marker.len() as u64) < SYNC {
                "the file ends within the sync marker after a block"
            } else {
                "the sync marker after a block does not match"
            };
            return Err(self.wrong(data.end, message));
        }
        let first_row = self.row;
        self.row = first_row.checked_add(rows).ok_or_else(|| self.wrong(at, "the rows of its blocks are too many"))?;
        self.at = Some(data.end + SYNC);
        Ok(Some((at.saturating_sub(SYNC), Block { first_row, rows, data })))
    }

    /// Rows and data of the block that begins at a byte.
    fn head(&mut self, at: u64) -> Result<(u64, Range<u64>)> {
        let bytes = self.window.bytes(at..at.saturating_add(HEAD_BYTES))?;
        let mut cursor = Cursor::new(&bytes);
        let mut number = || {
            let place = at + (bytes.len() - cursor.rest().len()) as u64;
            cursor.length().map(|number| (number, place)).map_err(|fault| (fault, place))
        };
        let read = number().and_then(|(rows, _)| number().map(|(size, place)| (rows, size, place)));
        let (rows, size, place) = read.map_err(|(fault, place)| self.wrong(place, fault.message()))?;
        let start = at + (bytes.len() - cursor.rest().len()) as u64;
        let end = start.checked_add(size).filter(|end| *end <= self.window.size);
        let end = end.ok_or_else(|| self.wrong(place, Fault::TooLong.message()))?;
        Ok((rows, start..end))
    }

    /// The first marker from where the search begins, if it belongs to this part.
    fn find_marker(&mut self) -> Result<Option<u64>> {
        let mut from = self.search;
        while from < self.end && from < self.window.size {
            let bytes = self.window.bytes(from..from.saturating_add(CHUNK))?;
            let found = bytes.windows(SYNC_BYTES).position(|window| *window == self.sync);
            if let Some(found) = found {
                let marker = from + found as u64;
                return Ok((marker < self.end).then_some(marker));
            }
            // The last bytes may be the first ones of a marker.
            from += (bytes.len() as u64).saturating_sub(SYNC - 1).max(1);
        }
        Ok(None)
    }

    fn wrong(&self, at: u64, message: &str) -> Error {
        Error::corrupt_file(&*self.window.path, format!("Avro block at byte {at}: {message}"))
    }
}
