//! Scans: plan what to read from a table, and return it as Arrow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use icefield_format::manifest::Metrics;
use icefield_format::metadata::TableMetadata;
use icefield_format::rest::ScanTasks;
use icefield_table::limits;
use icefield_table::plan::engine::EngineRead;
use icefield_table::plan::engine::columns::PlanBatches;
use icefield_table::plan::incremental::{Point, Range};
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::split::SplitOverrides;
use icefield_table::plan::{At, Observer, Plan, Scan, ScanReport};
use icefield_table::read::changelog::{Comparison, Updates};
use icefield_table::read::options::{Progress, ReadOptions};
use icefield_table::read::row_scan::RowScan;
use icefield_table::read::task;
use icefield_table::read::wire::{from_bytes, pack, to_bytes, unpack};
use icefield_table::stream::BatchStream;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::arguments::integer::Int;
use crate::arguments::json::{JsonInput, to_python};
use crate::callback::call_python;
use crate::capsule::{ArrowArray, ArrowStream, ArrowTable, SchemaInput};
use crate::entry::detached;
use crate::errors::{BorderError, Result};
use crate::format::expr::expressions::FilterInput;
use crate::format::schemas::schema::PySchema;
use crate::storage::PyStorage;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyScan>()?;
    module.add_class::<PyProgress>()?;
    module.add_class::<PyPlan>()?;
    module.add_class::<PyEngineRead>()?;
    module.add_class::<PyReadTask>()
}

/// What is read of a table: a snapshot or the changes of some, some of the columns, some of the rows.
#[pyclass(frozen, name = "Scan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyScan(pub(super) RowScan);

/// The files that a scan reads.
#[pyclass(frozen, name = "Plan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyPlan {
    plan: Plan,
    metadata: Arc<TableMetadata>,
}

/// How the Parquet reader of an engine reads the columns of a scan.
#[pyclass(frozen, name = "EngineRead", module = "icefield.distributed")]
#[derive(Debug)]
pub struct PyEngineRead(EngineRead);

#[pymethods]
impl PyEngineRead {
    /// The columns that it reads, those of the filter included: name, field id, and the name to read it by.
    #[getter]
    fn columns(&self) -> Vec<(&str, i32, &str)> {
        let columns = self.0.columns.iter();
        columns.map(|column| (&*column.name, column.field_id, column.asked_by())).collect()
    }

    /// Why the engine cannot read any of the files; ``None`` if it can.
    #[getter]
    fn obstacle(&self) -> Option<String> {
        self.0.obstacle.as_ref().map(ToString::to_string)
    }

    /// Columns whose metrics `Plan.obstacles` needs.
    #[getter]
    fn partition_columns(&self) -> Vec<&str> {
        self.0.partition_columns().collect()
    }
}

/// Parts of data files that one worker reads, on this machine or another.
#[pyclass(frozen, name = "ReadTask", module = "icefield.distributed")]
#[derive(Debug)]
pub struct PyReadTask(pub(crate) ReadTask);

/// The progress of a scan.
#[pyclass(frozen, name = "Progress", module = "icefield._core")]
#[derive(Debug, Default)]
pub struct PyProgress(Arc<Progress>);

#[pymethods]
impl PyProgress {
    #[new]
    fn py_new() -> Self {
        Self::default()
    }

    /// Number of files to read.
    #[getter]
    fn files(&self) -> usize {
        self.0.files()
    }

    /// Number of files that have been opened.
    #[getter]
    fn opened(&self) -> usize {
        self.0.opened()
    }
}

/// Converts the keywords for reading to the options of the core.
fn read_options(
    batch_size: Option<Int<usize>>,
    memory_limit: Option<Int<usize>>,
    dictionary_columns: Option<Vec<String>>,
    schema: Option<SchemaInput>,
    progress: Option<&Bound<'_, PyProgress>>,
) -> ReadOptions {
    ReadOptions {
        batch_rows: batch_size.map(|Int(rows)| rows),
        memory: memory_limit.map(|Int(bytes)| bytes),
        dictionaries: dictionary_columns.unwrap_or_default(),
        schema: schema.map(|schema| schema.0),
        progress: progress.map(|progress| progress.get().0.clone()),
    }
}

