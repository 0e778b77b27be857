//! Converts folders of data files in Hive's layout to tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::FormatVersion;
use icefield_format::manifest::FileFormat;
use icefield_format::metadata::StringMap;
use icefield_format::types::{PrimitiveType, Type};
use icefield_table::operation::migrate::{FolderOptions, FolderTable, look_at};
use pyo3::prelude::*;

use crate::arguments::type_input::TypeInput;
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};
use crate::format::partitioning::PyPartitionSpec;
use crate::format::schemas::schema::PySchema;
use crate::storage::PyStorage;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFolderTable>()?;
    module.add_function(wrap_pyfunction!(look_at_folder, module)?)
}

/// What a folder in Hive's layout has: the definition of a table, and its files.
#[pyclass(frozen, name = "FolderTable", module = "icefield._core")]
#[derive(Debug)]
pub(crate) struct PyFolderTable(FolderTable);

#[pymethods]
impl PyFolderTable {
    /// The columns.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema(self.0.schema.clone())
    }

    /// The partition columns by identity.
    #[getter]
    fn partition_spec(&self) -> PyPartitionSpec {
        PyPartitionSpec(Arc::new(self.0.partition_spec.clone()))
    }

    /// Locations of the files.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.0.paths.clone()
    }

    /// Bytes of the files.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }
}

/// Look at a folder with data files in Hive's layout.
#[pyfunction]
fn look_at_folder(
    py: Python<'_>,
    storage: &Bound<'_, PyStorage>,
    folder: &str,
    format: Option<&str>,
    partition_types: BTreeMap<String, TypeInput>,
    properties: BTreeMap<String, String>,
) -> Result<PyFolderTable> {
    let properties: StringMap = properties.into_iter().collect();
    let options = FolderOptions {
        format: format.map(file_format).transpose()?,
        partition_types: partition_types.into_iter().map(primitive).collect::<Result<_>>()?,
        format_version: FormatVersion::of_new_table(&properties)?.number(),
    };
    let storage = &storage.get().0;
    Ok(PyFolderTable(detached(py, || look_at(storage, folder, &options))??))
}

fn file_format(name: &str) -> Result<FileFormat> {
    let format = FileFormat::from_name(name);
    Ok(format.filter(|format| *format != FileFormat::Puffin).ok_or_else(|| {
        InvalidArgumentError::new_err(format!("format: expected 'parquet', 'orc' or 'avro', got {name:?}"))
    })?)
}

fn primitive((name, TypeInput(ty)): (String, TypeInput)) -> Result<(String, PrimitiveType)> {
    match ty {
        Type::Primitive(ty) => Ok((name, ty)),
        ty => Err(InvalidArgumentError::new_err(format!("partition column {name} cannot be a {ty}")).into()),
    }
}
