//! Runs: rows of a partition that exceed the memory limit go to a temporary file. If rows are sorted, each run is
//! sorted, and all runs are merged when the partition ends ("Sorting"). Runs that memory cannot hold a batch of each
//! are first merged to fewer.

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use arrow_row::{RowConverter, Rows};
use arrow_select::interleave::interleave_record_batch;

use super::sort::Sorter;
use crate::arrow::size::bytes_of;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::spill::{BUFFER_BYTES, SpillFile, SpillReader, Spilled};

/// Bytes of a batch in a run.
const BATCH_BYTES: usize = 1 << 18;

/// The batches of a run that a merge may hold: the current one and the next, their copies in merged rows, and sort keys.
const BATCHES_HELD: usize = 5;

/// The fewest runs that are merged at once, however little memory there is.
const LEAST_RUNS: usize = 4;

/// Rows of a merged batch.
const MERGED_ROWS: usize = 1 << 13;

/// The runs of a partition, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Runs {
    spilled: Vec<Spilled>,
    /// Bytes of the largest batch in a sorted run, and the fewest rows that a batch was to have.
    batch_bytes: usize,
    batch_rows: Option<usize>,
}

/// Merges several runs in sort order; equal rows in the order of the runs.
pub(super) struct Merge<'a> {
    sorter: &'a Sorter,
    converter: Option<RowConverter>,
    runs: Vec<OpenRun>,
    /// A heap of the runs with remaining rows; the one with the smallest row is first.
    heap: Vec<usize>,
    /// Batches with rows to be returned.
    batches: Vec<RecordBatch>,
    /// Maximum rows of a merged batch.
    most_rows: usize,
    failed: bool,
}

/// A run and its current row.
struct OpenRun {
    source: RunSource,
    rows: Rows,
    row: usize,
    /// Its batch among those of the merge.
    batch: usize,
}

enum RunSource {
    File(SpillReader),
    Memory(std::vec::IntoIter<RecordBatch>),
}

impl Runs {
    /// Whether all rows are in memory.
    pub(super) fn is_empty(&self) -> bool {
        self.spilled.is_empty()
    }

    /// Sorts rows and writes them to the file.
    pub(super) fn spill(&mut self, sorter: &Sorter, rows: &[RecordBatch], file: &mut SpillFile) -> Result<()> {
        let Some(schema) = rows.first().map(RecordBatch::schema) else { return Ok(()) };
        let (count, bytes) = rows.iter().fold((0, 0), |(count, bytes), b| (count + b.num_rows(), bytes + bytes_of(b)));
        let batch_rows = (BATCH_BYTES / (bytes / count.max(1)).max(1)).clamp(1, MERGED_ROWS);
        self.batch_rows = Some(self.batch_rows.map_or(batch_rows, |known| known.min(batch_rows)));
        let sorted = measured(sorter.sort(rows, batch_rows)?, &mut self.batch_bytes);
        self.spilled.push(file.add(&schema, sorted)?);
        Ok(())
    }

    /// Writes rows to the file unchanged.
    pub(super) fn keep(&mut self, rows: &[RecordBatch], file: &mut SpillFile) -> Result<()> {
        let Some(schema) = rows.first().map(RecordBatch::schema) else { return Ok(()) };
        self.spilled.push(file.add(&schema, rows.iter().cloned().map(Ok))?);
        Ok(())
    }

    /// The rows of all runs, one run after the other.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        std::mem::take(&mut self.spilled).into_iter().flat_map(|run| {
            let (reader, failed) = match run.read() {
                Ok(reader) => (Some(reader), None),
                Err(error) => (None, Some(Err(error))),
            };
            failed.into_iter().chain(reader.into_iter().flatten())
        })
    }

    /// Merges the runs within about `memory` bytes, with the rows in memory as the last run.
    pub(super) fn merge<'a>(&mut self, sorter: &'a Sorter, last: &[RecordBatch], memory: usize) -> Result<Merge<'a>> {
        self.reduce(sorter, memory)?;
        let last = sorter.sort(last, MERGED_ROWS)?.collect::<Result<Vec<_>>>()?;
        Merge::of(sorter, std::mem::take(&mut self.spilled), last)
    }

    /// Merges neighbours until there is memory for all runs at once. Each round over the runs has a temporary file of its
    /// own, so that the file of an earlier round is deleted when the last of its runs is merged.
    fn reduce(&mut self, sorter: &Sorter, memory: usize) -> Result<()> {
        let (mut next, mut file) = (0, None);
        loop {
            let most = self.most(memory);
            let surplus = self.spilled.len().saturating_sub(most);
            let count = (surplus + 1).min(most).min(self.spilled.len() - next);
            match (surplus, count) {
                (0, _) => return Ok(()),
                (_, 0) => (next, file) = (0, None),
                // A single run at the end is copied, because it would keep the file of the round before.
                _ => {
                    let is_encrypted = self.spilled.iter().any(Spilled::is_encrypted);
                    let runs: Vec<Spilled> = self.spilled.drain(next..next + count).collect();
                    let mut merge = Merge::of(sorter, runs, Vec::new())?;
                    merge.most_rows = self.batch_rows.unwrap_or(MERGED_ROWS);
                    let Some(schema) = merge.batches.first().map(RecordBatch::schema) else { continue };
                    let file = match &mut file {
                        Some(file) => file,
                        none => none.insert(SpillFile::create(is_encrypted)?),
                    };
                    let merged = measured(merge, &mut self.batch_bytes);
                    self.spilled.insert(next, file.add(&schema, merged)?);
                    next += 1;
                }
            }
        }
    }

    /// The most runs that are merged at once.
    fn most(&self, memory: usize) -> usize {
        let of_run = self.batch_bytes.max(1).saturating_mul(BATCHES_HELD).saturating_add(BUFFER_BYTES);
        (memory / of_run).max(LEAST_RUNS)
    }
}

