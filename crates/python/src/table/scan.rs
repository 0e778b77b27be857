//! Scans: what is read of a table, planned and given out as Arrow.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchReader, StringArray};
use arrow_schema::{ArrowError, SchemaRef};
use icefield_format::manifest::Metrics;
use icefield_format::metadata::TableMetadata;
use icefield_table::limits;
use icefield_table::plan::bounds::ColumnBounds;
use icefield_table::plan::changes::Changes;
use icefield_table::plan::columns::PlanColumns;
use icefield_table::plan::engine::{EngineRead, Obstacle};
use icefield_table::plan::incremental::{ChangeColumns, Point, Range};
use icefield_table::plan::split::SplitOptions;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::wanted::Wanted;
use icefield_table::plan::{At, Plan, PlanStream, Scan, ScanReport};
use icefield_table::read::changelog::{self, Comparison, Updates};
use icefield_table::read::options::{Progress, ReadOptions};
use icefield_table::read::wire::{from_bytes, pack, to_bytes, unpack};
use icefield_table::read::{scan as rows, task};
use icefield_table::stream::BatchStream;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::arguments::integer::Int;
use crate::capsule::{ArrowArray, ArrowStream, ArrowTable, SchemaInput};
use crate::entry::detached;
use crate::errors::Result;
use crate::format::expressions::ExpressionInput;
use crate::format::schema::PySchema;
use crate::storage::PyStorage;
use crate::table::state::PyTableState;

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyScan>()?;
    module.add_class::<PyProgress>()?;
    module.add_class::<PyPlan>()?;
    module.add_class::<PyEngineRead>()?;
    module.add_class::<PyReadTask>()
}

/// What is read of a table: a snapshot, some of its columns, some of its rows.
#[pyclass(frozen, name = "Scan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyScan {
    pub(super) scan: Scan,
    pub(super) wanted: Arc<Wanted>,
    pub(super) limit: Option<usize>,
    /// Of a changelog whose rows are compared.
    pub(super) comparison: Option<Comparison>,
}

/// The files that a scan reads.
#[pyclass(frozen, name = "Plan", module = "icefield._core")]
#[derive(Debug)]
pub struct PyPlan {
    plan: Plan,
    metadata: Arc<TableMetadata>,
    /// Of a changelog.
    changes: Option<Arc<Changes>>,
}

/// How the Parquet reader of an engine reads the columns of a scan.
#[pyclass(frozen, name = "EngineRead", module = "icefield._core")]
#[derive(Debug)]
pub struct PyEngineRead(EngineRead);

#[pymethods]
impl PyEngineRead {
    /// The columns that it reads, those of the filter too: name, field id, and the name to ask for it by.
    #[getter]
    fn columns(&self) -> Vec<(&str, i32, &str)> {
        let columns = self.0.columns.iter();
        columns.map(|column| (&*column.name, column.field_id, column.asked_by())).collect()
    }

    /// What stands against it in every file, if anything does.
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

/// Parts of files that one worker reads, on this machine or another.
#[pyclass(frozen, name = "ReadTask", module = "icefield._core")]
#[derive(Debug)]
pub struct PyReadTask(ReadTask);

/// How far a scan has come, for whoever shows it.
#[pyclass(frozen, name = "Progress", module = "icefield._core")]
#[derive(Debug, Default)]
pub struct PyProgress(Arc<Progress>);

#[pymethods]
impl PyProgress {
    #[new]
    fn py_new() -> Self {
        Self::default()
    }

    /// Files to read.
    #[getter]
    fn files(&self) -> usize {
        self.0.files()
    }

    /// Those of them that were opened.
    #[getter]
    fn opened(&self) -> usize {
        self.0.opened()
    }
}

/// Keywords of reading as the core takes them.
fn read_options(
    batch_size: Option<Int<usize>>,
    memory_limit: Option<Int<usize>>,
    dictionary_columns: Option<Vec<String>>,
    progress: Option<&Bound<'_, PyProgress>>,
) -> ReadOptions {
    ReadOptions {
        batch_rows: batch_size.map(|Int(rows)| rows),
        memory: memory_limit.map(|Int(bytes)| bytes),
        dictionaries: dictionary_columns.unwrap_or_default(),
        progress: progress.map(|progress| progress.get().0.clone()),
    }
}

/// A stream of batches as Arrow's readers are.
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

/// A plan in the making as Arrow's readers are.
struct PlanReader {
    columns: FileColumns,
    stream: PlanStream,
}

/// What makes batches of files.
enum FileColumns {
    Files(PlanColumns),
    Changes(ChangeColumns),
}

impl Iterator for PlanReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let manifest = self.stream.next()?;
        let batch = manifest.and_then(|manifest| match &self.columns {
            FileColumns::Files(columns) => columns.batch(&manifest),
            FileColumns::Changes(columns) => columns.batch(&manifest),
        });
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for PlanReader {
    fn schema(&self) -> SchemaRef {
        match &self.columns {
            FileColumns::Files(columns) => columns.schema().clone(),
            FileColumns::Changes(columns) => columns.schema().clone(),
        }
    }
}

impl PyScan {
    fn exact_bounds(&self, column: &str) -> icefield_table::Result<(ArrowArray, Option<String>)> {
        let (ty, bounds) = self.scan.bounds(column)?;
        let bounds = match self.comparison {
            Some(_) => ColumnBounds::Unknown("rows of a changelog that are compared may be left out".to_owned()),
            None => bounds,
        };
        let (field, array, why) = bounds.to_arrow(column, &ty)?;
        Ok((ArrowArray { field, array }, why.map(str::to_owned)))
    }

