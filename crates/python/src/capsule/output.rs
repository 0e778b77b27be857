//! Arrow data as results for Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use icefield_table::arrow::recast::Recast;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::import::{import_field, schema_of};
use super::names::{ARRAY, SCHEMA, STREAM};
use super::texts::check_batch;
use super::{ArrayInput, SchemaInput, StreamInput, export};
use crate::callback::keep_interrupt;
use crate::entry::detached;
use crate::errors::{BorderError, Result};

/// A schema for any library that takes Arrow data by the PyCapsule interface.
#[pyclass(frozen, module = "icefield._core")]
#[derive(Debug)]
pub struct ArrowSchema(pub SchemaRef);

/// An array for any library that takes Arrow data by the PyCapsule interface.
#[pyclass(frozen, module = "icefield._core")]
#[derive(Debug)]
pub struct ArrowArray {
    /// Name, type and nullability.
    pub field: FieldRef,
    /// The values.
    pub array: ArrayRef,
}

/// Rows in memory, for any library that takes Arrow data by the PyCapsule interface.
#[pyclass(frozen, module = "icefield._core")]
#[derive(Debug)]
pub struct ArrowTable {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows, in order.
    pub batches: Vec<RecordBatch>,
}

/// Rows as they are read, for any library that takes Arrow data by the PyCapsule interface; it can be read once.
#[pyclass(frozen, module = "icefield.distributed")]
pub struct ArrowStream {
    schema: SchemaRef,
    reader: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
    failure: Arc<Failure>,
}

/// Rows in the Arrow types that a consumer requests.
struct Recasting {
    reader: Box<dyn RecordBatchReader + Send>,
    recast: Recast,
    schema: SchemaRef,
}

impl Iterator for Recasting {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        let recast = |batch| self.recast.apply(&batch).map_err(|error| ArrowError::ExternalError(Box::new(error)));
        Some(batch.and_then(recast))
    }
}

impl RecordBatchReader for Recasting {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The rows in the requested types, if these can hold the same values. Otherwise the request is ignored, which the
/// interface allows.
fn requested(
    reader: Box<dyn RecordBatchReader + Send>,
    schema: Option<Bound<'_, PyAny>>,
) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let Some(capsule) = schema.filter(|schema| !schema.is_none()) else { return Ok(reader) };
    let (found, schema) = (reader.schema(), schema_of(import_field(&capsule)?.as_ref())?);
    let names = |schema: &SchemaRef| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let types = |schema: &SchemaRef| schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
    if names(&found) != names(&schema) || types(&found) == types(&schema) {
        return Ok(reader);
    }
    match Recast::new(&found, schema.clone()) {
        Ok(recast) => Ok(Box::new(Recasting { reader, recast, schema })),
        Err(_) => Ok(reader),
    }
}

/// The error of a reader, kept because the C interface transfers only its message.
#[derive(Default)]
struct Failure {
    error: Mutex<Option<ArrowError>>,
    /// Whether the consumer asks for the error and raises it.
    is_asked_for: AtomicBool,
}

/// A reader that keeps its error until it can be raised.
struct Remembering {
    reader: Box<dyn RecordBatchReader + Send>,
    failure: Arc<Failure>,
}

impl Iterator for Remembering {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let error = match self.reader.next()? {
            Err(ArrowError::ExternalError(error)) => error,
            other => return Some(other),
        };
        let message = error.to_string();
        if !self.failure.is_asked_for.load(Ordering::Acquire) {
            keep_interrupt(&*error);
        }
        *self.failure.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(ArrowError::ExternalError(error));
        Some(Err(ArrowError::ExternalError(message.into())))
    }
}

impl RecordBatchReader for Remembering {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

impl ArrowArray {
    /// A nullable array with an empty name.
    pub fn new(array: ArrayRef) -> Self {
        Self { field: Arc::new(Field::new("", array.data_type().clone(), true)), array }
    }
}

impl From<RecordBatch> for ArrowTable {
    fn from(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

impl ArrowStream {
    /// A stream over a reader.
    pub fn new(reader: Box<dyn RecordBatchReader + Send>) -> Self {
        let (schema, failure) = (reader.schema(), Arc::<Failure>::default());
        let reader = Box::new(Remembering { reader, failure: failure.clone() });
        Self { schema, reader: Mutex::new(Some(reader)), failure }
    }

    /// Takes the reader; an error for all but the first caller.
    pub fn take(&self) -> PyResult<Box<dyn RecordBatchReader + Send>> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        reader.ok_or_else(|| PyValueError::new_err("this stream was read already; scan again for another"))
    }
}

impl std::fmt::Debug for ArrowStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrowStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[pymethods]
impl ArrowSchema {
    #[new]
    #[pyo3(signature = (schema, /))]
    fn py_new(schema: SchemaInput) -> Self {
        Self(schema.0)
    }

