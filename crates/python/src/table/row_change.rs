//! Distributed row changes: the driver plans them, workers delete rows, and the driver commits once.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::expr::Expression;
use icefield_format::metadata::properties::check_set;
use icefield_table::commit::SnapshotOptions;
use icefield_table::interrupt;
use icefield_table::operation::distributed::{RemovedRows, Request, RowChangePlan, RowRemover, TaskFiles};
use icefield_table::operation::row_change::{Isolation, Mode};
use icefield_table::storage::redacted;
use icefield_table::write::check_writable;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::arguments::integer::Int;
use crate::capsule::{SchemaInput, StreamInput};
use crate::entry::detached;
use crate::errors::{Result, from_rows};
use crate::format::expr::expressions::ConditionInput;
use crate::held::Held;
use crate::storage::PyStorage;
use crate::table::reads::scan::{PyReadTask, overrides};
use crate::table::state::PyTableState;
use crate::table::write::{PyWritePlan, RowsDone, rows_done};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRowChangePlan>()?;
    module.add_class::<PyRowRemover>()
}

/// What all workers of a change of rows have in common: the table, its files with such rows, and its id.
#[pyclass(frozen, name = "RowChangePlan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyRowChangePlan(Arc<RowChangePlan>);

/// A worker that takes rows out of data files.
#[pyclass(frozen, name = "RowRemover", module = "icefield._core")]
#[derive(Debug)]
pub struct PyRowRemover {
    /// `None` after it was closed.
    remover: Held<Option<RowRemover>>,
}

#[pymethods]
impl PyRowChangePlan {
    /// A change of the rows of a branch. `command` is `delete`, `update`, `merge` or `overwrite`; all other arguments as those
    /// of `RowChanges` and `WritePlan`.
    #[new]
    #[pyo3(signature = (
        table, command, filter, *, exact=false, mode=None, isolation=None, branch="main".to_owned(), case_sensitive=true,
        properties=BTreeMap::new(), widened_by=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the change")]
    fn py_new(
        py: Python<'_>,
        table: &Bound<'_, PyTableState>,
        command: String,
        filter: Option<ConditionInput>,
        exact: bool,
        mode: Option<&str>,
        isolation: Option<&str>,
        branch: String,
        case_sensitive: bool,
        properties: BTreeMap<String, String>,
        widened_by: Option<SchemaInput>,
    ) -> Result<Self> {
        let state = table.get();
        let metadata = &state.committed.metadata;
        check_writable(metadata, &state.storage.0)?;
        check_set(&properties.clone().into_iter().collect())?;
        let request = Request {
            command,
            condition: filter.map_or(Expression::True, |filter| filter.0),
            exact,
            mode: mode.map(Mode::parse).transpose()?,
            isolation: isolation.map(Isolation::parse).transpose()?,
            branch,
            case_sensitive,
            properties: properties.into_iter().collect(),
        };
        let rows = widened_by.map(|rows| rows.0);
        let planned = || RowChangePlan::new(&state.storage.0, metadata, request, rows.as_deref());
        Ok(Self(Arc::new(detached(py, planned)??)))
    }

    /// Return the plan of what `to_bytes` returned.
    #[staticmethod]
    fn from_bytes(data: PyBackedBytes) -> Result<Self> {
        Ok(Self(Arc::new(RowChangePlan::from_bytes(data.to_vec())?)))
    }

    /// Return all that another machine needs to take rows out, except for the properties of the storage.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = detached(py, || self.0.to_bytes())??;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The write of new rows.
    #[getter]
    fn write(&self) -> PyWritePlan {
        PyWritePlan(self.0.write().clone())
    }

    /// The kind of the change by its name.
    #[getter]
    fn command(&self) -> &str {
        self.0.command()
    }

    /// The branch that is changed.
    #[getter]
    fn branch(&self) -> &str {
        self.0.branch()
    }

