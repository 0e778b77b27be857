//! Batches of metadata tables: each column made by its name, and brought to the exact type of the table's schema.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};

use crate::error::{Error, Result};

/// Makes a batch of `rows` rows; `make` gives the column of a field, in its type but for names and metadata inside.
pub(super) fn build(
    schema: &SchemaRef,
    rows: usize,
    make: impl Fn(&FieldRef) -> Result<ArrayRef>,
) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| conform(&make(field)?, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_>>()?, &options).map_err(internal)
}

/// Some columns of a batch, nested ones too.
pub(super) fn select(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    build(schema, batch.num_rows(), |field| {
        batch.column_by_name(field.name()).cloned().ok_or_else(|| missing(field.name()))
    })
}

/// The same values in a type that differs in metadata, in the names of elements and pairs, in the fields of structs that
/// are left out, or in a layout that a cast knows.
pub(super) fn conform(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(array.clone());
    }
    Ok(match wanted {
        DataType::Struct(fields) => {
            let parent = array.as_struct_opt().ok_or_else(|| misfit(array, wanted))?;
            let child = |field: &FieldRef| {
                let found = parent.column_by_name(field.name()).ok_or_else(|| missing(field.name()))?;
                conform(found, field.data_type())
            };
            let columns = fields.iter().map(child).collect::<Result<Vec<_>>>()?;
            let nulls = parent.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, parent.len()).map_err(internal)?)
        }
        DataType::List(field) => {
            let parent = array.as_list_opt::<i32>().ok_or_else(|| misfit(array, wanted))?;
            let values = conform(parent.values(), field.data_type())?;
            let (offsets, nulls) = (parent.offsets().clone(), parent.nulls().cloned());
            Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls).map_err(internal)?)
        }
        DataType::Map(field, sorted) => {
            let parent = array.as_map_opt().ok_or_else(|| misfit(array, wanted))?;
            let DataType::Struct(pair) = field.data_type() else { return Err(misfit(array, wanted)) };
            let pairs = [parent.keys(), parent.values()].into_iter().zip(pair);
            let columns = pairs.map(|(found, field)| conform(found, field.data_type())).collect::<Result<Vec<_>>>()?;
            let entries = StructArray::try_new(pair.clone(), columns, None).map_err(internal)?;
            let (offsets, nulls) = (parent.offsets().clone(), parent.nulls().cloned());
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted).map_err(internal)?)
        }
        _ => arrow_cast::cast(array, wanted).map_err(internal)?,
    })
}

fn misfit(array: &ArrayRef, wanted: &DataType) -> Error {
    Error::Internal(format!("a column of a metadata table is {} and not {wanted}", array.data_type()))
}

/// The error for a column that a metadata table's rows are not made with.
pub(super) fn missing(name: &str) -> Error {
    Error::Internal(format!("a metadata table has no way to make its column {name:?}"))
}

pub(super) fn internal(error: ArrowError) -> Error {
    Error::Internal(error.to_string())
}