/// The same batches; `most` becomes the bytes of the largest, if it is less.
fn measured(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    most: &mut usize,
) -> impl Iterator<Item = Result<RecordBatch>> {
    batches.inspect(|batch| *most = batch.as_ref().map_or(*most, |batch| bytes_of(batch).max(*most)))
}

impl<'a> Merge<'a> {
    /// A merge of runs in a file, and of sorted batches in memory as the last one.
    fn of(sorter: &'a Sorter, runs: Vec<Spilled>, last: Vec<RecordBatch>) -> Result<Self> {
        let (runs_open, heap, batches) = (Vec::with_capacity(runs.len() + 1), Vec::new(), Vec::new());
        let most_rows = MERGED_ROWS;
        let mut merge = Self { sorter, converter: None, runs: runs_open, heap, batches, most_rows, failed: false };
        for run in runs {
            merge.begin(RunSource::File(run.read()?))?;
        }
        merge.begin(RunSource::Memory(last.into_iter()))?;
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sift(place);
        }
        Ok(merge)
    }
}

impl Merge<'_> {
    fn begin(&mut self, mut source: RunSource) -> Result<()> {
        let Some(batch) = source.batch()? else { return Ok(()) };
        let rows = self.sorter.rows(&batch, &mut self.converter)?;
        self.heap.push(self.runs.len());
        self.runs.push(OpenRun { source, rows, row: 0, batch: self.batches.len() });
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
        let mut places = Vec::with_capacity(self.most_rows);
        // Combine fewer rows if they are long, so that a merged batch refers to few batches of the runs.
        let most = self.batches.len() + self.runs.len();
        while places.len() < self.most_rows && self.batches.len() <= most {
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

impl RunSource {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int32Array, Int64Array};
    use icefield_format::spec::{NullOrder, SortDirection, SortField, SortOrder};
    use icefield_format::transform::Transform;
    use icefield_format::types::{Field, PrimitiveType, Schema};

    use super::*;

    /// Rows with a key that other runs have too, and their number.
    fn run(number: i64) -> RecordBatch {
        let rows = number * 5..number * 5 + 5;
        RecordBatch::try_from_iter([
            ("key", Arc::new(rows.clone().map(|row| (row * 7 % 3) as i32).collect::<Int32Array>()) as _),
            ("row", Arc::new(rows.collect::<Int64Array>()) as _),
        ])
        .unwrap()
    }

    #[test]
    fn little_memory_opens_few_runs_at_once_and_equal_rows_keep_their_order() {
        let fields =
            vec![Field::required(1, "key", PrimitiveType::Int), Field::required(2, "row", PrimitiveType::Long)];
        let key = SortField {
            source_ids: vec![1],
            transform: Transform::Identity,
            direction: SortDirection::Ascending,
            null_order: NullOrder::First,
        };
        let order = SortOrder { order_id: 1, fields: vec![key] };
        let sorter = Sorter::new(&order, &Schema::new(0, fields).unwrap()).unwrap().unwrap();
        for count in [0, 1, 3, 4, 5, 6, 7, 15, 16, 17, 130] {
            let (mut runs, mut file) = (Runs::default(), SpillFile::create(true).unwrap());
            (0..count).for_each(|number| runs.spill(&sorter, &[run(number)], &mut file).unwrap());
            let merge = runs.merge(&sorter, &[run(count)], 1).unwrap();
            assert!(merge.runs.len() <= LEAST_RUNS + 1, "{count}: {} runs are open", merge.runs.len());
            let merged: Vec<i64> = merge
                .flat_map(|batch| batch.unwrap().column(1).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            let mut expected: Vec<i64> = (0..(count + 1) * 5).collect();
            expected.sort_by_key(|row| row * 7 % 3);
            assert_eq!(merged, expected, "{count}");
        }
    }

    #[test]
    fn more_memory_merges_more_runs_at_once() {
        let most = |batch_bytes, memory| Runs { batch_bytes, ..Runs::default() }.most(memory);
        assert!(most(BATCH_BYTES, 64 << 20) > 10 * LEAST_RUNS);
        assert!(most(BATCH_BYTES, 1 << 30) > 10 * most(BATCH_BYTES, 64 << 20));
        assert_eq!(most(8 << 20, 64 << 20), LEAST_RUNS);
    }
}
