//! A type as an argument from Python. It has its own file to avoid a cycle: type classes need values, and values need
//! types.

use icefield_format::types::Type;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arguments::json::JsonInput;
use crate::errors::BorderError;

/// A type of the table specification ("Schemas and Data Types").
///
/// Constructed from its name, such as ``Type("decimal(9, 2)")``, or its JSON form; ``icefield.types`` has a class
/// for each kind, and every type is an instance of the class of its kind.
#[pyclass(frozen, subclass, name = "Type", module = "icefield.types")]
#[derive(Debug, Clone)]
pub struct PyIcebergType(pub Type);

/// A type as an argument from Python: a [`PyIcebergType`], a name, JSON text or a dict.
#[derive(Debug)]
pub(crate) struct TypeInput(pub Type);

impl<'a, 'py> FromPyObject<'a, 'py> for TypeInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(ours) = object.cast::<PyIcebergType>() {
            return Ok(Self(ours.get().0.clone()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_str()?;
            if !text.trim_start().starts_with(['{', '"']) {
                return Ok(Self(Type::parse(text).map_err(BorderError::from)?));
            }
        } else if !object.is_instance_of::<PyDict>() {
            let found = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected a type or its name, not {found}")));
        }
        let JsonInput(json) = JsonInput::extract(object)?;
        Ok(Self(Type::from_json(&json).map_err(BorderError::from)?))
    }
}
