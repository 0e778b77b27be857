//! Runs work without the GIL, and converts panics to exceptions.
//!
//! A panic is a bug, in icefield or in a library that reads unexpected bytes. PyO3 would raise it as `PanicException`,
//! which `except Exception` does not catch, so one bad file could end a server.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use icefield_table::interrupt;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::callback::{end_calls, entered, signalled};
use crate::errors::{InternalError, Result};

/// Runs `work`, which does not need Python and may take long. A panic raises [`InternalError`] with its message; Rust
/// prints its source location on standard error. A signal ends the work where it checks for signals ([`interrupt`]),
/// with the exception that the signal handler raised.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> Result<T> {
    py.detach(|| interrupt::interruptible(signalled, || entered(|| catch_unwind(AssertUnwindSafe(work)))))
        .map_err(|panic| of_panic(&*panic).into())
}

/// Registers a function that ends calls into Python before the interpreter shuts down.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let at_exit = module.py().import("atexit")?;
    at_exit.call_method1("register", (wrap_pyfunction!(at_exit_of_python, module)?,))?;
    Ok(())
}

#[pyfunction]
fn at_exit_of_python(py: Python<'_>) -> Result<()> {
    detached(py, end_calls)
}

fn of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap_or("a panic without words");
    // The Parquet library panics if its codec cannot allocate memory.
    if said.contains("zstd returned null pointer") {
        return PyMemoryError::new_err("no memory was left for a context of zstd");
    }
    InternalError::new_err(format!("this is a defect of icefield, please report it: {said}"))
}
