//! ORC files: opened from any storage and read as Arrow.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use bytes::Bytes;
use icefield_orc::inspect::{describe, messages};
use icefield_orc::proto::Message;
use icefield_orc::{
    ArrowOptions, Batches, FileMetadata, KeyName, KeyProvider, MemoryKeys, OutOfRange, Pool, Projection, ReadOptions,
    Reader as OrcReader, Source, StringForm, TimeUnit,
};
use icefield_table::file::orc::ahead::ReadAhead;
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
use crate::capsule::{ArrowArray, ArrowSchema, ArrowStream, ArrowTable};
use crate::entry::detached;
use crate::errors::{BorderError, InvalidArgumentError, Result};
use crate::format::expressions::ExpressionInput;
use crate::storage::PyStorage;

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOrcFile>()?;
    module.add_class::<PyOrcBatches>()
}

/// The bytes of a file: in memory, or in a storage that ranges of them are read from.
#[derive(Debug)]
pub(crate) enum OrcSource {
    /// All of them.
    Memory(Bytes),
    /// A file of a storage.
    Stored {
        /// The storage.
        storage: Storage,
        /// Its path there.
        path: String,
        /// Its bytes.
        length: u64,
    },
}

impl Source for OrcSource {
    fn length(&self) -> icefield_orc::Result<u64> {
        match self {
            Self::Memory(bytes) => bytes.length(),
            Self::Stored { length, .. } => Ok(*length),
        }
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        match self {
            Self::Memory(bytes) => bytes.read_range(range),
            Self::Stored { storage, path, .. } => storage.range(path, range).map_err(icefield_orc::Error::external),
        }
    }
}

/// What Python passes to unwrap local keys: master keys by name, or a function.
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

/// An open file and how it is read.
#[derive(Debug)]
struct Opened {
    reader: SharedReader,
    name: Option<String>,
    with_keys: bool,
    arrow: ArrowOptions,
}

impl Opened {
    fn file(&self) -> &FileMetadata {
        self.reader.metadata()
    }

    /// An error with the name of the file.
    fn named(&self, error: icefield_orc::Error) -> BorderError {
        named(error, self.name.as_deref(), self.with_keys)
    }

    /// What to read: some columns, of the rows that a filter lets through.
    fn options(&self, columns: Option<Vec<ColumnChoice>>, filter: Option<ExpressionInput>) -> Result<ReadOptions> {
        let projection = self.projection(columns).map_err(|error| self.named(error))?;
        let mut options = ReadOptions { projection, arrow: self.arrow.clone(), ..ReadOptions::default() };
        if let Some(filter) = filter {
            let (predicate, filter) = orc_filter::filter(&filter.0, &self.file().schema, &self.arrow)?;
            (options.predicate, options.filter) = (predicate, Some(filter));
        }
        Ok(options)
    }

    fn projection(&self, columns: Option<Vec<ColumnChoice>>) -> icefield_orc::Result<Projection> {
        let Some(columns) = columns else { return Ok(Projection::All) };
        let schema = &self.file().schema;
        let find = |column: ColumnChoice| match column {
            ColumnChoice::Index(index) => {
                let child = usize::try_from(index).ok().and_then(|index| schema.children.get(index));
                child.map(|child| child.column).ok_or_else(|| {
                    let count = schema.children.len();
                    icefield_orc::Error::Invalid(format!("column {index} does not exist, the file has {count}"))
                })
            }
            ColumnChoice::Name(name) => match Projection::names(schema, [name])? {
                Projection::Columns(ids) => Ok(ids.first().copied().unwrap_or_default()),
                Projection::All => Ok(0),
            },
        };
        Ok(Projection::Columns(columns.into_iter().map(find).collect::<icefield_orc::Result<_>>()?))
    }

    /// All rows, read by several threads.
    fn read(&self, options: ReadOptions, threads: usize) -> icefield_orc::Result<(SchemaRef, Vec<RecordBatch>)> {
        let pool: Arc<dyn Pool> = Arc::new(ProcessPool);
        let check = || interrupt::check().map_err(icefield_orc::Error::external);
        Ok((self.reader.schema(&options)?, self.reader.read_all(options, threads, &pool, check)?))
    }

    /// The batches of some stripes.
    fn batches(&self, options: ReadOptions, stripes: Vec<usize>) -> icefield_orc::Result<Batches<SharedReader>> {
        Batches::new(Arc::clone(&self.reader), options, stripes)
    }
}

