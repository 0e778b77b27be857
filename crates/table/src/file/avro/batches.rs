//! The batches of a part of an Avro file.
//!
//! If rows are filtered, the filter's columns are decoded for all rows of a block, and the others only for rows that
//! pass.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use icefield_format::avro::cursor::Cursor;
use icefield_format::avro::{Codec, Decompressor, Skip};

use super::blocks::{Block, Blocks};
use super::decode::{Decoder, RowFault};
use super::pieces::{Piece, Shared};
use crate::error::{Error, Result};
use crate::file::Request;

/// Maximum rows of a file that take no bytes.
const MOST_EMPTY_ROWS: u64 = 1 << 31;

/// The batches of a piece of a file.
pub(super) struct Batches {
    shared: Arc<Shared>,
    blocks: Blocks,
    markers: Range<u64>,
    wanted: Decoder,
    tested: Option<Decoder>,
    /// Skips a row.
    row: Skip,
    decompressor: Decompressor,
    open: Option<OpenBlock>,
    /// Index of the current range of selected rows; earlier ones are done.
    next_range: usize,
    empty_rows: u64,
    /// Rows of this piece's blocks so far, and whether all of them are counted.
    rows_passed: u64,
    is_counted: bool,
    ended: bool,
}

/// A block whose rows are being read.
struct OpenBlock {
    block: Block,
    /// Its rows, if any of their data is read.
    bytes: Bytes,
    /// Offset of the next row in `bytes`.
    place: usize,
    /// Number of the next row in the file.
    next: u64,
    /// Rows that passed the filter and are still to be read: number and offset.
    passed: VecDeque<(u64, usize)>,
}

impl Batches {
    pub(super) fn new(shared: &Arc<Shared>, piece: Piece) -> Result<Self> {
        let Request { leaves, filter, .. } = &shared.request;
        let fields = &shared.file.record.fields;
        Ok(Self {
            blocks: shared.blocks(&piece),
            wanted: shared.decoder(leaves)?,
            tested: filter.as_ref().map(|filter| shared.decoder(&filter.leaves)).transpose()?,
            row: Skip::sequence(fields.iter().map(|field| Skip::of(&field.schema))),
            decompressor: Decompressor::of_blocks(shared.file.codec, &shared.file.limits),
            open: None,
            next_range: 0,
            empty_rows: 0,
            rows_passed: 0,
            is_counted: false,
            markers: piece.markers,
            shared: Arc::clone(shared),
            ended: false,
        })
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        while self.wanted.room() > 0 {
            match self.open.take() {
                Some(open) => self.open = self.advance(open)?,
                None if self.open_next()? => {}
                None if self.wanted.rows() == 0 => return Ok(None),
                None => break,
            }
        }
        self.wanted.finish(&self.shared.file.path).map(Some)
    }

    /// Whether any data of the rows is decoded.
    fn reads_rows(&self) -> bool {
        !self.wanted.is_empty() || self.tested.as_ref().is_some_and(|tested| !tested.is_empty())
    }

    /// Opens the next block of this part with selected rows.
    fn open_next(&mut self) -> Result<bool> {
        while let Some((marker, block)) = self.blocks.next()? {
            let rows = block.first_row..block.first_row.saturating_add(block.rows);
            if marker >= self.markers.start {
                self.rows_passed = self.rows_passed.saturating_add(block.rows);
            }
            if marker < self.markers.start || rows.is_empty() || self.selected(rows.clone()).is_none() {
                continue;
            }
            let bytes = if self.reads_rows() { self.decompress(&block)? } else { Bytes::new() };
            self.open = Some(OpenBlock { next: rows.start, block, bytes, place: 0, passed: VecDeque::new() });
            return Ok(true);
        }
        if let Some(counted) = self.shared.counted.as_ref().filter(|_| !std::mem::replace(&mut self.is_counted, true)) {
            counted.end(self.rows_passed, &self.shared.file.path)?;
        }
        Ok(false)
    }

    fn decompress(&mut self, block: &Block) -> Result<Bytes> {
        let data = self.blocks.data(block)?;
        let in_file = |error: icefield_format::Error| Error::from(error).in_file(&self.shared.file.path);
        let bytes = match self.shared.file.codec {
            Codec::Null => data,
            _ => Bytes::copy_from_slice(self.decompressor.run(&data, block.data.start).map_err(in_file)?),
        };
        let least = self.row.min_bytes();
        if least == 0 {
            self.empty_rows = self.empty_rows.saturating_add(block.rows);
        }
        let fits = block.rows.checked_mul(least).is_some_and(|least| least <= bytes.len() as u64);
        if !fits || self.empty_rows > MOST_EMPTY_ROWS {
            let message = format!("{} rows are more than its {} bytes can hold", block.rows, bytes.len());
            return Err(self.shared.wrong(block, &message));
        }
        Ok(bytes)
    }

    /// The next selected rows within a range.
    fn selected(&mut self, rows: Range<u64>) -> Option<Range<u64>> {
        let Some(ranges) = &self.shared.request.rows else { return (!rows.is_empty()).then_some(rows) };
        while let Some(range) = ranges.get(self.next_range) {
            let found = range.start.max(rows.start)..range.end.min(rows.end);
            if !found.is_empty() {
                return Some(found);
            }
            if range.end > rows.start {
                return None;
            }
            self.next_range += 1;
        }
        None
    }

