//! Reads the rows that a filter keeps: its columns first, and of the others only the pages and runs with kept rows.
//!
//! The parquet crate evaluates a filter for a whole row group, turns its answers into a selection and decodes the other
//! columns with it: it decodes rows between kept ones too, and copies once more what is left. The columns decoded here
//! skip to any row while they are read, so the kept rows of each batch are copied straight out of the pages. Memory
//! holds the next pages of each column and one batch.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::SchemaDescriptor;

use super::columns::{Columns, flat_column};
use super::selection::Selected;
use crate::arrow::filter::rows_kept;
use crate::file::leaves::pick;
use crate::file::parquet::flat::column::FlatColumn;
use crate::file::parquet::flat::runs::Runs;
use crate::file::parquet::guard::internal;
use crate::file::{Filter, RowTest, position_field};

/// A batch is returned if it has this part of its maximum rows, so that few batches are joined from more than one
/// batch of the filter.
const FULL: usize = 4;

/// Batches of the filter after which a smaller batch is returned, for scans that need only a few rows.
const MOST_BATCHES: usize = 16;

/// The kept rows of some row groups.
pub(super) struct Late {
    /// The filter's columns.
    tested: Columns,
    test: RowTest,
    /// The filter's leaves, without the position.
    of_filter: Vec<usize>,
    /// Those of them that are asked for.
    asked: Vec<usize>,
    /// Whether the filter tests positions.
    tests_positions: bool,
    /// The first row of each row group: numbered through the row groups, and in the file.
    starts: Vec<(usize, u64)>,
    /// The columns asked for, in order.
    parts: Vec<Part>,
    schema: SchemaRef,
    batch_rows: usize,
    waiting: Waiting,
}

/// Where a column that is asked for comes from.
enum Part {
    /// The next column of the filter.
    Tested,
    /// A column of its own.
    Own(Box<dyn FlatColumn>),
    /// The position of each row in the file.
    Position,
}

/// Kept rows that no batch has yet.
#[derive(Default)]
struct Waiting {
    /// Their numbers: ascending, non-empty.
    rows: Vec<Range<usize>>,
    count: usize,
    /// Batches of the filter since the first of them.
    batches: usize,
    /// Their columns that the filter has read.
    tested: Vec<RecordBatch>,
}

/// What to read of a file.
pub(super) struct Wanted<'a> {
    pub(super) descriptor: &'a SchemaDescriptor,
    pub(super) fields: &'a Fields,
    /// The leaves asked for. The one after the file's leaves is the position.
    pub(super) leaves: &'a [usize],
    pub(super) filter: &'a Filter,
    pub(super) batch_rows: usize,
    /// The first row of each row group in the file.
    pub(super) firsts: Vec<u64>,
}

impl Wanted<'_> {
    /// The leaves that only rows kept by the filter are read of.
    pub(super) fn late_leaves(&self) -> impl Iterator<Item = usize> + Clone {
        let is_late = move |leaf: &usize| *leaf < self.descriptor.num_columns() && !self.filter.leaves.contains(leaf);
        self.leaves.iter().copied().filter(is_late)
    }
}

impl Late {
    /// The kept rows among the selected ones, or among all. `of_filter` has the pages of the filter's columns and
    /// `of_others` those of the others. `None` if the parquet crate has to decode one of the others.
    pub(super) fn new(
        of_filter: &dyn RowGroups,
        of_others: &dyn RowGroups,
        wanted: &Wanted<'_>,
        selected: Option<Selected>,
    ) -> Result<Option<Self>> {
        let Wanted { descriptor, fields, leaves, filter, batch_rows, .. } = wanted;
        let position = descriptor.num_columns();
        let mut own = Vec::new();
        for leaf in wanted.late_leaves() {
            let Some(column) = flat_column(of_others, descriptor, fields, leaf)? else { return Ok(None) };
            own.push((descriptor.get_column_root_idx(leaf), column));
        }
        let tested_leaves: Vec<usize> = filter.leaves.iter().copied().filter(|leaf| *leaf != position).collect();
        let asked: Vec<usize> = tested_leaves.iter().copied().filter(|leaf| leaves.contains(leaf)).collect();
        let tested = Columns::new(of_filter, descriptor, fields, &tested_leaves, *batch_rows, selected)?;
        let mut roots: Vec<usize> = asked.iter().map(|leaf| descriptor.get_column_root_idx(*leaf)).collect();
        roots.dedup();
        let of_asked = pick(&RecordBatch::new_empty(tested.schema()), &tested_leaves, &asked)?;
        let of_asked = of_asked.schema_ref().fields().iter().cloned();
        let mut parts: Vec<(usize, FieldRef, Part)> =
            roots.into_iter().zip(of_asked).map(|(root, field)| (root, field, Part::Tested)).collect();
        for (root, column) in own {
            let field = fields.get(root).cloned().ok_or_else(|| internal("a leaf without its column"))?;
            parts.push((root, field, Part::Own(column)));
        }
        // The columns of a file are primitive or come from one side, since a root on both sides is no flat column.
        parts.sort_by_key(|(root, ..)| *root);
        if leaves.contains(&position) {
            parts.push((position, position_field(), Part::Position));
        }
        let (fields, parts): (Vec<FieldRef>, Vec<Part>) =
            parts.into_iter().map(|(_, field, part)| (field, part)).unzip();
        let counts = of_filter.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        let through = counts.scan(0_usize, |next, count| {
            let start = *next;
            *next = start.saturating_add(count);
            Some(start)
        });
        Ok(Some(Self {
            tested,
            test: Arc::clone(&filter.test),
            tests_positions: filter.leaves.contains(&position),
            of_filter: tested_leaves,
            asked,
            starts: through.zip(wanted.firsts.iter().copied()).collect(),
            parts,
            schema: Arc::new(Schema::new(fields)),
            batch_rows: *batch_rows,
            waiting: Waiting::default(),
        }))
    }

