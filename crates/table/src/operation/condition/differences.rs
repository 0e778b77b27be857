//! Finds the rows in which columns differ.

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_row::{RowConverter, SortField};
use arrow_schema::ArrowError;

use crate::error::{Error, Result};

/// The rows in which at least one pair of columns differs; two nulls are equal.
pub(in crate::operation) fn differences(pairs: &[(ArrayRef, ArrayRef)], rows: usize) -> Result<BooleanArray> {
    let mut differ = BooleanBuffer::new_unset(rows);
    for (old, new) in pairs {
        let of_column = match RowConverter::supports_fields(&[SortField::new(old.data_type().clone())]) {
            true => {
                let converter = RowConverter::new(vec![SortField::new(old.data_type().clone())]).map_err(internal)?;
                let old = converter.convert_columns(std::slice::from_ref(old)).map_err(internal)?;
                let new = converter.convert_columns(std::slice::from_ref(new)).map_err(internal)?;
                BooleanBuffer::collect_bool(rows, |row| old.row(row) != new.row(row))
            }
            false => {
                let mut differ = BooleanBufferBuilder::new(rows);
                (0..rows).for_each(|row| differ.append(old.slice(row, 1).to_data() != new.slice(row, 1).to_data()));
                differ.finish()
            }
        };
        differ = &differ | &of_column;
    }
    Ok(BooleanArray::new(differ, None))
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("comparing rows: {error}"))
}
