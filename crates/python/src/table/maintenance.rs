//! Maintenance of a table: expires snapshots, removes orphan files, checks files.

use std::collections::BTreeMap;

use icefield_format::metadata::retention::ExpireSnapshots;
use icefield_table::Error;
use icefield_table::commit::SnapshotOptions;
use icefield_table::maintain::doctor::doctor as examine;
use icefield_table::maintain::expire::{Cleanup, External, expirable, expire};
use icefield_table::maintain::export::export_metadata as export;
use icefield_table::maintain::fsck::repair::{RepairOptions, Repaired, preview, repair as mend};
use icefield_table::maintain::fsck::{Finding as Found, FsckOptions, Level, Severity, fsck as check};
use icefield_table::maintain::orphans::{OrphanSearch, PrefixMismatch, find_orphans, remove_orphans as remove};
use icefield_table::maintain::partition_statistics;
use icefield_table::maintain::statistics::{StatsOptions, compute_table_stats as compute};
use icefield_table::storage::redacted;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::integer::{Int, Named};
use crate::callback::{ENDED, call_python};
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(expire_snapshots, module)?)?;
    module.add_function(wrap_pyfunction!(remove_orphans, module)?)?;
    module.add_function(wrap_pyfunction!(fsck, module)?)?;
    module.add_function(wrap_pyfunction!(repair, module)?)?;
    module.add_function(wrap_pyfunction!(doctor, module)?)?;
    module.add_function(wrap_pyfunction!(export_metadata, module)?)?;
    module.add_function(wrap_pyfunction!(compute_partition_stats, module)?)?;
    module.add_function(wrap_pyfunction!(compute_table_stats, module)?)
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
/// files that could not be read or deleted, the first of these errors, deleted files by kind, and their bytes.
type ExpiryAnswer =
    (Option<PyTableState>, Vec<i64>, Vec<String>, usize, Vec<String>, BTreeMap<&'static str, Vec<String>>, u64);

/// Expire snapshots, and delete the files that only they name.
#[pyfunction]
fn expire_snapshots(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<Request>,
) -> Result<ExpiryAnswer> {
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
    Ok((new, done.snapshots, done.refs, done.leftover.failures, left, files, done.bytes))
}

/// Which orphan files to remove.
#[derive(Debug, FromPyObject)]
struct OrphanRequest {
    #[pyo3(item)]
    older_than_ms: Int<i64>,
    #[pyo3(item)]
    location: Option<String>,
    #[pyo3(item)]
    equal_schemes: Vec<(String, String)>,
    #[pyo3(item)]
    equal_authorities: Vec<(String, String)>,
    #[pyo3(item)]
    prefix_mismatch_mode: String,
    #[pyo3(item)]
    other_folders: Vec<(String, String)>,
    #[pyo3(item)]
    warehouse: Option<String>,
    #[pyo3(item)]
    dry_run: bool,
}

/// Orphans with their sizes, the number of listed files, the number of files that were not deleted, and the first of
/// these errors.
type Removed = (Vec<(String, u64)>, u64, usize, Vec<String>);

/// Delete files that nothing in the table names.
#[pyfunction]
fn remove_orphans(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<OrphanRequest>,
) -> Result<Removed> {
    let Named(request) = request;
    let table = state.get().table(catalog, identifier)?;
    let prefix_mismatch = match request.prefix_mismatch_mode.to_ascii_lowercase().as_str() {
        "error" => PrefixMismatch::Error,
        "ignore" => PrefixMismatch::Ignore,
        "delete" => PrefixMismatch::Delete,
        other => {
            let message = format!("prefix_mismatch_mode: expected 'error', 'ignore' or 'delete', got {other:?}");
            return Err(InvalidArgumentError::new_err(message).into());
        }
    };
    let Int(older_than_ms) = request.older_than_ms;
    let search = OrphanSearch {
        location: request.location,
        older_than_ms,
        equal_schemes: request.equal_schemes,
        equal_authorities: request.equal_authorities,
        prefix_mismatch,
        others: request.other_folders,
        warehouse: request.warehouse,
    };
    let run = if request.dry_run { find_orphans } else { remove };
    let found = detached(py, || run(&table, &search))??;
    let files = found.files.into_iter().map(|orphan| (orphan.path, orphan.size)).collect();
    let first = found.leftover.first.iter().map(|message| redacted(message)).collect();
    Ok((files, found.listed, found.leftover.failures, first))
}

/// Names of the levels, in order.
const LEVELS: [(&str, Level); 5] = [
    ("metadata", Level::Metadata),
    ("manifests", Level::Manifests),
    ("files", Level::Files),
    ("footers", Level::Footers),
    ("rows", Level::Rows),
];

/// A finding: whether it is an error, its check, file, field, expected and found value, and what describes the file.
type Finding = (bool, &'static str, String, String, String, String, String);

/// Check a table; returns findings, and counts by name.
#[pyfunction]
#[pyo3(signature = (state, *, level, most))]
fn fsck(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    level: &str,
    most: Int<usize>,
) -> Result<(Vec<Finding>, BTreeMap<&'static str, u64>)> {
    let state = state.get();
    let options = FsckOptions { level: level_of(level)?, most: most.0, only_current: false };
    let report = detached(py, || check(&state.storage.0, &state.committed, options))??;
    let findings = report.findings.into_iter().map(finding);
    let counts = BTreeMap::from([
        ("errors", report.errors),
        ("warnings", report.warnings),
        ("snapshots", report.snapshots),
        ("manifests", report.manifests),
        ("files", report.files),
        ("rows", report.rows),
    ]);
    Ok((findings.collect(), counts))
}

fn level_of(level: &str) -> Result<Level> {
    let Some((_, found)) = LEVELS.iter().find(|(name, _)| *name == level) else {
        let names: Vec<&str> = LEVELS.iter().map(|(name, _)| *name).collect();
        let message = format!("level: expected one of {}, got {level:?}", names.join(", "));
        return Err(InvalidArgumentError::new_err(message).into());
    };
    Ok(*found)
}

fn finding(found: Found) -> Finding {
    let is_error = found.severity == Severity::Error;
    let (expected, value) = (redacted(&found.expected), redacted(&found.found));
    (is_error, found.check, found.file, found.field, expected, value, found.described_by)
}

/// What to repair, and how it commits.
#[derive(Debug, FromPyObject)]
struct RepairRequest {
    #[pyo3(item)]
    level: String,
    #[pyo3(item)]
    branch: String,
    #[pyo3(item)]
    snapshot_properties: BTreeMap<String, String>,
    #[pyo3(item)]
    remove_missing_files: bool,
    #[pyo3(item)]
    remove_missing_deletes: bool,
    #[pyo3(item)]
    most: Int<usize>,
    #[pyo3(item)]
    dry_run: bool,
}

/// A correction: its check, file, field, value before and after, and what described the file.
type Correction = (&'static str, String, String, String, String, String);

/// The new state, the snapshot, corrections, findings with the reason why they were left, and counts by name.
type Repairs =
    (Option<PyTableState>, Option<i64>, Vec<Correction>, Vec<(Finding, &'static str)>, BTreeMap<&'static str, i64>);

/// Repair what is certain in the current snapshot of a branch.
#[pyfunction]
fn repair(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<RepairRequest>,
) -> Result<Repairs> {
    let (state, Named(request)) = (state.get(), request);
    let table = state.table(catalog, identifier)?;
    let options = RepairOptions {
        level: level_of(&request.level)?,
        remove_missing_files: request.remove_missing_files,
        remove_missing_deletes: request.remove_missing_deletes,
        most: request.most.0,
    };
    let properties = request.snapshot_properties.into_iter().collect();
    let snapshot = SnapshotOptions { branch: request.branch, properties, ..SnapshotOptions::default() };
    let done = detached(py, || match request.dry_run {
        true => preview(&table, options, &snapshot.branch),
        false => mend(&table, options, snapshot),
    })??;
    let Repaired { corrections, left, .. } = done;
    let corrections = corrections.into_iter().map(|one| {
        let (before, after) = (redacted(&one.before), redacted(&one.after));
        (one.check, one.file, one.field, before, after, one.described_by)
    });
    let left = left.into_iter().map(|one| (finding(one.finding), one.reason));
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let counts = BTreeMap::from([
        ("corrected", number(done.corrected)),
        ("unrepaired", number(done.left_count)),
        ("rewritten_manifests", number(done.manifests)),
        ("removed_files", number(done.removed_files)),
        ("removed_rows", done.removed_rows),
        ("removed_delete_files", number(done.removed_deletes)),
    ]);
    let new = done.table.map(|table| state.with(table.committed().clone()));
    Ok((new, done.snapshot_id, corrections.collect(), left.collect(), counts))
}

/// A finding: its name, subject, message, cost in bytes and in requests, and the call that repairs it.
type Advice = (&'static str, String, String, u64, u64, String);

/// Find what makes a table slow or large.
#[pyfunction]
fn doctor(py: Python<'_>, state: &Bound<'_, PyTableState>) -> Result<Vec<Advice>> {
    let state = state.get();
    let found = detached(py, || examine(&state.storage.0, &state.committed))??;
    let shown = |one: icefield_table::maintain::doctor::Advice| {
        (one.name, one.subject, redacted(&one.message), one.bytes, one.requests, one.repair)
    };
    Ok(found.into_iter().map(shown).collect())
}

/// Export the metadata of a table without rows. `put` is called with the name and the bytes of each file. Returns the
/// folders of files by the folders of the export, and the numbers of snapshots and of manifests.
#[pyfunction]
#[pyo3(signature = (state, put, *, snapshots, values))]
fn export_metadata(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    put: Py<PyAny>,
    snapshots: Vec<Int<i64>>,
    values: bool,
) -> Result<(BTreeMap<String, String>, usize, usize)> {
    let (state, snapshots) = (state.get(), Int::all(snapshots));
    let mut put = |name: &str, bytes: Vec<u8>| {
        let called = call_python(|py| put.call1(py, (name, PyBytes::new(py, &bytes))).map(drop));
        match called {
            Some(Ok(())) => Ok(()),
            Some(Err(raised)) => Err(Error::Interrupted(Box::new(raised))),
            None => Err(Error::Internal(ENDED.to_owned())),
        }
    };
    let done = detached(py, || export(&state.storage.0, &state.committed, &snapshots, values, &mut put))??;
    Ok((done.folders, done.snapshots, done.manifests))
}

/// The table after the counts, the statistics file, and the number of distinct values by field id.
type StatisticsAnswer = (PyTableState, String, Vec<(i32, u64)>);

/// Compute the number of distinct values of columns; returns the new state, the statistics file, and for each column
/// its field id and number.
#[pyfunction]
#[pyo3(signature = (state, catalog, identifier, *, columns=None, snapshot_id=None))]
fn compute_table_stats(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    columns: Option<Vec<String>>,
    snapshot_id: Option<Int<i64>>,
) -> Result<Option<StatisticsAnswer>> {
    let state = state.get();
    let table = state.table(catalog, identifier)?;
    let options = StatsOptions { columns, snapshot_id: snapshot_id.map(|Int(id)| id) };
    let Some(done) = detached(py, || compute(&table, &options))?? else { return Ok(None) };
    let ndv = |blob: &icefield_format::metadata::BlobMetadata| {
        Some((*blob.fields.first()?, blob.properties.get("ndv")?.parse().ok()?))
    };
    let counts = done.file.blob_metadata.iter().filter_map(ndv).collect();
    Ok(Some((state.with(done.table.committed().clone()), done.file.statistics_path, counts)))
}

/// The new state, the file, its bytes, and the number of partitions if the file is new.
type CountedPartitions = (PyTableState, String, i64, Option<usize>);

/// Compute the statistics of the partitions of a snapshot.
///
/// Returns the new state, the file, its bytes, and the number of partitions if the file is new; None without files.
#[pyfunction]
#[pyo3(signature = (state, catalog, identifier, *, snapshot_id=None))]
fn compute_partition_stats(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    snapshot_id: Option<Int<i64>>,
) -> Result<Option<CountedPartitions>> {
    let state = state.get();
    let table = state.table(catalog, identifier)?;
    let snapshot_id = snapshot_id.map(|Int(id)| id);
    let Some(done) = detached(py, || partition_statistics::compute_partition_stats(&table, snapshot_id))?? else {
        return Ok(None);
    };
    let (path, bytes) = (done.file.statistics_path, done.file.file_size_in_bytes);
    Ok(Some((state.with(done.table.committed().clone()), path, bytes, done.partitions)))
}
