//! Integers of a fixed size: Python's have none.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::InvalidArgumentError;

/// An integer that fits `T`. One that does not is an invalid argument, not an `OverflowError` without a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Int<T>(pub T);

/// What the message says of a type of integers.
pub(crate) trait Bounded {
    /// The least and the greatest.
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

/// An id that something is looked up by: none where it does not fit `T`, as nothing has such an id.
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

/// Arguments by their names, in one dict. An error of an integer among them names it: PyO3 makes a
/// `TypeError` of every error.
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
