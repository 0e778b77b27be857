//! Arrow data as arguments from Python.

use std::sync::Arc;

use arrow_array::new_empty_array;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, FieldRef, SchemaRef};
use icefield_format::transform::Transform;
use icefield_table::transform::{apply, apply_checked};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::batches::PyarrowBatches;
use super::chunks::Chunks;
use super::import::{batch_of, import_array, import_array_but_places, import_field, import_stream, schema_of};
use super::{check, texts};
use crate::entry::detached;
use crate::errors::{ArgumentTypeError, BorderError, InvalidArgumentError};

/// A schema: anything with `__arrow_c_schema__`, or data whose stream has a schema.
#[derive(Debug)]
pub(crate) struct SchemaInput(pub SchemaRef);

/// One column: anything with `__arrow_c_array__`, or with `__arrow_c_stream__`, whose chunks are concatenated.
///
/// Its offsets may point outside its data, and its text may not be UTF-8: code that uses it must call
/// [`ArrayInput::checked`], or check both while it reads them.
#[derive(Debug)]
pub(crate) struct ArrayInput {
    /// Name, type and nullability, from the producer.
    pub field: FieldRef,
    array: ArrayRef,
}

impl ArrayInput {
    /// Returns the values; offsets outside the data, or text that is not UTF-8, are errors.
    pub(crate) fn checked(&self, py: Python<'_>) -> PyResult<ArrayRef> {
        let checked =
            || check::values(&self.array.to_data()).and_then(|()| texts::check(&self.array, self.field.name()));
        detached(py, checked)?.map_err(|error| InvalidArgumentError::new_err(error.to_string()))?;
        Ok(Arc::clone(&self.array))
    }

    /// The results of a transform, which checks the values that it reads and returns.
    pub(crate) fn transformed(&self, transform: &Transform) -> Result<ArrayRef, BorderError> {
        if let Some(results) = apply_checked(transform, &self.array)? {
            return Ok(results);
        }
        // Check again, for an error that names the place. Text that only the dictionary contains is not used.
        check::values(&self.array.to_data())?;
        let results = apply(transform, &self.array)?;
        texts::check(&results, self.field.name())?;
        Ok(results)
    }
}

/// Rows: anything with `__arrow_c_stream__`, or a single batch with `__arrow_c_array__`.
///
/// Pulling a batch may run Python code of the producer, which acquires the GIL itself: pull without the GIL.
pub(crate) struct StreamInput(pub Box<dyn RecordBatchReader + Send>);

impl<'a, 'py> FromPyObject<'a, 'py> for SchemaInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(capsule) = call(object, "__arrow_c_schema__")? {
            return Ok(Self(schema_of(import_field(&capsule)?.as_ref())?));
        }
        match StreamInput::extract(object) {
            Ok(stream) => Ok(Self(stream.0.schema())),
            // The object has data: say what is wrong with it.
            Err(error) if object.hasattr("__arrow_c_stream__")? && !object.is_instance_of::<PyType>() => Err(error),
            Err(_) => Err(not_arrow(object, "a schema", "__arrow_c_schema__ or __arrow_c_stream__")),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for ArrayInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(pair) = call(object, "__arrow_c_array__")? {
            let (field, array) = import_array_but_places(&pair)?;
            return Ok(Self { field, array });
        }
        let Some(capsule) = call(object, "__arrow_c_stream__")? else {
            return Err(not_arrow(object, "an array", "__arrow_c_array__ or __arrow_c_stream__"));
        };
        let reader = import_stream(&capsule)?;
        let py = object.py();
        detached(py, || join_chunks(reader))?.map_err(|error| InvalidArgumentError::new_err(error.to_string()))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for StreamInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(batches) = PyarrowBatches::of(object)? {
            return Ok(Self(Box::new(batches)));
        }
        if let Some(capsule) = call(object, "__arrow_c_stream__")? {
            return Ok(Self(Box::new(Batches::new(import_stream(&capsule)?)?)));
        }
        let Some(pair) = call(object, "__arrow_c_array__")? else {
            let expected =
                "__arrow_c_stream__ (pyarrow, pandas, Polars, DuckDB, a RecordBatchReader) or __arrow_c_array__";
            return Err(not_arrow(object, "rows", expected));
        };
        let (field, array) = import_array(&pair)?;
        let schema = schema_of(&field)?;
        let batch = batch_of(&schema, array).map_err(|error| InvalidArgumentError::new_err(error.to_string()))?;
        Ok(Self(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
    }
}

impl std::fmt::Debug for StreamInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StreamInput").field(&self.0.schema()).finish()
    }
}

