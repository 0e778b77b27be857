//! Access to the values of leaf columns, for masks.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::types::TypeDescription;

/// The error for values whose type does not match the column.
pub(super) fn unexpected(node: &TypeDescription, array: &ArrayRef) -> Error {
    Error::invalid(format!("column {}: values of {} cannot be masked as {}", node.column, array.data_type(), node))
}

/// The bytes of text or binary values.
pub(super) fn bytes<'a>(node: &TypeDescription, array: &'a ArrayRef) -> Result<Vec<Option<&'a [u8]>>> {
    fn text(value: Option<&str>) -> Option<&[u8]> {
        value.map(str::as_bytes)
    }
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(text).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(text).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(text).collect(),
        DataType::Binary => array.as_binary::<i32>().iter().collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().collect(),
        DataType::BinaryView => array.as_binary_view().iter().collect(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().collect(),
        _ => return Err(unexpected(node, array)),
    })
}
