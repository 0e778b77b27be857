//! Finds out the outcome of commits: those of an earlier run, and those whose outcome was unknown.

use icefield_table::UnknownCommit;
use icefield_table::commit::{IDEMPOTENCY_KEY, made_by_key};
use icefield_table::maintain::resolve::{self, Resolution};
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::entry::detached;
use crate::errors::Result;
use crate::format::metadata::PyTableMetadata;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("IDEMPOTENCY_KEY", IDEMPOTENCY_KEY)?;
    module.add_function(wrap_pyfunction!(snapshot_of_key, module)?)?;
    module.add_function(wrap_pyfunction!(resolve_commit, module)?)
}

/// The snapshot of a branch that a change with this idempotency key has made.
#[pyfunction]
fn snapshot_of_key(metadata: &Bound<'_, PyTableMetadata>, branch: &str, key: &str) -> Result<Option<i64>> {
    Ok(made_by_key(&metadata.get().0, branch, key)?)
}

/// What became of a commit, by a state of the table that is newer: ``committed``, ``not committed`` or ``unknown``, and the
/// files that were deleted. Files are deleted with `clean_up`, if it is certain that the commit has not landed.
#[pyfunction]
#[pyo3(signature = (state, snapshot_id, files, base, location, *, clean_up))]
fn resolve_commit(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    snapshot_id: Option<Int<i64>>,
    files: Vec<String>,
    base: Option<String>,
    location: Option<String>,
    clean_up: bool,
) -> Result<(&'static str, Vec<String>)> {
    let state = state.get();
    let commit = UnknownCommit { snapshot_id: snapshot_id.map(|Int(id)| id), files, base, location };
    Ok(match resolve::resolve(&state.committed, &commit) {
        Resolution::Committed => ("committed", Vec::new()),
        Resolution::Unknown => ("unknown", Vec::new()),
        Resolution::NotCommitted if !clean_up => ("not committed", Vec::new()),
        Resolution::NotCommitted => ("not committed", detached(py, || resolve::clean_up(&state.storage.0, &commit))?),
    })
}
