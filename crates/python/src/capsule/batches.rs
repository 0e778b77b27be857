//! Reads the batches of a pyarrow reader one by one.
//!
//! `RecordBatchReader.from_batches` does not check that its batches match its schema, and its C stream returns their
//! buffers under that schema, where a mismatch can no longer be detected. So each batch is asked for its own schema.
//! Exceptions of the reader's Python code pass through unchanged.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;

use super::import::{batch_of, import_array, import_field, schema_of};
use crate::callback::{ENDED, call_python};

/// The batches of a `pyarrow.RecordBatchReader`.
pub(super) struct PyarrowBatches {
    reader: Option<Py<PyAny>>,
    schema: SchemaRef,
}

impl PyarrowBatches {
    /// The batches of `object`, if it is a pyarrow reader.
    pub(super) fn of(object: Borrowed<'_, '_, PyAny>) -> PyResult<Option<Self>> {
        let ty = object.get_type();
        if ty.name()? != "RecordBatchReader" || ty.module()? != "pyarrow.lib" {
            return Ok(None);
        }
        let capsule = object.getattr("schema")?.call_method0("__arrow_c_schema__")?;
        let schema = schema_of(import_field(&capsule)?.as_ref())?;
        Ok(Some(Self { reader: Some(object.to_owned().unbind()), schema }))
    }

    fn read(&self, py: Python<'_>, reader: &Py<PyAny>) -> PyResult<Option<RecordBatch>> {
        let batch = match reader.bind(py).call_method0("read_next_batch") {
            Ok(batch) => batch,
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (field, array) = import_array(&batch.call_method0("__arrow_c_array__")?)?;
        let found = schema_of(&field)?;
        same(&self.schema, &found)
            .and_then(|()| batch_of(&self.schema, array))
            .map(Some)
            .map_err(|error| crate::errors::InvalidArgumentError::new_err(error.to_string()))
    }
}

/// Checks that a batch has the columns of its stream: the same names and types, in the same order.
fn same(stream: &Schema, batch: &Schema) -> Result<(), ArrowError> {
    let refused = |message: String| {
        Err(ArrowError::CDataInterface(format!("a batch does not match the schema of its stream: {message}")))
    };
    let (expected, found) = (stream.fields(), batch.fields());
    if expected.len() != found.len() {
        return refused(format!("{} columns instead of {}", found.len(), expected.len()));
    }
    for (expected, found) in expected.iter().zip(found.iter()) {
        if expected.name() != found.name() {
            return refused(format!("column {} where {} was expected", found.name(), expected.name()));
        }
        if !expected.data_type().equals_datatype(found.data_type()) {
            let (name, expected, found) = (expected.name(), expected.data_type(), found.data_type());
            return refused(format!("column {name} is {found} instead of {expected}"));
        }
    }
    Ok(())
}

impl Iterator for PyarrowBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_ref()?;
        let next = call_python(|py| self.read(py, reader).transpose());
        let gone = || Some(Err(ArrowError::ExternalError(ENDED.into())));
        let next = next.map_or_else(gone, |next| {
            next.map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
        });
        if !matches!(next, Some(Ok(_))) {
            self.reader = None;
        }
        next
    }
}

impl RecordBatchReader for PyarrowBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
