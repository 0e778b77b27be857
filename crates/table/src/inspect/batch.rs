//! Batches of metadata tables: each column is built by name and converted to the exact type of the table's schema.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, FieldRef, SchemaRef};

pub(super) use crate::arrow::conform::conform;
use crate::error::{Error, Result};

/// Builds a batch of `rows` rows; `make` returns the column of a field, in its type except for nested names and
/// metadata.
pub(super) fn build(
    schema: &SchemaRef,
    rows: usize,
    make: impl Fn(&FieldRef) -> Result<ArrayRef>,
) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| conform(&make(field)?, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_>>()?, &options).map_err(internal)
}

/// Some columns of a batch, nested ones included.
pub(super) fn select(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    build(schema, batch.num_rows(), |field| {
        batch.column_by_name(field.name()).cloned().ok_or_else(|| missing(field.name()))
    })
}

/// The error for a column that a metadata table does not have.
pub(super) fn missing(name: &str) -> Error {
    Error::Internal(format!("a metadata table has no way to make its column {name:?}"))
}

pub(super) fn internal(error: ArrowError) -> Error {
    Error::Internal(error.to_string())
}
