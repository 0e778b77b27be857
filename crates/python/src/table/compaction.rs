//! Compaction of data files, and maintenance of delete files.

use std::collections::BTreeMap;

use icefield_format::expr::{Expr, Expression};
use icefield_table::commit::SnapshotOptions;
use icefield_table::maintain::compact::{self, Compacted, Compaction, CompactionPlan, GroupDone, GroupTask, Progress};
use icefield_table::maintain::deletes::{self, DeletesRequest, RewritePositions};
use icefield_table::{Error, Table};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::arguments::integer::Named;
use crate::callback::{ENDED, call_python};
use crate::entry::detached;
use crate::errors::Result;
use crate::format::expr::expressions::FilterInput;
use crate::storage::{PyStorage, PyTraffic};
use crate::table::catalog::of_python;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCompactionPlan>()?;
    module.add_function(wrap_pyfunction!(check_compaction, module)?)?;
    module.add_function(wrap_pyfunction!(check_position_rewrite, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite_group, module)?)?;
    module.add_function(wrap_pyfunction!(compact_data_files, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite_position_deletes, module)?)?;
    module.add_function(wrap_pyfunction!(convert_equality_deletes, module)?)?;
    module.add_function(wrap_pyfunction!(remove_dangling_deletes, module)?)
}

/// What a call is about, and how it commits.
#[derive(FromPyObject)]
struct Request {
    #[pyo3(item)]
    filter: Option<FilterInput>,
    #[pyo3(item)]
    case_sensitive: bool,
    #[pyo3(item)]
    branch: String,
    #[pyo3(item)]
    snapshot_properties: BTreeMap<String, String>,
    #[pyo3(item)]
    options: BTreeMap<String, String>,
    #[pyo3(item)]
    memory_limit: Option<usize>,
    #[pyo3(item)]
    dry_run: bool,
}

impl Request {
    fn filter(&self) -> Expr {
        self.filter.as_ref().map_or(Expression::True, |filter| filter.0.clone())
    }

    fn snapshot(&self) -> SnapshotOptions {
        let properties = self.snapshot_properties.clone().into_iter().collect();
        SnapshotOptions { branch: self.branch.clone(), properties, ..SnapshotOptions::default() }
    }

    fn compaction(&self, strategy: Option<String>, sort_order: Option<String>) -> Compaction {
        Compaction {
            strategy,
            sort_order,
            filter: self.filter(),
            case_sensitive: self.case_sensitive,
            options: self.options.clone().into_iter().collect(),
            snapshot: self.snapshot(),
            memory: self.memory_limit,
            dry_run: self.dry_run,
        }
    }

    fn deletes(&self) -> DeletesRequest {
        DeletesRequest {
            filter: self.filter(),
            case_sensitive: self.case_sensitive,
            snapshot: self.snapshot(),
            memory: self.memory_limit,
            dry_run: self.dry_run,
        }
    }
}

/// Reject arguments of a compaction that are wrong for every table.
#[pyfunction]
#[pyo3(signature = (strategy, sort_order, options))]
fn check_compaction(strategy: Option<&str>, sort_order: Option<&str>, options: BTreeMap<String, String>) -> Result<()> {
    Ok(compact::check_compaction(strategy, sort_order, &options.into_iter().collect())?)
}

/// Reject options of a rewrite of position deletes that are wrong for every table.
#[pyfunction]
fn check_position_rewrite(options: BTreeMap<String, String>) -> Result<()> {
    Ok(deletes::check_position_rewrite(&options.into_iter().collect())?)
}

/// The table, with its reads and writes counted.
fn opened(
    state: &PyTableState,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    traffic: Option<&Bound<'_, PyTraffic>>,
) -> PyResult<Table> {
    let storage = &state.storage.0;
    let catalog = of_python(storage, catalog, identifier)?;
    let storage = match traffic {
        Some(traffic) => storage.counted(traffic.get().0.clone()),
        None => storage.clone(),
    };
    Ok(Table::new(storage, catalog, (*state.committed).clone()))
}

