//! Converts arrays to the exact type that a schema requires, with the same values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, new_null_array};
use arrow_schema::{ArrowError, DataType, FieldRef};

use crate::error::{Error, Result};

/// Converts between types that differ in metadata, in the names of list elements and map entries, in omitted struct
/// fields, or in layout.
pub fn conform(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(array.clone());
    }
    Ok(match wanted {
        DataType::Struct(fields) => {
            let parent = array.as_struct_opt().ok_or_else(|| misfit(array, wanted))?;
            let child = |field: &FieldRef| match (parent.column_by_name(field.name()), field.data_type()) {
                (Some(found), wanted) => conform(found, wanted),
                // Fields of the type `unknown` are not stored.
                (None, DataType::Null) => Ok(new_null_array(&DataType::Null, parent.len())),
                (None, _) => Err(missing(field)),
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
    Error::Internal(format!("an array of {} has no counterpart of {wanted}", array.data_type()))
}

fn missing(field: &FieldRef) -> Error {
    Error::Internal(format!("a struct without its field {:?}", field.name()))
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(error.to_string())
}
