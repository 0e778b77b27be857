//! Several changes of one table in one commit.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use icefield_format::metadata::{MetadataUpdate, requirements_for_update};
use icefield_table::commit::{Transaction, Updates};
use icefield_table::operation::append::append;
use pyo3::prelude::*;

use crate::arguments::json::JsonInput;
use crate::capsule::StreamInput;
use crate::entry::detached;
use crate::errors::{Result, from_rows};
use crate::format::metadata::PyTableMetadata;
use crate::table::state::{PyTableState, append_options, elements};

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTransaction>()
}

/// Changes of a table, made anew of the table as it then is at each attempt to commit them.
#[pyclass(frozen, name = "Transaction", module = "icefield._core")]
#[derive(Debug)]
pub struct PyTransaction {
    state: PyTableState,
    changes: Mutex<Transaction>,
}

impl PyTransaction {
    fn changes(&self) -> MutexGuard<'_, Transaction> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyTransaction {
    /// A transaction without changes, of the table as it is in this state.
    #[new]
    fn py_new(state: &Bound<'_, PyTableState>) -> Self {
        let state = state.get().clone();
        let changes = Mutex::new(Transaction::new((*state.committed).clone()));
        Self { state, changes }
    }

    /// The table's metadata with the changes so far.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> Result<PyTableMetadata> {
        Ok(PyTableMetadata(detached(py, || self.changes().metadata().cloned())??))
    }

    /// Whether there is nothing to commit.
    #[getter]
    fn is_empty(&self) -> bool {
        self.changes().is_empty()
    }

    /// Add updates (REST protocol) that were made of `metadata`. They are applied at an attempt only if what they build on
    /// is still the same then.
    fn stage(&self, py: Python<'_>, updates: JsonInput) -> Result<()> {
        let updates: Vec<_> =
            elements(&updates.0)?.iter().map(MetadataUpdate::from_json).collect::<std::result::Result<_, _>>()?;
        Ok(detached(py, || {
            let mut changes = self.changes();
            let requirements = requirements_for_update(changes.metadata()?, &updates);
            changes.stage(Updates::new(requirements, updates)?)
        })??)
    }

    /// Write rows to data files, to be appended with the other changes: the number of rows.
    #[pyo3(signature = (
        rows, *, branch="main".to_owned(), snapshot_properties=BTreeMap::new(), allow_missing=true, ignore_extra=false,
        evolve=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the append")]
    fn append(
        &self,
        py: Python<'_>,
        rows: StreamInput,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
        allow_missing: bool,
        ignore_extra: bool,
        evolve: bool,
    ) -> Result<i64> {
        let options = append_options(branch, snapshot_properties, allow_missing, ignore_extra, evolve);
        let schema = rows.0.schema();
        let batches = rows.0.map(|batch| batch.map_err(from_rows));
        Ok(detached(py, || {
            let mut changes = self.changes();
            changes.check_open()?;
            let rows = append(&self.state.storage.0, &mut changes, &schema, batches, options)?;
            changes.metadata()?;
            Ok::<_, icefield_table::Error>(rows)
        })??)
    }

    /// Commit the changes: the new state.
    fn commit(&self, py: Python<'_>, catalog: Py<PyAny>, identifier: Py<PyAny>) -> Result<PyTableState> {
        let table = self.state.table(catalog, identifier)?;
        let table = detached(py, || table.commit(&mut self.changes()))??;
        Ok(self.state.with(table.committed().clone()))
    }

    /// Give the changes up: what was written for them is deleted.
    fn abort(&self, py: Python<'_>) -> Result<()> {
        detached(py, || self.changes().abort())
    }
}