fn after(state: &PyTableState, table: Option<&Table>) -> Option<PyTableState> {
    table.map(|table| state.with(table.committed().clone()))
}

/// Calls Python from any thread of an operation.
fn tell(call: impl FnOnce(Python<'_>) -> PyResult<()>) -> icefield_table::Result<()> {
    match call_python(call) {
        Some(Ok(())) => Ok(()),
        Some(Err(raised)) => Err(Error::Interrupted(Box::new(raised))),
        None => Err(Error::Internal(ENDED.to_owned())),
    }
}

/// The new state; snapshots; whether an earlier run made it; numbers of groups, replaced files, new files, replaced bytes,
/// failed files and removed delete files; errors.
type CompactedCounts = (Option<PyTableState>, Vec<i64>, bool, [i64; 6], Vec<String>);

fn counted(state: &PyTableState, done: Compacted) -> CompactedCounts {
    let numbers = [
        count(done.groups),
        count(done.rewritten_data_files),
        count(done.added_data_files),
        done.rewritten_bytes,
        count(done.failed_data_files),
        count(done.removed_delete_files),
    ];
    (after(state, done.table.as_ref()), done.snapshot_ids, done.made_before, numbers, done.failures)
}

/// Rewrite data files of the wrong size, or with many deletes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a keyword of the compaction")]
#[pyo3(signature = (state, catalog, identifier, request, *, strategy, sort_order, on_plan=None, on_group=None, traffic=None))]
fn compact_data_files(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<Request>,
    strategy: Option<String>,
    sort_order: Option<String>,
    on_plan: Option<Py<PyAny>>,
    on_group: Option<Py<PyAny>>,
    traffic: Option<&Bound<'_, PyTraffic>>,
) -> Result<CompactedCounts> {
    let (state, Named(request)) = (state.get(), request);
    let table = opened(state, catalog, identifier, traffic)?;
    let compaction = request.compaction(strategy, sort_order);
    let done = detached(py, || {
        let planned = |groups: usize, bytes: i64| {
            if let Some(call) = &on_plan {
                let _ = tell(|py| call.call1(py, (groups, bytes)).map(drop));
            }
        };
        let rewritten = |done: GroupDone| {
            let Some(call) = &on_group else { return Ok(()) };
            let numbers = (done.number, done.files, done.bytes, done.added_files, done.added_bytes);
            tell(|py| call.call1(py, numbers).map(drop))
        };
        compact::compact(&table, &compaction, &Progress { planned: Some(&planned), group: Some(&rewritten) })
    })??;
    Ok(counted(state, done))
}

/// The plan of a compaction by workers.
#[pyclass(frozen, name = "CompactionPlan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyCompactionPlan(CompactionPlan);

#[pymethods]
impl PyCompactionPlan {
    #[new]
    #[pyo3(signature = (state, catalog, identifier, request, *, strategy, sort_order))]
    fn py_new(
        py: Python<'_>,
        state: &Bound<'_, PyTableState>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        request: Named<Request>,
        strategy: Option<String>,
        sort_order: Option<String>,
    ) -> Result<Self> {
        let Named(request) = request;
        let table = opened(state.get(), catalog, identifier, None)?;
        let compaction = request.compaction(strategy, sort_order);
        Ok(Self(detached(py, || CompactionPlan::new(&table, compaction))??))
    }

    /// Numbers of files, their bytes, and the expected number of new files of each group.
    #[getter]
    fn groups(&self) -> Vec<(usize, i64, i64)> {
        self.0.groups().collect()
    }

    /// The task that rewrites a group, as bytes for a worker.
    fn task(&self, py: Python<'_>, number: usize) -> Result<Py<PyBytes>> {
        let bytes = detached(py, || self.0.task(number)?.to_bytes())??;
        Ok(PyBytes::new(py, &bytes).unbind())
    }

    /// Commit the results of workers in one snapshot.
    fn commit(
        &self,
        py: Python<'_>,
        state: &Bound<'_, PyTableState>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        results: Vec<PyBackedBytes>,
    ) -> Result<CompactedCounts> {
        let state = state.get();
        let table = opened(state, catalog, identifier, None)?;
        let results: Vec<Vec<u8>> = results.iter().map(|result| result.to_vec()).collect();
        let done = detached(py, || self.0.commit(&table, &results))??;
        Ok(counted(state, done))
    }
}

/// Rewrite a group on a worker, and return the result for the commit.
#[pyfunction]
#[pyo3(signature = (task, storage, *, attempt, memory_limit=None))]
fn rewrite_group(
    py: Python<'_>,
    task: PyBackedBytes,
    storage: &Bound<'_, PyStorage>,
    attempt: u64,
    memory_limit: Option<usize>,
) -> Result<Py<PyBytes>> {
    let storage = storage.get().0.clone();
    let bytes = detached(py, || GroupTask::from_bytes(task.to_vec())?.rewrite(&storage, attempt, memory_limit))??;
    Ok(PyBytes::new(py, &bytes).unbind())
}

/// The new state; snapshots; whether an earlier run made it; numbers.
type Maintained<const N: usize> = (Option<PyTableState>, Vec<i64>, bool, [i64; N]);

/// The same, and the errors of groups and commits that others outlived.
type Rewritten<const N: usize> = (Option<PyTableState>, Vec<i64>, bool, [i64; N], Vec<String>);

/// Rewrite position delete files. The numbers are those of replaced and of new files, and their bytes.
#[pyfunction]
#[pyo3(signature = (state, catalog, identifier, request, *, traffic=None))]
fn rewrite_position_deletes(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<Request>,
    traffic: Option<&Bound<'_, PyTraffic>>,
) -> Result<Rewritten<4>> {
    let (state, Named(request)) = (state.get(), request);
    let table = opened(state, catalog, identifier, traffic)?;
    let options = request.options.clone().into_iter().collect();
    let rewrite = RewritePositions { request: request.deletes(), options };
    let done = detached(py, || deletes::rewrite_position_deletes(&table, &rewrite))??;
    let numbers =
        [count(done.rewritten_delete_files), count(done.added_delete_files), done.rewritten_bytes, done.added_bytes];
    Ok((after(state, done.table.as_ref()), done.snapshot_ids, done.made_before, numbers, done.failures))
}

/// Replace equality deletes. The numbers are those of removed equality delete files, replaced other delete files, new
/// delete files, data files, and deleted rows.
#[pyfunction]
#[pyo3(signature = (state, catalog, identifier, request, *, traffic=None))]
fn convert_equality_deletes(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<Request>,
    traffic: Option<&Bound<'_, PyTraffic>>,
) -> Result<Maintained<5>> {
    let (state, Named(request)) = (state.get(), request);
    let table = opened(state, catalog, identifier, traffic)?;
    let done = detached(py, || deletes::convert_equality_deletes(&table, &request.deletes()))??;
    let numbers = [
        count(done.converted_delete_files),
        count(done.replaced_delete_files),
        count(done.added_delete_files),
        count(done.data_files),
        i64::try_from(done.deleted_rows).unwrap_or(i64::MAX),
    ];
    Ok((after(state, done.table.as_ref()), done.snapshot_id.into_iter().collect(), done.made_before, numbers))
}

/// Remove delete files that apply to no data file; return the new state, the snapshot, and the locations of the files.
#[pyfunction]
fn remove_dangling_deletes(
    py: Python<'_>,
    state: &Bound<'_, PyTableState>,
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
    request: Named<Request>,
) -> Result<(Option<PyTableState>, Option<i64>, Vec<String>)> {
    let (state, Named(request)) = (state.get(), request);
    let table = opened(state, catalog, identifier, None)?;
    let done = detached(py, || match request.dry_run {
        true => deletes::dangling_deletes(&table, &request.branch)
            .map(|files| deletes::RemovedDeletes { files, ..deletes::RemovedDeletes::default() }),
        false => deletes::remove_dangling_deletes(&table, request.snapshot()),
    })??;
    let files = done.files.into_iter().map(|file| file.file_path).collect();
    Ok((after(state, done.table.as_ref()), done.snapshot_id, files))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
