//! Holds rows on disk, partitioned by the hash of their keys, so that a join can process one part at a time.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use crate::error::{Error, Result};
use crate::spill::{SpillFile, Spilled};

/// Rows in a temporary file, divided into parts.
#[derive(Debug)]
pub(crate) struct Spill {
    schema: SchemaRef,
    file: SpillFile,
    parts: Vec<SpilledPart>,
    /// Bytes of buffered rows at which a part is written.
    buffer: usize,
}

/// The rows of one part.
#[derive(Debug, Default)]
struct SpilledPart {
    pending: Vec<RecordBatch>,
    pending_bytes: usize,
    written: Vec<Spilled>,
    /// Size of all of its rows in memory, in bytes.
    bytes: usize,
}

impl Spill {
    /// Creates a file for rows in this number of parts, buffering about `memory` bytes, of an encrypted table or another.
    ///
    /// # Errors
    /// The folder of temporary files is not writable.
    pub(crate) fn new(schema: SchemaRef, parts: usize, memory: usize, is_encrypted: bool) -> Result<Self> {
        let buffer = (memory / parts.max(1)).clamp(4 << 10, 1 << 20);
        let parts = std::iter::repeat_with(SpilledPart::default).take(parts).collect();
        Ok(Self { schema, file: SpillFile::create(is_encrypted)?, parts, buffer })
    }

    /// Adds rows to their parts; rows without a part are dropped.
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

    /// Size of the rows of a part in memory, in bytes.
    pub(crate) fn bytes(&self, part: usize) -> usize {
        self.parts.get(part).map_or(0, |part| part.bytes)
    }

    /// Number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Removes and returns the rows of a part.
    pub(crate) fn take(&mut self, part: usize) -> impl Iterator<Item = Result<RecordBatch>> + Send + use<> {
        let part = self.parts.get_mut(part).map(std::mem::take).unwrap_or_default();
        let written =
            part.written.into_iter().flat_map(|written| -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
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
