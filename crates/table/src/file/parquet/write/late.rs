//! A Parquet file that is created only when its first rows are known, which decide what its variants are shredded as.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::writer::{ParquetLayout, ParquetWriter};
use crate::arrow::size::bytes_of;
use crate::error::{Error, Result};
use crate::file::{FileWriter, WrittenFile};
use crate::storage::Storage;

/// Starts a file that will begin with the batches `first`, which are not written yet.
pub(in crate::file) fn create(
    layout: &Arc<ParquetLayout>,
    storage: &Storage,
    path: String,
    first: &[RecordBatch],
) -> Result<Box<dyn FileWriter>> {
    match layout.awaited_rows() {
        Some(rows) => Ok(Box::new(LateFile::new(storage.clone(), path, layout.clone(), rows))),
        None => Ok(Box::new(ParquetWriter::create(storage, path, layout.clone(), first)?)),
    }
}

/// A file whose first rows wait in memory.
#[derive(Debug)]
struct LateFile {
    storage: Storage,
    path: String,
    layout: Arc<ParquetLayout>,
    /// Rows to wait for.
    rows: usize,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    waiting_bytes: usize,
    file: Option<Box<ParquetWriter>>,
}

impl LateFile {
    fn new(storage: Storage, path: String, layout: Arc<ParquetLayout>, rows: usize) -> Self {
        Self { storage, path, layout, rows, waiting: Vec::new(), waiting_rows: 0, waiting_bytes: 0, file: None }
    }

    /// The file, with the rows that have waited for it.
    fn opened(&mut self, side_by_side: bool) -> Result<&mut ParquetWriter> {
        if self.file.is_none() {
            let first = std::mem::take(&mut self.waiting);
            (self.waiting_rows, self.waiting_bytes) = (0, 0);
            let layout = self.layout.of_rows(&first, self.rows)?;
            let file = ParquetWriter::create(&self.storage, self.path.clone(), layout, &first)?;
            self.file.insert(Box::new(file)).write(&first, side_by_side)?;
        }
        self.file.as_deref_mut().ok_or_else(|| Error::Internal("a file that was not created".into()))
    }
}

impl FileWriter for LateFile {
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        if let Some(file) = &mut self.file {
            return file.write(batches, side_by_side);
        }
        self.waiting.extend_from_slice(batches);
        self.waiting_rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        self.waiting_bytes += batches.iter().map(bytes_of).sum::<usize>();
        if self.waiting_rows >= self.rows { self.opened(side_by_side).map(drop) } else { Ok(()) }
    }

    fn close_group(&mut self) -> Result<()> {
        if self.file.is_none() && self.waiting.is_empty() {
            return Ok(());
        }
        self.opened(false)?.close_group()
    }

    fn memory(&self) -> usize {
        self.waiting_bytes + self.file.as_ref().map_or(0, |file| file.memory())
    }

    fn size(&self) -> u64 {
        self.waiting_bytes as u64 + self.file.as_ref().map_or(0, |file| file.size())
    }

    fn finish(mut self: Box<Self>) -> Result<WrittenFile> {
        self.opened(false)?;
        match self.file {
            Some(file) => file.finish(),
            None => Err(Error::Internal("a file that was not created".into())),
        }
    }

    fn abort(self: Box<Self>) {
        if let Some(file) = self.file {
            file.abort();
        }
    }
}
