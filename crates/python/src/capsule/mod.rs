//! The Arrow PyCapsule interface: import and export. Nearly all `unsafe` code of this crate is here.
//!
//! [`input`] accepts any object with `__arrow_c_schema__`, `__arrow_c_array__` or `__arrow_c_stream__` (pyarrow,
//! pandas, Polars, DuckDB, nanoarrow, our own classes); [`output`] has the classes that export them. No buffer is
//! copied in either direction, and only `to_pyarrow` imports pyarrow.

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

/// Adds the classes with Arrow data to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ArrowSchema>()?;
    module.add_class::<ArrowArray>()?;
    module.add_class::<ArrowTable>()?;
    module.add_class::<ArrowStream>()
}
