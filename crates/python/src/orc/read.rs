//! Opens ORC files in any storage and reads them as Arrow.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use bytes::Bytes;
use icefield_orc::inspect::{describe, lacking, messages};
use icefield_orc::proto::Message;
use icefield_orc::{
    ArrowOptions, ColumnRef, Evolution, EvolutionOptions, EvolvedColumns, FileMetadata, KeyName, KeyProvider,
    MemoryKeys, OutOfRange, Overflow, Pool, Projection, ReadOptions, Reader as OrcReader, StringForm, TimeUnit,
    TypeDescription,
};
use icefield_table::file::orc::batches::{FileBatches, OfError};
use icefield_table::file::orc::source::OrcSource;
use icefield_table::interrupt;
use icefield_table::orc_limits;
use icefield_table::orc_pool::ProcessPool;
use icefield_table::read::orc_filter;
use icefield_table::storage::Storage;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::integer::Int;
use crate::callback::{ENDED, call_python};
use crate::capsule::{ArrowArray, ArrowSchema, ArrowStream, ArrowTable, SchemaInput};
use crate::entry::detached;
use crate::errors::{BorderError, InvalidArgumentError, Result};
use crate::format::expr::expressions::FilterInput;
use crate::held::Held;
use crate::storage::PyStorage;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOrcFile>()?;
    module.add_class::<PyOrcBatches>()
}

/// The argument from Python that unwraps local keys: master keys by name, or a function.
#[derive(Debug)]
struct PyKeys(Py<PyAny>);

impl PyKeys {
    fn ask(&self, key: &KeyName, wrapped: &[u8]) -> PyResult<Option<Vec<u8>>> {
        let asked = call_python(|py| {
            let keys = self.0.bind(py);
            let found = match keys.is_callable() {
                true => keys.call1((&key.name, key.version, key.algorithm.name(), PyBytes::new(py, wrapped)))?,
                false => keys.call_method1("get", (&key.name,))?,
            };
            found.extract()
        });
        asked.unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDED)))
    }
}

impl KeyProvider for PyKeys {
    fn local_key(&self, key: &KeyName, wrapped: &[u8]) -> icefield_orc::Result<Option<Vec<u8>>> {
        let Some(material) = self.ask(key, wrapped).map_err(icefield_orc::Error::external)? else { return Ok(None) };
        if call_python(|py| self.0.bind(py).is_callable()).unwrap_or_default() {
            return Ok(Some(material));
        }
        let mut master = MemoryKeys::default();
        master.add(key.clone(), &material)?;
        master.local_key(key, wrapped)
    }
}

type SharedReader = Arc<OrcReader<OrcSource>>;

/// An open file and the settings for reading it.
#[derive(Debug)]
struct Opened {
    reader: SharedReader,
    arrow: ArrowOptions,
    /// The other schema that the file is read with.
    evolution: Option<Evolution>,
}

/// What to read, and how it becomes the rows asked for.
struct Reading {
    options: ReadOptions,
    columns: Option<EvolvedColumns>,
}

impl Reading {
    /// The schema of the rows.
    fn schema(&self, reader: &OrcReader<OrcSource>) -> icefield_orc::Result<SchemaRef> {
        match &self.columns {
            Some(columns) => Ok(Arc::clone(&columns.schema)),
            None => reader.schema(&self.options),
        }
    }
}

/// The choice of rows and columns, as a caller gives it.
struct Choice {
    columns: Option<Vec<ColumnChoice>>,
    filter: Option<FilterInput>,
    rows: Option<(u64, u64)>,
}

impl Opened {
    fn file(&self) -> &FileMetadata {
        self.reader.metadata()
    }

    /// The location; `None` for bytes in memory.
    fn path(&self) -> Option<&str> {
        self.reader.source().path()
    }

    /// Adds the name of the file to an error.
    fn named(&self, error: icefield_orc::Error) -> icefield_orc::Error {
        in_file(error, self.path())
    }

