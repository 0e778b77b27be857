//! Reads batches from the bytes of a Parquet file.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use parquet::DecodeResult;
use parquet::arrow::push_decoder::ParquetPushDecoder;
use parquet::errors::ParquetError;

use super::columns::Columns;
use super::encrypted::Chunks;
use super::late::Late;
use super::selection::Rows;
use super::tail::Tail;
use crate::error::Result;
use crate::file::parquet::guard::guarded;
use crate::file::parquet::pages::page_index::Checks;
use crate::file::parquet::pages::paged::Failure;
use crate::storage::{OpenObject, Storage};

/// The batches of a file, in the order of its rows.
pub struct Batches {
    pub(super) path: Arc<str>,
    /// `None` after the end or an error.
    pub(super) decoder: Option<Decoder>,
}

/// Decodes batches from bytes.
pub(super) enum Decoder {
    /// A push decoder: it asks for bytes and receives all of a row group at once, which suits remote storage.
    Pushed {
        decoder: Box<ParquetPushDecoder>,
        storage: Storage,
        tail: Tail,
        /// Decrypts what is fetched.
        chunks: Option<Chunks>,
        /// Rows to decode; `None` decodes all of them.
        rows: Option<Box<Rows>>,
        /// Checks for the pages of the selected rows, and the file if pages outside the selection can be read
        /// cheaply.
        pages: Box<(Checks, Option<Arc<dyn OpenObject>>)>,
    },
    /// A pull decoder, which reads page by page.
    Pulled { columns: Box<Columns>, failure: Failure },
    /// A pull decoder of the rows that a filter keeps.
    Late { late: Box<Late>, failure: Failure },
}

impl Decoder {
    fn next(&mut self, path: &str) -> Result<Option<RecordBatch>> {
        match self {
            Self::Pushed { decoder, storage, tail, chunks, rows, pages } => loop {
                match guarded(path, || decoder.try_decode())? {
                    DecodeResult::Data(batch) => {
                        return match rows {
                            Some(rows) => guarded(path, || rows.cut(batch)).map(Some),
                            None => Ok(Some(batch)),
                        };
                    }
                    DecodeResult::Finished => return Ok(None),
                    DecodeResult::NeedsData(ranges) => {
                        let (checks, file) = &mut **pages;
                        let beside = checks.beside(&ranges);
                        let all: Vec<Range<u64>> = ranges.iter().chain(&beside).cloned().collect();
                        let mut bytes = match tail.ranges(&all) {
                            Some(bytes) => bytes,
                            None => storage.ranges(path, &all)?,
                        };
                        if let Some(chunks) = chunks {
                            bytes = chunks.decrypt(path, &ranges, bytes)?;
                            guarded(path, || decoder.push_ranges(ranges, bytes))?;
                            continue;
                        }
                        let fetched = bytes.split_off(ranges.len().min(bytes.len()));
                        let unread = |range: Range<u64>| {
                            let known = beside.iter().zip(&fetched).find(|(place, _)| **place == range);
                            match (known, tail.range(&range), &*file) {
                                (Some((_, bytes)), ..) => Ok(bytes.clone()),
                                (None, Some(bytes), _) => Ok(bytes),
                                (None, None, Some(file)) => file.range(range),
                                (None, None, None) => storage.range(path, range),
                            }
                        };
                        checks.fetched(path, &ranges, &bytes, unread)?;
                        guarded(path, || decoder.push_ranges(ranges, bytes))?;
                    }
                }
            },
            Self::Pulled { columns, failure } => pulled(path, failure, || columns.next()),
            Self::Late { late, failure } => pulled(path, failure, || late.next()),
        }
    }
}

/// The next batch, or an error: the storage's if it failed.
fn pulled(
    path: &str,
    failure: &Failure,
    next: impl FnOnce() -> Result<Option<RecordBatch>, ParquetError>,
) -> Result<Option<RecordBatch>> {
    let next = guarded(path, next);
    let failed = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    failed.map_or(next, Err)
}

impl Batches {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let Some(decoder) = &mut self.decoder else { return Ok(None) };
        decoder.next(&self.path)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if !matches!(next, Ok(Some(_))) {
            self.decoder = None;
        }
        next.transpose()
    }
}