    /// The next batch.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let mut numbers = Vec::new();
            let Some(batch) = self.tested.next_of(Some(&mut numbers))? else {
                return if self.waiting.count > 0 { self.taken().map(Some) } else { Ok(None) };
            };
            let kept = self.kept(&batch, &numbers)?;
            let count = kept.true_count();
            // A batch has no more rows than asked for, and the filter's columns are copied only if several are joined.
            let full = match self.waiting.count {
                0 => None,
                waiting if waiting + count > self.batch_rows => Some(self.taken()?),
                _ => None,
            };
            if count > 0 {
                let rows = kept.values().set_slices().map(|(start, end)| start..end);
                among(rows, &numbers, &mut self.waiting.rows);
                self.waiting.count += count;
                if !self.asked.is_empty() {
                    let asked = pick(&batch, &self.of_filter, &self.asked)?;
                    self.waiting.tested.push(rows_kept(asked, &kept)?);
                }
            }
            if self.waiting.count > 0 {
                self.waiting.batches += 1;
            }
            if full.is_some() {
                return Ok(full);
            }
            if self.waiting.count >= (self.batch_rows / FULL).max(1)
                || (self.waiting.count > 0 && self.waiting.batches >= MOST_BATCHES)
            {
                return self.taken().map(Some);
            }
        }
    }

    /// Which rows of a batch the filter keeps; without nulls.
    fn kept(&self, batch: &RecordBatch, numbers: &[Range<usize>]) -> Result<BooleanArray> {
        let with_positions = match self.tests_positions {
            true => {
                let fields = batch.schema_ref().fields().iter().cloned().chain([position_field()]).collect::<Fields>();
                let columns = batch.columns().iter().cloned().chain([self.positions(numbers)]).collect();
                Some(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
            }
            false => None,
        };
        let kept = (self.test)(with_positions.as_ref().unwrap_or(batch));
        let kept =
            kept.map_err(|error| ParquetError::External(Box::new(ArrowError::ExternalError(Box::new(error)))))?;
        if kept.len() != batch.num_rows() {
            let message = format!("a filter has {} answers for {} rows", kept.len(), batch.num_rows());
            return Err(ParquetError::General(message));
        }
        Ok(match kept.nulls() {
            Some(nulls) => BooleanArray::new(kept.values() & nulls.inner(), None),
            None => kept,
        })
    }

    /// The waiting rows as a batch.
    fn taken(&mut self) -> Result<RecordBatch> {
        let Waiting { rows, count, tested, .. } = std::mem::take(&mut self.waiting);
        let mut of_filter = match &*tested {
            [] => Vec::new(),
            [one] => one.columns().to_vec(),
            [first, ..] => concat_batches(first.schema_ref(), &tested)?.into_parts().1,
        }
        .into_iter();
        drop(tested);
        let window = rows.first().map_or(0, |rows| rows.start)..rows.last().map_or(0, |rows| rows.end);
        let wanted = Runs::new(&rows, window);
        let positions = self.parts.iter().any(|part| matches!(part, Part::Position)).then(|| self.positions(&rows));
        let mut columns = Vec::with_capacity(self.parts.len());
        for part in &mut self.parts {
            let column = match part {
                Part::Tested => of_filter.next(),
                Part::Own(column) => Some(column.read(&wanted, count)?),
                Part::Position => positions.clone(),
            };
            columns.push(column.ok_or_else(|| internal("a filter without its columns"))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// The positions of rows in the file.
    fn positions(&self, rows: &[Range<usize>]) -> ArrayRef {
        let mut positions = Vec::with_capacity(rows.iter().map(Range::len).sum());
        for range in rows {
            let mut start = range.start;
            while start < range.end {
                let next = self.starts.partition_point(|(first, _)| *first <= start);
                let end = self.starts.get(next).map_or(range.end, |(next, _)| range.end.min(*next));
                let (first, of_file) =
                    next.checked_sub(1).and_then(|at| self.starts.get(at)).copied().unwrap_or_default();
                let of_file = of_file.saturating_add((start - first) as u64).cast_signed();
                positions.extend((of_file..).take(end - start));
                start = end;
            }
        }
        Arc::new(Int64Array::from(positions))
    }
}

/// Appends the numbers of some rows of a batch whose rows have the numbers `of`; a range next to the last one is joined
/// with it.
fn among(rows: impl Iterator<Item = Range<usize>>, of: &[Range<usize>], found: &mut Vec<Range<usize>>) {
    let mut of = of.iter();
    let (mut current, mut before) = (0..0, 0);
    for mut row in rows {
        while !row.is_empty() {
            // `before` counts the rows of the batch ahead of `current`.
            while row.start >= before + current.len() {
                before += current.len();
                let Some(next) = of.next() else { return };
                current = next.clone();
            }
            let end = row.end.min(before + current.len());
            let range = current.start + (row.start - before)..current.start + (end - before);
            match found.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => found.push(range),
            }
            row.start = end;
        }
    }
}

#[cfg(test)]
mod tests;