    /// The options for reading some columns of the rows that match a filter.
    fn reading(&self, choice: Choice) -> Result<Reading> {
        let schema = self.evolution.as_ref().map_or(&self.file().schema, Evolution::schema);
        let projection = match choice.columns {
            Some(columns) => Projection::columns(schema, columns.into_iter().map(ColumnRef::from)),
            None => Ok(Projection::All),
        };
        let projection = projection.map_err(|error| self.named(error))?;
        let rows = choice.rows.map(|(start, end)| std::iter::once(start..end.max(start)).collect());
        let mut options = ReadOptions { projection, rows, arrow: self.arrow.clone(), ..ReadOptions::default() };
        let Some(evolution) = &self.evolution else {
            if let Some(filter) = choice.filter {
                let (predicate, filter) = orc_filter::filter(&filter.0, schema, &self.arrow)?;
                (options.predicate, options.filter) = (predicate, Some(filter));
            }
            return Ok(Reading { options, columns: None });
        };
        let columns = evolution.columns(&options.projection, &self.arrow).map_err(|error| self.named(error))?;
        (options.projection, options.arrow) = (columns.projection.clone(), columns.arrow.clone());
        if let Some(filter) = choice.filter {
            let (predicate, filter) = orc_filter::converted_filter(&filter.0, evolution, &self.arrow)?;
            (options.predicate, options.filter) = (predicate, Some(filter));
        }
        Ok(Reading { options, columns: Some(columns) })
    }

    /// Reads all rows with several threads.
    fn read(&self, reading: Reading, threads: usize) -> icefield_orc::Result<(SchemaRef, Vec<RecordBatch>)> {
        let pool: Arc<dyn Pool> = Arc::new(ProcessPool);
        let check = || interrupt::check().map_err(icefield_orc::Error::external);
        let schema = reading.schema(&self.reader)?;
        let batches = self.reader.read_all(reading.options, threads, &pool, check)?;
        let Some(columns) = &reading.columns else { return Ok((schema, batches)) };
        Ok((schema, batches.iter().map(|batch| columns.apply(batch)).collect::<icefield_orc::Result<_>>()?))
    }

    /// Iterates over the batches, read with several threads.
    fn batches(&self, reading: Reading, threads: usize) -> icefield_table::Result<BatchReader> {
        let path = self.path().map(str::to_owned);
        let of_error: OfError = Arc::new(move |error| icefield_table::Error::Orc(in_file(error, path.as_deref())));
        let schema = reading.schema(&self.reader).map_err(&*of_error)?;
        let batches = FileBatches::new(&self.reader, Arc::clone(&of_error), reading.options, |_| true, threads)?;
        Ok(BatchReader { batches, columns: reading.columns, schema, of_error })
    }
}

fn in_file(error: icefield_orc::Error, path: Option<&str>) -> icefield_orc::Error {
    match path {
        Some(path) => error.in_file(path),
        None => error,
    }
}

/// A requested column: by its position among the top-level fields, or by its dotted name.
#[derive(Debug, FromPyObject)]
enum ColumnChoice {
    Index(i64),
    Name(String),
}

impl From<ColumnChoice> for ColumnRef {
    fn from(column: ColumnChoice) -> Self {
        match column {
            ColumnChoice::Index(index) => Self::Index(index),
            ColumnChoice::Name(name) => Self::Name(name),
        }
    }
}

/// An ORC file of a storage, or of bytes in memory, open for reading.
#[pyclass(frozen, name = "OrcFile", module = "icefield._core")]
#[derive(Debug)]
pub struct PyOrcFile(Arc<Opened>);

/// The batches of an ORC file, one after the other.
#[pyclass(frozen, name = "OrcBatches", module = "icefield._core")]
pub struct PyOrcBatches(Held<BatchReader>);

/// The batches of a file as an Arrow reader.
struct BatchReader {
    batches: FileBatches<OrcSource>,
    columns: Option<EvolvedColumns>,
    schema: SchemaRef,
    of_error: OfError,
}

impl BatchReader {
    fn next_batch(&mut self) -> Option<icefield_table::Result<RecordBatch>> {
        let batch = self.batches.next()?;
        let Some(columns) = &self.columns else { return Some(batch) };
        Some(batch.and_then(|batch| columns.apply(&batch).map_err(&*self.of_error)))
    }
}

