//! Data and delete files: one door a format, in both directions ("Appendix A: Format-specific Requirements").
//!
//! [`open`] reads: a [`DataFileReader`] says which columns a file has and returns the batches of a [`Request`]. [`FileLayout`] writes:
//! each of its files is a [`FileWriter`]. Formats know leaves of columns, row numbers, byte ranges and filters, and nothing of a
//! table's deletes, tasks or partitions.

pub mod avro;
pub mod layout;
pub mod leaves;
pub mod metrics;
pub mod modes;
mod open;
pub mod orc;
pub mod parquet;
pub(crate) mod ranges;
mod shapes;
mod sink;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, Field as ArrowField, FieldRef, Fields};
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

/// Rows of a batch, at the most, unless a reader is asked for others.
pub const BATCH_ROWS: usize = 64 << 10;

/// A file that is open for reading.
pub trait DataFileReader: Send {
    /// Settles by which ids columns are read: `with_ids` makes them from the ids that the file stores as
    /// `PARQUET:field_id`, or from none. `schema` has the types that values must fit. Returns the columns as batches will
    /// have them, and behind them that of row positions, [`position_field`].
    fn bind(&mut self, with_ids: &dyn Fn(&Fields) -> Fields, schema: &Arc<Schema>) -> Fields;

    /// What the file says of its rows without reading them: counts, and bounds where `modes` ask for them, by the ids that
    /// [`DataFileReader::bind`] settled. Of an Avro file that is the number of rows.
    fn metrics(&self, modes: &Modes) -> Result<FileMetrics>;

    /// Rows of the file, where its footer tells. An Avro file has none: [`DataFileReader::count_rows`] looks at its blocks.
    fn rows(&self) -> Option<u64>;

    /// Rows of the file.
    fn count_rows(&self) -> Result<u64> {
        self.rows().ok_or_else(|| Error::Internal("a file whose reader does not count its rows".to_owned()))
    }

    /// What the statistics of the file say of the nulls of each leaf; nothing of those that are not there.
    fn nulls(&self) -> Vec<Option<Nulls>> {
        Vec::new()
    }

    /// The batches of a request, in the order of the file; what is large may come in parts, for several threads.
    fn batches(self: Box<Self>, request: Request) -> Result<Opened>;
}

/// What the statistics of a file say of the nulls of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// No row is null, and none of what is around it.
    None,
    /// All rows are null.
    All,
}

/// What to read of a file.
#[derive(Clone)]
pub struct Request {
    /// Leaves of the columns that [`DataFileReader::bind`] returned, counted depth first, ascending.
    pub leaves: Vec<usize>,
    /// First byte and length: row groups and stripes that lie elsewhere belong to other parts of the file.
    pub range: (u64, u64),
    /// Rows wanted, by number in the file: ascending, without overlaps. All without it.
    pub rows: Option<Vec<Range<u64>>>,
    /// Row groups and stripes without a row for this filter may be skipped.
    pub prune: BoundExpr,
    /// Columns that rows have other values of than the file: `prune` must not be held against its statistics.
    pub constants: HashSet<i32>,
    /// Rows to keep, decided before other columns are decoded where that is possible.
    pub filter: Option<Filter>,
    /// Rows of a batch, at the most.
    pub batch_rows: usize,
    /// Threads that may read the file.
    pub threads: usize,
    /// Rows that the file must have, where somebody says. A format whose files have no footer counts them while they are read.
    pub expected_rows: Option<u64>,
}

/// The error of a file that has other rows than its manifest says.
pub(crate) fn other_rows(path: &str, found: u64, expected: u64) -> Error {
    Error::corrupt_file(path, format!("it has {found} rows, but the manifest says {expected}"))
}

/// Says for every row of a batch whether it stays.
pub type RowTest = Arc<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync>;

/// A test of rows that sees a batch of the leaves it asks for; null counts as no.
#[derive(Clone)]
pub struct Filter {
    /// Leaves of the batch that `test` gets, ascending.
    pub leaves: Vec<usize>,
    /// The test.
    pub test: RowTest,
}

impl Filter {
    /// The rows that pass all of some filters; a filter is not asked about a batch of which nothing is left.
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

    /// The filter after all columns are decoded: what to read for some leaves, and how batches of that get the rows that pass
    /// and no other leaves. Where most rows pass, that takes less time than to decode columns twice over.
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
    /// All rows of some leaves, read by one thread.
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

/// The column of row positions, as the columns of a file are given: with its field id.
pub fn position_field() -> FieldRef {
    let mut field = ArrowField::new(POS.name, DataType::Int64, false);
    field.metadata_mut().insert(FIELD_ID_KEY, POS.id.to_string());
    Arc::new(field)
}

/// Whether a field has a place in data files: columns of type `unknown` hold nothing but nulls.
pub(crate) fn is_stored(field: &Field) -> bool {
    !matches!(field.ty, Type::Primitive(PrimitiveType::Unknown))
}

/// A file in the making. After an error it can only be given up.
pub trait FileWriter: Debug + Send {
    /// Appends batches; `side_by_side` encodes their columns on the pool, where the format lets columns be encoded apart.
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()>;
    /// Ends the open row group or stripe, so that its memory is free again.
    fn close_group(&mut self) -> Result<()>;
    /// Memory that the open row group or stripe holds.
    fn memory(&self) -> usize;
    /// Bytes that the file would have if it were closed now.
    fn size(&self) -> u64;
    /// Closes the file, which appears under its name.
    fn finish(self: Box<Self>) -> Result<WrittenFile>;
    /// Discards what was written.
    fn abort(self: Box<Self>);
}

/// A finished file.
#[derive(Debug)]
pub struct WrittenFile {
    /// Where it lies.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What a manifest says of it.
    pub metrics: FileMetrics,
}
