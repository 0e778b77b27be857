//! Maps errors of the Rust crates to the classes of `icefield.errors`, in one table.
//!
//! Functions of this crate return [`Result`]; `?` converts the errors of all crates below, and Python exceptions.

use icefield_table::UnknownCommit;
use icefield_table::storage::redacted;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Classes of `icefield.errors`; imported when the first error is raised.
mod classes {
    pyo3::import_exception!(icefield.errors, IcefieldError);
    pyo3::import_exception!(icefield.errors, InternalError);
    pyo3::import_exception!(icefield.errors, ArgumentTypeError);
    pyo3::import_exception!(icefield.errors, InvalidArgumentError);
    pyo3::import_exception!(icefield.errors, UnsupportedFeatureError);
    pyo3::import_exception!(icefield.errors, CorruptDataError);
    pyo3::import_exception!(icefield.errors, CommitFailedException);
    pyo3::import_exception!(icefield.errors, CommitStateUnknownException);
    pyo3::import_exception!(icefield.errors, ExistingFileError);
    pyo3::import_exception!(icefield.errors, MissingFileError);
    pyo3::import_exception!(icefield.errors, NoSuchNamespaceError);
    pyo3::import_exception!(icefield.errors, RESTError);
    pyo3::import_exception!(icefield.errors, StorageError);
    pyo3::import_exception!(icefield.errors, TableAlreadyExistsError);
    pyo3::import_exception!(icefield.errors, TableReplacedError);
    pyo3::import_exception!(icefield.errors, ValidationError);
    pyo3::import_exception!(icefield.errors, ValidationException);
}
pub(crate) use classes::*;

/// The result of the functions of this crate.
pub(crate) type Result<T, E = BorderError> = std::result::Result<T, E>;

/// An error to be raised in Python.
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
        let message = redacted(&error.to_string());
        Self(match error {
            Error::Corrupt(corrupt) => {
                let file = corrupt.file.as_deref().map(redacted);
                CorruptDataError::new_err((message, file, corrupt.place, corrupt.offset))
            }
            Error::Invalid(_) | Error::Value { .. } => InvalidArgumentError::new_err(message),
            Error::Unfit(_) => ValidationError::new_err(message),
            Error::Unsupported(_) => UnsupportedFeatureError::new_err(message),
            Error::RequirementFailed(_) => CommitFailedException::new_err(message),
            // New variants of the enum are at least icefield errors.
            _ => IcefieldError::new_err(message),
        })
    }
}

impl From<icefield_orc::Error> for BorderError {
    fn from(error: icefield_orc::Error) -> Self {
        use icefield_orc::Error;
        // Errors of the storage or of a filter, or exceptions of Python code that the reader or writer called.
        let error = match error.downcast::<icefield_table::Error>() {
            Ok(own) => return own.into(),
            Err(error) => error,
        };
        let error = match error.downcast::<PyErr>() {
            Ok(raised) => return Self(raised),
            Err(error) => error,
        };
        let message = redacted(&error.to_string());
        Self(match error {
            Error::Corrupt(corrupt) => {
                let file = corrupt.file.as_deref().map(redacted);
                CorruptDataError::new_err((message, file, corrupt.place, corrupt.offset))
            }
            // A value that does not fit the requested Arrow type; with other options it can be read.
            Error::Invalid(_) | Error::Value(_) => InvalidArgumentError::new_err(message),
            Error::Unsupported(_) | Error::Limit(_) => UnsupportedFeatureError::new_err(message),
            Error::Io(_) => StorageError::new_err(message),
            _ => IcefieldError::new_err(message),
        })
    }
}

