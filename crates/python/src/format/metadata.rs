//! Table metadata ("Table Metadata").

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use icefield_format::metadata::properties::{Effect, KNOWN, KnownProperty, nearest};
use icefield_format::metadata::{
    BlobMetadata, MetadataBuilder, MetadataUpdate, SnapshotBound, StatisticsFile, TableMetadata, UpdateRequirement,
    requirements_for_update,
};
use icefield_table::clock;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use serde_json::Value as Json;

use crate::arguments::integer::{Id, Int};
use crate::arguments::json::JsonInput;
use crate::arguments::python_class::{
    BLOB_METADATA, METADATA_LOG_ENTRY, PARTITION_STATISTICS_FILE, SNAPSHOT_LOG_ENTRY, STATISTICS_FILE,
};
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};
use crate::format::partitioning::PyPartitionSpec;
use crate::format::schemas::schema::PySchema;
use crate::format::snapshots::{PySnapshot, PySnapshotRef, string_dict};
use crate::format::sorting::PySortOrder;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(table_properties, module)?)?;
    module.add_function(wrap_pyfunction!(nearest_name, module)?)?;
    module.add_class::<PyTableMetadata>()
}

/// One end of a range of snapshots, given as a snapshot or as a time.
fn bound(name: &str, snapshot_id: Option<Int<i64>>, timestamp_ms: Option<Int<i64>>) -> Result<Option<SnapshotBound>> {
    match (snapshot_id, timestamp_ms) {
        (Some(_), Some(_)) => {
            let message = format!("pass only one of {name}_snapshot_id and {name}_timestamp_ms");
            Err(InvalidArgumentError::new_err(message).into())
        }
        (Some(id), None) => Ok(Some(SnapshotBound::Snapshot(id.0))),
        (None, time) => Ok(time.map(|time| SnapshotBound::Time(time.0))),
    }
}

type PropertyRow = (&'static str, Option<String>, String, &'static str, &'static str, &'static str);

/// Every table property that is known: its name, its default, what it may be, `honoured`, `harmless` or `refused`, why,
/// and what it is.
#[pyfunction]
fn table_properties() -> Vec<PropertyRow> {
    let row = |known: &KnownProperty| {
        let (effect, why) = match known.effect {
            Effect::Honoured => ("honoured", ""),
            Effect::Harmless(why) => ("harmless", why),
            Effect::Refused(why) => ("refused", why),
        };
        (known.name, known.default.map(|text| text()), known.values.to_string(), effect, why, known.about.trim())
    };
    KNOWN.iter().map(row).collect()
}

/// The known name that another was probably meant to be.
#[pyfunction]
fn nearest_name(name: &str, known: Vec<String>) -> Option<String> {
    nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The state of a table; it never changes, a change makes another one.
#[pyclass(frozen, eq, name = "TableMetadata", module = "icefield.metadata")]
#[derive(Debug, Clone, PartialEq)]
pub struct PyTableMetadata(pub Arc<TableMetadata>);

/// Several JSON objects: a list or tuple of any of their forms, or the text of an array.
struct JsonObjects(Vec<Json>);

impl<'a, 'py> FromPyObject<'a, 'py> for JsonObjects {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let items = object.try_iter()?.map(|item| Ok(item?.extract::<JsonInput>()?.0));
            return items.collect::<PyResult<_>>().map(Self);
        }
        match JsonInput::extract(object)?.0 {
            Json::Array(items) => Ok(Self(items)),
            _ => Err(InvalidArgumentError::new_err("expected a list of JSON objects")),
        }
    }
}

/// The given time, or that of the clock, in milliseconds since the epoch.
fn time(now_ms: Option<Int<i64>>) -> i64 {
    now_ms.map_or_else(clock::now_ms, |Int(given)| given)
}

impl PyTableMetadata {
    fn change(
        &self,
        py: Python<'_>,
        updates: Vec<MetadataUpdate>,
        now_ms: Option<Int<i64>>,
        previous_file: Option<String>,
    ) -> Result<Self> {
        let now_ms = time(now_ms);
        let changed = detached(py, || {
            let mut builder = MetadataBuilder::from_base(&self.0, now_ms);
            if let Some(location) = previous_file {
                builder = builder.with_previous_file(location);
            }
            builder.apply_all(updates)?.build()
        })?;
        Ok(Self(Arc::new(changed?)))
    }
}

