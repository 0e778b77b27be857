//! Columns of variants in Arrow: structs of `metadata` and `value` (extension type `arrow.parquet.variant`).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{DataType, Field, Fields};

use crate::error::{Error, Result};

use super::node::Variant;
use super::{Tree, json};

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

/// Adds the row number to an error of what was given.
fn given(row: usize) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Invalid(message) => Error::invalid(format!("row {row}: {message}")),
        error => at(row)(error),
    }
}

/// Builds a column; a row without a value is null.
///
/// # Errors
/// As [`Tree::encode`], with the row number; `Unsupported` for 2 GiB and more.
pub fn build(rows: impl ExactSizeIterator<Item = Result<Option<Tree>>>) -> Result<StructArray> {
    let (mut metadata, mut value) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    let (mut nulls, mut bytes) = (NullBufferBuilder::new(rows.len()), 0);
    for (row, tree) in rows.enumerate() {
        let tree = tree.map_err(given(row))?;
        nulls.append(tree.is_some());
        let (names, own) = tree.map(|tree| tree.encode()).transpose().map_err(given(row))?.unwrap_or_default();
        bytes += names.len() + own.len();
        if bytes > i32::MAX as usize {
            return Err(Error::unsupported("these variants have 2 GiB and more: convert fewer rows at a time"));
        }
        metadata.push(names);
        value.push(own);
    }
    let part = |name: &str| Arc::new(Field::new(name, DataType::Binary, false));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(BinaryArray::from_iter_values(metadata)), Arc::new(BinaryArray::from_iter_values(value))];
    let fields = Fields::from(vec![part("metadata"), part("value")]);
    StructArray::try_new(fields, columns, nulls.finish()).map_err(|error| Error::invalid(error.to_string()))
}

/// Reads a variant from each JSON text; a null row stays null.
///
/// # Errors
/// As [`from_json`](super::parse::from_json), with the row number; `Invalid` for a column without texts.
pub fn from_json(texts: &dyn Array) -> Result<StructArray> {
    let text = |row: usize| -> Option<&str> {
        Some(match texts.data_type() {
            _ if texts.is_null(row) => return None,
            DataType::Utf8 => texts.as_string::<i32>().value(row),
            DataType::LargeUtf8 => texts.as_string::<i64>().value(row),
            DataType::Utf8View => texts.as_string_view().value(row),
            _ => return None,
        })
    };
    if !matches!(texts.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null) {
        return Err(Error::invalid(format!("expected JSON texts, got values of the type {}", texts.data_type())));
    }
    build((0..texts.len()).map(|row| text(row).map(super::parse::from_json).transpose()))
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
