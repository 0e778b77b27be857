//! Batches of upserts and deletes by key, for streams.

use std::collections::BTreeMap;

use icefield_table::commit::SnapshotOptions;
use icefield_table::operation::keyed_batch::KeyedBatch;
use icefield_table::operation::matching::MEMORY_LIMIT;
use icefield_table::write::Matching;
use pyo3::prelude::*;

use super::transaction::PyTransaction;
use crate::capsule::StreamInput;
use crate::entry::detached;
use crate::errors::{Result, from_rows};
use crate::held::Held;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKeyedBatch>()
}

/// Upserts and deletes by key that become one snapshot.
#[pyclass(frozen, name = "KeyedBatch", module = "icefield._core")]
#[derive(Debug)]
pub struct PyKeyedBatch {
    transaction: Py<PyTransaction>,
    /// `None` after it was written.
    batch: Held<Option<KeyedBatch>>,
}

#[pymethods]
impl PyKeyedBatch {
    /// A batch without changes; without columns the key is the identifier of the schema.
    #[new]
    #[pyo3(signature = (transaction, columns, *, case_sensitive=true, memory_limit=None))]
    fn py_new(
        py: Python<'_>,
        transaction: Py<PyTransaction>,
        columns: Vec<String>,
        case_sensitive: bool,
        memory_limit: Option<usize>,
    ) -> Result<Self> {
        let own = transaction.get();
        let memory = memory_limit.unwrap_or(MEMORY_LIMIT);
        let batch = detached(py, || KeyedBatch::new(&mut *own.changes()?, &columns, case_sensitive, memory))??;
        Ok(Self { transaction, batch: Held::new("stream of upserts", Some(batch)) })
    }

    /// Whether there are no changes.
    #[getter]
    fn is_empty(&self, py: Python<'_>) -> Result<bool> {
        Ok(detached(py, || {
            Ok::<_, icefield_table::Error>(self.batch.hold()?.as_ref().is_none_or(KeyedBatch::is_empty))
        })??)
    }

    /// Take rows that replace those with their keys.
    #[pyo3(signature = (rows, *, allow_missing=true))]
    fn upsert(&self, py: Python<'_>, rows: StreamInput, allow_missing: bool) -> Result<()> {
        let schema = rows.0.schema();
        let batches = rows.0.map(|batch| batch.map_err(from_rows));
        let matching = Matching { allow_missing, ignore_extra: false };
        Ok(detached(py, || self.with(|batch| batch.upsert(&schema, batches, matching)))??)
    }

    /// Take keys whose rows are deleted.
    fn delete(&self, py: Python<'_>, rows: StreamInput) -> Result<()> {
        let schema = rows.0.schema();
        let batches = rows.0.map(|batch| batch.map_err(from_rows));
        Ok(detached(py, || self.with(|batch| batch.delete(&schema, batches)))??)
    }

    /// Write the changes and add their snapshot to the transaction: the numbers of rows written and of keys deleted before.
    fn write(
        &self,
        py: Python<'_>,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
    ) -> Result<(i64, i64)> {
        let properties = snapshot_properties.into_iter().collect();
        let options = SnapshotOptions { branch, properties, ..SnapshotOptions::default() };
        let own = self.transaction.get();
        let done = detached(py, || {
            let batch = self.batch.hold()?.take().ok_or_else(written)?;
            batch.commit(&mut *own.changes()?, options)
        })??;
        Ok((done.rows_written, done.keys))
    }
}

impl PyKeyedBatch {
    /// Applies changes to the batch; after an error the whole batch is dropped.
    fn with(&self, work: impl FnOnce(&mut KeyedBatch) -> icefield_table::Result<()>) -> icefield_table::Result<()> {
        let mut batch = self.batch.hold()?;
        let done = work(batch.as_mut().ok_or_else(written)?);
        if done.is_err() {
            *batch = None;
        }
        done
    }
}

fn written() -> icefield_table::Error {
    icefield_table::Error::invalid("this batch of changes was written already, or has failed")
}
