//! Normalizes columns, so that their arrow-row bytes are equal if and only if their values are.
//!
//! Null equals null, every NaN equals any other, -0.0 does not equal 0.0. Strings and binaries are equal by their
//! bytes, structs and lists by their contents, and maps regardless of the order of entries. This holds at any depth.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UInt64Array};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

/// The column with one representation for each value.
pub fn comparable(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !has_forms(column.data_type()) {
        return Ok(column.clone());
    }
    let nulls = column.nulls().cloned();
    Ok(match column.data_type() {
        DataType::Float32 => {
            let floats = column.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(|value| if value.is_nan() { f32::NAN } else { value }))
        }
        DataType::Float64 => {
            let floats = column.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value }))
        }
        DataType::Struct(fields) => {
            let children = column.as_struct().columns().iter().map(comparable).collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), children, nulls, column.len())?)
        }
        DataType::List(element) => {
            let list = column.as_list::<i32>();
            let values = comparable(list.values())?;
            Arc::new(ListArray::try_new(element.clone(), list.offsets().clone(), values, nulls)?)
        }
        DataType::Map(entries, is_sorted) => {
            let map = column.as_map();
            let all: ArrayRef = Arc::new(map.entries().clone());
            let all = comparable(&all)?;
            let all = take(&all, &by_key(map, &all)?, None)?;
            let all = all.as_struct().clone();
            Arc::new(MapArray::try_new(entries.clone(), map.offsets().clone(), all, nulls, *is_sorted)?)
        }
        _ => column.clone(),
    })
}

/// Whether a value of a type may have several representations.
fn has_forms(ty: &DataType) -> bool {
    match ty {
        DataType::Float32 | DataType::Float64 | DataType::Map(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_forms(field.data_type())),
        DataType::List(element) => has_forms(element.data_type()),
        _ => false,
    }
}

/// Indices that sort the entries of each map by key.
fn by_key(map: &MapArray, entries: &ArrayRef) -> Result<UInt64Array, ArrowError> {
    let keys = entries.as_struct().columns().iter().take(1).cloned().collect::<Vec<_>>();
    let fields = keys.iter().map(|keys| SortField::new(keys.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(&keys)?;
    let mut places: Vec<usize> = (0..entries.len()).collect();
    let bounds = |at: usize| map.offsets().get(at).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0);
    for row in 0..map.len() {
        if let Some(own) = places.get_mut(bounds(row)..bounds(row + 1)) {
            own.sort_by(|one, other| rows.row(*one).cmp(&rows.row(*other)));
        }
    }
    Ok(UInt64Array::from_iter_values(places.into_iter().map(|place| place as u64)))
}
