//! Read options that apply to any rows: batch size, memory, dictionaries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_schema::{DataType, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::file::BATCH_ROWS;
use crate::plan::tasks::part::FilePart;
use crate::stream::BatchStream;

/// Approximate bytes of a file that a thread fetches before decoding: a row group.
const FETCHED: u64 = 128 << 20;
/// Approximate growth of a row from its file to memory.
const GROWTH: u64 = 4;
/// Assumed bytes per row if the number of rows is unknown.
const SOME_ROW: u64 = 100;
/// Batches per thread that are decoded or buffered, counting those in progress.
const IN_FLIGHT: usize = 8;

/// How rows are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Maximum rows per batch.
    pub batch_rows: Option<usize>,
    /// Approximate bytes of batches and of the data they are decoded from.
    pub memory: Option<usize>,
    /// String and binary columns to return as dictionaries.
    pub dictionaries: Vec<String>,
    /// The column types to return, for engines with fewer types; not together with `dictionaries`.
    pub schema: Option<SchemaRef>,
    /// Counts the files that are read.
    pub progress: Option<Arc<Progress>>,
}

/// Progress of a scan.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicUsize,
    opened: AtomicUsize,
}

impl Progress {
    /// Number of files, or parts of files, to read.
    pub fn files(&self) -> usize {
        self.files.load(Ordering::Relaxed)
    }

    /// Number of those that were opened.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    pub(super) fn expect(&self, files: usize) {
        self.files.fetch_add(files, Ordering::Relaxed);
    }

    pub(super) fn open(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}

impl ReadOptions {
    /// Checks the numbers, and that the options do not contradict each other.
    pub fn check(&self) -> Result<()> {
        match (self.batch_rows, self.memory) {
            (Some(0), _) => Err(Error::invalid("batch_size: a batch has at least one row")),
            (_, Some(0)) => Err(Error::invalid("memory_limit: at least one byte is needed")),
            _ if self.schema.is_some() && !self.dictionaries.is_empty() => Err(Error::invalid(
                "dictionary_columns: the types of all columns are those of the schema that is given",
            )),
            _ => Ok(()),
        }
    }

    /// Number of threads to read some parts, at most `most`: as many as the memory limit allows for what they fetch.
    pub(crate) fn threads(&self, most: usize, parts: &[FilePart]) -> usize {
        let Some(memory) = self.memory else { return most };
        let fetched = parts.iter().map(|part| part.size.min(FETCHED)).max().unwrap_or(0);
        let room = u64::try_from(memory).unwrap_or(u64::MAX) / fetched.max(1);
        usize::try_from(room).unwrap_or(most).clamp(1, most)
    }

    /// Maximum rows per batch of a part, if this many threads read.
    pub(super) fn batch_rows(&self, part: &FilePart, threads: usize) -> usize {
        let asked = self.batch_rows.unwrap_or(BATCH_ROWS);
        let Some(memory) = self.memory else { return asked };
        let rows = match part.record_count {
            unknown if unknown < 0 => part.size / SOME_ROW,
            rows => rows.unsigned_abs(),
        };
        let row = usize::try_from((part.size / rows.max(1) + 1).saturating_mul(GROWTH)).unwrap_or(usize::MAX);
        asked.min(memory / IN_FLIGHT / threads.max(1) / row).max(1)
    }

    /// Applies the options that concern batches to a stream.
    pub fn apply(&self, stream: BatchStream) -> Result<BatchStream> {
        self.check()?;
        let stream = match self.batch_rows {
            Some(rows) => stream.with_batch_rows(rows),
            None => stream,
        };
        let schema = match &self.schema {
            Some(schema) => Some(schema.clone()),
            None => self.with_dictionaries(stream.schema())?,
        };
        match schema {
            Some(schema) => stream.as_schema(schema),
            None => Ok(stream),
        }
    }

    /// The schema with the requested dictionaries, if any.
    fn with_dictionaries(&self, output: &SchemaRef) -> Result<Option<SchemaRef>> {
        if self.dictionaries.is_empty() {
            return Ok(None);
        }
        let mut fields = output.fields().to_vec();
        for name in &self.dictionaries {
            let Some(field) = fields.iter_mut().find(|field| field.name() == name) else {
                let known: Vec<&str> = output.fields().iter().map(|field| field.name().as_str()).collect();
                let known = known.join(", ");
                return Err(Error::invalid(format!("dictionary_columns: no column {name} is read, only {known}")));
            };
            match field.data_type() {
                DataType::Dictionary(..) => {}
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                    let ty = DataType::Dictionary(Box::new(DataType::Int32), Box::new(field.data_type().clone()));
                    *field = Arc::new(field.as_ref().clone().with_data_type(ty));
                }
                other => {
                    let reason = format!("is {other}: only columns of text or bytes are returned as dictionaries");
                    return Err(Error::column(name, reason));
                }
            }
        }
        Ok(Some(Arc::new(Schema::new_with_metadata(fields, output.metadata().clone()))))
    }
}
