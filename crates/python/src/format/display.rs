//! The display of objects in notebooks.

use pyo3::prelude::*;

/// The HTML of an object, written by a function of `icefield._outputs.displays`.
pub(crate) fn html<'py>(object: &Bound<'py, PyAny>, of: &str) -> PyResult<Bound<'py, PyAny>> {
    object.py().import("icefield._outputs.displays")?.call_method1(of, (object,))
}
