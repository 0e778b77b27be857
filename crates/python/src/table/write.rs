//! Distributed writes: the driver plans, executors write files, and the driver commits them once.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::properties::check_set;
use icefield_table::commit::SnapshotOptions;
use icefield_table::operation::row_change::Isolation;
use icefield_table::storage::redacted;
use icefield_table::write::conform::Matching;
use icefield_table::write::{BackgroundWriter, Distribution, TableWriter, WritePlan, check_writable};
use icefield_table::{RowsCommitted, interrupt};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::capsule::{SchemaInput, StreamInput};
use crate::entry::detached;
use crate::errors::{Result, from_rows};
use crate::format::schemas::schema::PySchema;
use crate::held::Held;
use crate::storage::PyStorage;
use crate::table::changes::rows::counted;
use crate::table::changes::transaction::Counts;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWritePlan>()?;
    module.add_class::<PyTaskWriter>()
}

/// What all writers of a distributed write have in common: the table, its properties, and the id of the write.
#[pyclass(frozen, name = "WritePlan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyWritePlan(pub(super) WritePlan);

/// A writer of the data files of one task of a distributed write.
#[pyclass(frozen, name = "TaskWriter", module = "icefield._core")]
#[derive(Debug)]
pub struct PyTaskWriter {
    plan: WritePlan,
    /// `None` after it was closed.
    writer: Held<Option<BackgroundWriter>>,
}

#[pymethods]
impl PyWritePlan {
    /// A new write into a table as it is now.
    ///
    /// `properties` set some of the table's otherwise, for this write alone. With `widened_by`, the columns of the rows, the
    /// commit adds those that the table lacks.
    #[new]
    #[pyo3(signature = (table, /, *, properties=BTreeMap::new(), widened_by=None))]
    fn py_new(
        table: &Bound<'_, PyTableState>,
        properties: BTreeMap<String, String>,
        widened_by: Option<SchemaInput>,
    ) -> Result<Self> {
        let metadata = &table.get().committed.metadata;
        check_writable(metadata, &table.get().storage.0)?;
        check_set(&properties.clone().into_iter().collect())?;
        let plan = match widened_by {
            Some(rows) => WritePlan::widened(metadata, &rows.0)?,
            None => WritePlan::new(metadata),
        };
        Ok(Self(plan.with_properties(properties)))
    }

    /// Return the plan of what `to_bytes` returned.
    #[staticmethod]
    fn from_bytes(data: PyBackedBytes) -> Result<Self> {
        Ok(Self(WritePlan::from_bytes(&data)?))
    }

    /// Return all that another machine needs to write, except for the properties of the storage.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes()?))
    }

    /// Id of the write, which is part of the names of its files.
    #[getter]
    fn write_id(&self) -> String {
        self.0.operation.to_string()
    }

    /// The columns of the table as the commit leaves it.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema(self.0.schema().clone())
    }

    /// Raise ``ValidationError`` if rows of this schema cannot be written, without writing any.
    #[pyo3(signature = (storage, schema, *, allow_missing=true))]
    fn check(&self, storage: &Bound<'_, PyStorage>, schema: SchemaInput, allow_missing: bool) -> Result<()> {
        let matching = Matching { allow_missing, ignore_extra: false };
        let config = self.0.config_for(&schema.0, storage.get().0.clone(), 0, 0, matching)?;
        Ok(TableWriter::new(config, &schema.0).map(drop)?)
    }

    /// Delete the files of a write that was certainly not committed.
    ///
    /// Return how many could not be deleted, and the first reasons. With ``search``, files that no task has reported
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

    /// Delete the files of attempts that lost: those of this write that no committed task has reported.
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

    /// Commit the files that tasks have written.
    ///
    /// Return the new state, the id of the snapshot, the number of rows, and whether an earlier run has made the change.
    #[pyo3(signature = (table, catalog, identifier, written, *, branch="main".to_owned(), snapshot_properties=BTreeMap::new()))]
    #[expect(clippy::too_many_arguments, reason = "the table, its place in the catalog, and the keywords of a commit")]
    fn append(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyTableState>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        written: Vec<PyBackedBytes>,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
    ) -> Result<(PyTableState, Option<i64>, i64, bool)> {
        let state = table.get();
        let open = state.table(catalog, identifier)?;
        let properties = snapshot_properties.into_iter().collect();
        let options = SnapshotOptions { branch, properties, ..SnapshotOptions::default() };
        let appended = detached(py, || open.append_written(&self.0, self.files(written)?, options))??;
        let state = state.with(appended.table.committed().clone());
        Ok((state, appended.snapshot_id, appended.rows, appended.made_before))
    }

    /// Commit the files that tasks have written, in place of everything in their partitions.
    ///
    /// Return the new state, the id of the snapshot, whether an earlier run has made the change, and its numbers as
    /// `RowChanges` returns them.
    #[pyo3(signature = (
        table, catalog, identifier, written, *, branch="main".to_owned(), isolation=None, snapshot_properties=BTreeMap::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "the table, its place in the catalog, and the keywords of a commit")]
    fn replace_partitions(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyTableState>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        written: Vec<PyBackedBytes>,
        branch: String,
        isolation: Option<&str>,
        snapshot_properties: BTreeMap<String, String>,
    ) -> Result<RowsDone> {
        let state = table.get();
        let open = state.table(catalog, identifier)?;
        let isolation = isolation.map(Isolation::parse).transpose()?;
        let properties = snapshot_properties.into_iter().collect();
        let options = SnapshotOptions { branch, properties, ..SnapshotOptions::default() };
        let done = detached(py, || {
            let files = written.into_iter().map(|bytes| self.0.files_from_bytes(&bytes));
            let files = files.collect::<icefield_table::Result<Vec<_>>>()?;
            open.replace_partitions(&self.0, files, isolation, options)
        })??;
        Ok(rows_done(state, done))
    }
}

