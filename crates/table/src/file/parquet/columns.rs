//! Batches of columns of which the library decodes some, and this crate the others.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::SchemaDescriptor;

use super::flat::FlatColumn;

/// The columns of some leaves, row for row.
pub(super) struct Columns {
    /// What the library decodes, unless that is nothing.
    others: Option<ParquetRecordBatchReader>,
    /// What is decoded here, each with its place among the columns.
    own: Vec<(usize, FlatColumn)>,
    schema: SchemaRef,
    rows: RowsLeft,
    batch_rows: usize,
}

impl Columns {
    /// The columns of some leaves of some row groups, in batches of so many rows; all rows without a selection.
    pub(super) fn new(
        groups: &dyn RowGroups,
        descriptor: &SchemaDescriptor,
        fields: &Fields,
        leaves: &[usize],
        batch_rows: usize,
        selection: Option<RowSelection>,
    ) -> Result<Self> {
        // The library makes room for a whole batch of each column before it reads one.
        let batch_rows = batch_rows.min(groups.num_rows().max(1));
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let leaves: BTreeSet<usize> = leaves.iter().copied().collect();
        let roots: Vec<usize> = leaves
            .iter()
            .map(|leaf| descriptor.get_column_root_idx(*leaf))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for leaf in leaves {
            let place = roots.binary_search(&descriptor.get_column_root_idx(leaf)).unwrap_or_default();
            match FlatColumn::of(groups, descriptor, fields, leaf)? {
                Some(column) => own.push((place, column)),
                None => others.push(leaf),
            }
        }
        let rows = RowsLeft::new(selection.as_ref(), groups.num_rows());
        let mut of_others = Fields::empty();
        let others = if others.is_empty() && !own.is_empty() {
            None
        } else {
            let mask = ProjectionMask::leaves(descriptor, others);
            let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(fields))?;
            let made = ParquetRecordBatchReader::try_new_with_row_groups(&levels, groups, batch_rows, selection)?;
            of_others = made.schema().fields().clone();
            Some(made)
        };
        let of_own = roots.iter().map(|root| fields.get(*root).cloned());
        let mut all = of_others.iter().cloned();
        let field = |(place, own_field): (usize, Option<FieldRef>)| match own.iter().any(|(own, _)| *own == place) {
            true => own_field,
            false => all.next(),
        };
        let schema: Option<Fields> = of_own.enumerate().map(field).collect();
        let schema =
            schema.ok_or_else(|| ParquetError::General("its columns are not those of its schema".to_owned()))?;
        Ok(Self { others, own, schema: Arc::new(Schema::new(schema)), rows, batch_rows })
    }

    /// The next batch; with `keys`, texts that are keys of a dictionary stay so until [`Columns::settled`].
    pub(super) fn next(&mut self, keys: bool) -> Result<Option<RecordBatch>> {
        let (count, columns) = match &mut self.others {
            Some(others) => match others.next().transpose()? {
                Some(batch) => (batch.num_rows(), batch.columns().to_vec()),
                None => return Ok(None),
            },
            None => (self.rows.left().min(self.batch_rows), Vec::new()),
        };
        if count == 0 {
            return Ok(None);
        }
        if self.own.is_empty() {
            return self.batch(columns, count).map(Some);
        }
        let rows = self.rows.take(count)?;
        let mut columns = columns;
        for (place, column) in &mut self.own {
            let found = column.read(&rows, keys)?;
            columns.insert((*place).min(columns.len()), found);
        }
        self.batch(columns, count).map(Some)
    }

    /// Some rows of the last batch, without keys of dictionaries.
    pub(super) fn settled(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let (_, mut columns, rows) = batch.into_parts();
        for (place, column) in &mut self.own {
            if let Some(found) = columns.get_mut(*place) {
                *found = column.settled(found)?;
            }
        }
        self.batch(columns, rows)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let typed = |(field, column): (&FieldRef, &ArrayRef)| match field.data_type() == column.data_type() {
            true => Arc::clone(field),
            false => Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone())),
        };
        let fields = self.schema.fields();
        let schema = match fields.iter().zip(&columns).all(|(field, column)| field.data_type() == column.data_type()) {
            true => Arc::clone(&self.schema),
            false => Arc::new(Schema::new(fields.iter().zip(&columns).map(typed).collect::<Fields>())),
        };
        Ok(RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))?)
    }
}

/// The rows that are to be read.
struct RowsLeft {
    runs: VecDeque<RowSelector>,
}

impl RowsLeft {
    fn new(selection: Option<&RowSelection>, all: usize) -> Self {
        let runs = match selection {
            Some(selection) => selection.iter().copied().filter(|run| run.row_count > 0).collect(),
            None => VecDeque::from([RowSelector::select(all)]),
        };
        Self { runs }
    }

    fn left(&self) -> usize {
        self.runs.iter().filter(|run| !run.skip).fold(0, |sum: usize, run| sum.saturating_add(run.row_count))
    }

    /// The next rows: how many are skipped before how many that are read.
    fn take(&mut self, mut count: usize) -> Result<Vec<(usize, usize)>> {
        let (mut taken, mut skipped) = (Vec::new(), 0);
        while count > 0 {
            let Some(run) = self.runs.front_mut() else {
                return Err(ParquetError::General("it has more rows than its footer says".to_owned()));
            };
            if run.skip {
                skipped += run.row_count;
                self.runs.pop_front();
                continue;
            }
            let read = count.min(run.row_count);
            taken.push((std::mem::take(&mut skipped), read));
            count -= read;
            run.row_count -= read;
            if run.row_count == 0 {
                self.runs.pop_front();
            }
        }
        Ok(taken)
    }
}
