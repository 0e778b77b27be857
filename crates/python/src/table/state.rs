//! The state of a table: its metadata, the location of the metadata file, and the storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::FormatVersion;
use icefield_format::metadata::{MetadataUpdate, StringMap, TableDefinition, UpdateRequirement};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_table::commit::{self, Committed, SnapshotOptions};
use icefield_table::maintain::purge::purge;
use icefield_table::operation::append::AppendOptions;
use icefield_table::operation::create::{create, stage};
use icefield_table::storage::redacted;
use icefield_table::write::Matching;
use icefield_table::{Table, limits};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::Value as Json;

use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};
use crate::format::metadata::PyTableMetadata;
use crate::format::schemas::schema::{IcebergSchemaInput, PySchema};
use crate::storage::PyStorage;
use crate::table::catalog::of_python;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTableState>()
}

/// A table as one metadata file describes it; a commit returns a new state.
#[pyclass(frozen, name = "TableState", module = "icefield._core")]
#[derive(Debug, Clone)]
pub struct PyTableState {
    pub storage: PyStorage,
    pub committed: Arc<Committed>,
}

/// Partition or sort fields: texts, or the JSON of a spec or order.
#[derive(FromPyObject)]
pub(crate) enum Fields {
    Texts(Vec<String>),
    Json(JsonInput),
}

impl PyTableState {
    /// The table, with its entry in a Python catalog.
    pub fn table(&self, catalog: Py<PyAny>, identifier: Py<PyAny>) -> PyResult<Table> {
        let catalog = of_python(&self.storage.0, catalog, identifier)?;
        Ok(Table::new(self.storage.0.clone(), catalog, (*self.committed).clone()))
    }

    pub fn with(&self, committed: Committed) -> Self {
        Self { storage: self.storage.clone(), committed: Arc::new(committed) }
    }
}

#[pymethods]
impl PyTableState {
    /// Read a metadata file.
    #[staticmethod]
    fn load(py: Python<'_>, storage: &Bound<'_, PyStorage>, metadata_location: String) -> Result<Self> {
        let storage = storage.get().clone();
        let metadata = detached(py, || commit::read_metadata(&storage.0, &metadata_location))??;
        let committed = Committed { location: metadata_location, metadata: Arc::new(metadata) };
        Ok(Self { storage, committed: Arc::new(committed) })
    }

    /// Take metadata that are at hand, such as those that a catalog has answered with, and read nothing.
    ///
    /// `metadata_location` is the location of the metadata file; empty if it is not stored in a file.
    #[staticmethod]
    fn of(storage: &Bound<'_, PyStorage>, metadata_location: String, metadata: &Bound<'_, PyTableMetadata>) -> Self {
        let committed = Committed { location: metadata_location, metadata: metadata.get().0.clone() };
        Self { storage: storage.get().clone(), committed: Arc::new(committed) }
    }

    /// Return the state that the catalog has now.
    fn refresh(&self, py: Python<'_>, catalog: Py<PyAny>, identifier: Py<PyAny>) -> Result<Self> {
        let table = self.table(catalog, identifier)?;
        Ok(self.with(detached(py, || table.refresh())??.committed().clone()))
    }

