//! Errors of the Rust crates as the classes of `icefield.errors`: the one table of which becomes which.
//!
//! Functions of this crate return [`Result`]; `?` takes the errors of every crate beneath and Python's own.

use pyo3::PyErr;

/// Classes of `icefield.errors`; imported when the first error is raised.
mod classes {
    pyo3::import_exception!(icefield.errors, IcefieldError);
    pyo3::import_exception!(icefield.errors, InvalidArgumentError);
    pyo3::import_exception!(icefield.errors, UnsupportedFeatureError);
    pyo3::import_exception!(icefield.errors, CorruptDataError);
    pyo3::import_exception!(icefield.errors, CommitFailedException);
}
pub use classes::*;

/// Result of every function of this crate.
pub type Result<T, E = BorderError> = std::result::Result<T, E>;

/// An error on its way to Python.
#[derive(Debug)]
pub struct BorderError(PyErr);

impl From<BorderError> for PyErr {
    fn from(error: BorderError) -> Self {
        error.0
    }
}

impl From<PyErr> for BorderError {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<icefield_format::Error> for BorderError {
    fn from(error: icefield_format::Error) -> Self {
        use icefield_format::Error;
        let message = error.to_string();
        Self(match error {
            Error::Corrupt(corrupt) => {
                CorruptDataError::new_err((message, corrupt.file, corrupt.place, corrupt.offset))
            }
            Error::Invalid(_) => InvalidArgumentError::new_err(message),
            Error::Unsupported(_) => UnsupportedFeatureError::new_err(message),
            Error::RequirementFailed(_) => CommitFailedException::new_err(message),
            // The enum may grow; what is not named yet still is one of ours.
            _ => IcefieldError::new_err(message),
        })
    }
}

impl From<arrow_schema::ArrowError> for BorderError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self(InvalidArgumentError::new_err(error.to_string()))
    }
}
