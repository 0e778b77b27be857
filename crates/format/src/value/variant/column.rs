//! Columns of variants in Arrow: structs of `metadata` and `value` (extension type `arrow.parquet.variant`).

use arrow_array::cast::AsArray;
use arrow_array::{Array, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::{Error, Result};

use super::json;
use super::node::Variant;

/// The two parts of a variant column, in any of Arrow's binary types.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    metadata: &'a dyn Array,
    value: &'a dyn Array,
    nulls: Option<&'a NullBuffer>,
    len: usize,
}

impl<'a> Column<'a> {
    /// Splits an array into its parts.
    ///
    /// # Errors
    /// `Invalid` unless it is a struct of these parts.
    pub fn new(array: &'a dyn Array) -> Result<Self> {
        let part = |name: &str| {
            let parent: &StructArray = array.as_struct_opt()?;
            let part = parent.column_by_name(name)?;
            matches!(part.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
                .then_some(part.as_ref())
        };
        match (part("metadata"), part("value")) {
            (Some(metadata), Some(value)) => Ok(Self { metadata, value, nulls: array.nulls(), len: array.len() }),
            _ => Err(Error::invalid("expected variants: a struct of the binary columns metadata and value")),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the variant of a row; `None` if the row is null.
    ///
    /// # Errors
    /// `Corrupt` if its metadata cannot be read.
    pub fn get(&self, row: usize) -> Result<Option<Variant<'a>>> {
        if row >= self.len || self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        if self.metadata.is_null(row) || self.value.is_null(row) {
            return Err(at(row)(Error::corrupt("", "a part of the variant is null, but the variant is not")));
        }
        Variant::new(bytes(self.metadata, row), bytes(self.value, row)).map(Some).map_err(at(row))
    }
}

/// Returns the bytes of a non-null row.
fn bytes(array: &dyn Array, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        _ => &[],
    }
}

/// Adds the row number to an error.
pub(crate) fn at(row: usize) -> impl Fn(Error) -> Error {
    move |error| error.within(&format!("row {row}"))
}

/// Converts each variant to JSON text; a variant null becomes `null`, a null row stays null.
///
/// # Errors
/// As [`json::to_json`], with the row number.
pub fn to_json(column: Column<'_>) -> Result<StringArray> {
    let text = |row| column.get(row)?.map(|variant| json::to_json(&variant).map_err(at(row))).transpose();
    let texts = (0..column.len()).map(text).collect::<Result<Vec<_>>>()?;
    if texts.iter().flatten().map(String::len).sum::<usize>() > i32::MAX as usize {
        return Err(Error::unsupported(
            "the texts of these variants have 2 GiB and more: convert fewer rows at a time",
        ));
    }
    Ok(StringArray::from(texts))
}
