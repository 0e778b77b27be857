//! Reads the arrays of a C stream, and checks each against the type of the stream before it is used.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, FieldRef};

use super::check;
use crate::callback::{ENDED, call};

/// Maximum levels of nested types; tables have fewer.
const DEPTH: usize = 128;

/// The arrays of a stream.
pub(super) struct Chunks {
    stream: FFI_ArrowArrayStream,
    /// Name, type and nullability of every array.
    pub field: FieldRef,
}

impl Chunks {
    /// The arrays of a stream that is not released.
    pub(super) fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let get_schema = stream.get_schema().ok_or_else(|| broken("has no get_schema callback"))?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, and `schema` is empty and releases its contents when dropped.
        let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        if code != 0 {
            return Err(failed(&mut stream, code));
        }
        let field = Arc::new(field_of(&schema)?);
        Ok(Self { stream, field })
    }
}

impl Iterator for Chunks {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(get_next) = self.stream.get_next() else { return Some(Err(broken("has no get_next callback"))) };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is not released, and `array` is empty and releases its contents when dropped.
        let called = call(|| unsafe { get_next(&raw mut self.stream, &raw mut array) });
        let Some(code) = called else { return Some(Err(ArrowError::ExternalError(ENDED.into()))) };
        if code != 0 {
            return Some(Err(failed(&mut self.stream, code)));
        }
        // SAFETY: the stream filled `array`, which is not shared yet.
        (!array.is_released()).then(|| unsafe { imported(array, &self.field) })
    }
}

/// Imports an array if it matches its type.
///
/// # Safety
///
/// `array` is a valid array of the C data interface that is not released and has no other user.
pub(super) unsafe fn imported(array: FFI_ArrowArray, field: &Field) -> Result<ArrayRef, ArrowError> {
    // SAFETY: by the contract.
    let data = unsafe { data_of(array, field)? };
    check::values(&data)?;
    Ok(make_array(data))
}

/// Like [`imported`], but with the checks of [`check::values_but_places`].
///
/// # Safety
///
/// As [`imported`].
pub(super) unsafe fn imported_but_places(array: FFI_ArrowArray, field: &Field) -> Result<ArrayRef, ArrowError> {
    // SAFETY: by the contract.
    let data = unsafe { data_of(array, field)? };
    check::values_but_places(&data)?;
    Ok(make_array(data))
}

/// # Safety
///
/// As [`imported`].
unsafe fn data_of(mut array: FFI_ArrowArray, field: &Field) -> Result<ArrayData, ArrowError> {
    // SAFETY: by the contract.
    unsafe { check::layout(&mut array, field.data_type())? };
    // SAFETY: by the contract; the structs were checked against the type above.
    let data = unsafe { from_ffi_and_data_type(array, field.data_type().clone())? };
    Ok(without_stray_offsets(data))
}

/// Removes the buffers of an array, and of arrays inside it, if they are empty: some producers (Arrow in Java, and so
/// Spark 4.0) do not set the one offset of an empty array.
fn without_stray_offsets(data: ArrayData) -> ArrayData {
    if data.is_empty() {
        return ArrayData::new_empty(data.data_type());
    }
    if data.child_data().is_empty() {
        return data;
    }
    let children = data.child_data().iter().cloned().map(without_stray_offsets).collect();
    // SAFETY: the children keep their types, lengths and values, and everything is checked after the import.
    unsafe { data.into_builder().child_data(children).build_unchecked() }
}

/// The field of a schema. Too deep a nesting is rejected before any code recurses into it.
pub(super) fn field_of(schema: &FFI_ArrowSchema) -> Result<Field, ArrowError> {
    let mut level = vec![schema];
    for _ in 0..DEPTH {
        level = level.iter().flat_map(|schema| schema.children().chain(schema.dictionary())).collect();
        if level.is_empty() {
            return Field::try_from(schema);
        }
    }
    Err(ArrowError::SchemaError(format!("types nested deeper than {DEPTH} levels")))
}

fn broken(what: &str) -> ArrowError {
    ArrowError::CDataInterface(format!("the Arrow stream {what}"))
}

/// The error of a stream, with the producer's message about its last error.
fn failed(stream: &mut FFI_ArrowArrayStream, code: i32) -> ArrowError {
    let said = stream.get_last_error().and_then(|last_error| {
        // SAFETY: the stream is not released; the text lives until its next call.
        let text = unsafe { last_error(std::ptr::from_mut(stream)) };
        // SAFETY: null or a C string, by the interface.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    ArrowError::CDataInterface(said.unwrap_or_else(|| format!("the Arrow stream failed with error {code}")))
}