    /// Write the metadata file of a new table.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        storage: &Bound<'_, PyStorage>,
        schema: IcebergSchemaInput,
        location: String,
        partition: Fields,
        sort: Fields,
        properties: BTreeMap<String, String>,
    ) -> Result<Self> {
        let definition = definition(schema, location, partition, sort, properties)?;
        let storage = storage.get().clone();
        let committed = detached(py, || create(&storage.0, &definition))??;
        Ok(Self { storage, committed: Arc::new(committed) })
    }

    /// A new table that is written nowhere yet.
    #[staticmethod]
    fn stage(
        storage: &Bound<'_, PyStorage>,
        schema: IcebergSchemaInput,
        location: String,
        partition: Fields,
        sort: Fields,
        properties: BTreeMap<String, String>,
    ) -> Result<Self> {
        let metadata = stage(&definition(schema, location, partition, sort, properties)?)?;
        let committed = Committed { location: String::new(), metadata: Arc::new(metadata) };
        Ok(Self { storage: storage.get().clone(), committed: Arc::new(committed) })
    }

    /// Create a table by updates of the REST protocol, if its name is free and a missing table meets the requirements.
    #[staticmethod]
    fn create_by(
        py: Python<'_>,
        storage: &Bound<'_, PyStorage>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        requirements: JsonInput,
        updates: JsonInput,
    ) -> Result<Self> {
        let (requirements, updates) = (requirements_of(&requirements)?, updates_of(&updates)?);
        let storage = storage.get().clone();
        let catalog = of_python(&storage.0, catalog, identifier)?;
        let committed = detached(py, || commit::create_table(&*catalog, &requirements, &updates))??;
        Ok(Self { storage, committed: Arc::new(committed) })
    }

    /// Commit updates of the REST protocol, if the table meets the requirements, and return the new state.
    fn commit(
        &self,
        py: Python<'_>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        requirements: JsonInput,
        updates: JsonInput,
    ) -> Result<Self> {
        let (requirements, updates) = (requirements_of(&requirements)?, updates_of(&updates)?);
        let table = self.table(catalog, identifier)?;
        let table = detached(py, || table.update(requirements, updates))??;
        Ok(self.with(table.committed().clone()))
    }

    /// Delete the files that the metadata names.
    ///
    /// Return how many could not be read or deleted, and the first reasons. Nothing is deleted outside the folders
    /// of the table, by way of a link, or in the folder ``warehouse`` itself or above it.
    #[pyo3(signature = (warehouse=None))]
    fn purge(&self, py: Python<'_>, warehouse: Option<&str>) -> Result<(usize, Vec<String>)> {
        let limits = limits()?;
        let left = detached(py, || purge(&self.storage.0, &self.committed, warehouse, &limits))?;
        Ok((left.failures, left.first.iter().map(|message| redacted(message)).collect()))
    }

    /// Where the files of the table are.
    #[getter]
    fn storage(&self) -> PyStorage {
        self.storage.clone()
    }

    /// Location of the metadata file.
    #[getter]
    fn metadata_location(&self) -> &str {
        &self.committed.location
    }

    /// The metadata.
    #[getter]
    fn metadata(&self) -> PyTableMetadata {
        PyTableMetadata(self.committed.metadata.clone())
    }

    /// Return the metadata as JSON text.
    fn metadata_json(&self, py: Python<'_>) -> Result<String> {
        detached(py, || self.committed.metadata.to_json())
    }

    /// The base location of the table.
    #[getter]
    fn location(&self) -> &str {
        self.committed.metadata.location()
    }

    /// Version of the table format.
    #[getter]
    fn format_version(&self) -> u8 {
        self.committed.metadata.format_version().number()
    }

    /// UUID of the table; old tables of version 1 may have none.
    #[getter]
    fn table_uuid(&self) -> Option<&str> {
        self.committed.metadata.table_uuid()
    }

    /// Id of the current snapshot; ``None`` if the table is empty.
    #[getter]
    fn current_snapshot_id(&self) -> Option<i64> {
        self.committed.metadata.current_snapshot_id()
    }

    /// Return the schema with this id, or the current one.
    #[pyo3(signature = (schema_id=None))]
    fn schema(&self, schema_id: Option<Int<i32>>) -> Result<PySchema> {
        let metadata = &self.committed.metadata;
        let schema = match schema_id {
            None => metadata.current_schema(),
            Some(Int(id)) => metadata
                .schema(id)
                .ok_or_else(|| InvalidArgumentError::new_err(format!("the table has no schema with id {id}")))?,
        };
        Ok(PySchema(schema.as_ref().clone()))
    }

    /// Pickles as where it lies, and how that is reached: it is read again. Without a metadata file it pickles whole.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (state, class) = (slf.get(), slf.get_type());
        let (storage, location) = (state.storage.clone(), state.committed.location.clone());
        Ok(match location.is_empty() {
            true => (class.getattr("of")?, (storage, location, state.metadata()).into_pyobject(slf.py())?),
            false => (class.getattr("load")?, (storage, location).into_pyobject(slf.py())?),
        })
    }

    fn __repr__(&self) -> String {
        format!("TableState({})", redacted(&self.committed.location))
    }
}

/// Creates the definition of a table from its parts, as arguments from Python.
pub(crate) fn definition(
    schema: IcebergSchemaInput,
    location: String,
    partition: Fields,
    sort: Fields,
    properties: BTreeMap<String, String>,
) -> Result<TableDefinition> {
    let properties: StringMap = properties.into_iter().collect();
    let schema = schema.for_version(FormatVersion::of_new_table(&properties)?.number())?;
    let partition_spec = match partition {
        Fields::Texts(texts) => PartitionSpec::from_text(0, &texts, &schema)?,
        Fields::Json(json) => PartitionSpec::from_json(&json.0)?,
    };
    let sort_order = match sort {
        Fields::Texts(texts) => SortOrder::from_text(1, &texts, &schema)?,
        Fields::Json(json) => SortOrder::from_json(&json.0)?,
    };
    Ok(TableDefinition { schema, partition_spec, sort_order, location, properties })
}

/// Converts the keywords of an append to its options.
pub(crate) fn append_options(
    branch: String,
    snapshot_properties: BTreeMap<String, String>,
    allow_missing: bool,
    ignore_extra: bool,
    evolve: bool,
) -> AppendOptions {
    let properties = snapshot_properties.into_iter().collect();
    AppendOptions {
        snapshot: SnapshotOptions { branch, properties, ..SnapshotOptions::default() },
        matching: Matching { allow_missing, ignore_extra },
        evolve,
        ..AppendOptions::default()
    }
}

fn requirements_of(json: &JsonInput) -> Result<Vec<UpdateRequirement>> {
    Ok(elements(&json.0)?.iter().map(UpdateRequirement::from_json).collect::<std::result::Result<_, _>>()?)
}

/// Parses updates of the REST protocol.
pub(crate) fn updates_of(json: &JsonInput) -> Result<Vec<MetadataUpdate>> {
    Ok(elements(&json.0)?.iter().map(MetadataUpdate::from_json).collect::<std::result::Result<_, _>>()?)
}

/// The elements of a JSON array.
pub(crate) fn elements(json: &Json) -> Result<&[Json]> {
    Ok(json.as_array().ok_or_else(|| InvalidArgumentError::new_err("expected a JSON array"))?)
}