/// Calls `object.method()`; `None` if there is no such method. Classes are not asked, only their instances.
fn call<'py>(object: Borrowed<'_, 'py, PyAny>, method: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if object.is_instance_of::<PyType>() || !object.hasattr(method)? {
        return Ok(None);
    }
    refuse_values(object)?;
    object.call_method0(method).map(Some).map_err(|error| unconverted(object, error))
}

/// Rejects frames with values that their library would export as something else.
fn refuse_values(object: Borrowed<'_, '_, PyAny>) -> PyResult<()> {
    let module: String = object.get_type().module()?.extract()?;
    if !["polars", "pandas"].iter().any(|library| module.starts_with(library)) {
        return Ok(());
    }
    let asked = || {
        object
            .py()
            .import("icefield._support.hints")?
            .call_method1("for_values", (object,))?
            .extract::<Option<String>>()
    };
    match asked().unwrap_or_default() {
        Some(message) => Err(ArgumentTypeError::new_err(message)),
        None => Ok(()),
    }
}

/// Converts an error raised by a producer of Arrow data: pyarrow's errors, which pandas passes on, become icefield's.
fn unconverted(object: Borrowed<'_, '_, PyAny>, error: PyErr) -> PyErr {
    let py = object.py();
    let asked =
        || py.import("icefield._support.hints")?.call_method1("for_conversion", (error.value(py), object))?.extract();
    match asked().unwrap_or_default() {
        Some::<String>(message) => {
            let ours = InvalidArgumentError::new_err(message);
            ours.set_cause(py, Some(error));
            ours
        }
        None => error,
    }
}

fn not_arrow(object: Borrowed<'_, '_, PyAny>, wanted: &str, methods: &str) -> PyErr {
    let found = object.get_type().fully_qualified_name().map_or_else(|_| "this".to_owned(), |name| name.to_string());
    let hint = match wanted {
        "rows" => mend(object, "for_rows"),
        "a schema" => mend(object, "for_schema"),
        _ => String::new(),
    };
    ArgumentTypeError::new_err(format!("expected {wanted} with {methods}, not {found}{hint}"))
}

/// A hint what to do instead with a rejected object, as the end of a sentence.
pub(crate) fn mend(object: Borrowed<'_, '_, PyAny>, of: &str) -> String {
    let asked = || object.py().import("icefield._support.hints")?.call_method1(of, (object,))?.extract::<String>();
    asked().ok().filter(|hint| !hint.is_empty()).map(|hint| format!(": {hint}")).unwrap_or_default()
}

fn join_chunks(reader: Chunks) -> Result<ArrayInput, ArrowError> {
    let field = Arc::clone(&reader.field);
    let chunks = reader.collect::<Result<Vec<_>, _>>()?;
    let array = match chunks.as_slice() {
        [] => new_empty_array(field.data_type()),
        [one] => Arc::clone(one),
        many => arrow_select::concat::concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
    };
    Ok(ArrayInput { field, array })
}

/// Reads a stream of struct arrays as batches.
struct Batches {
    reader: Chunks,
    schema: SchemaRef,
}

impl Batches {
    fn new(reader: Chunks) -> PyResult<Self> {
        let schema = schema_of(&reader.field)?;
        Ok(Self { reader, schema })
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let array = self.reader.next()?;
        Some(array.and_then(|array| batch_of(&self.schema, array)))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
