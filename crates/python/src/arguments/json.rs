//! JSON from Python: text, bytes, or the dicts and lists that `json.loads` returns.

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use serde_json::Value as Json;

use crate::errors::{BorderError, Result};

/// A JSON document in any of its forms.
#[derive(Debug)]
pub(crate) struct JsonInput(pub Json);

impl<'a, 'py> FromPyObject<'a, 'py> for JsonInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self(parse(text.to_str()?.as_bytes())?));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self(parse(bytes.as_bytes())?));
        }
        if object.is_instance_of::<PyDict>() || object.is_instance_of::<PyList>() {
            let py = object.py();
            let text = py.import("json")?.call_method1("dumps", (object,)).map_err(|error| {
                match error.is_instance_of::<PyRecursionError>(py) {
                    true => BorderError::from(icefield_format::Error::corrupt("", "JSON nested too deeply")).into(),
                    false => error,
                }
            })?;
            return Ok(Self(parse(text.cast::<PyString>()?.to_str()?.as_bytes())?));
        }
        let found = object.get_type().name()?;
        Err(pyo3::exceptions::PyTypeError::new_err(format!("expected JSON as str, bytes, dict or list, not {found}")))
    }
}

/// Converts a JSON value to the dicts and lists that `json.loads` returns.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}

/// Parses untrusted JSON. The parser limits its depth, and a budget its memory.
fn parse(text: &[u8]) -> Result<Json> {
    let mut budget = icefield_table::limits()?.budget(text.len());
    icefield_format::json::parse_within(text, &mut budget).map_err(BorderError::from)
}