impl From<icefield_table::Error> for BorderError {
    fn from(error: icefield_table::Error) -> Self {
        use icefield_table::Error;
        let message = redacted(&error.to_string());
        Self(match error {
            Error::Format(error) => return error.into(),
            Error::Orc(error) => return error.into(),
            // An exception of the caller's own code is raised unchanged.
            Error::Callback(error) | Error::Refused(error) | Error::Interrupted(error) => {
                match error.downcast::<PyErr>() {
                    Ok(exception) => *exception,
                    Err(_) => IcefieldError::new_err(message),
                }
            }
            Error::NotFound { .. } => MissingFileError::new_err(message),
            Error::AlreadyExists { .. } => ExistingFileError::new_err(message),
            Error::Storage { .. } => StorageError::new_err(message),
            Error::Invalid(_) => InvalidArgumentError::new_err(message),
            Error::Unsupported(_) => UnsupportedFeatureError::new_err(message),
            Error::Column { .. } | Error::Columns(_) => ValidationError::new_err(message),
            Error::CorruptFile { path, .. } | Error::TooLong { path, .. } => {
                CorruptDataError::new_err((message, redacted(&path)))
            }
            Error::CommitFailed(_) => CommitFailedException::new_err(message),
            Error::CommitStateUnknown { cause, commit, .. } => state_unknown(message, *commit, cause),
            Error::TableReplaced { .. } => TableReplacedError::new_err(message),
            Error::Validation(_) => ValidationException::new_err(message),
            Error::Internal(_) => InternalError::new_err(message),
            // New variants of the enum.
            _ => IcefieldError::new_err(message),
        })
    }
}

/// A [`CommitStateUnknownException`] with the exception that led to it as its cause; or Ctrl-C, with the unknown state
/// as its cause.
fn state_unknown(
    message: String,
    commit: UnknownCommit,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
) -> PyErr {
    let UnknownCommit { snapshot_id, files, base, location } = commit;
    let unknown = CommitStateUnknownException::new_err((message, snapshot_id, files, base, location));
    let Some(Ok(cause)) = cause.map(|cause| cause.downcast::<PyErr>()) else { return unknown };
    Python::attach(|py| {
        let (raised, cause) =
            if cause.is_instance_of::<PyException>(py) { (unknown, *cause) } else { (*cause, unknown) };
        raised.set_cause(py, Some(cause));
        raised
    })
}

/// Converts an exception of a catalog that Rust called: to its meaning for the commit, or else to an error that carries
/// the exception.
pub(crate) fn from_callback(py: Python<'_>, error: PyErr) -> icefield_table::Error {
    use icefield_table::Error;
    if error.is_instance_of::<CommitFailedException>(py) {
        // A commit that the user stopped before anything was sent is not retried.
        if let Some(cause) = error.cause(py).filter(|cause| !cause.is_instance_of::<PyException>(py)) {
            return Error::Interrupted(Box::new(cause));
        }
        Error::CommitFailed(error.value(py).to_string())
    } else if error.is_instance_of::<CommitStateUnknownException>(py) {
        let (commit, message) = (Box::default(), error.value(py).to_string());
        Error::CommitStateUnknown { commit, message, cause: None }
    } else {
        Error::Callback(Box::new(error))
    }
}

/// Converts an error of the caller's rows. Ctrl-C and the end of the program pass through unchanged.
pub(crate) fn from_rows(error: arrow_schema::ArrowError) -> icefield_table::Error {
    use arrow_schema::ArrowError;
    let ended = |error: &PyErr| Python::try_attach(|py| !error.is_instance_of::<PyException>(py)).unwrap_or(false);
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<PyErr>() {
            Ok(raised) if ended(&raised) => icefield_table::Error::Callback(raised),
            Ok(raised) => icefield_table::Error::invalid(format!("the rows given: {raised}")),
            Err(other) => icefield_table::Error::invalid(format!("the rows given: {other}")),
        },
        other => icefield_table::Error::invalid(format!("the rows given: {other}")),
    }
}

impl From<arrow_schema::ArrowError> for BorderError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        use arrow_schema::ArrowError;
        // An error of our own readers that passed through Arrow.
        let error = match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<icefield_table::Error>() {
                Ok(ours) => return (*ours).into(),
                Err(other) => match other.downcast::<icefield_orc::Error>() {
                    Ok(ours) => return (*ours).into(),
                    Err(other) => ArrowError::ExternalError(other),
                },
            },
            other => other,
        };
        Self(InvalidArgumentError::new_err(error.to_string()))
    }
}
