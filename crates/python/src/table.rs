//! A table at one moment: its metadata, the file that holds it, and the storage it lies in.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, StringMap, TableDefinition, UpdateRequirement, requirements_for_update,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_table::commit::{self, Append, Change as _, Committed, Pointer, Prepared, SnapshotOptions};
use icefield_table::limits;
use icefield_table::purge::purge;
use icefield_table::storage::redacted;
use icefield_table::write::conform::Matching;
use icefield_table::write::{TableWriter, WriterConfig, check_writable};
use pyo3::prelude::*;
use serde_json::Value as Json;

use crate::callback::{ENDED, call_python};
use crate::capsule::StreamInput;
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result, from_callback, from_rows};
use crate::evolution;
use crate::integer::Int;
use crate::json::JsonInput;
use crate::metadata::PyTableMetadata;
use crate::schema::{IcebergSchemaInput, PySchema};
use crate::storage::PyStorage;

/// Adds this room's names to `icefield._core`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTableState>()
}

/// A table as one metadata file says it is. Commits give a new state; this one stays.
#[pyclass(frozen, name = "TableState", module = "icefield._core")]
#[derive(Debug, Clone)]
pub struct PyTableState {
    pub storage: PyStorage,
    pub committed: Arc<Committed>,
}

/// Partition or sort fields: texts, or the JSON of a spec or order.
#[derive(FromPyObject)]
enum Fields {
    Texts(Vec<String>),
    Json(JsonInput),
}

/// A catalog of Python, asked for one table's pointer.
pub struct CatalogPointer {
    pub catalog: Py<PyAny>,
    pub identifier: Py<PyAny>,
    /// The table that was opened: no other is committed to.
    pub table_uuid: Option<String>,
}

impl Pointer for CatalogPointer {
    fn table_uuid(&self) -> Option<&str> {
        self.table_uuid.as_deref()
    }

    fn load(&self) -> icefield_table::Result<String> {
        let location = call_python(|py| {
            let location = self.catalog.bind(py).call_method1("_pointer", (&self.identifier,));
            location.and_then(|location| location.extract()).map_err(|error| from_callback(py, error))
        });
        location.unwrap_or_else(|| Err(icefield_table::Error::invalid(ENDED)))
    }

    fn swap(&self, base: &str, new: &str) -> icefield_table::Result<()> {
        let swapped = call_python(|py| {
            let swapped = self.catalog.bind(py).call_method1("_swap", (&self.identifier, base, new));
            swapped.map(drop).map_err(|error| from_callback(py, error))
        });
        // Nothing was sent: the state is known.
        swapped.unwrap_or_else(|| Err(icefield_table::Error::Interrupted(ENDED.into())))
    }
}

impl PyTableState {
    fn append_rows(
        &self,
        pointer: &CatalogPointer,
        rows: StreamInput,
        matching: Matching,
        evolve: bool,
        options: SnapshotOptions,
    ) -> icefield_table::Result<(Committed, Option<i64>, i64)> {
        let base = &self.committed.metadata;
        check_writable(base)?;
        let widening = if evolve { evolution::widening(base, &rows.0.schema())? } else { Vec::new() };
        let requirements = match widening.as_slice() {
            [] => Vec::new(),
            updates => requirements_for_update(base, updates),
        };
        let metadata = MetadataBuilder::from_base(base, base.last_updated_ms()).apply_all(widening.clone())?.build()?;
        let schema = metadata.current_schema().clone();
        let spec = metadata.default_spec().clone();
        let mut config = WriterConfig::new(self.storage.0.clone(), metadata.location(), schema, spec);
        config.properties = metadata.properties().clone();
        config.order = Some(metadata.default_sort_order().clone());
        config.matching = matching;
        let mut writer = TableWriter::new(config, &rows.0.schema())?;
        for batch in rows.0 {
            let written = batch.map_err(from_rows).and_then(|batch| writer.write(&batch));
            if let Err(error) = written {
                writer.abort();
                return Err(error);
            }
        }
        let files = writer.finish()?;
        let count = files.iter().map(|file| file.record_count).sum();
        let paths: Vec<String> = files.iter().map(|file| file.file_path.clone()).collect();
        let committed = Append::new(self.storage.0.clone(), files, options).and_then(|change| {
            let mut change = Prepared { requirements, updates: widening, change };
            let committed = commit::commit_change(&self.storage.0, pointer, &mut change)?;
            Ok((committed, change.snapshot_id(), count))
        });
        match committed {
            Ok(committed) => Ok(committed),
            Err(error) => {
                // Unknown means that the files may be in the table already.
                if !matches!(error, icefield_table::Error::CommitStateUnknown { .. }) {
                    let _ = self.storage.0.delete_all(&paths);
                }
                Err(error)
            }
        }
    }