impl Iterator for BatchReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The schema to read with: as ORC's text, or as Arrow's schema.
#[derive(FromPyObject)]
enum SchemaChoice {
    Text(String),
    Arrow(SchemaInput),
}

impl SchemaChoice {
    fn types(&self) -> icefield_orc::Result<TypeDescription> {
        match self {
            Self::Text(text) => text.parse(),
            Self::Arrow(schema) => TypeDescription::from_arrow(&schema.0),
        }
    }
}

/// Converts a batch to a struct array, which represents a batch in Arrow's C interface.
fn as_array(batch: RecordBatch) -> ArrowArray {
    let schema = batch.schema();
    let field = Field::new("", DataType::Struct(schema.fields().clone()), false);
    let field = field.with_metadata(schema.metadata().clone());
    ArrowArray { field: Arc::new(field), array: Arc::new(StructArray::from(batch)) }
}

#[pymethods]
impl PyOrcBatches {
    /// Return the next batch as a struct array; ``None`` at the end.
    fn next_batch(&self, py: Python<'_>) -> Result<Option<ArrowArray>> {
        let batch = detached(py, || Ok::<_, BorderError>(self.0.hold()?.next_batch().transpose()?))??;
        Ok(batch.map(as_array))
    }
}

fn arrow_options(unit: &str, out_of_range: &str, strings: &str, trim_char: bool) -> Result<ArrowOptions> {
    let refused = |what: &str, value: &str, known: &str| {
        BorderError::from(InvalidArgumentError::new_err(format!("{what}: expected one of {known}, got {value:?}")))
    };
    let timestamp_unit = match unit {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        other => return Err(refused("timestamp_unit", other, "s, ms, us, ns")),
    };
    let out_of_range = match out_of_range {
        "null" => OutOfRange::Null,
        "saturate" => OutOfRange::Saturate,
        "error" => OutOfRange::Error,
        other => return Err(refused("out_of_range", other, "null, saturate, error")),
    };
    let strings = match strings {
        "utf8" => StringForm::Utf8,
        "dictionary" => StringForm::Dictionary,
        "binary" => StringForm::Binary,
        other => return Err(refused("strings", other, "utf8, dictionary, binary")),
    };
    Ok(ArrowOptions { timestamp_unit, out_of_range, strings, trim_char, ..ArrowOptions::default() })
}

#[pymethods]
impl PyOrcFile {
    /// Opens a file of a storage, or one in memory where ``source`` is bytes.
    #[new]
    #[pyo3(signature = (
        source, /, *, storage=None, keys=None, timestamp_unit="us", out_of_range="null", strings="utf8", trim_char=true,
        schema=None, positional=false, case_sensitive=true, overflow="null"
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the reader")]
    fn py_new(
        py: Python<'_>,
        source: FileInput,
        storage: Option<PyRef<'_, PyStorage>>,
        keys: Option<Py<PyAny>>,
        timestamp_unit: &str,
        out_of_range: &str,
        strings: &str,
        trim_char: bool,
        schema: Option<SchemaChoice>,
        positional: bool,
        case_sensitive: bool,
        overflow: &str,
    ) -> Result<Self> {
        let overflow = match overflow {
            "null" => Overflow::Null,
            "error" => Overflow::Error,
            other => {
                let message = format!("overflow: expected one of null, error, got {other:?}");
                return Err(InvalidArgumentError::new_err(message).into());
            }
        };
        let evolving = EvolutionOptions { positional, case_sensitive, overflow };
        let arrow = arrow_options(timestamp_unit, out_of_range, strings, trim_char)?;
        let keys = keys.map(|keys| Arc::new(PyKeys(keys)) as Arc<dyn KeyProvider>);
        let storage = storage.map_or_else(|| Storage::new(Default::default()), |storage| storage.0.clone());
        detached(py, || {
            let limits = orc_limits()?;
            let source = source.open(&storage)?;
            let path = source.path().map(str::to_owned);
            let reader = OrcReader::open_with(source, limits, keys).map_err(|error| in_file(error, path.as_deref()))?;
            let evolution =
                schema.map(|schema| Evolution::try_new(&reader.metadata().schema, &schema.types()?, &evolving));
            let evolution = evolution.transpose()?;
            Ok(Self(Arc::new(Opened { reader: Arc::new(reader), arrow, evolution })))
        })?
    }

