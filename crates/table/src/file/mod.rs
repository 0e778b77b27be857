//! Data and delete files: one module per format, for reading and writing ("Appendix A: Format-specific
//! Requirements").
//!
//! [`open`] reads: a [`DataFileReader`] knows the columns of a file and returns the batches of a [`Request`].
//! [`FileLayout`] writes: each of its files is a [`FileWriter`]. Formats know about leaves of columns, row numbers,
//! byte ranges and filters, but not about a table's deletes, tasks or partitions.

pub mod avro;
mod encrypted;
pub mod layout;
pub mod leaves;
pub mod metrics;
pub mod modes;
mod open;
pub mod orc;
pub mod parquet;
pub(crate) mod ranges;
mod schema;
mod shapes;
mod sink;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, Field as ArrowField, FieldRef, Fields};
use icefield_format::encryption::HiddenBytes;
use icefield_format::expr::{BoundExpr, Expression};
use icefield_format::types::arrow::FIELD_ID_KEY;
use icefield_format::types::reserved::POS;
use icefield_format::types::{Field, PrimitiveType, Schema, Type};

use crate::arrow::filter::rows_kept;
use crate::error::{Error, Result};
use crate::stream::{BatchChange, Opened};
pub use layout::{FileLayout, FormatOptions};
use leaves::pick;
use metrics::FileMetrics;
use modes::Modes;
pub use open::open;
pub use schema::schema_of_file;
pub(crate) use schema::{format_in, stored_columns};

/// Default maximum rows per batch.
pub const BATCH_ROWS: usize = 64 << 10;

/// A file opened for reading.
pub trait DataFileReader: Send {
    /// Decides the ids that columns are read by: `with_ids` assigns them, given the ids stored in the file as
    /// `PARQUET:field_id`, if any. `schema` has the types that values must fit. Returns the columns as batches will
    /// have them, followed by the column of row positions, [`position_field`].
    fn bind(&mut self, with_ids: &dyn Fn(&Fields) -> Fields, schema: &Arc<Schema>) -> Fields;

    /// Metrics of the file without reading rows: counts, and bounds if `modes` ask for them, by the ids that
    /// [`DataFileReader::bind`] has chosen. For Avro only the number of rows.
    fn metrics(&self, modes: &Modes) -> Result<FileMetrics>;

    /// The number of rows, if the footer has it. Avro has no footer: [`DataFileReader::count_rows`] reads its blocks.
    fn rows(&self) -> Option<u64>;

    /// The number of rows of the file.
    fn count_rows(&self) -> Result<u64> {
        self.rows().ok_or_else(|| Error::Internal("a file whose reader does not count its rows".to_owned()))
    }

    /// The nulls of each leaf according to the file's statistics; `None` if unknown.
    fn nulls(&self) -> Vec<Option<Nulls>> {
        Vec::new()
    }

    /// The batches of a request in file order; a large file may be split into parts for several threads.
    fn batches(self: Box<Self>, request: Request) -> Result<Opened>;
}

/// What the statistics of a file say about the nulls of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// No value and no parent is null.
    None,
    /// All rows are null.
    All,
}

/// What to read from a file.
#[derive(Clone)]
pub struct Request {
    /// Ascending leaves of the columns from [`DataFileReader::bind`], numbered depth first.
    pub leaves: Vec<usize>,
    /// Offset and length: row groups and stripes outside belong to other parts of the file.
    pub range: (u64, u64),
    /// Selected rows by number in the file: ascending, disjoint. `None` selects all.
    pub rows: Option<Vec<Range<u64>>>,
    /// Row groups and stripes without a row for this filter may be skipped.
    pub prune: BoundExpr,
    /// Columns whose values do not come from the file: `prune` must not test them against its statistics.
    pub constants: HashSet<i32>,
    /// Rows to keep, evaluated before other columns are decoded if possible.
    pub filter: Option<Filter>,
    /// Maximum rows per batch.
    pub batch_rows: usize,
    /// Number of threads that may read the file.
    pub threads: usize,
    /// The number of rows that the file must have, if known. Formats without a footer count them while reading.
    pub expected_rows: Option<u64>,
}

/// The error for a file whose number of rows differs from its manifest's.
pub(crate) fn other_rows(path: &str, found: u64, expected: u64) -> Error {
    Error::corrupt_file(path, format!("it has {found} rows, but the manifest says {expected}"))
}

/// Decides for each row of a batch whether to keep it.
pub type RowTest = Arc<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync>;

