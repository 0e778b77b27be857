//! Rows on disk, by the hash of their keys: what does not fit into memory is joined one part after the other.
//!
//! The rows lie in one temporary file that has no name where the system allows that, so that it is gone with the process,
//! however that ends. They are written in Arrow's IPC format, several thousand rows at a time.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use uuid::Uuid;

use crate::error::{Error, Result};

/// Rows in a temporary file.
#[derive(Debug)]
pub(crate) struct Spill {
    schema: SchemaRef,
    file: TemporaryFile,
    end: u64,
    parts: Vec<Part>,
    /// Bytes of rows of one part that wait to be written.
    buffer: usize,
}

/// The rows of one part.
#[derive(Debug, Default)]
struct Part {
    pending: Vec<RecordBatch>,
    pending_bytes: usize,
    /// Where its written rows lie: offset and length.
    segments: Vec<(u64, usize)>,
    /// Bytes of all of its rows in memory.
    bytes: usize,
}

impl Spill {
    /// A file for rows in so many parts, of which `memory` bytes may wait in memory.
    ///
    /// # Errors
    /// A folder of temporary files that cannot be written to.
    pub(crate) fn new(schema: SchemaRef, parts: usize, memory: usize) -> Result<Self> {
        let buffer = (memory / parts.max(1)).clamp(4 << 10, 1 << 20);
        let parts = std::iter::repeat_with(Part::default).take(parts).collect();
        Ok(Self { schema, file: TemporaryFile::new()?, end: 0, parts, buffer })
    }

    /// Adds rows, each to its part; those of no part are left out.
    pub(crate) fn add(&mut self, batch: &RecordBatch, parts: &[Option<usize>]) -> Result<()> {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.parts.len()];
        for (row, part) in (0_u32..).zip(parts) {
            if let Some(of_part) = part.and_then(|part| rows.get_mut(part)) {
                of_part.push(row);
            }
        }
        for (number, rows) in rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let rows = take_record_batch(batch, &UInt32Array::from(rows)).map_err(internal)?;
            let bytes = rows.get_array_memory_size();
            let Some(part) = self.parts.get_mut(number) else { continue };
            part.pending_bytes += bytes;
            part.bytes += bytes;
            part.pending.push(rows);
            if part.pending_bytes >= self.buffer {
                self.flush(number)?;
            }
        }
        Ok(())
    }

    /// Bytes that the rows of a part take in memory.
    pub(crate) fn bytes(&self, part: usize) -> usize {
        self.parts.get(part).map_or(0, |part| part.bytes)
    }

    /// The number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of a part, which are then no longer here.
    pub(crate) fn take(&mut self, part: usize) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        let part = self.parts.get_mut(part).map(std::mem::take).unwrap_or_default();
        let file = &mut self.file;
        let written = part.segments.into_iter().map(move |segment| read(file, segment));
        written.chain(part.pending.into_iter().map(Ok))
    }

    fn flush(&mut self, number: usize) -> Result<()> {
        let Some(part) = self.parts.get_mut(number) else { return Ok(()) };
        let rows = concat_batches(&self.schema, &part.pending).map_err(internal)?;
        part.pending = Vec::new();
        part.pending_bytes = 0;
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema).map_err(internal)?;
        writer.write(&rows).map_err(internal)?;
        let bytes = writer.into_inner().map_err(internal)?;
        self.file.write(self.end, &bytes)?;
        part.segments.push((self.end, bytes.len()));
        self.end += bytes.len() as u64;
        Ok(())
    }
}

fn read(file: &mut TemporaryFile, (start, length): (u64, usize)) -> Result<RecordBatch> {
    let bytes = file.read(start, length)?;
    let mut batches = StreamReader::try_new(Cursor::new(bytes), None).map_err(internal)?;
    batches
        .next()
        .ok_or_else(|| Error::Internal("rows that were written to disk are gone".to_owned()))?
        .map_err(internal)
}

/// A file that is deleted when it is closed.
#[derive(Debug)]
struct TemporaryFile {
    file: File,
    path: PathBuf,
    has_name: bool,
}

impl TemporaryFile {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("icefield-{}.arrow", Uuid::new_v4()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        // The rows are of nobody else's concern.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path);
        let file = file.map_err(|error| failed(&path, "create", &error))?;
        // Where a file that is open can lose its name, it is gone with the process.
        let has_name = !cfg!(unix) || std::fs::remove_file(&path).is_err();
        Ok(Self { file, path, has_name })
    }

    fn write(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| failed(&self.path, "write", &error))
    }

    fn read(&mut self, start: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let read = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|error| failed(&self.path, "read", &error))?;
        Ok(bytes)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.has_name {
            // Nothing is left to be done where this fails.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn failed(path: &std::path::Path, operation: &'static str, error: &std::io::Error) -> Error {
    Error::Storage { path: path.display().to_string(), operation, message: error.to_string() }
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("rows on disk: {error}"))
}