/// A stream of batches as an Arrow reader.
pub(crate) struct Reader(pub BatchStream);

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.0.schema().clone()
    }
}

/// The tasks of a running plan as an Arrow reader.
struct PlanReader(PlanBatches);

impl Iterator for PlanReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for PlanReader {
    fn schema(&self) -> SchemaRef {
        self.0.schema().clone()
    }
}

/// Converts the keywords for splitting to the options of the core.
pub(crate) fn overrides(
    split_size: Option<Int<i64>>,
    lookback: Option<Int<usize>>,
    open_file_cost: Option<Int<i64>>,
    parallelism: Option<Int<usize>>,
) -> SplitOverrides {
    SplitOverrides {
        split_size: split_size.map(|Int(bytes)| bytes),
        lookback: lookback.map(|Int(tasks)| tasks),
        open_file_cost: open_file_cost.map(|Int(bytes)| bytes),
        parallelism: parallelism.map(|Int(tasks)| tasks),
    }
}

/// Calls a function of Python with the counts of each plan, and the nanoseconds that it took.
fn told(function: Py<PyAny>) -> Observer {
    Observer::new(move |report, took| {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        call_python(|py| {
            let function = function.bind(py);
            let counts: HashMap<_, _> = report.counts().into_iter().collect();
            if let Err(error) = function.call1((counts, took)) {
                // The scan goes on, whatever happens to its report.
                error.write_unraisable(py, Some(function));
            }
        });
    })
}

#[pymethods]
impl PyScan {
    #[new]
    #[pyo3(signature = (
        table, *, row_filter=None, selected_fields=None, case_sensitive=true, snapshot_id=None, as_of_ms=None,
        reference=None, limit=None, observer=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the scan")]
    fn py_new(
        table: &Bound<'_, PyTableState>,
        row_filter: Option<FilterInput>,
        selected_fields: Option<Vec<String>>,
        case_sensitive: bool,
        snapshot_id: Option<i64>,
        as_of_ms: Option<i64>,
        reference: Option<String>,
        limit: Option<usize>,
        observer: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let state = table.get();
        let metadata = state.committed.metadata.clone();
        let mut scan = Scan::new(state.storage.0.clone(), metadata, &At { snapshot_id, as_of_ms, reference })?;
        scan.case_sensitive = case_sensitive;
        if let Some(filter) = row_filter {
            scan.filter = filter.0;
        }
        scan.observer = observer.map(told);
        Ok(Self(RowScan::new(scan, selected_fields.as_deref(), limit)?))
    }

    /// Return a scan of what snapshots changed: the rows that ``append`` snapshots added, or a changelog.
    ///
    /// A snapshot is an id or the name of a tag. The rows of a changelog are compared if carryovers are to be removed,
    /// or net changes or updates computed.
    #[staticmethod]
    #[pyo3(signature = (
        table, *, changelog, from_snapshot=None, from_inclusive=false, to_snapshot=None, branch=None, row_filter=None,
        selected_fields=None, case_sensitive=true, limit=None, remove_carryovers=false, net_changes=false,
        compute_updates=false, identifier_columns=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the scan")]
    fn incremental(
        table: &Bound<'_, PyTableState>,
        changelog: bool,
        from_snapshot: Option<PointInput>,
        from_inclusive: bool,
        to_snapshot: Option<PointInput>,
        branch: Option<String>,
        row_filter: Option<FilterInput>,
        selected_fields: Option<Vec<String>>,
        case_sensitive: bool,
        limit: Option<usize>,
        remove_carryovers: bool,
        net_changes: bool,
        compute_updates: bool,
        identifier_columns: Option<Vec<String>>,
    ) -> Result<Self> {
        let state = table.get();
        let (storage, metadata) = (state.storage.0.clone(), state.committed.metadata.clone());
        let range = Range {
            from: from_snapshot.map(|point| point.0),
            from_inclusive,
            to: to_snapshot.map(|point| point.0),
            branch,
        };
        let mut scan = match changelog {
            true => Scan::changelog(storage, metadata, &range)?,
            false => Scan::appends(storage, metadata, &range)?,
        };
        scan.case_sensitive = case_sensitive;
        if let Some(filter) = row_filter {
            scan.filter = filter.0;
        }
        let rows = RowScan::new(scan, selected_fields.as_deref(), limit)?;
        if !(remove_carryovers || net_changes || compute_updates) {
            return Ok(Self(rows));
        }
        let updates = compute_updates.then_some(Updates { identifier_columns });
        Ok(Self(rows.compared(Comparison { net_changes, updates })?))
    }

