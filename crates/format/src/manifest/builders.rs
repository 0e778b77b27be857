//! Column builders that can discard an unfinished row, so that an entry excluded by a filter leaves no trace.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BinaryArray, ListArray, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use crate::{Error, Result};

/// Builds a column of numbers.
#[derive(Debug)]
pub(super) struct NumberBuilder<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    valid: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Default for NumberBuilder<T> {
    fn default() -> Self {
        Self { values: Vec::new(), valid: NullBufferBuilder::new(0) }
    }
}

impl<T: ArrowPrimitiveType> NumberBuilder<T> {
    pub(super) fn push(&mut self, value: Option<T::Native>) {
        self.values.push(value.unwrap_or_default());
        self.valid.append(value.is_some());
    }

    pub(super) fn last(&self) -> Option<T::Native> {
        let row = self.values.len().checked_sub(1)?;
        if self.valid.is_valid(row) { self.values.get(row).copied() } else { None }
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.valid.truncate(rows);
    }

    pub(super) fn finish(mut self) -> PrimitiveArray<T> {
        PrimitiveArray::new(ScalarBuffer::from(self.values), self.valid.finish())
    }
}

/// Builds a column of bytes or text.
#[derive(Debug)]
pub(super) struct BytesBuilder {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    valid: NullBufferBuilder,
}

impl Default for BytesBuilder {
    fn default() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0], valid: NullBufferBuilder::new(0) }
    }
}

impl BytesBuilder {
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.offsets.push(offset(self.bytes.len()));
        self.valid.append(value.is_some());
    }

    pub(super) fn last(&self) -> Option<&[u8]> {
        let row = self.offsets.len().checked_sub(2)?;
        let start = self.offsets.get(row).map_or(0, |offset| offset.as_usize());
        if self.valid.is_valid(row) { self.bytes.get(start..) } else { None }
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.bytes.truncate(self.offsets.last().map_or(0, |offset| offset.as_usize()));
        self.valid.truncate(rows);
    }

    pub(super) fn finish_binary(mut self) -> BinaryArray {
        BinaryArray::new(offsets(self.offsets), self.bytes.into(), self.valid.finish())
    }

    /// Returns the column as text; an error if a value is not UTF-8.
    pub(super) fn finish_text(mut self, field: &str) -> Result<StringArray> {
        let made = StringArray::try_new(offsets(self.offsets), self.bytes.into(), self.valid.finish());
        made.map_err(|error| Error::corrupt(field, error.to_string()))
    }
}

/// Builds a column of lists of numbers.
#[derive(Debug)]
pub(super) struct ListBuilder<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    offsets: Vec<i32>,
    valid: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Default for ListBuilder<T> {
    fn default() -> Self {
        Self { values: Vec::new(), offsets: vec![0], valid: NullBufferBuilder::new(0) }
    }
}

impl<T: ArrowPrimitiveType> ListBuilder<T> {
    /// Adds a value to the unfinished row.
    pub(super) fn add(&mut self, value: T::Native) {
        self.values.push(value);
    }

    /// Ends the row with the values added since the previous one, or with null.
    pub(super) fn end(&mut self, is_some: bool) {
        self.offsets.push(offset(self.values.len()));
        self.valid.append(is_some);
    }

    /// Discards the unfinished row.
    pub(super) fn discard_row(&mut self) {
        self.values.truncate(self.offsets.last().map_or(0, |offset| offset.as_usize()));
    }

    /// Size of the values in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }

    pub(super) fn finish(mut self, item: FieldRef) -> ListArray {
        let values = PrimitiveArray::<T>::new(ScalarBuffer::from(self.values), None);
        ListArray::new(item, offsets(self.offsets), Arc::new(values), self.valid.finish())
    }
}

/// Converts a length in decompressed data to an offset. It fits, since `Decompressor` limits the data to less than 2^31
/// bytes.
pub(super) fn offset(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn offsets(offsets: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

/// The element field of a list of numbers.
pub(super) fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("element", data_type, false))
}