    /// Continues a block; `None` at its end.
    fn advance(&mut self, mut open: OpenBlock) -> Result<Option<OpenBlock>> {
        self.read_passed(&mut open)?;
        let end = open.block.first_row.saturating_add(open.block.rows);
        if let Some(rows) = self.selected(open.next..end) {
            let room = self.tested.as_ref().map_or(self.wanted.room(), |tested| tested.room().min(self.wanted.room()));
            let rows = rows.start..rows.end.min(rows.start.saturating_add(room as u64));
            if rows.is_empty() {
                return Ok(Some(open));
            }
            self.skip_rows(&mut open, rows.start)?;
            if self.tested.is_some() {
                self.test_rows(&mut open, rows)?
            } else {
                self.read_rows(&mut open, rows)?
            }
            if open.next < end || !open.passed.is_empty() {
                return Ok(Some(open));
            }
        }
        if open.next == end && open.place != open.bytes.len() {
            return Err(self.shared.wrong(&open.block, "bytes are left over after its last row"));
        }
        Ok(None)
    }

    /// Skips the rows before one.
    fn skip_rows(&self, open: &mut OpenBlock, until: u64) -> Result<()> {
        if !self.reads_rows() {
            open.next = until;
            return Ok(());
        }
        let bytes = open.bytes.clone();
        let mut cursor = Cursor::new(bytes.get(open.place..).unwrap_or_default());
        while open.next < until {
            self.row
                .run(&mut cursor)
                .map_err(|fault| self.shared.fault(open, &cursor, &RowFault { fault, column: None }))?;
            open.next += 1;
        }
        open.place = bytes.len() - cursor.rest().len();
        Ok(())
    }

    /// Reads the next rows of a block, up to the size of the batch.
    fn read_rows(&mut self, open: &mut OpenBlock, rows: Range<u64>) -> Result<()> {
        if self.wanted.is_empty() {
            open.next = rows.end;
            self.wanted.add(rows);
            return Ok(());
        }
        let bytes = open.bytes.clone();
        let mut cursor = Cursor::new(bytes.get(open.place..).unwrap_or_default());
        while open.next < rows.end && self.wanted.room() > 0 {
            let read = self.wanted.read(&mut cursor, open.next);
            read.map_err(|fault| self.shared.fault(open, &cursor, &fault))?;
            open.next += 1;
        }
        open.place = bytes.len() - cursor.rest().len();
        Ok(())
    }

    /// Filters the next rows of a block, up to the size of the batch.
    fn test_rows(&mut self, open: &mut OpenBlock, rows: Range<u64>) -> Result<()> {
        let Some((tested, filter)) = self.tested.as_mut().zip(self.shared.request.filter.as_ref()) else {
            return Ok(());
        };
        let bytes = open.bytes.clone();
        let mut cursor = Cursor::new(bytes.get(open.place..).unwrap_or_default());
        let mut places = Vec::new();
        while open.next < rows.end && tested.room() > 0 {
            places.push((open.next, bytes.len() - cursor.rest().len()));
            if bytes.is_empty() {
                tested.add(open.next..open.next + 1);
            } else if tested.is_empty() {
                let skipped = self.row.run(&mut cursor);
                skipped.map_err(|fault| self.shared.fault(open, &cursor, &RowFault { fault, column: None }))?;
                tested.add(open.next..open.next + 1);
            } else {
                let read = tested.read(&mut cursor, open.next);
                read.map_err(|fault| self.shared.fault(open, &cursor, &fault))?;
            }
            open.next += 1;
        }
        open.place = bytes.len() - cursor.rest().len();
        let kept = (filter.test)(&tested.finish(&self.shared.file.path)?)?;
        let passed = kept.iter().zip(places).filter(|(kept, _)| *kept == Some(true));
        open.passed.extend(passed.map(|(_, row)| row));
        self.read_passed(open)
    }

    /// Reads rows that passed the test, as many as there is room for.
    fn read_passed(&mut self, open: &mut OpenBlock) -> Result<()> {
        while let Some((number, place)) = open.passed.front().copied()
            && self.wanted.room() > 0
        {
            if self.wanted.is_empty() {
                self.wanted.add(number..number + 1);
            } else {
                let mut cursor = Cursor::new(open.bytes.get(place..).unwrap_or_default());
                let read = self.wanted.read(&mut cursor, number);
                read.map_err(|fault| self.shared.fault(open, &cursor, &fault))?;
            }
            open.passed.pop_front();
        }
        Ok(())
    }
}

impl Shared {
    fn wrong(&self, block: &Block, message: &str) -> Error {
        Error::corrupt_file(&*self.file.path, format!("Avro block at byte {}: {message}", block.data.start))
    }

    /// The error of a row that cannot be decoded.
    fn fault(&self, open: &OpenBlock, cursor: &Cursor<'_>, fault: &RowFault) -> Error {
        let row = open.next - open.block.first_row;
        let column = fault.column.as_ref().map(|column| format!(", column {column}")).unwrap_or_default();
        let byte = open.bytes.len() - cursor.rest().len();
        let message = fault.fault.message();
        let at = open.block.data.start;
        let message =
            format!("Avro block at byte {at}, row {row}{column}: {message} (byte {byte} of its uncompressed rows)");
        Error::corrupt_file(&*self.file.path, message)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.step().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
