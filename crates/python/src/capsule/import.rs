//! Takes the contents out of the capsules of the Arrow C interface.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::chunks::{Chunks, field_of, imported, imported_but_places};
use super::names::{ARRAY, SCHEMA, STREAM};
use crate::entry::detached;
use crate::errors::InvalidArgumentError;

/// The address in a capsule, after a check of its name.
fn pointer<T>(object: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<NonNull<T>> {
    let capsule = object.cast::<PyCapsule>().map_err(|_| {
        PyTypeError::new_err(format!("expected a PyCapsule named {}, not {object}", name.to_string_lossy()))
    })?;
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

fn used_up(what: &str) -> PyErr {
    PyValueError::new_err(format!("the Arrow {what} in this capsule was consumed already"))
}

pub(super) fn import_field(capsule: &Bound<'_, PyAny>) -> PyResult<FieldRef> {
    let pointer = pointer::<FFI_ArrowSchema>(capsule, SCHEMA)?;
    // SAFETY: a capsule of this name contains an ArrowSchema that lives as long as the capsule, which `capsule` keeps
    // alive. It is only borrowed, until this function returns.
    let schema = unsafe { pointer.as_ref() };
    if schema.release().is_none() {
        return Err(used_up("schema"));
    }
    let field = field_of(schema).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Ok(Arc::new(field))
}

pub(super) fn import_array(pair: &Bound<'_, PyAny>) -> PyResult<(FieldRef, ArrayRef)> {
    let (field, array) = taken(pair)?;
    // SAFETY: it was just taken out of its capsule.
    let array = unsafe { imported(array, &field) }.map_err(|error| InvalidArgumentError::new_err(error.to_string()))?;
    Ok((field, array))
}

/// Like [`import_array`], but with [`imported_but_places`].
pub(super) fn import_array_but_places(pair: &Bound<'_, PyAny>) -> PyResult<(FieldRef, ArrayRef)> {
    let (field, array) = taken(pair)?;
    // SAFETY: it was just taken out of its capsule.
    let array = unsafe { imported_but_places(array, &field) };
    Ok((field, array.map_err(|error| InvalidArgumentError::new_err(error.to_string()))?))
}

/// Takes the array out of a pair of capsules, and returns its field too.
fn taken(pair: &Bound<'_, PyAny>) -> PyResult<(FieldRef, FFI_ArrowArray)> {
    let pair =
        pair.cast::<PyTuple>().map_err(|_| PyTypeError::new_err("__arrow_c_array__ must return two capsules"))?;
    let field = import_field(&pair.get_item(0)?)?;
    let pointer = pointer::<FFI_ArrowArray>(&pair.get_item(1)?, ARRAY)?;
    // SAFETY: a capsule of this name contains an ArrowArray. `from_raw` moves it out and leaves a released one, so that
    // neither the capsule's destructor nor a second consumer frees it again. No other thread can access the capsule,
    // which was created for this call.
    let array = unsafe { FFI_ArrowArray::from_raw(pointer.as_ptr()) };
    if array.is_released() {
        return Err(used_up("array"));
    }
    Ok((field, array))
}

pub(super) fn import_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Chunks> {
    let pointer = pointer::<FFI_ArrowArrayStream>(capsule, STREAM)?;
    // SAFETY: a capsule of this name contains an ArrowArrayStream; `from_raw` moves it out and leaves a released one,
    // as above.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    if stream.release().is_none() {
        return Err(used_up("stream"));
    }
    if stream.get_next().is_none() {
        return Err(PyValueError::new_err("the Arrow stream has no get_next callback"));
    }
    // Asking a stream for its schema may run the producer's code, so release the GIL.
    let reader = detached(capsule.py(), || Chunks::new(stream))?;
    reader.map_err(|error| InvalidArgumentError::new_err(error.to_string()))
}

pub(super) fn schema_of(field: &Field) -> PyResult<SchemaRef> {
    match field.data_type() {
        DataType::Struct(fields) => Ok(Arc::new(Schema::new_with_metadata(fields.clone(), field.metadata().clone()))),
        other => Err(PyTypeError::new_err(format!("expected rows (a struct of columns), found one column of {other}"))),
    }
}

/// Converts a struct array to a batch. A null struct is an error, since it has no meaning as a row of a table.
pub(super) fn batch_of(schema: &SchemaRef, array: ArrayRef) -> Result<RecordBatch, ArrowError> {
    let Some(rows) = array.as_any().downcast_ref::<StructArray>() else {
        return Err(ArrowError::CDataInterface(format!("expected a struct array, found {}", array.data_type())));
    };
    if rows.null_count() > 0 {
        return Err(ArrowError::InvalidArgumentError(format!("{} rows are null as a whole", rows.null_count())));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), rows.columns().to_vec(), &options)
}
