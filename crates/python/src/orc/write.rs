//! Writes rows of any Arrow stream to an ORC file, in a storage or in a binary file object of Python.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow_schema::Schema;
use bytes::Bytes;
use icefield_orc::proto::{CompressionKind, EncryptionAlgorithm};
use icefield_orc::{
    BloomVersion, CallbackMaker, EncryptionOptions, FileVersion, KeyMaker, KeyName, LastSecond, Mask, MemoryKeys,
    Merger, NewKey, Packing, Reader, Writer, WriterOptions,
};
use icefield_table::interrupt;
use icefield_table::orc_pool::ProcessPool;
use icefield_table::storage::{Output, Storage};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::integer::{Int, Named};
use crate::callback::{ENDED, call_python};
use crate::capsule::{SchemaInput, StreamInput};
use crate::entry::detached;
use crate::errors::{BorderError, InvalidArgumentError, Result};
use crate::held::Held;
use crate::orc::read::FileInput;
use crate::storage::PyStorage;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOrcWriter>()?;
    module.add_function(wrap_pyfunction!(orc_merge, module)?)
}

/// Bytes that are buffered before they are written to the storage or to Python.
const BUFFER: usize = 1 << 20;

/// The destination of the file. An incomplete file does not stay in a storage.
#[derive(FromPyObject)]
enum WhereInput {
    Path(String),
    File(Py<PyAny>),
}

enum Place {
    Stored(Option<Box<dyn Output>>),
    File(Py<PyAny>),
}

/// The destination that a writer writes to. Its errors, including Python exceptions, pass through the writer.
struct Target(Place);

