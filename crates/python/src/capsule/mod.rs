//! The Arrow PyCapsule interface, in and out: the one room of this crate where `unsafe` occurs.
//!
//! [`input`] takes anything that carries `__arrow_c_schema__`, `__arrow_c_array__` or `__arrow_c_stream__` (pyarrow,
//! pandas, Polars, DuckDB, nanoarrow, our own classes); [`output`] holds the classes that carry them outwards. No buffer
//! is copied either way, and pyarrow is never imported but by `to_pyarrow`.

mod batches;
mod check;
mod chunks;
mod export;
mod import;
mod input;
mod names;
mod output;
mod texts;

pub(crate) use input::{ArrayInput, SchemaInput, StreamInput, mend};
pub(crate) use output::{ArrowArray, ArrowSchema, ArrowStream, ArrowTable};
pub(crate) use texts::check_batch;

use pyo3::prelude::*;

/// Adds the classes that carry Arrow data to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ArrowSchema>()?;
    module.add_class::<ArrowArray>()?;
    module.add_class::<ArrowTable>()?;
    module.add_class::<ArrowStream>()
}