/// The new state, the id of the snapshot, whether an earlier run has committed the change, and its counts.
pub(super) type RowsDone = (PyTableState, Option<i64>, bool, Counts);

/// Converts the result of a distributed row change.
pub(super) fn rows_done(state: &PyTableState, done: RowsCommitted) -> RowsDone {
    (state.with(done.table.committed().clone()), done.snapshot_id, done.made_before, counted(done.done))
}

impl PyWritePlan {
    /// The files that tasks have reported.
    fn files(&self, written: Vec<PyBackedBytes>) -> icefield_table::Result<Vec<DataFile>> {
        let files = written.into_iter().map(|bytes| self.0.files_from_bytes(&bytes));
        Ok(files.collect::<icefield_table::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

#[pymethods]
impl PyTaskWriter {
    /// A writer for one attempt at one task, of rows with the columns of `schema`.
    ///
    /// With `clustered`, rows come partition after partition, and one file is open at a time. With `dry_run` nothing is
    /// written, but for what is counted.
    #[new]
    #[pyo3(signature = (
        plan, storage, schema, *, task=0, attempt=0, allow_missing=true, clustered=false, memory_limit=None,
        dry_run=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "the write, its storage, and the keywords of a writer")]
    fn py_new(
        plan: &Bound<'_, PyWritePlan>,
        storage: &Bound<'_, PyStorage>,
        schema: SchemaInput,
        task: u32,
        attempt: u64,
        allow_missing: bool,
        clustered: bool,
        memory_limit: Option<usize>,
        dry_run: bool,
    ) -> Result<Self> {
        let plan = plan.get().0.clone();
        let storage = &storage.get().0;
        let written_to = if dry_run { storage.unwritten() } else { storage.clone() };
        let matching = Matching { allow_missing, ignore_extra: false };
        let mut config = plan.config_for(&schema.0, written_to, task, attempt, matching)?;
        if clustered {
            config.distribution = Distribution::Clustered;
        }
        if let Some(bytes) = memory_limit {
            config.memory_bytes = bytes;
        }
        let schema: Arc<ArrowSchema> = schema.0;
        let writer = BackgroundWriter::new(TableWriter::new(config, &schema)?)?;
        Ok(Self { writer: Held::new("writer", Some(writer)), plan })
    }

    /// Take rows to write.
    ///
    /// They are written while the next ones are taken, so an error may be that of rows taken before. After an error
    /// nothing more can be written: call `abort`.
    fn write(&self, py: Python<'_>, rows: StreamInput) -> Result<()> {
        Ok(detached(py, || {
            let guard = self.writer.hold()?;
            let writer = guard.as_ref().ok_or_else(closed)?;
            for batch in rows.0 {
                interrupt::check()?;
                writer.write(batch.map_err(from_rows)?)?;
            }
            Ok::<_, icefield_table::Error>(())
        })??)
    }

    /// Close the files.
    ///
    /// Return their description for `WritePlan.append`, and the numbers of files, rows and bytes.
    fn close<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyBytes>, usize, i64, i64)> {
        let (bytes, files) = detached(py, || {
            let writer = self.take()?.ok_or_else(closed)?;
            let files = writer.finish()?;
            Ok::<_, icefield_table::Error>((self.plan.files_to_bytes(&files)?, files))
        })??;
        let rows = files.iter().map(|file| file.record_count).sum();
        let size = files.iter().map(|file| file.file_size_in_bytes).sum();
        Ok((PyBytes::new(py, &bytes), files.len(), rows, size))
    }

    /// Delete the files; this has no effect after `close`.
    fn abort(&self, py: Python<'_>) -> Result<()> {
        Ok(detached(py, || {
            if let Some(writer) = self.take()? {
                writer.abort();
            }
            Ok::<_, icefield_table::Error>(())
        })??)
    }
}

impl PyTaskWriter {
    fn take(&self) -> icefield_table::Result<Option<BackgroundWriter>> {
        Ok(self.writer.hold()?.take())
    }
}

fn closed() -> icefield_table::Error {
    icefield_table::Error::invalid("this writer is closed")
}