    fn open(&self, options: &ReadOptions) -> icefield_table::Result<BatchStream> {
        match &self.comparison {
            Some(comparison) => options.apply(changelog::rows(&self.scan, comparison, &self.wanted, self.limit)?),
            None => rows::rows_with(&self.scan, &self.scan.plan()?, &self.wanted, self.limit, options),
        }
    }

    fn row_count(&self) -> icefield_table::Result<i64> {
        match &self.comparison {
            Some(comparison) => changelog::count(&self.scan, comparison, self.limit),
            None => rows::count_wanted(&self.scan, &self.wanted, self.limit),
        }
    }

    /// The changes of a changelog.
    fn changelog(&self) -> Option<Arc<Changes>> {
        self.scan.changes.clone().filter(|changes| changes.is_changelog())
    }
}

#[pymethods]
impl PyScan {
    #[new]
    #[pyo3(signature = (
        table, *, row_filter=None, selected_fields=None, case_sensitive=true, snapshot_id=None, as_of_ms=None,
        reference=None, limit=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the scan")]
    fn py_new(
        table: &Bound<'_, PyTableState>,
        row_filter: Option<ExpressionInput>,
        selected_fields: Option<Vec<String>>,
        case_sensitive: bool,
        snapshot_id: Option<i64>,
        as_of_ms: Option<i64>,
        reference: Option<String>,
        limit: Option<usize>,
    ) -> Result<Self> {
        let state = table.get();
        let metadata = state.committed.metadata.clone();
        let mut scan = Scan::new(state.storage.0.clone(), metadata, &At { snapshot_id, as_of_ms, reference })?;
        scan.case_sensitive = case_sensitive;
        if let Some(filter) = row_filter {
            scan.filter = filter.0;
        }
        // A column that is not there is told now, not when the rows are read.
        let wanted = scan.wanted(selected_fields.as_deref())?;
        Ok(Self { scan, wanted, limit, comparison: None })
    }

    /// What snapshots changed: rows that `append` snapshots added, or the changelog of all. A snapshot is given by its id
    /// or by the name of a tag. The rows of a changelog are compared where anything of that is asked for.
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
        row_filter: Option<ExpressionInput>,
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
        let wanted = scan.wanted(selected_fields.as_deref())?;
        let updates = compute_updates.then_some(Updates { identifier_columns });
        let is_compared = remove_carryovers || net_changes || compute_updates;
        let comparison = is_compared.then_some(Comparison { net_changes, updates });
        if let Some(comparison) = &comparison {
            comparison.check(&scan, &wanted)?;
        }
        Ok(Self { scan, wanted, limit, comparison })
    }

    /// How the Parquet reader of an engine reads the columns of this scan.
    fn engine_read(&self) -> Result<PyEngineRead> {
        Ok(PyEngineRead(self.scan.engine_read(&self.wanted.projection)?))
    }

    /// The columns that are read.
    #[getter]
    fn schema(&self) -> Result<PySchema> {
        Ok(PySchema(self.wanted.projection.as_ref().clone()))
    }

    /// The snapshots whose changes are read, oldest first; none where the scan is not of changes.
    #[getter]
    fn changed_snapshot_ids(&self) -> Option<Vec<i64>> {
        let changes = self.scan.changes.as_ref()?;
        Some(changes.snapshots().iter().map(|snapshot| snapshot.snapshot_id).collect())
    }