fn read_updates(updates: &[Json]) -> Result<Vec<MetadataUpdate>> {
    Ok(updates.iter().map(MetadataUpdate::from_json).collect::<icefield_format::Result<_>>()?)
}

#[pymethods]
impl PyTableMetadata {
    /// Read a metadata file's text or bytes (gzipped or not), of any format version, or the dict of its JSON.
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &Bound<'_, PyAny>) -> Result<Self> {
        let limits = icefield_table::limits()?;
        let metadata = if let Ok(text) = json.cast::<PyString>() {
            let text = text.to_str()?;
            detached(py, || TableMetadata::from_json(text.as_bytes(), &limits))?
        } else if let Ok(bytes) = json.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            detached(py, || TableMetadata::from_json(bytes, &limits))?
        } else {
            let value = json.extract::<JsonInput>()?.0;
            detached(py, || TableMetadata::from_json_value(&value, &limits))?
        };
        Ok(Self(Arc::new(metadata?)))
    }

    /// Read the table in an answer of the REST protocol, in one pass: its metadata if there are any, and the other
    /// fields of the answer as JSON text. `None` if the answer is no JSON object that is read here.
    #[staticmethod]
    fn from_answer(py: Python<'_>, answer: &[u8]) -> Result<Option<(Option<Self>, String)>> {
        let limits = icefield_table::limits()?;
        let read = detached(py, || {
            let mut budget = limits.budget(answer.len());
            let Ok(Json::Object(mut fields)) = icefield_format::json::parse_within(answer, &mut budget) else {
                return Ok(None);
            };
            let metadata = match fields.remove("metadata") {
                Some(found @ Json::Object(_)) => Some(TableMetadata::from_json_value(&found, &limits)?),
                _ => None,
            };
            Ok::<_, icefield_format::Error>(Some((metadata, Json::Object(fields).to_string())))
        })?;
        Ok(read?.map(|(metadata, rest)| (metadata.map(|metadata| Self(Arc::new(metadata))), rest)))
    }

    /// Make the metadata of a new table by updates of the REST protocol.
    #[staticmethod]
    #[pyo3(signature = (updates, *, now_ms=None))]
    fn create(py: Python<'_>, updates: JsonObjects, now_ms: Option<Int<i64>>) -> Result<Self> {
        let updates = read_updates(&updates.0)?;
        let now_ms = time(now_ms);
        let created = detached(py, || MetadataBuilder::new_table(now_ms).apply_all(updates)?.build())?;
        Ok(Self(Arc::new(created?)))
    }

    /// The JSON text, as the format version requires it.
    fn to_json(&self, py: Python<'_>) -> Result<String> {
        detached(py, || self.0.to_json())
    }

    /// The metadata after these updates of the REST protocol.
    #[pyo3(signature = (updates, *, now_ms=None, previous_file=None))]
    fn apply(
        &self,
        py: Python<'_>,
        updates: JsonObjects,
        now_ms: Option<Int<i64>>,
        previous_file: Option<String>,
    ) -> Result<Self> {
        self.change(py, read_updates(&updates.0)?, now_ms, previous_file)
    }

    /// Raise ``CommitFailedException`` unless the metadata meets all these requirements of the REST protocol.
    fn check(&self, requirements: JsonObjects) -> Result<()> {
        for requirement in &requirements.0 {
            UpdateRequirement::from_json(requirement)?.check(Some(&self.0))?;
        }
        Ok(())
    }

    /// What a commit of these updates requires, as JSON texts.
    fn requirements_for(&self, updates: JsonObjects) -> Result<Vec<String>> {
        let updates = read_updates(&updates.0)?;
        let requirements = requirements_for_update(&self.0, &updates);
        Ok(requirements.iter().map(|requirement| requirement.to_json().to_string()).collect())
    }

    /// The metadata in a later format version.
    #[pyo3(signature = (version, *, now_ms=None))]
    fn upgrade(&self, py: Python<'_>, version: Int<i32>, now_ms: Option<Int<i64>>) -> Result<Self> {
        self.change(py, vec![MetadataUpdate::UpgradeFormatVersion { format_version: version.0 }], now_ms, None)
    }

    /// Version of the table format.
    #[getter]
    fn format_version(&self) -> u8 {
        self.0.format_version().number()
    }

    /// The table's uuid; old tables of version 1 may have none.
    #[getter]
    fn table_uuid(&self) -> Option<&str> {
        self.0.table_uuid()
    }

    /// The base location, beneath which new files are written.
    #[getter]
    fn location(&self) -> &str {
        self.0.location()
    }

    /// The highest sequence number of any snapshot; 0 in version 1.
    #[getter]
    fn last_sequence_number(&self) -> i64 {
        self.0.last_sequence_number()
    }

    /// When the table was last changed, in milliseconds from the epoch.
    #[getter]
    fn last_updated_ms(&self) -> i64 {
        self.0.last_updated_ms()
    }

    /// The highest id that a column has had.
    #[getter]
    fn last_column_id(&self) -> i32 {
        self.0.last_column_id()
    }

    /// All schemas.
    #[getter]
    fn schemas(&self) -> Vec<PySchema> {
        self.0.schemas().iter().map(|schema| PySchema(schema.as_ref().clone())).collect()
    }

    /// The id of the current schema.
    #[getter]
    fn current_schema_id(&self) -> i32 {
        self.0.current_schema_id()
    }

    /// The current schema.
    fn schema(&self) -> PySchema {
        PySchema(self.0.current_schema().as_ref().clone())
    }

    /// The schema with this id.
    fn schema_by_id(&self, schema_id: Id<i32>) -> Option<PySchema> {
        self.0.schema(schema_id.0?).map(|schema| PySchema(schema.as_ref().clone()))
    }

    /// All partition specs.
    #[getter]
    fn partition_specs(&self) -> Vec<PyPartitionSpec> {
        self.0.partition_specs().iter().cloned().map(PyPartitionSpec).collect()
    }

    /// The id of the spec that new files are written with.
    #[getter]
    fn default_spec_id(&self) -> i32 {
        self.0.default_spec_id()
    }

    /// The default partition spec.
    fn spec(&self) -> PyPartitionSpec {
        PyPartitionSpec(Arc::clone(self.0.default_spec()))
    }

    /// All partition specs by id.
    fn specs(&self) -> BTreeMap<i32, PyPartitionSpec> {
        self.0.partition_specs().iter().map(|spec| (spec.spec_id, PyPartitionSpec(Arc::clone(spec)))).collect()
    }

    /// The highest id that a partition field has had.
    #[getter]
    fn last_partition_id(&self) -> i32 {
        self.0.last_partition_id()
    }

    /// All sort orders.
    #[getter]
    fn sort_orders(&self) -> Vec<PySortOrder> {
        self.0.sort_orders().iter().cloned().map(PySortOrder).collect()
    }

    /// The id of the order that new files are sorted in.
    #[getter]
    fn default_sort_order_id(&self) -> i32 {
        self.0.default_sort_order_id()
    }

    /// The default sort order.
    fn sort_order(&self) -> PySortOrder {
        PySortOrder(Arc::clone(self.0.default_sort_order()))
    }

    /// Table properties.
    #[getter]
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        string_dict(py, self.0.properties().iter())
    }

    /// The id of the snapshot that readers see, if there is one.
    #[getter]
    fn current_snapshot_id(&self) -> Option<i64> {
        self.0.current_snapshot_id()
    }

    /// The current snapshot; ``None`` if the table is empty.
    fn current_snapshot(&self) -> Option<PySnapshot> {
        self.0.current_snapshot().cloned().map(PySnapshot)
    }

    /// All snapshots, oldest first.
    #[getter]
    fn snapshots(&self) -> Vec<PySnapshot> {
        self.0.snapshots().iter().cloned().map(PySnapshot).collect()
    }

    /// The snapshot with this id.
    fn snapshot_by_id(&self, snapshot_id: Id<i64>) -> Option<PySnapshot> {
        self.0.snapshot(snapshot_id.0?).cloned().map(PySnapshot)
    }

    /// The snapshot of this branch or tag.
    fn snapshot_by_name(&self, name: &str) -> Option<PySnapshot> {
        let reference = self.0.reference(name)?;
        self.snapshot_by_id(Id(Some(reference.snapshot_id)))
    }

    /// The snapshot that was current at this time.
    fn snapshot_as_of(&self, timestamp_ms: Int<i64>) -> Option<PySnapshot> {
        self.0.snapshot_id_as_of(timestamp_ms.0).and_then(|id| self.snapshot_by_id(Id(Some(id))))
    }

    /// The snapshot and its ancestors that are still there, newest first.
    fn ancestors(&self, snapshot_id: Int<i64>) -> Vec<PySnapshot> {
        self.0.ancestors(snapshot_id.0).cloned().map(PySnapshot).collect()
    }

    /// The snapshots of a branch after a start, up to an end, each a snapshot or a time: the id of the snapshot before the
    /// first one and that of the last one, ``None`` where the range is open; ``None`` if there are no such snapshots.
    #[pyo3(signature = (*, branch=None, start_snapshot_id=None, start_timestamp_ms=None, end_snapshot_id=None,
        end_timestamp_ms=None))]
    fn snapshots_between(
        &self,
        branch: Option<&str>,
        start_snapshot_id: Option<Int<i64>>,
        start_timestamp_ms: Option<Int<i64>>,
        end_snapshot_id: Option<Int<i64>>,
        end_timestamp_ms: Option<Int<i64>>,
    ) -> Result<Option<(Option<i64>, Option<i64>)>> {
        let start = bound("start", start_snapshot_id, start_timestamp_ms)?;
        let end = bound("end", end_snapshot_id, end_timestamp_ms)?;
        let range = self.0.snapshots_between(branch, start, end)?;
        Ok(range.map(|range| (range.after, range.last)))
    }

    /// All branches and tags by their names.
    #[getter]
    fn refs(&self) -> BTreeMap<String, PySnapshotRef> {
        self.0.all_refs().map(|(name, reference)| (name.to_owned(), PySnapshotRef(reference))).collect()
    }

    /// From when on which snapshot was current: pairs of milliseconds from the epoch and an id, oldest first.
    #[getter]
    fn snapshot_log<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let class = SNAPSHOT_LOG_ENTRY.get(py)?;
        self.0.snapshot_log().iter().map(|entry| class.call1((entry.timestamp_ms, entry.snapshot_id))).collect()
    }

    /// The metadata files that were current before: pairs of milliseconds from the epoch and a location, oldest first.
    #[getter]
    fn metadata_log<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let class = METADATA_LOG_ENTRY.get(py)?;
        self.0.metadata_log().iter().map(|entry| class.call1((entry.timestamp_ms, &entry.metadata_file))).collect()
    }

    /// The statistics files of snapshots.
    #[getter]
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.statistics().iter().map(|file| statistics_file(py, file)).collect()
    }

    /// The partition statistics files of snapshots.
    #[getter]
    fn partition_statistics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let class = PARTITION_STATISTICS_FILE.get(py)?;
        let files = self.0.partition_statistics().iter();
        files.map(|file| class.call1((file.snapshot_id, &file.statistics_path, file.file_size_in_bytes))).collect()
    }

    /// The first row id that no row has yet (version 3).
    #[getter]
    fn next_row_id(&self) -> i64 {
        self.0.next_row_id()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!(
            "TableMetadata(location={:?}, format_version={}, current_snapshot_id={}, snapshots={})",
            self.0.location(),
            self.0.format_version(),
            self.0.current_snapshot_id().map_or_else(|| "None".to_owned(), |id| id.to_string()),
            self.0.snapshots().len()
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().0.to_json(),)))
    }
}

fn statistics_file<'py>(py: Python<'py>, file: &StatisticsFile) -> PyResult<Bound<'py, PyAny>> {
    let class = BLOB_METADATA.get(py)?;
    let blob = |blob: &BlobMetadata| {
        let properties: Option<HashMap<_, _>> = (!blob.properties.is_empty()).then(|| blob.properties.iter().collect());
        class.call1((&blob.blob_type, blob.snapshot_id, blob.sequence_number, &blob.fields, properties))
    };
    let blobs: Vec<_> = file.blob_metadata.iter().map(blob).collect::<PyResult<_>>()?;
    STATISTICS_FILE.get(py)?.call1((
        file.snapshot_id,
        &file.statistics_path,
        file.file_size_in_bytes,
        file.file_footer_size_in_bytes,
        blobs,
        file.key_metadata(),
    ))
}
