//! Maintenance of a table: expires snapshots.

use std::collections::BTreeMap;

use icefield_format::metadata::retention::ExpireSnapshots;
use icefield_table::maintain::expire::{Cleanup, External, expirable, expire};
use icefield_table::storage::redacted;
use pyo3::prelude::*;

use crate::arguments::integer::{Int, Named};
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(expire_snapshots, module)?)
}

/// What to expire.
#[derive(Debug, FromPyObject)]
struct Request {
    #[pyo3(item)]
    snapshot_ids: Vec<Int<i64>>,
    #[pyo3(item)]
    older_than_ms: Option<Int<i64>>,
    #[pyo3(item)]
    retain_last: Option<Int<i32>>,
    #[pyo3(item)]
    clean_expired_metadata: bool,
    #[pyo3(item)]
    cleanup: String,
    #[pyo3(item)]
    external: String,
    #[pyo3(item)]
    dry_run: bool,
}

/// The result of an expiry: the new state if the table changed, expired snapshots, removed references, the number of
/// files that could not be read or deleted, the first of these errors, and deleted files by kind.
type Done = (Option<PyTableState>, Vec<i64>, Vec<String>, usize, Vec<String>, BTreeMap<&'static str, Vec<String>>);

/// Expire snapshots, and delete the files that only they name.
#[pyfunction]
fn expire_snapshots(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<Request>,
) -> Result<Done> {
    let (state, Named(request)) = (state.get(), request);
    let table = state.table(catalog, identifier)?;
    let cleanup = match request.cleanup.as_str() {
        "all" => Cleanup::All,
        "metadata" => Cleanup::Metadata,
        "nothing" => Cleanup::Nothing,
        other => {
            let message = format!("cleanup: expected 'all', 'metadata' or 'nothing', got {other:?}");
            return Err(InvalidArgumentError::new_err(message).into());
        }
    };
    let external = match request.external.as_str() {
        "keep" => External::Keep,
        "delete" => External::Delete,
        other => {
            let message = format!("external: expected 'keep' or 'delete', got {other:?}");
            return Err(InvalidArgumentError::new_err(message).into());
        }
    };
    let wanted = ExpireSnapshots {
        older_than_ms: request.older_than_ms.map(|Int(time)| time),
        retain_last: request.retain_last.map(|Int(count)| count),
        snapshot_ids: Int::all(request.snapshot_ids),
        clean_expired_metadata: request.clean_expired_metadata,
    };
    let run = if request.dry_run { expirable } else { expire };
    let done = detached(py, || run(&table, wanted, cleanup, external))??;
    let files = BTreeMap::from([
        ("data_files", done.files.data_files),
        ("delete_files", done.files.delete_files),
        ("manifests", done.files.manifests),
        ("manifest_lists", done.files.manifest_lists),
        ("statistics", done.files.statistics),
        ("external", done.external),
    ]);
    let new = done.table.map(|table| state.with(table.committed().clone()));
    let left = done.leftover.first.iter().map(|message| redacted(message)).collect();
    Ok((new, done.snapshots, done.refs, done.leftover.failures, left, files))
}
