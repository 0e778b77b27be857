//! Writes manifests before a commit.

use icefield_table::commit::NewManifest;
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::entry::detached;
use crate::errors::Result;
use crate::format::files::data_file::PyContentFile;
use crate::format::files::manifest_file::{Content, PyManifestFile};
use crate::held::Held;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyManifestWriter>()
}

/// A writer of one manifest, without snapshot id.
#[pyclass(frozen, name = "ManifestWriter", module = "icefield._core")]
#[derive(Debug)]
pub struct PyManifestWriter {
    state: PyTableState,
    /// `None` after it was closed.
    writer: Held<Option<NewManifest>>,
}

impl PyManifestWriter {
    fn with<T>(&self, work: impl FnOnce(&mut NewManifest) -> icefield_table::Result<T>) -> icefield_table::Result<T> {
        work(self.writer.hold()?.as_mut().ok_or_else(closed)?)
    }
}

fn closed() -> icefield_table::Error {
    icefield_table::Error::invalid("this manifest is written already")
}

#[pymethods]
impl PyManifestWriter {
    /// A writer of a manifest of files of one partition spec; by default it lies in the folder of metadata.
    #[new]
    #[pyo3(signature = (state, spec_id, content, location=None))]
    fn py_new(
        state: &Bound<'_, PyTableState>,
        spec_id: Int<i32>,
        content: Content,
        location: Option<String>,
    ) -> Result<Self> {
        let state = state.get().clone();
        let storage = state.storage.0.clone();
        let writer = NewManifest::new(storage, &state.committed.metadata, spec_id.0, content.0, location)?;
        Ok(Self { state, writer: Held::new("writer", Some(writer)) })
    }

    /// Add a file that the commit adds.
    #[pyo3(signature = (file, sequence_number=None))]
    fn add(&self, py: Python<'_>, file: &Bound<'_, PyContentFile>, sequence_number: Option<Int<i64>>) -> Result<()> {
        let file = file.get().of_table(py, &self.state.committed.metadata)?;
        let number = sequence_number.map(|Int(number)| number);
        Ok(detached(py, || self.with(|writer| writer.add(file, number)))??)
    }

    /// Add a file that the table has.
    #[pyo3(signature = (file, snapshot_id, sequence_number, file_sequence_number=None))]
    fn existing(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyContentFile>,
        snapshot_id: Int<i64>,
        sequence_number: Int<i64>,
        file_sequence_number: Option<Int<i64>>,
    ) -> Result<()> {
        let file = file.get().of_table(py, &self.state.committed.metadata)?;
        let of_file = file_sequence_number.map(|Int(number)| number);
        let existing = |writer: &mut NewManifest| writer.existing(file, snapshot_id.0, sequence_number.0, of_file);
        Ok(detached(py, || self.with(existing))??)
    }

    /// Write the manifest.
    fn finish(&self, py: Python<'_>) -> Result<PyManifestFile> {
        Ok(PyManifestFile(detached(py, || self.writer.hold()?.take().ok_or_else(closed)?.finish())??))
    }
}
