//! Finds the blocks of an Avro file without decompressing them.
//!
//! A block belongs to the byte range in which the sync marker before it begins, as in the Java library, so however a
//! file is cut, each block is in exactly one part.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use icefield_format::avro::container::SYNC_BYTES;
use icefield_format::avro::cursor::{Cursor, Fault};

use crate::error::{Error, Result};
use crate::storage::Storage;

/// Minimum bytes fetched at once.
const CHUNK: u64 = 1 << 20;

/// Maximum bytes of the two numbers before a block.
const HEAD_BYTES: u64 = 20;

const SYNC: u64 = SYNC_BYTES as u64;

/// A file in the storage with some buffered bytes.
#[derive(Debug, Clone)]
pub(super) struct Window {
    storage: Storage,
    path: Arc<str>,
    size: u64,
    start: u64,
    held: Bytes,
}

impl Window {
    /// A file with nothing buffered.
    pub(super) fn new(storage: &Storage, path: Arc<str>, size: u64) -> Self {
        Self { storage: storage.clone(), path, size, start: 0, held: Bytes::new() }
    }

    /// The bytes of a range, or those up to the end of the file.
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
    /// Number of its first row in the file, if rows are counted.
    pub first_row: u64,
    /// Its number of rows, which is not trusted for allocations.
    pub rows: u64,
    /// The byte range of its data.
    pub data: Range<u64>,
}

/// Where the blocks of a part start.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// After the first sync marker from this byte on; rows are not counted.
    Marker(u64),
    /// At a block at this offset, whose first row has this number.
    Block(u64, u64),
}

/// The blocks of a part of a file, in order.
#[derive(Debug)]
pub(super) struct Blocks {
    window: Window,
    sync: [u8; SYNC_BYTES],
    /// Offset of the next block; `None` until its marker is found.
    at: Option<u64>,
    search: u64,
    row: u64,
    /// Markers from this offset on belong to another part.
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

    /// The next block, and the offset of the marker before it.
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

    /// Row count and data range of the block at an offset.
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

    /// The first marker from the start of the search, if it belongs to this part.
    fn find_marker(&mut self) -> Result<Option<u64>> {
        let mut from = self.search;
        while from < self.end && from < self.window.size {
            let bytes = self.window.bytes(from..from.saturating_add(CHUNK))?;
            let found = bytes.windows(SYNC_BYTES).position(|window| *window == self.sync);
            if let Some(found) = found {
                let marker = from + found as u64;
                return Ok((marker < self.end).then_some(marker));
            }
            // The last bytes may be the start of a marker.
            from += (bytes.len() as u64).saturating_sub(SYNC - 1).max(1);
        }
        Ok(None)
    }

    fn wrong(&self, at: u64, message: &str) -> Error {
        Error::corrupt_file(&*self.window.path, format!("Avro block at byte {at}: {message}"))
    }
}