fn named(error: icefield_orc::Error, name: Option<&str>, with_keys: bool) -> BorderError {
    let error = match error {
        icefield_orc::Error::Corrupt(mut corrupt) if with_keys => {
            corrupt.message.push_str("; if it is encrypted, its key may be wrong");
            icefield_orc::Error::Corrupt(corrupt)
        }
        other => other,
    };
    match name {
        Some(name) => error.in_file(name).into(),
        None => error.into(),
    }
}

/// A column as it is asked for: by place among the top-level fields, or by dotted name.
#[derive(Debug, FromPyObject)]
enum ColumnChoice {
    Index(i64),
    Name(String),
}

/// An ORC file, open for reading.
#[pyclass(frozen, name = "OrcFile", module = "icefield._core")]
#[derive(Debug)]
pub struct PyOrcFile(Arc<Opened>);

/// The batches of a file, one after the other.
#[pyclass(frozen, name = "OrcBatches", module = "icefield._core")]
pub struct PyOrcBatches(Mutex<NamedBatches>);

struct NamedBatches {
    file: Arc<Opened>,
    batches: Batches<SharedReader>,
}

impl NamedBatches {
    fn open(file: &Arc<Opened>, options: ReadOptions) -> Result<Self> {
        let open = || file.batches(options.clone(), file.reader.stripes(&options)?);
        Ok(Self { file: Arc::clone(file), batches: open().map_err(|error| file.named(error))? })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.batches.next().transpose().map_err(|error| self.file.named(error))
    }
}

impl Iterator for NamedBatches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(PyErr::from(error).into())).transpose()
    }
}

impl RecordBatchReader for NamedBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.batches.schema())
    }
}

/// The batches of a file, read by several threads.
struct ManyThreads(ReadAhead<OrcSource>);

impl Iterator for ManyThreads {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for ManyThreads {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.schema())
    }
}

/// A batch as the struct array that Arrow's interface for one batch is.
fn as_array(batch: RecordBatch) -> ArrowArray {
    let schema = batch.schema();
    let field = Field::new("", DataType::Struct(schema.fields().clone()), false);
    let field = field.with_metadata(schema.metadata().clone());
    ArrowArray { field: Arc::new(field), array: Arc::new(StructArray::from(batch)) }
}

