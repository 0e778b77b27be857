//! Integers of a fixed size, from Python's integers of any size.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::InvalidArgumentError;

/// An integer that fits `T`. An integer that does not raises `InvalidArgumentError`, instead of an `OverflowError` that
/// does not name the argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Int<T>(pub T);

/// The range of an integer type, for error messages.
pub(crate) trait Bounded {
    /// The least and the greatest value.
    const RANGE: (i128, i128);
}

impl Bounded for i32 {
    const RANGE: (i128, i128) = (i32::MIN as i128, i32::MAX as i128);
}

impl Bounded for i64 {
    const RANGE: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);
}

impl Bounded for u8 {
    const RANGE: (i128, i128) = (0, u8::MAX as i128);
}

impl Bounded for u32 {
    const RANGE: (i128, i128) = (0, u32::MAX as i128);
}

impl Bounded for usize {
    const RANGE: (i128, i128) = (0, usize::MAX as i128);
}

impl Bounded for u64 {
    const RANGE: (i128, i128) = (0, u64::MAX as i128);
}

impl<T> Int<T> {
    /// The integers of a list.
    pub(crate) fn all(given: Vec<Self>) -> Vec<T> {
        given.into_iter().map(|Self(number)| number).collect()
    }
}

/// An id for a lookup; `None` if it does not fit `T`, since then nothing has this id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id<T>(pub Option<T>);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Id<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(id) => Ok(Self(Some(id))),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }
}

impl<'a, 'py, T> FromPyObject<'a, 'py> for Int<T>
where
    T: Bounded + FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error| match error.is_instance_of::<PyOverflowError>(object.py()) {
            true => {
                let (least, greatest) = T::RANGE;
                InvalidArgumentError::new_err(format!(
                    "an integer from {least} to {greatest} is needed, not {}",
                    object.as_any()
                ))
            }
            false => error,
        })
    }
}

/// Keyword arguments in one dict. An error about an integer names its keyword; PyO3 would turn every error into a
/// `TypeError`.
#[derive(Debug)]
pub(crate) struct Named<T>(pub T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Named<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        object.extract().map(Self).map_err(|error| match error.cause(py) {
            Some(cause) if cause.is_instance_of::<InvalidArgumentError>(py) => {
                let message = error.value(py).to_string();
                let name = message.rsplit('.').next().unwrap_or_default();
                InvalidArgumentError::new_err(format!("{name}: {}", cause.value(py)))
            }
            _ => error,
        })
    }
}
