//! Copies of a table with its history, and the rewrite of paths that other programs copy by.

use icefield_table::maintain::relocate::{
    PathRewrite, TableCopy, copy_table as copy, rewrite_table_path as rewrite_paths,
};
use pyo3::prelude::*;

use crate::entry::detached;
use crate::errors::Result;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rewrite_table_path, module)?)?;
    module.add_function(wrap_pyfunction!(copy_table, module)?)
}

/// The name of the last metadata file, the staging location, the list of files, and the numbers of rewritten manifests,
/// rewritten deletes and all files.
type Rewritten = (String, String, Option<String>, usize, usize, u64);

/// Write the metadata of a table to a staging location, with another prefix of all paths.
#[pyfunction]
#[pyo3(signature = (
    state, source_prefix, target_prefix, *, start_version, end_version, staging_location, create_file_list
))]
#[expect(clippy::too_many_arguments, reason = "those of the procedure")]
fn rewrite_table_path(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    source_prefix: String,
    target_prefix: String,
    start_version: Option<String>,
    end_version: Option<String>,
    staging_location: Option<String>,
    create_file_list: bool,
) -> Result<Rewritten> {
    let state = state.get();
    let request =
        PathRewrite { source_prefix, target_prefix, start_version, end_version, staging_location, create_file_list };
    let done = detached(py, || rewrite_paths(&state.storage.0, &state.committed, &request))??;
    Ok((done.latest_version, done.staging_location, done.file_list, done.manifests, done.delete_files, done.files))
}

/// The metadata file of the copy, the version that an earlier copy has, and the numbers of copied files, their bytes,
/// files that were there, rewritten manifests and rewritten deletes.
type Copied = (String, Option<String>, u64, u64, u64, usize, usize);

/// Copy a table with its history to another location.
#[pyfunction]
#[pyo3(signature = (state, location, *, source_prefix, dry_run))]
fn copy_table(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    location: String,
    source_prefix: Option<String>,
    dry_run: bool,
) -> Result<Copied> {
    let state = state.get();
    let request = TableCopy { location, source_prefix, dry_run };
    let done = detached(py, || copy(&state.storage.0, &state.committed, &request))??;
    let (manifests, deletes) = (done.manifests, done.delete_files);
    Ok((done.metadata_location, done.start_version, done.files, done.bytes, done.present, manifests, deletes))
}