    /// The snapshot that is read, if the table has one.
    #[getter]
    fn snapshot_id(&self) -> Option<i64> {
        self.scan.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id)
    }

    /// No rows, with the columns that are read.
    fn empty(&self) -> Result<ArrowTable> {
        Ok(ArrowTable { schema: self.wanted.arrow()?, batches: Vec::new() })
    }

    /// The rows as they come.
    #[pyo3(signature = (*, batch_size=None, memory_limit=None, dictionary_columns=None, progress=None))]
    fn stream(
        &self,
        py: Python<'_>,
        batch_size: Option<Int<usize>>,
        memory_limit: Option<Int<usize>>,
        dictionary_columns: Option<Vec<String>>,
        progress: Option<&Bound<'_, PyProgress>>,
    ) -> Result<ArrowStream> {
        let options = read_options(batch_size, memory_limit, dictionary_columns, progress);
        let stream = detached(py, || self.open(&options))??;
        Ok(ArrowStream::new(Box::new(Reader(stream))))
    }

    /// All rows.
    #[pyo3(signature = (*, batch_size=None, memory_limit=None, dictionary_columns=None))]
    fn collect(
        &self,
        py: Python<'_>,
        batch_size: Option<Int<usize>>,
        memory_limit: Option<Int<usize>>,
        dictionary_columns: Option<Vec<String>>,
    ) -> Result<ArrowTable> {
        let options = read_options(batch_size, memory_limit, dictionary_columns, None);
        let collected = || {
            let stream = self.open(&options)?;
            let schema = stream.schema().clone();
            Ok::<_, icefield_table::Error>(ArrowTable {
                schema,
                batches: stream.collect::<icefield_table::Result<_>>()?,
            })
        };
        Ok(detached(py, collected)??)
    }

    /// How many rows there are.
    fn count(&self, py: Python<'_>) -> Result<i64> {
        Ok(detached(py, || self.row_count())??)
    }

    /// Which files are read; with all metrics, or with those of some columns.
    #[pyo3(signature = (*, metrics=false, metrics_of=None))]
    fn plan(&self, py: Python<'_>, metrics: bool, metrics_of: Option<Vec<String>>) -> Result<PyPlan> {
        let mut scan = self.scan.clone();
        scan.metrics = match metrics_of {
            Some(names) => scan.metrics_of(&names)?,
            None if metrics => Metrics::all(),
            None => Metrics::none(),
        };
        let plan = detached(py, || scan.plan())??;
        Ok(PyPlan { plan, metadata: self.scan.metadata.clone(), changes: self.changelog() })
    }

    /// Which files are read, as batches with the columns of `Plan.files`, while they are found.
    fn plan_stream(&self, py: Python<'_>) -> Result<ArrowStream> {
        let stream = detached(py, || {
            let stream = self.scan.plan_stream()?;
            let columns = match self.changelog() {
                Some(_) => FileColumns::Changes(ChangeColumns::new(stream.columns()?)),
                None => FileColumns::Files(stream.columns()?),
            };
            Ok::<_, icefield_table::Error>(PlanReader { columns, stream })
        })??;
        Ok(ArrowStream::new(Box::new(stream)))
    }

    /// The least and the greatest value of a column as an array of both, nulls where there is none, and why they are
    /// not known.
    fn bounds(&self, py: Python<'_>, column: &str) -> Result<(ArrowArray, Option<String>)> {
        Ok(detached(py, || self.exact_bounds(column))??)
    }

    /// The tasks of a plan of this scan; only of the files at some places in `Plan.files`, if places are given.
    #[pyo3(signature = (plan, *, places=None, split_size=None, lookback=None, open_file_cost=None))]
    fn tasks(
        &self,
        py: Python<'_>,
        plan: &Bound<'_, PyPlan>,
        places: Option<HashSet<usize>>,
        split_size: Option<Int<i64>>,
        lookback: Option<Int<usize>>,
        open_file_cost: Option<Int<i64>>,
    ) -> Result<Vec<PyReadTask>> {
        if self.comparison.is_some() {
            let message =
                "a changelog of compared rows cannot be cut into tasks: no task has all rows that are compared";
            return Err(icefield_table::Error::invalid(message).into());
        }
        let options = plan.get().split_by(split_size, lookback, open_file_cost)?;
        let plan = &plan.get().plan;
        let tasks = detached(py, || self.scan.tasks_of(plan, &self.wanted, &options, places.as_ref()))??;
        Ok(tasks.into_iter().map(PyReadTask).collect())
    }
}

impl PyPlan {
    /// How the plan is split: as the table says, unless told otherwise.
    fn split_by(
        &self,
        split_size: Option<Int<i64>>,
        lookback: Option<Int<usize>>,
        open_file_cost: Option<Int<i64>>,
    ) -> Result<SplitOptions> {
        let table = SplitOptions::of_table(&self.metadata)?;
        Ok(SplitOptions {
            split_size: split_size.map_or(table.split_size, |Int(bytes)| bytes),
            lookback: lookback.map_or(table.lookback, |Int(tasks)| tasks),
            open_file_cost: open_file_cost.map_or(table.open_file_cost, |Int(bytes)| bytes),
        })
    }
}

#[pymethods]
impl PyPlan {
    /// A row a data file.
    fn files(&self, py: Python<'_>) -> Result<ArrowTable> {
        let files = || match &self.changes {
            Some(_) => ChangeColumns::of_plan(&self.plan),
            None => self.plan.to_batch(),
        };
        Ok(detached(py, files)??.into())
    }

