//! Decodes the rows of a block to a batch, with a decoder compiled from the writer's schema and the selected leaves.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, FieldRef, Fields, Schema as ArrowSchema};
use icefield_format::Limits;
use icefield_format::avro::RecordSchema;
use icefield_format::avro::cursor::{Cursor, Fault};
use icefield_format::limits::MEMORY_VARIABLE;

use super::column::{Budget, ColumnBuilder, Step, columns, read_steps, steps_width};
use super::compile::steps;
use crate::error::{Error, Result};
use crate::file::leaves::{count, projected};
use crate::file::position_field;

/// Maximum bytes of the rows in a batch, except for its last row.
const BATCH_BYTES: u64 = 32 << 20;

/// Why a row cannot be decoded.
pub(super) struct RowFault {
    /// What is wrong.
    pub fault: Fault,
    /// The column of the fault.
    pub column: Option<String>,
}

/// Reads rows into a batch of some leaves.
#[derive(Debug)]
pub(super) struct Decoder {
    steps: Vec<Step>,
    fields: Fields,
    positions: Option<Vec<i64>>,
    most_rows: usize,
    /// Memory of a batch beyond the bytes of its rows.
    allowance: u64,
    rows: usize,
    bytes: u64,
    budget: Budget,
}

impl Decoder {
    /// For some leaves of a file's columns; the last leaf is the row position.
    pub(super) fn new(
        record: &RecordSchema,
        columns: &Fields,
        leaves: &[usize],
        batch_rows: usize,
        limits: &Limits,
    ) -> Result<Self> {
        let steps = steps(record, columns, leaves).map_err(|column| {
            Error::unsupported(format!(
                "column {column} has a type that Iceberg has no place for, such as a union of several types"
            ))
        })?;
        let all: Fields = columns.iter().cloned().chain([position_field()]).collect();
        let has_positions = leaves.contains(&count(columns));
        let width = steps_width(&steps);
        let (allowance, most) = (limits.decoded_bytes as u64, limits.least_memory as u64);
        if width > most {
            return Err(Error::invalid(format!(
                "each row takes at least {width} bytes, and at most {most} are allowed; if you trust the file, raise this \
                 limit with {MEMORY_VARIABLE}=BYTES"
            )));
        }
        let room = BATCH_BYTES.checked_div(width).and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        Ok(Self {
            steps,
            fields: projected(&all, leaves),
            positions: has_positions.then(Vec::new),
            most_rows: batch_rows.min(room).max(1),
            allowance,
            rows: 0,
            bytes: 0,
            budget: Budget::new(allowance),
        })
    }

    /// Whether the columns need only the number of rows.
    pub(super) fn is_empty(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Read(_)))
    }

    /// Rows in the batch so far.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Rows that still fit into the batch.
    pub(super) fn room(&self) -> usize {
        if self.bytes.saturating_add(self.budget.spent()) >= BATCH_BYTES { 0 } else { self.most_rows - self.rows }
    }

    /// Reads a row with a number in the file.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>, number: u64) -> Result<(), RowFault> {
        let before = cursor.rest().len();
        read_steps(&mut self.steps, cursor, &mut self.budget).map_err(|(fault, place)| {
            let column = place.and_then(|place| self.fields.get(place)).map(|field| field.name().clone());
            RowFault { fault, column }
        })?;
        self.bytes += (before - cursor.rest().len()) as u64;
        self.add(number..number + 1);
        Ok(())
    }

    /// Adds rows without reading any data.
    pub(super) fn add(&mut self, numbers: Range<u64>) {
        self.rows += usize::try_from(numbers.end - numbers.start).unwrap_or(usize::MAX);
        if let Some(positions) = &mut self.positions {
            positions.extend(numbers.map(u64::cast_signed));
        }
    }

    /// Takes the batch of the rows so far.
    pub(super) fn finish(&mut self, path: &str) -> Result<RecordBatch> {
        let wrong = |field: &Field, error| Error::corrupt_file(path, format!("column {}: {error}", field.name()));
        let finish = |(field, column): (&FieldRef, &mut ColumnBuilder)| {
            column.finish(field).map_err(|error| wrong(field, error))
        };
        let mut arrays: Vec<ArrayRef> =
            self.fields.iter().zip(columns(&mut self.steps)).map(finish).collect::<Result<_>>()?;
        if let Some(positions) = &mut self.positions {
            arrays.push(Arc::new(Int64Array::from(std::mem::take(positions))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes, self.budget) = (0, 0, Budget::new(self.allowance));
        let schema = Arc::new(ArrowSchema::new(self.fields.clone()));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|error| Error::corrupt_file(path, error))
    }
}
