//! Reads Avro data files: the header, and the batches of a request.

use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::avro::{Container, Schema};
use icefield_format::types::Schema as TableSchema;

use super::batches::Batches;
use super::blocks::{Blocks, Start, Window};
use super::pieces::{Counted, Header, PIECE_BYTES, Piece, Shared, pieces_by_bytes};
use super::schema::{fields, settled};
use crate::error::{Error, Result};
use crate::file::leaves::count;
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;
use crate::file::{DataFileReader, Request, position_field};
use crate::limits::limits;
use crate::storage::Storage;
use crate::stream::{OpenParts, Opened};

/// Bytes fetched first to find the header.
const HEADER_BYTES: u64 = 64 << 10;

/// Maximum bytes of a header.
const MOST_HEADER_BYTES: u64 = 64 << 20;

/// An Avro file with its header.
pub struct AvroFile {
    file: Header,
    /// The columns with the ids they are read by.
    columns: Fields,
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
                // The header may be longer than what was fetched.
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

    /// The file's columns; columns with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> &Fields {
        &self.columns
    }
}

impl DataFileReader for AvroFile {
    fn bind(&mut self, with_ids: &dyn Fn(&Fields) -> Fields, schema: &Arc<TableSchema>) -> Fields {
        self.columns = settled(&self.file.record, &with_ids(&self.columns), schema);
        self.columns.iter().cloned().chain([position_field()]).collect()
    }

    fn metrics(&self, _: &Modes) -> Result<FileMetrics> {
        let rows = i64::try_from(self.count_rows()?).unwrap_or(i64::MAX);
        Ok(FileMetrics { record_count: rows, ..FileMetrics::default() })
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn count_rows(&self) -> Result<u64> {
        let Header { window, sync, first_block, size, .. } = &self.file;
        let mut blocks = Blocks::new(window.clone(), *sync, Start::Block(*first_block, 0), *size);
        let mut rows = 0_u64;
        while let Some((_, block)) = blocks.next()? {
            rows = rows.saturating_add(block.rows);
        }
        Ok(rows)
    }

    fn batches(self: Box<Self>, request: Request) -> Result<Opened> {
        let Self { file, columns } = *self;
        let position = count(&columns);
        let tested = request.filter.iter().flat_map(|filter| &filter.leaves);
        let counts = request.rows.is_some() || request.leaves.iter().chain(tested).any(|leaf| *leaf == position);
        let range = request.range.0..request.range.0.saturating_add(request.range.1).min(file.size);
        let threads = request.threads;
        let counted = request.expected_rows.filter(|_| range.start == 0 && range.end == file.size).map(Counted::new);
        let shared = Arc::new(Shared { file, columns, request, counted });
        let pieces = match threads > 1 && range.end.saturating_sub(range.start) >= 2 * PIECE_BYTES {
            true if !counts => pieces_by_bytes(&range),
            true if !shared.file.remote => shared.pieces_by_blocks(&range)?,
            _ => vec![shared.whole(counts, &range)],
        };
        if let Some(counted) = &shared.counted {
            counted.expect(pieces.len());
        }
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
