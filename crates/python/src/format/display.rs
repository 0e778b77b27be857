//! What notebooks show of objects.

use pyo3::prelude::*;

/// The HTML of an object, which a function of `icefield._displays` writes.
pub(crate) fn html<'py>(object: &Bound<'py, PyAny>, of: &str) -> PyResult<Bound<'py, PyAny>> {
    object.py().import("icefield._displays")?.call_method1(of, (object,))
}