#[pymethods]
impl PyOrcBatches {
    /// The next batch, if there is one.
    fn next_batch(&self, py: Python<'_>) -> Result<Option<ArrowArray>> {
        let batch = detached(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).next_batch())??;
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
        source, /, *, storage=None, keys=None, timestamp_unit="us", out_of_range="null", strings="utf8", trim_char=true
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
    ) -> Result<Self> {
        let arrow = arrow_options(timestamp_unit, out_of_range, strings, trim_char)?;
        let (with_keys, keys) = (keys.is_some(), keys.map(|keys| Arc::new(PyKeys(keys)) as Arc<dyn KeyProvider>));
        let storage = storage.map_or_else(|| Storage::new(Default::default()), |storage| storage.0.clone());
        detached(py, || {
            let limits = orc_limits()?;
            let (source, name) = source.open(&storage)?;
            let reader =
                OrcReader::open_with(source, limits, keys).map_err(|error| named(error, name.as_deref(), with_keys))?;
            Ok(Self(Arc::new(Opened { reader: Arc::new(reader), name, with_keys, arrow })))
        })?
    }

    /// The schema of the columns.
    #[pyo3(signature = (columns=None))]
    fn schema(&self, columns: Option<Vec<ColumnChoice>>) -> Result<ArrowSchema> {
        let options = self.0.options(columns, None)?;
        Ok(ArrowSchema(self.0.reader.schema(&options).map_err(|error| self.0.named(error))?))
    }

    /// The type of the rows as ORC writes it.
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

    /// Lengths in bytes: file, content, stripe statistics, footer, postscript.
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

    /// All rows of some columns.
    #[pyo3(signature = (columns=None, *, predicate=None, threads=Int(1)), text_signature = "($self, columns=None, *, predicate=None, threads=1)")]
    fn read(
        &self,
        py: Python<'_>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<ExpressionInput>,
        threads: Int<usize>,
    ) -> Result<ArrowTable> {
        detached(py, || {
            let read = self.0.read(self.0.options(columns, predicate)?, threads.0);
            let (schema, batches) = read.map_err(|error| self.0.named(error))?;
            Ok(ArrowTable { schema, batches })
        })?
    }

    /// The rows of one stripe.
    #[pyo3(signature = (stripe, columns=None, *, predicate=None))]
    fn read_stripe(
        &self,
        py: Python<'_>,
        stripe: Int<i64>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<ExpressionInput>,
    ) -> Result<ArrowArray> {
        let count = self.nstripes();
        let found = usize::try_from(stripe.0).ok().filter(|stripe| *stripe < count);
        let stripe = found.ok_or_else(|| {
            InvalidArgumentError::new_err(format!("stripe {} does not exist, the file has {count}", stripe.0))
        })?;
        detached(py, || {
            let options = self.0.options(columns, predicate)?;
            let read = || {
                let batches = self.0.batches(options, vec![stripe])?;
                let schema = Arc::clone(batches.schema());
                match <[RecordBatch; 1]>::try_from(batches.collect::<icefield_orc::Result<Vec<_>>>()?) {
                    Ok([only]) => Ok(only),
                    Err(batches) => Ok(arrow_select::concat::concat_batches(&schema, &batches)?),
                }
            };
            read().map(as_array).map_err(|error| self.0.named(error))
        })?
    }

    /// The rows batch by batch; errors have their own classes.
    #[pyo3(signature = (columns=None, *, predicate=None, batch_size=Int(8192)), text_signature = "($self, columns=None, *, predicate=None, batch_size=8192)")]
    fn batches(
        &self,
        py: Python<'_>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<ExpressionInput>,
        batch_size: Int<usize>,
    ) -> Result<PyOrcBatches> {
        let batches = detached(py, || {
            let options = ReadOptions { batch_size: batch_size.0, ..self.0.options(columns, predicate)? };
            NamedBatches::open(&self.0, options)
        })?;
        Ok(PyOrcBatches(Mutex::new(batches?)))
    }

    /// The rows as a stream of Arrow's interface; with `threads`, stripes are read ahead, several at a time.
    #[pyo3(signature = (columns=None, *, predicate=None, batch_size=Int(8192), threads=Int(1)), text_signature = "($self, columns=None, *, predicate=None, batch_size=8192, threads=1)")]
    fn stream(
        &self,
        py: Python<'_>,
        columns: Option<Vec<ColumnChoice>>,
        predicate: Option<ExpressionInput>,
        batch_size: Int<usize>,
        threads: Int<usize>,
    ) -> Result<ArrowStream> {
        detached(py, || {
            let options = ReadOptions { batch_size: batch_size.0, ..self.0.options(columns, predicate)? };
            if threads.0 > 1 {
                let name = self.0.name.as_deref().unwrap_or("(memory)").into();
                let stream = ReadAhead::new(&self.0.reader, &name, options, |_| true, threads.0)?;
                return Ok(ArrowStream::new(Box::new(ManyThreads(stream))));
            }
            Ok(ArrowStream::new(Box::new(NamedBatches::open(&self.0, options)?)))
        })?
    }

    /// Everything that the file says of itself, as JSON; with ``runs`` also what each stream is made of.
    #[pyo3(signature = (*, runs=false))]
    fn inspect(&self, py: Python<'_>, runs: bool) -> Result<String> {
        detached(py, || Ok(describe(&self.0.reader, runs).map_err(|error| self.0.named(error))?.to_string()))?
    }

    /// The statistics of the file by column, as JSON.
    fn file_statistics(&self, py: Python<'_>) -> Result<String> {
        let statistics = detached(py, || self.0.file().file_statistics())?.map_err(|error| self.0.named(error))?;
        Ok(messages(&statistics).to_string())
    }

    /// The statistics of each stripe by column, as JSON.
    fn stripe_statistics(&self, py: Python<'_>) -> Result<String> {
        let statistics = detached(py, || self.0.file().stripe_statistics())?.map_err(|error| self.0.named(error))?;
        Ok(messages(&statistics).to_string())
    }

    fn __repr__(&self) -> String {
        let file = self.0.file();
        format!("OrcFile({:?}, {} rows: {})", self.0.name, file.rows(), file.schema)
    }
}

/// A file as Python names it.
#[derive(FromPyObject)]
pub(crate) enum FileInput {
    /// Its bytes.
    Memory(PyBackedBytes),
    /// Its path in a storage.
    Path(String),
}

impl FileInput {
    /// The bytes, and the name that errors give them.
    pub(crate) fn open(self, storage: &Storage) -> Result<(OrcSource, Option<String>)> {
        match self {
            Self::Memory(bytes) => Ok((OrcSource::Memory(Bytes::from_owner(bytes)), None)),
            Self::Path(path) => {
                let (storage, length) = (storage.clone(), storage.size(&path)?);
                Ok((OrcSource::Stored { storage, path: path.clone(), length }, Some(path)))
            }
        }
    }
}
