//! Catalogs that are written in Python, as the commit code needs them: one catalog entry each.

use std::sync::Arc;

use icefield_format::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement, requirements_for_create};
use icefield_table::Error;
use icefield_table::commit::{Catalog, Committed, Landed, Outcome, Pointer, PointerCatalog};
use icefield_table::storage::Storage;
use pyo3::prelude::*;
use serde_json::Value as Json;

use crate::arguments::json::to_python;
use crate::callback::{ENDED, call_python};
use crate::errors::{CommitFailedException, NoSuchNamespaceError, RESTError, TableAlreadyExistsError, from_callback};
use crate::format::metadata::PyTableMetadata;

/// The entry of a table in a Python catalog. In a `PointerCatalog`, commits swap a pointer; other catalogs are services
/// that take requirements and updates.
pub(crate) fn of_python(storage: &Storage, catalog: Py<PyAny>, identifier: Py<PyAny>) -> PyResult<Arc<dyn Catalog>> {
    let has_pointers = Python::attach(|py| {
        let class = py.import("icefield.catalog.pointer")?.getattr("PointerCatalog")?;
        catalog.bind(py).is_instance(&class)
    })?;
    let entry = Entry { catalog, identifier };
    Ok(if has_pointers { Arc::new(PointerCatalog::new(storage.clone(), entry)) } else { Arc::new(entry) })
}

/// A catalog and the name of a table in it.
#[derive(Debug)]
struct Entry {
    catalog: Py<PyAny>,
    identifier: Py<PyAny>,
}

impl Entry {
    fn call<T>(&self, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> icefield_table::Result<T> {
        self.answer(|py| work(py).map_err(|error| from_callback(py, error)))
    }

    fn answer<T>(&self, work: impl FnOnce(Python<'_>) -> icefield_table::Result<T>) -> icefield_table::Result<T> {
        let called = call_python(work);
        // Nothing was sent, so the state of the commit is known.
        called.unwrap_or_else(|| Err(Error::Interrupted(ENDED.into())))
    }
}

impl Pointer for Entry {
    fn load(&self) -> icefield_table::Result<String> {
        self.call(|py| self.catalog.bind(py).call_method1("_pointer", (&self.identifier,))?.extract())
    }

    fn swap(&self, base: &str, new: &str) -> icefield_table::Result<()> {
        self.call(|py| self.catalog.bind(py).call_method1("_swap", (&self.identifier, base, new)).map(drop))
    }

    fn add(&self, new: &str) -> icefield_table::Result<()> {
        refused(self.call(|py| self.catalog.bind(py).call_method1("_add", (&self.identifier, new)).map(drop)))
    }

    fn landed(&self, table: &Committed, done: &Landed<'_>) {
        self.report(table, done);
    }
}

impl Catalog for Entry {
    fn load(&self, _known: Option<&Committed>) -> icefield_table::Result<Committed> {
        self.call(|py| committed(&self.catalog.bind(py).call_method1("load_table_metadata", (&self.identifier,))?))
    }

    fn commit(
        &self,
        _base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> icefield_table::Result<Outcome> {
        outcome(self.commit_table(requirements, updates))
    }

    fn create(&self, updates: &[MetadataUpdate]) -> icefield_table::Result<Outcome> {
        outcome(refused(self.commit_table(&requirements_for_create(), updates)))
    }

    fn landed(&self, table: &Committed, done: &Landed<'_>) {
        self.report(table, done);
    }
}

impl Entry {
    /// Tells the catalog of new snapshots.
    fn report(&self, table: &Committed, done: &Landed<'_>) {
        let is_new = |update: &MetadataUpdate| match update {
            MetadataUpdate::AddSnapshot { snapshot } => Some(snapshot.snapshot_id),
            _ => None,
        };
        let ids: Vec<i64> = done.updates.iter().filter_map(is_new).collect();
        if ids.is_empty() {
            return;
        }
        let took = u64::try_from(done.took.as_nanos()).unwrap_or(u64::MAX);
        call_python(|py| {
            // A catalog of one's own need not be derived from ours.
            let Ok(report) = self.catalog.bind(py).getattr("_report_commit") else { return };
            let metadata = PyTableMetadata(table.metadata.clone());
            if let Err(error) = report.call1((&self.identifier, metadata, ids, done.attempts, took)) {
                // The commit stands, whatever happens to its report.
                error.write_unraisable(py, Some(&report));
            }
        });
    }

    fn commit_table(
        &self,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> icefield_table::Result<Committed> {
        let requirements = Json::Array(requirements.iter().map(UpdateRequirement::to_json).collect());
        let updates = Json::Array(updates.iter().map(MetadataUpdate::to_json).collect());
        let ask = |py: Python<'_>| -> PyResult<Committed> {
            let arguments = (&self.identifier, to_python(py, &requirements)?, to_python(py, &updates)?);
            committed(&self.catalog.bind(py).call_method1("commit_table", arguments)?)
        };
        self.answer(|py| ask(py).map_err(|error| of_commit(py, error)))
    }
}

/// The error of a commit. A service that refuses the request itself refuses it again, so that is no lost race.
fn of_commit(py: Python<'_>, error: PyErr) -> Error {
    let status = |cause: PyErr| {
        let is_answer = cause.is_instance_of::<RESTError>(py);
        is_answer.then(|| cause.value(py).getattr("status").ok()?.extract::<u16>().ok()).flatten()
    };
    let is_refusal = |status: u16| (400..500).contains(&status) && !matches!(status, 408 | 409 | 429);
    if error.is_instance_of::<CommitFailedException>(py) && error.cause(py).and_then(status).is_some_and(is_refusal) {
        return Error::Refused(Box::new(error));
    }
    from_callback(py, error)
}

/// The outcome of a commit, from the answer of `commit_table`.
fn outcome(answer: icefield_table::Result<Committed>) -> icefield_table::Result<Outcome> {
    Ok(match answer {
        Ok(committed) => Outcome::Committed(committed),
        Err(Error::CommitFailed(reason)) => Outcome::Lost(reason),
        Err(Error::CommitStateUnknown { message, cause, .. }) => Outcome::Unknown { message, location: None, cause },
        Err(certain @ (Error::Refused(_) | Error::Interrupted(_))) => return Err(certain),
        // A catalog may raise other exceptions after it has committed.
        Err(Error::Callback(raised)) => {
            Outcome::Unknown { message: raised.to_string(), location: None, cause: Some(raised) }
        }
        Err(other) => Outcome::Unknown { message: other.to_string(), location: None, cause: None },
    })
}

/// Marks exceptions about names that exist or do not exist as refusals, after which nothing has changed.
fn refused<T>(answer: icefield_table::Result<T>) -> icefield_table::Result<T> {
    let is_certain = |error: &PyErr| {
        let named = |py: Python<'_>| {
            error.is_instance_of::<TableAlreadyExistsError>(py) || error.is_instance_of::<NoSuchNamespaceError>(py)
        };
        Python::try_attach(named).unwrap_or(false)
    };
    match answer {
        Err(Error::Callback(error)) if error.downcast_ref::<PyErr>().is_some_and(is_certain) => {
            Err(Error::Refused(error))
        }
        answer => answer,
    }
}

/// Converts a `CommitTableResponse`: the metadata and the location of its file.
fn committed(response: &Bound<'_, PyAny>) -> PyResult<Committed> {
    let metadata = response.getattr("metadata")?.cast_into::<PyTableMetadata>()?;
    let location = response.getattr("metadata_location")?.extract()?;
    let metadata: Arc<TableMetadata> = metadata.get().0.clone();
    Ok(Committed { location, metadata })
}