    pub fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.0)
    }

    /// Return the schema as a ``pyarrow.Schema``.
    pub fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pyarrow(slf.py())?.call_method1("schema", (slf,))
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __repr__(&self) -> String {
        format!("ArrowSchema({})", columns(&self.0))
    }
}

#[pymethods]
impl ArrowArray {
    #[new]
    #[pyo3(signature = (array, /))]
    fn py_new(py: Python<'_>, array: ArrayInput) -> PyResult<Self> {
        Ok(Self { array: array.checked(py)?, field: array.field })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_field(py, &self.field)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows ignoring the request; the returned schema has the actual type.
        drop(requested_schema);
        let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&self.array.to_data()), ARRAY)?;
        Ok((export_field(py, &self.field)?, array))
    }

    /// Return the array as a ``pyarrow.Array``; no buffer is copied.
    pub fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pyarrow(slf.py())?.call_method1("array", (slf,))
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!("ArrowArray({}, {} values, {} null)", self.field.data_type(), self.array.len(), self.array.null_count())
    }
}

#[pymethods]
impl ArrowTable {
    #[new]
    #[pyo3(signature = (rows, /))]
    fn py_new(py: Python<'_>, rows: StreamInput) -> Result<Self> {
        let schema = rows.0.schema();
        let checked = |batch: std::result::Result<RecordBatch, ArrowError>| {
            let batch = batch?;
            check_batch(&batch).map(|()| batch)
        };
        let batches = detached(py, || rows.0.map(checked).collect::<std::result::Result<_, _>>())??;
        Ok(Self { schema, batches })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema)));
        export_stream(py, requested(reader, requested_schema)?)
    }

    /// Return the rows as a ``pyarrow.Table``; no buffer is copied.
    pub fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pyarrow(slf.py())?.call_method1("table", (slf,))
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns, in their order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("ArrowTable({} rows: {})", self.num_rows(), columns(&self.schema))
    }
}

#[pymethods]
impl ArrowStream {
    #[new]
    #[pyo3(signature = (rows, /))]
    fn py_new(rows: StreamInput) -> Self {
        Self::new(rows.0)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        export_stream(py, requested(self.take()?, requested_schema)?)
    }

    /// Return the rows as a ``pyarrow.RecordBatchReader`` that raises the exceptions of icefield.
    pub fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pyarrow(slf.py())?;
        slf.get().failure.is_asked_for.store(true, Ordering::Release);
        slf.py().import("icefield._support.streams")?.call_method1("reader_of", (slf,))
    }

    /// Raise the exception that the reader failed with, if it has failed.
    fn raise_failure(&self) -> Result<()> {
        match self.failure.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn __repr__(&self) -> String {
        format!("ArrowStream({})", columns(&self.schema))
    }
}

/// Imports `pyarrow`, or raises an `ImportError` that says how to install it.
fn pyarrow(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("icefield._support.optional")?.call_method1("require", ("pyarrow",))
}

fn columns(schema: &Schema) -> String {
    let columns: Vec<_> =
        schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
    columns.join(", ")
}

fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| not_exportable(schema.fields(), &error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

fn export_field<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        FFI_ArrowSchema::try_from(field).map_err(|error| not_exportable(&Fields::from(vec![field.clone()]), &error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

fn export_stream<'py>(py: Python<'py>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    // Otherwise the consumer would raise the error, with its own message.
    let schema = reader.schema();
    FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| not_exportable(schema.fields(), &error))?;
    PyCapsule::new_with_value(py, export::stream(reader), STREAM)
}

/// The error for a schema that cannot be exported: in the C interface, names end at their first NUL.
fn not_exportable(fields: &Fields, error: &ArrowError) -> PyErr {
    match name_with_nul(fields) {
        Some(name) => PyErr::from(BorderError::from(icefield_format::Error::unsupported(format!(
            "the column name {name:?} has a NUL character, and cannot be handed out as Arrow"
        )))),
        None => PyTypeError::new_err(error.to_string()),
    }
}

fn name_with_nul(fields: &Fields) -> Option<&str> {
    fields.iter().find_map(|field| match field.data_type() {
        _ if field.name().contains('\0') => Some(field.name().as_str()),
        DataType::Struct(children) => name_with_nul(children),
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) => {
            match child.data_type() {
                DataType::Struct(children) => name_with_nul(children),
                _ => None,
            }
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(children) => name_with_nul(children),
            _ => None,
        },
        _ => None,
    })
}
