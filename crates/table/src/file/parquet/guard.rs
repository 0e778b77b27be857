//! Calls the Parquet library on bytes that may be damaged, and turns its panics into errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use crate::error::{Error, Result};

/// Runs the Parquet library on the bytes of a file. Errors name the file; a panic is an error too, because damaged
/// bytes can trigger one.
pub(super) fn guarded<T>(path: &str, run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ParquetError::External(source))) => match source.downcast::<ArrowError>() {
            Ok(error) => Err(from_arrow(path, *error)),
            Err(other) => Err(Error::corrupt_file(path, other)),
        },
        Ok(Err(ParquetError::ArrowError(message))) => Err(Error::corrupt_file(path, message)),
        Ok(Err(error)) => Err(Error::corrupt_file(path, error)),
        Err(panic) if lacks_memory(&*panic) => Err(Error::Internal(format!("no memory was left to inflate {path}"))),
        Err(_) => Err(Error::corrupt_file(path, "the Parquet decoder panicked: file damaged or unsupported")),
    }
}

/// Whether a panic says that zstd could not allocate a context, which is neither a defect nor a damaged file.
fn lacks_memory(panic: &(dyn Any + Send)) -> bool {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    said.is_some_and(|said| said.contains("zstd returned null pointer") || said.contains("can create zstd"))
}

/// An error for a state that no bytes can produce, but that would give wrong values if it occurred.
pub(super) fn internal(what: &str) -> ParquetError {
    let error = Error::Internal(format!("Parquet decoder: {what}"));
    ParquetError::External(Box::new(ArrowError::ExternalError(Box::new(error))))
}

/// Returns errors of a filter unchanged and adds the file to others.
fn from_arrow(path: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(source) => match source.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::corrupt_file(path, other),
        },
        other => Error::corrupt_file(path, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_without_memory_is_no_damage() {
        for (said, kind) in [
            ("zstd returned null pointer when creating new context", "no memory was left"),
            ("index out of bounds", "file damaged or unsupported"),
        ] {
            let error = guarded::<()>("memory://a.parquet", || panic!("{said}")).unwrap_err().to_string();
            assert!(error.contains(kind) && error.contains("memory://a.parquet"), "{error}");
        }
    }
}