    /// A row a piece of a data file: the task it belongs to, the place of its file in `files`, the bytes.
    #[pyo3(signature = (split_size=None, *, lookback=None, open_file_cost=None))]
    fn tasks(
        &self,
        py: Python<'_>,
        split_size: Option<Int<i64>>,
        lookback: Option<Int<usize>>,
        open_file_cost: Option<Int<i64>>,
    ) -> Result<ArrowTable> {
        let options = self.split_by(split_size, lookback, open_file_cost)?;
        Ok(detached(py, || self.pieces(&options))??.into())
    }

    /// Of some text columns, whose bounds the plan has, those of which a condition could skip some of the files.
    fn tells_apart(&self, py: Python<'_>, field_ids: Vec<i32>) -> Result<Vec<i32>> {
        detached(py, || field_ids.into_iter().filter(|id| self.plan.tells_apart(*id)).collect())
    }

    /// A row a file: why an engine does not read it, in a word and in full; nulls for those that it may read.
    fn obstacles(&self, py: Python<'_>, read: &Bound<'_, PyEngineRead>) -> Result<ArrowTable> {
        let read = &read.get().0;
        let found = detached(py, || self.plan.obstacles(read))??;
        let column = |text: fn(&Obstacle) -> String| -> ArrayRef {
            let texts: Vec<Option<String>> = found.iter().map(|found| found.as_ref().map(text)).collect();
            Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>())
        };
        let columns = [
            ("kind", column(|obstacle| obstacle.kind().to_owned()), true),
            ("obstacle", column(Obstacle::to_string), true),
        ];
        Ok(RecordBatch::try_from_iter_with_nullable(columns)?.into())
    }

    /// What was looked at and what could be skipped.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, &self.plan.report)
    }

    /// The report as a person reads it.
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

    /// The task that `to_bytes` made into bytes.
    #[staticmethod]
    fn from_bytes(data: PyBackedBytes) -> Result<Self> {
        Ok(Self(from_bytes(&unpack(&data)?)?))
    }

    /// All that another machine must know, but how to reach the storage.
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

    /// The rows; in the types of `schema` where an engine takes no others.
    #[pyo3(signature = (storage, *, schema=None, batch_size=None, memory_limit=None, dictionary_columns=None))]
    fn rows(
        &self,
        storage: &Bound<'_, PyStorage>,
        schema: Option<SchemaInput>,
        batch_size: Option<Int<usize>>,
        memory_limit: Option<Int<usize>>,
        dictionary_columns: Option<Vec<String>>,
    ) -> Result<ArrowStream> {
        let options = read_options(batch_size, memory_limit, dictionary_columns, None);
        if schema.is_some() && !options.dictionaries.is_empty() {
            let message = "dictionary_columns: the types of all columns are those of the schema that is given";
            return Err(icefield_table::Error::invalid(message).into());
        }
        let stream = task::rows_with(self.0.clone(), &storage.get().0, None, &limits()?, &options)?;
        let stream = match schema {
            Some(target) => stream.as_schema(target.0)?,
            None => stream,
        };
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

/// Every count of a report by its name.
fn counts<'py>(py: Python<'py>, report: &ScanReport) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    report.counts().into_iter().try_for_each(|(name, count)| counts.set_item(name, count))?;
    Ok(counts)
}

impl PyPlan {
    fn pieces(&self, options: &SplitOptions) -> Result<RecordBatch> {
        let tasks = self.plan.tasks(options)?;
        // Places of files count on over the manifests, as in `files`.
        let firsts = self.plan.first_places();
        let (mut numbers, mut files, mut paths, mut starts, mut lengths) = (vec![], vec![], vec![], vec![], vec![]);
        for (number, pieces) in (0i32..).zip(&tasks) {
            for piece in pieces {
                let (Some(manifest), Some(first)) =
                    (self.plan.manifests.get(piece.manifest), firsts.get(piece.manifest))
                else {
                    continue;
                };
                numbers.push(number);
                files.push(i64::try_from(first + piece.row).unwrap_or(i64::MAX));
                paths.push(manifest.entries.file_path.value(piece.row));
                starts.push(piece.start);
                lengths.push(piece.length);
            }
        }
        let columns: [(&str, ArrayRef); 5] = [
            ("task", Arc::new(Int32Array::from(numbers))),
            ("file", Arc::new(Int64Array::from(files))),
            ("file_path", Arc::new(StringArray::from(paths))),
            ("start", Arc::new(Int64Array::from(starts))),
            ("length", Arc::new(Int64Array::from(lengths))),
        ];
        Ok(RecordBatch::try_from_iter(columns)?)
    }
}