    fn pointer(&self, catalog: Py<PyAny>, identifier: Py<PyAny>) -> CatalogPointer {
        let table_uuid = self.committed.metadata.table_uuid().map(str::to_owned);
        CatalogPointer { catalog, identifier, table_uuid }
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

    /// The same table as another of its metadata files has it.
    fn at(&self, py: Python<'_>, metadata_location: String) -> Result<Self> {
        let known = self.committed.metadata.table_uuid();
        let metadata = detached(py, || {
            let metadata = commit::read_metadata(&self.storage.0, &metadata_location)?;
            commit::require_same_table(known, &metadata, &metadata_location)?;
            Ok::<_, icefield_table::Error>(metadata)
        })??;
        Ok(self.with(Committed { location: metadata_location, metadata: Arc::new(metadata) }))
    }

    /// Write the first metadata file of a new table, of which no catalog knows yet.
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
        let properties: StringMap = properties.into_iter().collect();
        let version = properties.get("format-version").map_or(Ok(2), |text| text.trim().parse());
        let version = version.map_err(|_| InvalidArgumentError::new_err("the property format-version is no number"))?;
        let schema = schema.for_version(version)?;
        let partition_spec = match partition {
            Fields::Texts(texts) => PartitionSpec::from_text(0, &texts, &schema)?,
            Fields::Json(json) => PartitionSpec::from_json(&json.0)?,
        };
        let sort_order = match sort {
            Fields::Texts(texts) if texts.is_empty() => SortOrder::unsorted(),
            Fields::Texts(texts) => SortOrder::from_text(1, &texts, &schema)?,
            Fields::Json(json) => SortOrder::from_json(&json.0)?,
        };
        let definition = TableDefinition { schema, partition_spec, sort_order, location, properties };
        let storage = storage.get().clone();
        let committed = detached(py, || commit::create_table(&storage.0, &definition))??;
        Ok(Self { storage, committed: Arc::new(committed) })
    }

    /// Apply updates (REST protocol) to the table as the catalog now has it, if it meets the requirements.
    fn commit(
        &self,
        py: Python<'_>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        requirements: JsonInput,
        updates: JsonInput,
    ) -> Result<Self> {
        let requirements: Vec<_> = elements(&requirements.0)?
            .iter()
            .map(UpdateRequirement::from_json)
            .collect::<std::result::Result<_, _>>()?;
        let updates: Vec<_> =
            elements(&updates.0)?.iter().map(MetadataUpdate::from_json).collect::<std::result::Result<_, _>>()?;
        let pointer = self.pointer(catalog, identifier);
        let committed = detached(py, || commit::commit_updates(&self.storage.0, &pointer, &requirements, &updates))??;
        Ok(self.with(committed))
    }

    /// Write rows to data files and append them in one snapshot: the new state, the snapshot's id and the number of rows.
    ///
    /// `allow_missing` and `ignore_extra` say how the columns of the rows may differ from the table's;
    /// `evolve` first adds those that the table has not, in the same commit.
    #[pyo3(signature = (
        catalog, identifier, rows, *, branch="main".to_owned(), snapshot_properties=BTreeMap::new(), allow_missing=true,
        ignore_extra=false, evolve=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the append")]
    fn append(
        &self,
        py: Python<'_>,
        catalog: Py<PyAny>,
        identifier: Py<PyAny>,
        rows: StreamInput,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
        allow_missing: bool,
        ignore_extra: bool,
        evolve: bool,
    ) -> Result<(Self, Option<i64>, i64)> {
        let pointer = self.pointer(catalog, identifier);
        let matching = Matching { allow_missing, ignore_extra };
        let options = SnapshotOptions {
            branch,
            properties: snapshot_properties.into_iter().collect(),
            ..SnapshotOptions::default()
        };
        let (committed, snapshot_id, rows) =
            detached(py, || self.append_rows(&pointer, rows, matching, evolve, options))??;
        Ok((self.with(committed), snapshot_id, rows))
    }

    /// Delete the files that the metadata names, in the table's own folders: how many things could not be read or deleted,
    /// and what the first of them said.
    ///
    /// Nothing is deleted in the warehouse itself or above it, nor by way of a link.
    #[pyo3(signature = (warehouse=None))]
    fn purge(&self, py: Python<'_>, warehouse: Option<&str>) -> Result<(usize, Vec<String>)> {
        let limits = limits()?;
        let left = detached(py, || purge(&self.storage.0, &self.committed, warehouse, &limits))?;
        Ok((left.failures, left.first.iter().map(|message| redacted(message)).collect()))
    }

    /// Files of the table.
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

    /// The metadata as JSON.
    fn metadata_json(&self, py: Python<'_>) -> Result<String> {
        detached(py, || self.committed.metadata.to_json())
    }

    /// Base location of the table.
    #[getter]
    fn location(&self) -> &str {
        self.committed.metadata.location()
    }

    /// Version of the table format.
    #[getter]
    fn format_version(&self) -> u8 {
        self.committed.metadata.format_version().number()
    }

    /// The table's uuid; old v1 tables may have none.
    #[getter]
    fn table_uuid(&self) -> Option<&str> {
        self.committed.metadata.table_uuid()
    }

    /// Id of the snapshot that readers see; none before the first commit of data.
    #[getter]
    fn current_snapshot_id(&self) -> Option<i64> {
        self.committed.metadata.current_snapshot_id()
    }

    /// The schema with this id, or the current one.
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

    /// Pickles as where it lies, and how that is reached: it is read again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (PyStorage, String))> {
        let state = slf.get();
        Ok((slf.get_type().getattr("load")?, (state.storage.clone(), state.committed.location.clone())))
    }

    fn __repr__(&self) -> String {
        format!("TableState({})", redacted(&self.committed.location))
    }
}

/// The elements of a JSON array.
fn elements(json: &Json) -> Result<&[Json]> {
    Ok(json.as_array().ok_or_else(|| InvalidArgumentError::new_err("expected a JSON array"))?)
}
