//! How rows are read, whichever they are: batches, memory, dictionaries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_schema::{DataType, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::file::BATCH_ROWS;
use crate::plan::part::FilePart;
use crate::stream::BatchStream;

/// Bytes of a file that a thread fetches before it decodes them, about: those of a row group.
const FETCHED: u64 = 128 << 20;
/// How many times as large as in its file a row is in memory, about.
const GROWTH: u64 = 4;
/// Bytes of a row in a file of which nobody knows the number of rows.
const SOME_ROW: u64 = 100;
/// Batches of a thread that are decoded or wait, and as many again while they are made.
const IN_FLIGHT: usize = 8;

/// How rows are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Rows of a batch, at the most.
    pub batch_rows: Option<usize>,
    /// Bytes that batches and what they are decoded from take, about.
    pub memory: Option<usize>,
    /// Columns of text or bytes that are returned as dictionaries.
    pub dictionaries: Vec<String>,
    /// The types that columns are returned in, where an engine takes no others; not together with `dictionaries`.
    pub schema: Option<SchemaRef>,
    /// Told of the files that are read.
    pub progress: Option<Arc<Progress>>,
}

/// How far a scan has come.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicUsize,
    opened: AtomicUsize,
}

impl Progress {
    /// Files, or parts of files, to read.
    pub fn files(&self) -> usize {
        self.files.load(Ordering::Relaxed)
    }

    /// Those of them that were opened.
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
    /// Checks the numbers, and that no two of the options contradict each other.
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

    /// Threads that read some parts, `most` at the most: as many as have room for what they fetch.
    pub(crate) fn threads(&self, most: usize, parts: &[FilePart]) -> usize {
        let Some(memory) = self.memory else { return most };
        let fetched = parts.iter().map(|part| part.size.min(FETCHED)).max().unwrap_or(0);
        let room = u64::try_from(memory).unwrap_or(u64::MAX) / fetched.max(1);
        usize::try_from(room).unwrap_or(most).clamp(1, most)
    }

    /// Rows of a batch of a part that so many threads read, at the most.
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

    /// A stream in this manner, as far as its batches are concerned.
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

    /// The schema with dictionaries, where some are asked for.
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
