//! Classes that are written in Python because they only hold data: enums, log entries, summaries.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// A class from the package's Python code, imported when it is first needed.
pub(crate) struct PythonClass {
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyType>>,
}

impl PythonClass {
    /// The class with this name in a module.
    pub(crate) const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, class: PyOnceLock::new() }
    }

    /// The class itself.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyType>> {
        self.class.import(py, self.module, self.name)
    }
}

/// The direction of a sort field: `asc` or `desc`.
pub(crate) static SORT_DIRECTION: PythonClass = PythonClass::new("icefield.sorting", "SortDirection");
/// Whether nulls are sorted first or last.
pub(crate) static NULL_ORDER: PythonClass = PythonClass::new("icefield.sorting", "NullOrder");
/// Whether a reference is a branch or a tag.
pub(crate) static SNAPSHOT_REF_TYPE: PythonClass = PythonClass::new("icefield.metadata", "SnapshotRefType");
/// The summary of a snapshot: what it did.
pub(crate) static SUMMARY: PythonClass = PythonClass::new("icefield.metadata", "Summary");
/// When a snapshot became current.
pub(crate) static SNAPSHOT_LOG_ENTRY: PythonClass = PythonClass::new("icefield.metadata", "SnapshotLogEntry");
/// A statistics file of a snapshot.
pub(crate) static STATISTICS_FILE: PythonClass = PythonClass::new("icefield.metadata", "StatisticsFile");
/// A blob of a statistics file.
pub(crate) static BLOB_METADATA: PythonClass = PythonClass::new("icefield.metadata", "BlobMetadata");
/// A partition statistics file of a snapshot.
pub(crate) static PARTITION_STATISTICS_FILE: PythonClass =
    PythonClass::new("icefield.metadata", "PartitionStatisticsFile");
/// A previous metadata file.
pub(crate) static METADATA_LOG_ENTRY: PythonClass = PythonClass::new("icefield.metadata", "MetadataLogEntry");