impl Target {
    fn finish(mut self) -> Result<()> {
        match &mut self.0 {
            Place::Stored(output) => match output.take() {
                Some(output) => Ok(output.finish()?),
                None => Ok(()),
            },
            Place::File(_) => Ok(()),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Place::Stored(Some(output)) = std::mem::replace(&mut self.0, Place::Stored(None)) {
            output.abort();
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Place::Stored(Some(output)) => match output.write(Bytes::copy_from_slice(bytes)) {
                Ok(()) => Ok(bytes.len()),
                Err(error) => Err(io::Error::other(error)),
            },
            Place::Stored(None) => Err(io::Error::other("the file is closed")),
            Place::File(file) => {
                let written = call_python(|py| {
                    let written = file.bind(py).call_method1("write", (PyBytes::new(py, bytes),))?;
                    // Raw files may write fewer bytes than given; others return None, or write all.
                    if written.is_none() { Ok(bytes.len()) } else { written.extract::<usize>() }
                });
                let written = written.unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDED)));
                written.map_err(io::Error::other)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The options of a writer, with the names of `icefield.orc`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct OptionsInput {
    file_version: String,
    batch_size: Int<usize>,
    stripe_size: Int<usize>,
    stripe_rows: Option<Int<u64>>,
    compression: String,
    compression_level: Option<Int<i32>>,
    compression_block_size: Option<Int<usize>>,
    compression_strategy: String,
    row_index_stride: Int<u32>,
    padding_tolerance: f64,
    block_size: Option<Int<u64>>,
    dictionary_key_size_threshold: f64,
    sorted_dictionaries: bool,
    bloom_filter_columns: Vec<ColumnInput>,
    bloom_filter_fpp: f64,
    bloom_filter_version: String,
    timezone: String,
    last_second: String,
    metadata: Vec<(String, Vec<u8>)>,
    keys: KeysInput,
    encrypt: Vec<(String, Vec<String>)>,
    masks: Vec<(String, Vec<String>)>,
    use_threads: bool,
}

/// Master keys by name, or a function that creates local keys.
#[derive(FromPyObject)]
enum KeysInput {
    Known(BTreeMap<String, Vec<u8>>),
    Asked(Py<PyAny>),
}

impl KeysInput {
    fn maker(self) -> Result<Arc<dyn KeyMaker>> {
        match self {
            Self::Known(known) => {
                let mut keys = MemoryKeys::default();
                for (name, material) in known {
                    let algorithm = match material.len() {
                        0..=16 => EncryptionAlgorithm::AesCtr128,
                        _ => EncryptionAlgorithm::AesCtr256,
                    };
                    keys.add(KeyName { name, version: 0, algorithm }, &material)?;
                }
                Ok(Arc::new(keys))
            }
            Self::Asked(function) => {
                let ask = move |name: &str| {
                    let made = call_python(|py| function.call1(py, (name,))?.extract::<(u32, Vec<u8>, Vec<u8>)>(py));
                    let made = made.unwrap_or_else(|| Err(PyRuntimeError::new_err(ENDED)));
                    let (version, plain, wrapped) = made.map_err(icefield_orc::Error::external)?;
                    Ok((version, NewKey { plain, wrapped }))
                };
                Ok(Arc::new(CallbackMaker::new(ask)))
            }
        }
    }
}

/// A column by its position among the top-level columns, or by its dotted name.
#[derive(FromPyObject)]
enum ColumnInput {
    Index(i64),
    Name(String),
}

fn refused(what: &str, value: &str, known: &str) -> BorderError {
    InvalidArgumentError::new_err(format!("{what}: expected one of {known}, got {value:?}")).into()
}

impl OptionsInput {
    /// The options, except the columns with Bloom filters: these may be numbers, which only the schema converts to
    /// names.
    fn options(self) -> Result<(WriterOptions, Vec<ColumnInput>)> {
        let version = match self.file_version.as_str() {
            "0.11" => FileVersion::V0_11,
            "0.12" => FileVersion::V0_12,
            "UNSTABLE-PRE-2.0" => FileVersion::V2Draft,
            other => return Err(refused("file_version", other, "0.11, 0.12, UNSTABLE-PRE-2.0")),
        };
        let compression = match self.compression.to_ascii_uppercase().as_str() {
            "NONE" | "UNCOMPRESSED" => CompressionKind::None,
            "ZLIB" => CompressionKind::Zlib,
            "SNAPPY" => CompressionKind::Snappy,
            "LZO" => CompressionKind::Lzo,
            "LZ4" => CompressionKind::Lz4,
            "ZSTD" => CompressionKind::Zstd,
            "BROTLI" => CompressionKind::Brotli,
            _ => {
                let known = "uncompressed, zlib, snappy, lzo, lz4, zstd, brotli";
                return Err(refused("compression", &self.compression, known));
            }
        };
        let packing = match self.compression_strategy.to_ascii_uppercase().as_str() {
            "SPEED" => Packing::Aligned,
            "COMPRESSION" => Packing::Tight,
            _ => return Err(refused("compression_strategy", &self.compression_strategy, "speed, compression")),
        };
        let bloom_filter_version = match self.bloom_filter_version.as_str() {
            "utf8" => BloomVersion::Utf8,
            "original" => BloomVersion::Original,
            other => return Err(refused("bloom_filter_version", other, "utf8, original")),
        };
        let last_second = match self.last_second.as_str() {
            "refuse" => LastSecond::Refuse,
            "round" => LastSecond::Round,
            other => return Err(refused("last_second", other, "refuse, round")),
        };
        let keys = self.keys.maker()?;
        let mask = |(text, columns): (String, Vec<String>)| {
            let mut parts = text.split(',').map(str::to_owned);
            let name = parts.next().unwrap_or_default();
            Ok((Mask::named(&name, &parts.collect::<Vec<_>>())?, columns))
        };
        let masks = self.masks.into_iter().map(mask).collect::<icefield_orc::Result<_>>()?;
        let encryption = EncryptionOptions { keys, columns: self.encrypt, masks };
        let options = WriterOptions {
            version,
            compression,
            compression_level: self.compression_level.map(|Int(level)| level),
            compression_block_size: self.compression_block_size.map(|Int(bytes)| bytes),
            stripe_size: self.stripe_size.0,
            stripe_rows: self.stripe_rows.map(|Int(rows)| rows),
            row_index_stride: self.row_index_stride.0,
            dictionary_key_size_threshold: self.dictionary_key_size_threshold,
            sorted_dictionaries: self.sorted_dictionaries,
            packing,
            bloom_filter_columns: Vec::new(),
            bloom_filter_fpp: self.bloom_filter_fpp,
            bloom_filter_version,
            block_size: self.block_size.map(|Int(bytes)| bytes),
            block_padding_tolerance: self.padding_tolerance,
            timezone: self.timezone,
            calendar: WriterOptions::default().calendar,
            last_second,
            trusted_texts: false,
            bare_root: false,
            user_metadata: self.metadata,
            encryption: (!encryption.columns.is_empty() || !encryption.masks.is_empty()).then_some(encryption),
        };
        Ok((options, self.bloom_filter_columns))
    }
}

type FileWriter = Writer<BufWriter<Target>>;

/// The state of a writer.
enum State {
    /// Nothing has been written yet.
    New(Box<Beginning>),
    Open(Box<FileWriter>),
    /// Closed or failed.
    Gone,
}

/// The arguments for starting a file, once its columns are known.
struct Beginning {
    place: WhereInput,
    storage: Storage,
    options: WriterOptions,
    blooms: Vec<ColumnInput>,
}

impl WhereInput {
    fn open(self, storage: &Storage) -> Result<BufWriter<Target>> {
        let place = match self {
            Self::Path(path) => Place::Stored(Some(storage.output(&path)?)),
            Self::File(file) => Place::File(file),
        };
        Ok(BufWriter::with_capacity(BUFFER, Target(place)))
    }
}

impl Beginning {
    /// Starts the file; with `use_threads`, several threads encode its columns.
    fn begin(self, schema: &Schema, use_threads: bool) -> Result<Box<FileWriter>> {
        let column = |column: ColumnInput| match column {
            ColumnInput::Name(name) => Ok(name),
            ColumnInput::Index(index) => match usize::try_from(index).ok().and_then(|index| schema.fields().get(index))
            {
                Some(field) => Ok(field.name().clone()),
                None => {
                    let count = schema.fields().len();
                    Err(BorderError::from(InvalidArgumentError::new_err(format!(
                        "column {index} does not exist, the schema has {count}"
                    ))))
                }
            },
        };
        let bloom_filter_columns = self.blooms.into_iter().map(column).collect::<Result<_>>()?;
        let options = WriterOptions { bloom_filter_columns, ..self.options };
        let target = self.place.open(&self.storage)?;
        let mut writer = Box::new(Writer::try_new(target, schema, options)?);
        writer.set_pool(use_threads.then(|| Arc::new(ProcessPool) as _));
        Ok(writer)
    }
}

/// A writer of one ORC file; after an error, or without `close`, nothing of it stays in a storage.
#[pyclass(frozen, name = "OrcWriter", module = "icefield._core")]
pub struct PyOrcWriter {
    state: Held<State>,
    batch_size: usize,
    use_threads: bool,
}

/// Writes the buffered bytes, and returns the destination.
fn unbuffered(target: BufWriter<Target>) -> icefield_orc::Result<Target> {
    target.into_inner().map_err(|error| error.into_error().into())
}

impl PyOrcWriter {
    /// Takes the writer out of its state, and starts it with these columns if needed. Unless it is put back, it is
    /// gone.
    fn take(&self, state: &mut State, schema: &Schema) -> Result<Box<FileWriter>> {
        match std::mem::replace(state, State::Gone) {
            State::New(beginning) => beginning.begin(schema, self.use_threads),
            State::Open(writer) => Ok(writer),
            State::Gone => Err(InvalidArgumentError::new_err("the writer is closed, or has failed").into()),
        }
    }
}

#[pymethods]
impl PyOrcWriter {
    /// Begins a file in a storage, or in a binary file that is open for writing; without ``schema`` its columns are
    /// those of the first rows.
    #[new]
    #[pyo3(signature = (place, options, /, *, schema=None, storage=None))]
    fn py_new(
        py: Python<'_>,
        place: WhereInput,
        options: Named<OptionsInput>,
        schema: Option<SchemaInput>,
        storage: Option<PyRef<'_, PyStorage>>,
    ) -> Result<Self> {
        let Named(options) = options;
        let (batch_size, use_threads) = (options.batch_size.0, options.use_threads);
        if batch_size == 0 {
            return Err(InvalidArgumentError::new_err("the batch size must be positive").into());
        }
        let (options, blooms) = options.options()?;
        let storage = storage.map_or_else(|| Storage::new(Default::default()), |storage| storage.0.clone());
        let beginning = Box::new(Beginning { place, storage, options, blooms });
        let state = match schema {
            Some(schema) => State::Open(detached(py, || beginning.begin(&schema.0, use_threads))??),
            None => State::New(beginning),
        };
        Ok(Self { state: Held::new("writer", state), batch_size, use_threads })
    }

    /// Append rows; after an error the file is discarded.
    fn write(&self, py: Python<'_>, rows: StreamInput) -> Result<()> {
        detached(py, || {
            let mut state = self.state.hold()?;
            let mut writer = self.take(&mut state, &rows.0.schema())?;
            for batch in rows.0 {
                let check = || interrupt::check().map_err(icefield_orc::Error::external);
                writer.write_in_steps(&batch.map_err(from_producer)?, self.batch_size, check)?;
            }
            *state = State::Open(writer);
            Ok(())
        })?
    }

    /// End the stripe, so that the next rows begin another one.
    fn flush(&self, py: Python<'_>) -> Result<()> {
        detached(py, || {
            let mut state = self.state.hold()?;
            if matches!(&*state, State::New(_)) {
                return Ok(());
            }
            let mut writer = self.take(&mut state, &Schema::empty())?;
            writer.flush()?;
            *state = State::Open(writer);
            Ok(())
        })?
    }

    /// Bytes that are buffered for the stripe.
    #[getter]
    fn memory(&self, py: Python<'_>) -> Result<usize> {
        detached(py, || match &*self.state.hold()? {
            State::Open(writer) => Ok(writer.memory()),
            State::New(_) | State::Gone => Ok(0),
        })?
    }

    /// Write the rest of the file, and return its length in bytes and its number of rows.
    fn close(&self, py: Python<'_>) -> Result<(u64, u64)> {
        detached(py, || {
            let writer = self.take(&mut *self.state.hold()?, &Schema::empty())?;
            let (target, file) = writer.finish()?;
            unbuffered(target)?.finish()?;
            Ok((file.length, file.rows))
        })?
    }

    /// Discard the file.
    fn abort(&self, py: Python<'_>) -> Result<()> {
        detached(py, || {
            *self.state.hold()? = State::Gone;
            Ok(())
        })?
    }
}

/// Converts an error of the stream of rows; an exception that Python raised stays the same.
fn from_producer(error: arrow_schema::ArrowError) -> BorderError {
    match error {
        arrow_schema::ArrowError::ExternalError(inner) => match inner.downcast::<PyErr>() {
            Ok(raised) => (*raised).into(),
            Err(other) => InvalidArgumentError::new_err(format!("the rows given: {other}")).into(),
        },
        other => InvalidArgumentError::new_err(format!("the rows given: {other}")).into(),
    }
}

/// Concatenate files without decoding them, and return the length in bytes and the number of rows of the result.
#[pyfunction]
#[pyo3(signature = (inputs, place, /, *, storage=None))]
fn orc_merge(
    py: Python<'_>,
    inputs: Vec<FileInput>,
    place: WhereInput,
    storage: Option<PyRef<'_, PyStorage>>,
) -> Result<(u64, u64)> {
    let storage = storage.map_or_else(|| Storage::new(Default::default()), |storage| storage.0.clone());
    detached(py, || {
        let mut merger = Merger::try_new(place.open(&storage)?)?;
        for (number, input) in inputs.into_iter().enumerate() {
            interrupt::check()?;
            let source = input.open(&storage)?;
            let name = source.path().map_or_else(|| format!("file {number}"), str::to_owned);
            let reader = Reader::open(source).map_err(|error| error.in_file(&name))?;
            merger.add(&name, &reader)?;
        }
        let (target, file) = merger.finish()?;
        unbuffered(target)?.finish()?;
        Ok((file.length, file.rows))
    })?
}