    /// Return the request by which a server is asked for a plan of this scan, as JSON of the REST protocol.
    #[pyo3(signature = (*, stats_fields=None, min_rows=None))]
    fn plan_request<'py>(
        &self,
        py: Python<'py>,
        stats_fields: Option<Vec<String>>,
        min_rows: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = self
            .0
            .scan()
            .plan_request(&self.0.wanted().projection, stats_fields, min_rows)
            .map_err(BorderError::from)?;
        to_python(py, &request.to_json())
    }

    /// Return this scan of the files that a server planned, pages of scan tasks, in a storage.
    fn planned_by_server(&self, py: Python<'_>, pages: Vec<JsonInput>, storage: &Bound<'_, PyStorage>) -> Result<Self> {
        let storage = storage.get().0.clone();
        let planned = || {
            let read = |(number, page): (usize, &JsonInput)| {
                ScanTasks::from_json(&page.0).map_err(|error| error.within(&format!("/{number}")))
            };
            let pages = pages.iter().enumerate().map(read).collect::<std::result::Result<Vec<_>, _>>()?;
            self.0.planned_by_server(&pages, storage)
        };
        Ok(Self(detached(py, planned)??))
    }

    /// Return how the Parquet reader of an engine would read the columns of this scan.
    fn engine_read(&self) -> Result<PyEngineRead> {
        Ok(PyEngineRead(self.0.scan().engine_read(&self.0.wanted().projection)?))
    }

    /// The columns that are read.
    #[getter]
    fn schema(&self) -> Result<PySchema> {
        Ok(PySchema(self.0.wanted().projection.as_ref().clone()))
    }

    /// Ids of the snapshots whose changes are read, oldest first; ``None`` for a scan of a snapshot.
    #[getter]
    fn changed_snapshot_ids(&self) -> Option<Vec<i64>> {
        let changes = self.0.scan().changes.as_ref()?;
        Some(changes.snapshots().iter().map(|snapshot| snapshot.snapshot_id).collect())
    }

    /// Id of the snapshot that is read; ``None`` if the table is empty.
    #[getter]
    fn snapshot_id(&self) -> Option<i64> {
        self.0.scan().snapshot.as_ref().map(|snapshot| snapshot.snapshot_id)
    }

    /// Return a table without rows, with the columns that are read.
    fn empty(&self) -> Result<ArrowTable> {
        Ok(ArrowTable { schema: self.0.wanted().arrow()?, batches: Vec::new() })
    }

    /// Return the rows as they are read, in the types of ``schema`` if it is given.
    #[pyo3(signature = (*, schema=None, batch_size=None, memory_limit=None, dictionary_columns=None, progress=None))]
    fn stream(
        &self,
        py: Python<'_>,
        schema: Option<SchemaInput>,
        batch_size: Option<Int<usize>>,
        memory_limit: Option<Int<usize>>,
        dictionary_columns: Option<Vec<String>>,
        progress: Option<&Bound<'_, PyProgress>>,
    ) -> Result<ArrowStream> {
        let options = read_options(batch_size, memory_limit, dictionary_columns, schema, progress);
        let stream = detached(py, || self.0.rows(&options))??;
        Ok(ArrowStream::new(Box::new(Reader(stream))))
    }

    /// Return all rows.
    #[pyo3(signature = (*, batch_size=None, memory_limit=None, dictionary_columns=None))]
    fn collect(
        &self,
        py: Python<'_>,
        batch_size: Option<Int<usize>>,
        memory_limit: Option<Int<usize>>,
        dictionary_columns: Option<Vec<String>>,
    ) -> Result<ArrowTable> {
        let options = read_options(batch_size, memory_limit, dictionary_columns, None, None);
        let collected = || {
            let stream = self.0.rows(&options)?;
            let schema = stream.schema().clone();
            Ok::<_, icefield_table::Error>(ArrowTable {
                schema,
                batches: stream.collect::<icefield_table::Result<_>>()?,
            })
        };
        Ok(detached(py, collected)??)
    }

    /// Return the number of rows.
    fn count(&self, py: Python<'_>) -> Result<i64> {
        Ok(detached(py, || self.0.count())??)
    }

    /// Return the files that are read, with all metrics, or those of some columns, or none.
    #[pyo3(signature = (*, metrics=false, metrics_of=None))]
    fn plan(&self, py: Python<'_>, metrics: bool, metrics_of: Option<Vec<String>>) -> Result<PyPlan> {
        let mut scan = self.0.scan().clone();
        scan.metrics = match metrics_of {
            Some(names) => scan.metrics_of(&names)?,
            None if metrics => Metrics::all(),
            None => Metrics::none(),
        };
        let plan = detached(py, || scan.plan())??;
        Ok(PyPlan { plan, metadata: scan.metadata })
    }

    /// Return the files that are read, as they are found, with the columns of `Plan.files`.
    fn plan_stream(&self, py: Python<'_>) -> Result<ArrowStream> {
        let batches = detached(py, || self.0.scan().plan_batches())??;
        Ok(ArrowStream::new(Box::new(PlanReader(batches))))
    }

    /// Return the smallest and the largest value of a column as an array of both, and why they are unknown.
    ///
    /// Both are null if there is no value, or if they are unknown; the reason is ``None`` if they are known.
    fn bounds(&self, py: Python<'_>, column: &str) -> Result<(ArrowArray, Option<String>)> {
        let (ty, bounds) = detached(py, || self.0.bounds(column))??;
        let (field, array, why) = bounds.to_arrow(column, &ty)?;
        Ok((ArrowArray { field, array }, why.map(str::to_owned)))
    }

    /// Return the tasks of a plan of this scan.
    ///
    /// If ``places`` are given, only of the files at these places in `Plan.files`.
    #[pyo3(signature = (
        plan, *, places=None, split_size=None, lookback=None, open_file_cost=None, parallelism=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the split")]
    fn tasks(
        &self,
        py: Python<'_>,
        plan: &Bound<'_, PyPlan>,
        places: Option<HashSet<usize>>,
        split_size: Option<Int<i64>>,
        lookback: Option<Int<usize>>,
        open_file_cost: Option<Int<i64>>,
        parallelism: Option<Int<usize>>,
    ) -> Result<Vec<PyReadTask>> {
        let PyPlan { plan, metadata } = plan.get();
        let options = overrides(split_size, lookback, open_file_cost, parallelism).for_table(metadata)?;
        let tasks = detached(py, || self.0.tasks(plan, &options, places.as_ref()))??;
        Ok(tasks.into_iter().map(PyReadTask).collect())
    }
}

