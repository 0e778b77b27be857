//! Sets the clock of the Rust crates, for tests.

use icefield_table::clock;
use pyo3::prelude::*;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_clock, module)?)
}

/// Stop the clock at a time, in milliseconds from the epoch; ``None``: use that of the system again.
#[pyfunction]
fn set_clock(time_ms: Option<i64>) {
    clock::set(time_ms);
}