    /// Return the schema that the columns are read with.
    #[pyo3(signature = (columns=None))]
    fn schema(&self, columns: Option<Vec<ColumnChoice>>) -> Result<ArrowSchema> {
        let reading = self.0.reading(Choice { columns, filter: None, rows: None })?;
        Ok(ArrowSchema(reading.schema(&self.0.reader).map_err(|error| self.0.named(error))?))
    }

    /// The type of the rows in ORC's notation, such as ``struct<id:bigint>``.
    #[getter]
    fn type_description(&self) -> String {
        self.0.file().schema.to_string()
    }

    #[getter]
    fn nrows(&self) -> u64 {
        self.0.file().rows()
    }

    #[getter]
    fn nstripes(&self) -> usize {
        self.0.file().footer.stripes.len()
    }

    #[getter]
    fn nstripe_statistics(&self) -> Result<usize> {
        Ok(self.0.file().stripe_statistics().map_err(|error| self.0.named(error))?.len())
    }

    #[getter]
    fn file_version(&self) -> &'static str {
        self.0.file().version.name()
    }

    #[getter]
    fn writer(&self) -> String {
        self.0.file().writer().to_string()
    }

    #[getter]
    fn writer_version(&self) -> String {
        self.0.file().writer_version().to_string()
    }

    #[getter]
    fn software_version(&self) -> String {
        self.0.file().software_version()
    }

    #[getter]
    fn compression(&self) -> &'static str {
        self.0.file().compression.name()
    }

    #[getter]
    fn compression_size(&self) -> u64 {
        self.0.file().postscript.compression_block_size.unwrap_or_default()
    }

    #[getter]
    fn row_index_stride(&self) -> u64 {
        self.0.file().row_index_stride().unwrap_or_default()
    }

    /// Lengths in bytes of the file, its content, the stripe statistics, the footer and the postscript.
    #[getter]
    fn lengths(&self) -> (u64, u64, u64, u64, usize) {
        let file = self.0.file();
        let (footer, postscript) = (&file.footer, &file.postscript);
        (
            file.length,
            footer.content_length.unwrap_or_default(),
            postscript.metadata_length.unwrap_or_default(),
            postscript.footer_length.unwrap_or_default(),
            postscript.encode().len(),
        )
    }

    /// The user's metadata.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = PyDict::new(py);
        for item in &self.0.file().footer.metadata {
            let value = PyBytes::new(py, item.value.as_deref().unwrap_or_default());
            metadata.set_item(item.name.as_deref().unwrap_or_default(), value)?;
        }
        Ok(metadata)
    }

    /// Return all rows, of some columns if they are named, in the order of the file.
    #[pyo3(signature = (columns=None, *, predicate=None, rows=None, threads=Int(1)), text_signature = "($self, columns=None, *, predicate=None, rows=None, threads=1)")]
    fn read(
        &self,
        py: Python<'_>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<FilterInput>,
        rows: Option<(u64, u64)>,
        threads: Int<usize>,
    ) -> Result<ArrowTable> {
        detached(py, || {
            let read = self.0.read(self.0.reading(Choice { columns, filter: predicate, rows })?, threads.0);
            let (schema, batches) = read.map_err(|error| self.0.named(error))?;
            Ok(ArrowTable { schema, batches })
        })?
    }

    /// Return the rows of one stripe, which counts from 0, as a struct array.
    #[pyo3(signature = (stripe, columns=None, *, predicate=None))]
    fn read_stripe(
        &self,
        py: Python<'_>,
        stripe: Int<i64>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<FilterInput>,
    ) -> Result<ArrowArray> {
        let count = self.nstripes();
        let found = usize::try_from(stripe.0).ok().filter(|stripe| *stripe < count);
        let stripe = found.ok_or_else(|| {
            InvalidArgumentError::new_err(format!("stripe {} does not exist, the file has {count}", stripe.0))
        })?;
        detached(py, || {
            let reading = self.0.reading(Choice { columns, filter: predicate, rows: None })?;
            let read = self.0.reader.read_stripe(stripe, reading.options);
            let read = read.and_then(|read| match &reading.columns {
                Some(columns) => columns.apply(&read),
                None => Ok(read),
            });
            Ok(as_array(read.map_err(|error| self.0.named(error))?))
        })?
    }

    /// Return the rows batch by batch.
    #[pyo3(signature = (columns=None, *, predicate=None, rows=None, batch_size=Int(8192)), text_signature = "($self, columns=None, *, predicate=None, rows=None, batch_size=8192)")]
    fn batches(
        &self,
        py: Python<'_>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<FilterInput>,
        rows: Option<(u64, u64)>,
        batch_size: Int<usize>,
    ) -> Result<PyOrcBatches> {
        let batches = detached(py, || {
            let mut reading = self.0.reading(Choice { columns, filter: predicate, rows })?;
            reading.options.batch_size = batch_size.0;
            Ok::<_, BorderError>(self.0.batches(reading, 1)?)
        })?;
        Ok(PyOrcBatches(Held::new("reader", batches?)))
    }

    /// Return the rows as they are read; with several ``threads``, stripes are read ahead.
    #[pyo3(signature = (columns=None, *, predicate=None, rows=None, batch_size=Int(8192), threads=Int(1)), text_signature = "($self, columns=None, *, predicate=None, rows=None, batch_size=8192, threads=1)")]
    fn stream(
        &self,
        py: Python<'_>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<FilterInput>,
        rows: Option<(u64, u64)>,
        batch_size: Int<usize>,
        threads: Int<usize>,
    ) -> Result<ArrowStream> {
        detached(py, || {
            let mut reading = self.0.reading(Choice { columns, filter: predicate, rows })?;
            reading.options.batch_size = batch_size.0;
            Ok(ArrowStream::new(Box::new(self.0.batches(reading, threads.0)?)))
        })?
    }

    /// Return a description of all parts of the file as JSON; with ``runs``, also of the runs of each stream.
    #[pyo3(signature = (*, runs=false))]
    fn inspect(&self, py: Python<'_>, runs: bool) -> Result<String> {
        detached(py, || Ok(describe(&self.0.reader, runs).map_err(|error| self.0.named(error))?.to_string()))?
    }

    /// Return the columns of a stripe with values that are missing in their Bloom filter, with the stream and the row
    /// group; ``None`` for the group if the number of filters is wrong.
    fn lacking_in_filters(&self, py: Python<'_>, stripe: usize) -> Result<Vec<(u32, String, Option<usize>)>> {
        let found = detached(py, || lacking(&self.0.reader, stripe).map_err(|error| self.0.named(error)))??;
        Ok(found.into_iter().map(|one| (one.column, one.stream.to_string(), one.group)).collect())
    }

    /// Return the statistics of the file by column, as JSON.
    fn file_statistics(&self, py: Python<'_>) -> Result<String> {
        let statistics = detached(py, || self.0.file().file_statistics())?.map_err(|error| self.0.named(error))?;
        Ok(messages(&statistics).to_string())
    }

    /// Return the statistics of each stripe by column, as JSON.
    fn stripe_statistics(&self, py: Python<'_>) -> Result<String> {
        let statistics = detached(py, || self.0.file().stripe_statistics())?.map_err(|error| self.0.named(error))?;
        Ok(messages(&statistics).to_string())
    }

    fn __repr__(&self) -> String {
        let file = self.0.file();
        format!("OrcFile({:?}, {} rows: {})", self.0.path(), file.rows(), file.schema)
    }
}

/// A file as an argument from Python.
#[derive(FromPyObject)]
pub(crate) enum FileInput {
    /// Its bytes.
    Memory(PyBackedBytes),
    /// Its path in a storage.
    Path(String),
}

impl FileInput {
    /// Opens the source of the bytes.
    pub(crate) fn open(self, storage: &Storage) -> Result<OrcSource> {
        match self {
            Self::Memory(bytes) => Ok(OrcSource::Memory(Bytes::from_owner(bytes))),
            Self::Path(path) => Ok(OrcSource::of_path(storage, &path)?),
        }
    }
}