#[pymethods]
impl PyPlan {
    /// Return the data files, one row each; of a changelog, the changes.
    fn files(&self, py: Python<'_>) -> Result<ArrowTable> {
        let (schema, batches) = detached(py, || self.plan.to_batches())??;
        Ok(ArrowTable { schema, batches })
    }

    /// Return the pieces of data files, one row each.
    ///
    /// The columns are the number of the task, the place of the file in `files`, its location, and the first byte and
    /// the number of bytes of the piece.
    #[pyo3(signature = (split_size=None, *, lookback=None, open_file_cost=None, parallelism=None))]
    fn tasks(
        &self,
        py: Python<'_>,
        split_size: Option<Int<i64>>,
        lookback: Option<Int<usize>>,
        open_file_cost: Option<Int<i64>>,
        parallelism: Option<Int<usize>>,
    ) -> Result<ArrowTable> {
        let options = overrides(split_size, lookback, open_file_cost, parallelism).for_table(&self.metadata)?;
        Ok(detached(py, || self.plan.tasks_to_batch(&options))??.into())
    }

    /// Return those of some string columns, whose bounds the plan has, that a filter could skip files by.
    fn skippable_by(&self, py: Python<'_>, field_ids: Vec<i32>) -> Result<Vec<i32>> {
        detached(py, || field_ids.into_iter().filter(|id| self.plan.skippable_by(*id)).collect())
    }

