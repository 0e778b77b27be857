//! Rows on disk, by the hash of their keys: what does not fit into memory is joined one part after the other.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use crate::error::{Error, Result};
use crate::spill::{SpillFile, Spilled};

/// Rows in a temporary file.
#[derive(Debug)]
pub(crate) struct Spill {
    schema: SchemaRef,
    file: SpillFile,
    parts: Vec<Part>,
    /// Bytes of rows of one part that wait to be written.
    buffer: usize,
}

/// The rows of one part.
#[derive(Debug, Default)]
struct Part {
    pending: Vec<RecordBatch>,
    pending_bytes: usize,
    written: Vec<Spilled>,
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
        Ok(Self { schema, file: SpillFile::create()?, parts, buffer })
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
    pub(crate) fn take(&mut self, part: usize) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        let part = self.parts.get_mut(part).map(std::mem::take).unwrap_or_default();
        let written = part.written.into_iter().flat_map(|written| -> Box<dyn Iterator<Item = Result<RecordBatch>>> {
            match written.read() {
                Ok(rows) => Box::new(rows),
                Err(error) => Box::new(std::iter::once(Err(error))),
            }
        });
        written.chain(part.pending.into_iter().map(Ok))
    }

    fn flush(&mut self, number: usize) -> Result<()> {
        let Some(part) = self.parts.get_mut(number) else { return Ok(()) };
        let rows = concat_batches(&self.schema, &part.pending).map_err(internal)?;
        part.pending = Vec::new();
        part.pending_bytes = 0;
        part.written.push(self.file.add(&self.schema, [Ok(rows)])?);
        Ok(())
    }
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("rows on disk: {error}"))
}