    /// How rows are taken out of files, by its name.
    #[getter]
    fn mode(&self) -> &'static str {
        self.0.mode().name()
    }

    /// Whether every row that the filter matches is taken out.
    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    /// Id of the snapshot whose rows are changed; ``None`` if the table is empty.
    #[getter]
    fn snapshot_id(&self) -> Option<i64> {
        self.0.snapshot_id()
    }

    /// Number of data files that may have rows to take out.
    #[getter]
    fn file_count(&self) -> usize {
        self.0.file_count()
    }

    /// Return the tasks that read the rows which the filter matches.
    ///
    /// With ``whole_files``, no file is in two tasks.
    #[pyo3(signature = (
        selected_fields=None, *, whole_files=false, split_size=None, lookback=None, open_file_cost=None, parallelism=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the split")]
    fn tasks(
        &self,
        py: Python<'_>,
        selected_fields: Option<Vec<String>>,
        whole_files: bool,
        split_size: Option<Int<i64>>,
        lookback: Option<Int<usize>>,
        open_file_cost: Option<Int<i64>>,
        parallelism: Option<Int<usize>>,
    ) -> Result<Vec<PyReadTask>> {
        let options = overrides(split_size, lookback, open_file_cost, parallelism);
        let tasks = detached(py, || self.0.tasks(selected_fields.as_deref(), whole_files, &options))??;
        Ok(tasks.into_iter().map(PyReadTask).collect())
    }

    /// Delete the files of a change that was certainly not committed.
    ///
    /// Return how many could not be deleted, and the first reasons. With ``search``, files that no worker has reported
    /// are looked for as well.
    #[pyo3(signature = (storage, written, *, search))]
    fn discard(
        &self,
        py: Python<'_>,
        storage: &Bound<'_, PyStorage>,
        written: Vec<PyBackedBytes>,
        search: bool,
    ) -> Result<(usize, Vec<String>)> {
        let storage = &storage.get().0;
        let left = detached(py, || self.0.discard(storage, &self.files(written)?, search))??;
        Ok((left.failures, left.first.iter().map(|message| redacted(message)).collect()))
    }

    /// Delete the files of attempts that lost: those of this change that no committed worker has reported.
    ///
    /// Return how many could not be deleted, and the first reasons.
    fn discard_lost(
        &self,
        py: Python<'_>,
        storage: &Bound<'_, PyStorage>,
        committed: Vec<PyBackedBytes>,
    ) -> Result<(usize, Vec<String>)> {
        let storage = &storage.get().0;
        let left = detached(py, || self.0.discard_lost(storage, &self.files(committed)?))??;
        Ok((left.failures, left.first.iter().map(|message| redacted(message)).collect()))
    }

    /// Commit what workers took out and the new rows that they have written.
    ///
    /// Return the new state, the id of the snapshot, whether an earlier run has made the change, and its numbers as
    /// `RowChanges` returns them.
    #[pyo3(signature = (table, catalog, identifier, removed, added, *, snapshot_properties=BTreeMap::new()))]
    #[expect(clippy::too_many_arguments, reason = "the table, its place in the catalog, and what workers have done")]
    fn commit(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyTableState>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        removed: Vec<PyBackedBytes>,
        added: Vec<PyBackedBytes>,
        snapshot_properties: BTreeMap<String, String>,
    ) -> Result<RowsDone> {
        let state = table.get();
        let open = state.table(catalog, identifier)?;
        let options =
            SnapshotOptions { properties: snapshot_properties.into_iter().collect(), ..SnapshotOptions::default() };
        let done = detached(py, || {
            let removed: Vec<RemovedRows> = removed
                .into_iter()
                .map(|bytes| RemovedRows::from_bytes(&bytes, &self.0))
                .collect::<icefield_table::Result<_>>()?;
            let added = added.into_iter().map(|bytes| match RemovedRows::claimed(&bytes) {
                true => Err(icefield_table::Error::invalid(
                    "the result of a RowRemover was passed as new rows: pass it as `removed`",
                )),
                false => self.0.write().files_from_bytes(&bytes),
            });
            open.commit_rows(&self.0, removed, added.collect::<icefield_table::Result<_>>()?, options)
        })??;
        Ok(rows_done(state, done))
    }
}

impl PyRowChangePlan {
    /// The files that workers have reported.
    fn files(&self, written: Vec<PyBackedBytes>) -> icefield_table::Result<Vec<TaskFiles>> {
        written.into_iter().map(|bytes| TaskFiles::from_bytes(&bytes, &self.0)).collect()
    }
}

#[pymethods]
impl PyRowRemover {
    /// A worker for one attempt at one task. With `unique`, a row that comes twice is an error.
    #[new]
    #[pyo3(signature = (plan, storage, *, task=0, attempt=0, memory_limit=None, unique=false))]
    fn py_new(
        plan: &Bound<'_, PyRowChangePlan>,
        storage: &Bound<'_, PyStorage>,
        task: u32,
        attempt: u64,
        memory_limit: Option<Int<usize>>,
        unique: bool,
    ) -> Self {
        let (plan, storage) = (plan.get().0.clone(), storage.get().0.clone());
        let memory = memory_limit.map(|Int(bytes)| bytes);
        let remover = RowRemover::new(plan, storage, (task, attempt), memory, unique);
        Self { remover: Held::new("remover", Some(remover)) }
    }

    /// Take out the rows at the places in the columns ``_file`` and ``_pos``.
    fn remove(&self, py: Python<'_>, rows: StreamInput) -> Result<()> {
        Ok(detached(py, || {
            let mut guard = self.remover.hold()?;
            let remover = guard.as_mut().ok_or_else(closed)?;
            for batch in rows.0 {
                interrupt::check()?;
                remover.remove(&batch.map_err(from_rows)?)?;
            }
            Ok::<_, icefield_table::Error>(())
        })??)
    }

    /// Write what the change needs.
    ///
    /// Return its description for `RowChangePlan.commit`, and the numbers of new files, of rows taken out and of bytes.
    fn close<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyBytes>, usize, i64, i64)> {
        let (removed, bytes) = detached(py, || {
            let remover = self.remover.hold()?.take().ok_or_else(closed)?;
            remover.finish()
        })??;
        let (paths, size) = removed.new_files();
        Ok((PyBytes::new(py, &bytes), paths, removed.rows(), size))
    }

    /// Discard what was taken out; this has no effect after `close`.
    fn abort(&self, py: Python<'_>) -> Result<()> {
        Ok(detached(py, || {
            drop(self.remover.hold()?.take());
            Ok::<_, icefield_table::Error>(())
        })??)
    }
}

fn closed() -> icefield_table::Error {
    icefield_table::Error::invalid("this remover is closed")
}
