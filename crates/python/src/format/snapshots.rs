//! Snapshots and references ("Snapshots", "Snapshot References").

use std::sync::Arc;

use icefield_format::metadata::{RefKind, Snapshot, SnapshotManifests, SnapshotRef};
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;
use icefield_format::value::human::to_human_string;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::json::JsonInput;
use crate::arguments::python_class::{SNAPSHOT_REF_TYPE, SUMMARY};
use crate::errors::Result;
use crate::format::display::html;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySnapshot>()?;
    module.add_class::<PySnapshotRef>()
}

/// A state of the rows of a table.
#[pyclass(frozen, eq, name = "Snapshot", module = "icefield.metadata")]
#[derive(Debug, Clone, PartialEq)]
pub struct PySnapshot(pub Arc<Snapshot>);

/// A branch or tag.
#[pyclass(frozen, eq, name = "SnapshotRef", module = "icefield.metadata")]
#[derive(Debug, Clone, PartialEq)]
pub struct PySnapshotRef(pub SnapshotRef);

#[pymethods]
impl PySnapshot {
    /// The snapshot's id.
    #[getter]
    fn snapshot_id(&self) -> i64 {
        self.0.snapshot_id
    }

    /// The id of the snapshot before it, if there is one.
    #[getter]
    fn parent_snapshot_id(&self) -> Option<i64> {
        self.0.parent_snapshot_id
    }

    /// The place of the snapshot among all commits; 0 in version 1.
    #[getter]
    fn sequence_number(&self) -> i64 {
        self.0.sequence_number
    }

    /// When it was committed, in milliseconds from the epoch.
    #[getter]
    fn timestamp_ms(&self) -> i64 {
        self.0.timestamp_ms
    }

    /// What it did: ``append``, ``replace``, ``overwrite`` or ``delete``.
    #[getter]
    fn operation(&self) -> Option<&str> {
        self.0.operation().map(|operation| operation.as_str())
    }

    /// What it did and how much, as texts; ``operation`` is among them.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(summary) = &self.0.summary else { return Ok(None) };
        let entries = string_dict(py, summary.properties.iter())?;
        SUMMARY.get(py)?.call((summary.operation.as_str(),), Some(&entries)).map(Some)
    }

    /// Location of the list of its manifests.
    #[getter]
    fn manifest_list(&self) -> Option<&str> {
        self.0.manifest_list()
    }

    /// Locations of the manifests, where v1 metadata names them itself.
    #[getter]
    fn manifests(&self) -> Option<Vec<String>> {
        match &self.0.manifests {
            SnapshotManifests::List(_) => None,
            SnapshotManifests::Inline(locations) => Some(locations.clone()),
        }
    }

    /// The id of the schema that was current.
    #[getter]
    fn schema_id(&self) -> Option<i32> {
        self.0.schema_id
    }

    /// The first row id of the rows that it added (version 3).
    #[getter]
    fn first_row_id(&self) -> Option<i64> {
        self.0.first_row_id
    }

    /// An upper bound of the rows that were assigned ids (version 3).
    #[getter]
    fn added_rows(&self) -> Option<i64> {
        self.0.added_rows
    }

    /// The id of the key that the manifest list is encrypted with, if it is.
    #[getter]
    fn key_id(&self) -> Option<&str> {
        self.0.key_id.as_deref()
    }

    /// The JSON form.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "snapshot_html")
    }

    fn __repr__(&self) -> String {
        let operation = self.operation().map_or_else(|| "None".to_owned(), |operation| format!("{operation:?}"));
        let micros = self.0.timestamp_ms.checked_mul(1000).map(Value::Long);
        let committed = micros.map(|micros| to_human_string(Some(&micros), &PrimitiveType::Timestamptz));
        format!(
            "Snapshot(snapshot_id={}, operation={operation}, committed={}, timestamp_ms={}, sequence_number={})",
            self.0.snapshot_id,
            committed.as_deref().unwrap_or("unknown"),
            self.0.timestamp_ms,
            self.0.sequence_number
        )
    }

    /// Read it of its JSON form.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        Ok(Self(Snapshot::from_json(&json.0)?.into()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }

    fn __hash__(&self) -> u64 {
        self.0.snapshot_id.unsigned_abs()
    }
}

#[pymethods]
impl PySnapshotRef {
    /// The id of the snapshot that it names.
    #[getter]
    fn snapshot_id(&self) -> i64 {
        self.0.snapshot_id
    }

    /// `branch` or `tag`.
    #[getter]
    fn snapshot_ref_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        SNAPSHOT_REF_TYPE.get(py)?.call1((self.0.kind.as_str(),))
    }

    /// How many snapshots of the branch expiry leaves at least.
    #[getter]
    fn min_snapshots_to_keep(&self) -> Option<i32> {
        match self.0.kind {
            RefKind::Branch { min_snapshots_to_keep, .. } => min_snapshots_to_keep,
            RefKind::Tag => None,
        }
    }

    /// Up to which age, in milliseconds, expiry leaves snapshots of the branch.
    #[getter]
    fn max_snapshot_age_ms(&self) -> Option<i64> {
        match self.0.kind {
            RefKind::Branch { max_snapshot_age_ms, .. } => max_snapshot_age_ms,
            RefKind::Tag => None,
        }
    }

    /// The age, in milliseconds, at which expiry removes the branch or tag.
    #[getter]
    fn max_ref_age_ms(&self) -> Option<i64> {
        self.0.max_ref_age_ms
    }

    /// The JSON form.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "reference_html")
    }

    fn __repr__(&self) -> String {
        format!("SnapshotRef(snapshot_id={}, snapshot_ref_type={:?})", self.0.snapshot_id, self.0.kind.as_str())
    }

    /// Read it of its JSON form.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        Ok(Self(SnapshotRef::from_json(&json.0)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }

    fn __hash__(&self) -> u64 {
        self.0.snapshot_id.unsigned_abs()
    }
}

/// A dict of texts.
pub(super) fn string_dict<'py, 'a>(
    py: Python<'py>,
    entries: impl Iterator<Item = (&'a String, &'a String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in entries {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