/// A row test and the leaves it needs; null counts as false.
#[derive(Clone)]
pub struct Filter {
    /// Ascending leaves of the batch that `test` receives.
    pub leaves: Vec<usize>,
    /// The test.
    pub test: RowTest,
}

impl Filter {
    /// Combines filters: keeps the rows that pass all of them. A filter is skipped if no row of a batch is left.
    pub fn all(mut filters: Vec<Self>) -> Option<Self> {
        if filters.len() < 2 {
            return filters.pop();
        }
        let leaves: BTreeSet<usize> = filters.iter().flat_map(|filter| &filter.leaves).copied().collect();
        let leaves: Vec<usize> = leaves.into_iter().collect();
        let read = leaves.clone();
        let test = move |batch: &RecordBatch| {
            let mut kept: Option<BooleanBuffer> = None;
            for Self { leaves, test } in &filters {
                let own = pick(batch, &read, leaves).map_err(|error| Error::Internal(error.to_string()))?;
                let found = test(&own)?;
                let yes = match found.nulls() {
                    Some(nulls) => found.values() & nulls.inner(),
                    None => found.values().clone(),
                };
                let both = kept.map_or_else(|| yes.clone(), |kept| &kept & &yes);
                let is_done = both.count_set_bits() == 0;
                kept = Some(both);
                if is_done {
                    break;
                }
            }
            Ok(BooleanArray::new(kept.unwrap_or_else(|| BooleanBuffer::new_set(batch.num_rows())), None))
        };
        Some(Self { leaves, test: Arc::new(test) })
    }

    /// Applies the filter after decoding all columns: returns the leaves to read for some leaves, and the change that
    /// keeps passing rows and those leaves. If most rows pass, this is faster than decoding columns in two rounds.
    pub fn afterwards(self, leaves: &[usize]) -> (Vec<usize>, BatchChange) {
        let all: BTreeSet<usize> = leaves.iter().chain(&self.leaves).copied().collect();
        let (read, wanted): (Vec<usize>, Vec<usize>) = (all.into_iter().collect(), leaves.to_vec());
        let of_batch = read.clone();
        let internal = |error: ArrowError| Error::Internal(error.to_string());
        let change = move |batch: RecordBatch| {
            let kept = (self.test)(&pick(&batch, &of_batch, &self.leaves).map_err(internal)?)?;
            let picked = pick(&batch, &of_batch, &wanted).map_err(internal)?;
            drop(batch);
            rows_kept(picked, &kept).map_err(internal)
        };
        (read, Arc::new(change))
    }
}

impl Request {
    /// A request for all rows of some leaves, read by one thread.
    pub fn all(leaves: Vec<usize>) -> Self {
        Self {
            leaves,
            range: (0, u64::MAX),
            rows: None,
            prune: Expression::True,
            constants: HashSet::new(),
            filter: None,
            batch_rows: BATCH_ROWS,
            threads: 1,
            expected_rows: None,
        }
    }
}

/// The column of row positions, in the form of a file's columns: with its field id.
pub fn position_field() -> FieldRef {
    let mut field = ArrowField::new(POS.name, DataType::Int64, false);
    field.metadata_mut().insert(FIELD_ID_KEY, POS.id.to_string());
    Arc::new(field)
}

/// Whether a field is stored in data files; columns of type `unknown` contain only nulls and are not.
pub(crate) fn is_stored(field: &Field) -> bool {
    !matches!(field.ty, Type::Primitive(PrimitiveType::Unknown))
}

/// A file being written. After an error it can only be aborted.
pub trait FileWriter: Debug + Send {
    /// Appends batches; with `side_by_side`, encodes columns in parallel on the pool, if the format allows it.
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()>;
    /// Ends the open row group or stripe to free its memory.
    fn close_group(&mut self) -> Result<()>;
    /// Memory of the open row group or stripe.
    fn memory(&self) -> usize;
    /// Size of the file if it were closed now.
    fn size(&self) -> u64;
    /// Closes the file and makes it visible under its name.
    fn finish(self: Box<Self>) -> Result<WrittenFile>;
    /// Discards what was written.
    fn abort(self: Box<Self>);
}

/// A finished file.
#[derive(Debug)]
pub struct WrittenFile {
    /// Its location.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its metrics for the manifest.
    pub metrics: FileMetrics,
    /// Its encryption key metadata, if it is encrypted.
    pub key_metadata: Option<HiddenBytes>,
}