    /// Return for each file why an engine does not read it itself: a kind and a text, both null if it may.
    fn obstacles(&self, py: Python<'_>, read: &Bound<'_, PyEngineRead>) -> Result<ArrowTable> {
        let read = &read.get().0;
        Ok(detached(py, || self.plan.obstacles_to_batch(read))??.into())
    }

    /// Counts of what was scanned and skipped, by their names.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, &self.plan.report)
    }

    /// The report as text for people.
    #[getter]
    fn report_text(&self) -> String {
        self.plan.report.to_string()
    }

    fn __len__(&self) -> usize {
        self.plan.len()
    }
}

#[pymethods]
impl PyReadTask {
    /// The task that `to_bytes` made into bytes.
    #[new]
    fn py_new(data: PyBackedBytes) -> Result<Self> {
        Self::from_bytes(data)
    }

    /// Return the task of what `to_bytes` returned.
    #[staticmethod]
    fn from_bytes(data: PyBackedBytes) -> Result<Self> {
        Ok(Self(from_bytes(&unpack(&data)?)?))
    }

    /// Return all that another machine needs to read the task, except for the properties of the storage.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &pack(&to_bytes(&self.0)?)?))
    }

    /// Pickles as those bytes.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyType>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type(), (slf.get().to_bytes(slf.py())?,)))
    }

    /// Names of the columns of the rows, in their order.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.0.wanted.projection.fields().iter().map(|field| field.name.as_str()).collect()
    }

    /// Bytes of the parts of data files that it reads.
    #[getter]
    fn size_in_bytes(&self) -> u64 {
        self.0.parts.iter().map(|part| part.length).fold(0, u64::saturating_add)
    }

    /// Return the rows as they are read, in the types of ``schema`` if it is given.
    #[pyo3(signature = (storage, *, schema=None, batch_size=None, memory_limit=None, dictionary_columns=None))]
    fn rows(
        &self,
        storage: &Bound<'_, PyStorage>,
        schema: Option<SchemaInput>,
        batch_size: Option<Int<usize>>,
        memory_limit: Option<Int<usize>>,
        dictionary_columns: Option<Vec<String>>,
    ) -> Result<ArrowStream> {
        let options = read_options(batch_size, memory_limit, dictionary_columns, schema, None);
        let stream = task::rows_with(self.0.clone(), &storage.get().0, None, &limits()?, &options)?;
        Ok(ArrowStream::new(Box::new(Reader(stream))))
    }

    fn __len__(&self) -> usize {
        self.0.parts.len()
    }
}

/// A snapshot, by its id or by the name of a tag.
struct PointInput(Point);

impl<'py> FromPyObject<'_, 'py> for PointInput {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(match value.extract::<String>() {
            Ok(tag) => Point::Tag(tag),
            Err(_) => Point::Id(value.extract()?),
        }))
    }
}

/// All counts of a report by name.
fn counts<'py>(py: Python<'py>, report: &ScanReport) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    report.counts().into_iter().try_for_each(|(name, count)| counts.set_item(name, count))?;
    Ok(counts)
}
