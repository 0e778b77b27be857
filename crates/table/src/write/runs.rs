//! Runs: rows of a partition that exceed the memory limit go to a temporary file. If rows are sorted, each run is
//! sorted, and all runs are merged when the partition ends ("Sorting").

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use arrow_row::{RowConverter, Rows};
use arrow_select::interleave::interleave_record_batch;

use super::sort::Sorter;
use crate::arrow::size::bytes_of;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::spill::{SpillFile, SpillReader, Spilled};

/// Bytes of a batch in a run: a merge holds one or two per run.
const BATCH_BYTES: usize = 1 << 20;

/// Rows of a merged batch.
const MERGED_ROWS: usize = 1 << 13;

/// The runs of a partition, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<Spilled>);

/// Merges several runs in sort order; equal rows in the order of the runs.
pub(super) struct Merge<'a> {
    sorter: &'a Sorter,
    converter: Option<RowConverter>,
    runs: Vec<Run>,
    /// A heap of the runs with remaining rows; the one with the smallest row is first.
    heap: Vec<usize>,
    /// Batches with rows to be returned.
    batches: Vec<RecordBatch>,
    failed: bool,
}

/// A run and its current row.
struct Run {
    source: Source,
    rows: Rows,
    row: usize,
    /// Its batch among those of the merge.
    batch: usize,
}

enum Source {
    File(SpillReader),
    Memory(std::vec::IntoIter<RecordBatch>),
}

impl Runs {
    /// Whether all rows are in memory.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sorts rows and writes them to the file.
    pub(super) fn spill(&mut self, sorter: &Sorter, rows: &[RecordBatch], file: &mut SpillFile) -> Result<()> {
        let Some(schema) = rows.first().map(RecordBatch::schema) else { return Ok(()) };
        let (count, bytes) = rows.iter().fold((0, 0), |(count, bytes), b| (count + b.num_rows(), bytes + bytes_of(b)));
        let batch_rows = (BATCH_BYTES / (bytes / count.max(1)).max(1)).clamp(1, MERGED_ROWS);
        let spilled = file.add(&schema, sorter.sort(rows, batch_rows)?)?;
        self.0.push(spilled);
        Ok(())
    }

    /// Writes rows to the file unchanged.
    pub(super) fn keep(&mut self, rows: &[RecordBatch], file: &mut SpillFile) -> Result<()> {
        let Some(schema) = rows.first().map(RecordBatch::schema) else { return Ok(()) };
        self.0.push(file.add(&schema, rows.iter().cloned().map(Ok))?);
        Ok(())
    }

    /// The rows of all runs, one run after the other.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        std::mem::take(&mut self.0).into_iter().flat_map(|run| {
            let (reader, failed) = match run.read() {
                Ok(reader) => (Some(reader), None),
                Err(error) => (None, Some(Err(error))),
            };
            failed.into_iter().chain(reader.into_iter().flatten())
        })
    }

    /// Merges the runs, with the rows in memory as the last run.
    pub(super) fn merge<'a>(&mut self, sorter: &'a Sorter, last: &[RecordBatch]) -> Result<Merge<'a>> {
        let mut merge =
            Merge { sorter, converter: None, runs: Vec::new(), heap: Vec::new(), batches: Vec::new(), failed: false };
        for run in std::mem::take(&mut self.0) {
            merge.begin(Source::File(run.read()?))?;
        }
        let last = sorter.sort(last, MERGED_ROWS)?.collect::<Result<Vec<_>>>()?;
        merge.begin(Source::Memory(last.into_iter()))?;
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sift(place);
        }
        Ok(merge)
    }
}

impl Merge<'_> {
    fn begin(&mut self, mut source: Source) -> Result<()> {
        let Some(batch) = source.batch()? else { return Ok(()) };
        let rows = self.sorter.rows(&batch, &mut self.converter)?;
        self.heap.push(self.runs.len());
        self.runs.push(Run { source, rows, row: 0, batch: self.batches.len() });
        self.batches.push(batch);
        Ok(())
    }

    /// Moves a run down the heap until it is before its children.
    fn sift(&mut self, mut place: usize) {
        loop {
            let below = [2 * place + 1, 2 * place + 2];
            let least =
                below.into_iter().fold(place, |least, other| if self.before(other, least) { other } else { least });
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }

    /// Whether the next row of one run comes before that of another; false if the first does not exist.
    fn before(&self, place: usize, other: usize) -> bool {
        let run = |place: usize| self.heap.get(place).and_then(|run| Some((*run, self.runs.get(*run)?)));
        let (Some((number, run)), Some((other_number, other))) = (run(place), run(other)) else { return false };
        let order = run.rows.row(run.row).cmp(&other.rows.row(other.row));
        order.then(number.cmp(&other_number)) == Ordering::Less
    }

    /// Takes the smallest row and returns its index among the batches.
    fn take(&mut self) -> Result<Option<(usize, usize)>> {
        let Some(run) = self.heap.first().and_then(|run| self.runs.get_mut(*run)) else { return Ok(None) };
        let place = (run.batch, run.row);
        run.row += 1;
        if run.row == run.rows.num_rows() {
            match run.source.batch()? {
                Some(batch) => {
                    (run.rows, run.row, run.batch) =
                        (self.sorter.rows(&batch, &mut self.converter)?, 0, self.batches.len());
                    self.batches.push(batch);
                }
                None => {
                    self.heap.swap_remove(0);
                }
            }
        }
        self.sift(0);
        Ok(Some(place))
    }

    fn merged(&mut self) -> Result<Option<RecordBatch>> {
        interrupt::check()?;
        let mut places = Vec::with_capacity(MERGED_ROWS);
        // Combine fewer rows if they are long, so that a merged batch refers to few batches of the runs.
        let most = self.batches.len() + self.runs.len();
        while places.len() < MERGED_ROWS && self.batches.len() <= most {
            let Some(place) = self.take()? else { break };
            places.push(place);
        }
        if places.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let merged = interleave_record_batch(&batches, &places);
        let merged = merged.map_err(|error| Error::Internal(format!("merging sorted rows: {error}")))?;
        // Drop batches without remaining rows.
        let mut left = Vec::with_capacity(self.heap.len());
        for number in &self.heap {
            let Some(run) = self.runs.get_mut(*number) else { continue };
            let Some(batch) = self.batches.get(run.batch) else { continue };
            run.batch = left.len();
            left.push(batch.clone());
        }
        self.batches = left;
        Ok(Some(merged))
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let merged = self.merged();
        self.failed = merged.is_err();
        merged.transpose()
    }
}

impl Source {
    /// The next batch that has rows.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let batch = match self {
                Self::File(reader) => reader.next().transpose()?,
                Self::Memory(batches) => batches.next(),
            };
            if batch.as_ref().is_none_or(|batch| batch.num_rows() > 0) {
                return Ok(batch);
            }
        }
    }
}
