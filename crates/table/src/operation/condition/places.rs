//! Collects the positions of rows from two columns of a scan: the path of the file and the position in it.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use icefield_format::puffin::DeletionVector;

use crate::error::{Error, Result};

/// Adds the positions of rows to those of their file: all rows, or the chosen ones. All rows must be from one file.
pub(in crate::operation) fn add(
    found: &mut HashMap<String, DeletionVector>,
    paths: &ArrayRef,
    numbers: &ArrayRef,
    chosen: Option<&BooleanBuffer>,
) -> Result<()> {
    let lost = || Error::Internal("rows without their places".to_owned());
    let paths = paths.as_string_opt::<i32>().ok_or_else(lost)?;
    let numbers = numbers.as_primitive_opt::<Int64Type>().ok_or_else(lost)?;
    let Some(path) = (!paths.is_empty()).then(|| paths.value(0)) else { return Ok(()) };
    if !found.contains_key(path) {
        found.insert(path.to_owned(), DeletionVector::new());
    }
    let rows = found.get_mut(path).ok_or_else(lost)?;
    let mut insert = |number: &i64| Ok::<_, Error>(rows.insert(u64::try_from(*number).map_err(|_| lost())?)?);
    match chosen {
        None => numbers.values().iter().try_for_each(|number| insert(number).map(drop)),
        Some(chosen) => {
            let mut places = chosen.set_indices();
            places.try_for_each(|place| insert(numbers.values().get(place).ok_or_else(lost)?).map(drop))
        }
    }
}
