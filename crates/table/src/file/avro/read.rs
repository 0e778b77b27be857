//! Reading Avro data files: the header, and the batches of a request.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::Limits;
use icefield_format::avro::container::SYNC_BYTES;
use icefield_format::avro::{Codec, Container, RecordSchema, Schema};
use icefield_format::types::Schema as TableSchema;

use super::batches::Batches;
use super::blocks::{Blocks, Start, Window};
use super::decode::Decoder;
use super::schema::{fields, settled};
use crate::error::{Error, Result};
use crate::file::leaves::count;
use crate::file::{DataFileReader, Request, position_field};
use crate::limits::limits;
use crate::storage::Storage;
use crate::stream::{OpenParts, Opened};

/// Bytes in which the header of a file is looked for first.
const HEADER_BYTES: u64 = 64 << 10;

/// Bytes of a header, at the most.
const MOST_HEADER_BYTES: u64 = 64 << 20;

/// Bytes of a piece of a file, at the least, where several threads read it.
const PIECE_BYTES: u64 = 4 << 20;

/// An Avro file whose header was read.
pub struct AvroFile {
    file: Header,
    /// The columns with the ids that they are read by.
    columns: Fields,
}

/// What the header of a file says.
pub(super) struct Header {
    window: Window,
    pub(super) path: Arc<str>,
    size: u64,
    remote: bool,
    pub(super) record: Arc<RecordSchema>,
    pub(super) codec: Codec,
    sync: [u8; SYNC_BYTES],
    /// Byte at which the first block begins.
    first_block: u64,
    pub(super) limits: Limits,
}

impl AvroFile {
    /// Reads the header.
    pub fn open(storage: &Storage, path: &str, size: u64) -> Result<Self> {
        let path: Arc<str> = path.into();
        let limits = limits()?;
        let mut window = Window::new(storage, path.clone(), size);
        let mut length = HEADER_BYTES.min(size);
        let in_file = |error: icefield_format::Error| Error::from(error).in_file(&path);
        loop {
            let bytes = window.bytes(0..length)?;
            let container = match Container::open(&bytes) {
                Ok(container) => container,
                // It may be longer than what was fetched.
                Err(_) if bytes.starts_with(b"Obj\x01") && length < size.min(MOST_HEADER_BYTES) => {
                    length = length.saturating_mul(4).min(size);
                    continue;
                }
                Err(error) => return Err(in_file(error)),
            };
            let Schema::Record(record) = container.schema(&limits).map_err(in_file)? else {
                return Err(Error::corrupt_file(&*path, "its schema is not a record"));
            };
            let columns = fields(&record);
            let (codec, sync, first_block) = (container.codec, container.sync(), container.header_length() as u64);
            let remote = storage.is_remote(&path);
            drop(container);
            let file = Header { window, path, size, remote, record, codec, sync, first_block, limits };
            return Ok(Self { file, columns });
        }
    }

    /// The file's columns; those with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> &Fields {
        &self.columns
    }
}

impl DataFileReader for AvroFile {
    fn bind(&mut self, with_ids: &dyn Fn(&Fields) -> Fields, schema: &Arc<TableSchema>) -> Fields {
        self.columns = settled(&self.file.record, &with_ids(&self.columns), schema);
        self.columns.iter().cloned().chain([position_field()]).collect()
    }

    fn batches(self: Box<Self>, request: Request) -> Result<Opened> {
        let Self { file, columns } = *self;
        let position = count(&columns);
        let tested = request.filter.iter().flat_map(|filter| &filter.leaves);
        let counts = request.rows.is_some() || request.leaves.iter().chain(tested).any(|leaf| *leaf == position);
        let range = request.range.0..request.range.0.saturating_add(request.range.1).min(file.size);
        let threads = request.threads;
        let shared = Arc::new(Shared { file, columns, request });
        let pieces = match threads > 1 && range.end.saturating_sub(range.start) >= 2 * PIECE_BYTES {
            true if !counts => pieces_by_bytes(&range),
            true if !shared.file.remote => shared.pieces_by_blocks(&range)?,
            _ => vec![shared.whole(counts, &range)],
        };
        if let [piece] = pieces.as_slice() {
            return Ok(Opened::Batches(Box::new(Batches::new(&shared, piece.clone())?)));
        }
        let open = |piece: Piece| -> OpenParts {
            let shared = Arc::clone(&shared);
            Box::new(move || Ok(Opened::Batches(Box::new(Batches::new(&shared, piece)?))))
        };
        Ok(Opened::Parts(pieces.into_iter().map(open).collect()))
    }
}

/// Blocks that one thread reads.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    start: Start,
    /// The markers of its blocks begin in this range.
    pub(super) markers: Range<u64>,
}

/// Equal pieces of a range, each of which finds its first block by itself.
fn pieces_by_bytes(range: &Range<u64>) -> Vec<Piece> {
    let length = range.end - range.start;
    let pieces = length / PIECE_BYTES;
    let cut = |piece: u64| range.start + (u128::from(length) * u128::from(piece) / u128::from(pieces)) as u64;
    let piece = |number| Piece { start: Start::Marker(cut(number)), markers: cut(number)..cut(number + 1) };
    (0..pieces).map(piece).collect()
}

/// What all threads that read a file have in common.
pub(super) struct Shared {
    pub(super) file: Header,
    columns: Fields,
    pub(super) request: Request,
}

impl Shared {
    /// One piece; where rows are counted it begins with the first block of the file, whatever the range is.
    fn whole(&self, counts: bool, range: &Range<u64>) -> Piece {
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
    fn pieces_by_blocks(&self, range: &Range<u64>) -> Result<Vec<Piece>> {
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
