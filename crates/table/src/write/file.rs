//! One Parquet data file in the making: columns encoded side by side, row groups closed by bytes and rows.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{Field as ArrowField, SchemaRef};
use bytes::Bytes;
use icefield_format::types::Schema;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, TypePtr};
use rayon::prelude::*;

use super::dictionary;
use super::options::WriteOptions;
use super::parquet_schema::parquet_schema;
use crate::error::{Error, Result};
use crate::runtime;
use crate::storage::{Output, Storage};

/// Bytes that are handed to the store at once.
const FLUSH_BYTES: usize = 1 << 20;

/// What all files of one writer have in common.
#[derive(Debug, Clone)]
pub struct FileLayout {
    schema: TypePtr,
    arrow: SchemaRef,
    properties: WriterPropertiesPtr,
    row_group_bytes: usize,
    row_group_rows: usize,
    /// Leaves of each column.
    leaves: Vec<usize>,
    /// Paths in the file of the columns that are one leaf.
    single: Vec<Option<ColumnPath>>,
}

impl FileLayout {
    /// The layout of files of a table schema whose batches come as `arrow`.
    pub fn new(schema: &Schema, arrow: SchemaRef, options: &WriteOptions) -> Result<Self> {
        let root = parquet_schema(schema)?;
        let descriptor = SchemaDescriptor::new(root.clone());
        let mut leaves = vec![0; root.get_fields().len()];
        let mut single = vec![None; root.get_fields().len()];
        for leaf in 0..descriptor.num_columns() {
            let place = descriptor.get_column_root_idx(leaf);
            if let (Some(count), Some(single)) = (leaves.get_mut(place), single.get_mut(place)) {
                let path = descriptor.column(leaf).path().clone();
                *single = (*count == 0 && path.parts().len() == 1).then_some(path);
                *count += 1;
            }
        }
        Ok(Self {
            properties: Arc::new(options.parquet(schema, &descriptor)),
            schema: root,
            arrow,
            row_group_bytes: options.row_group_bytes,
            row_group_rows: options.row_group_rows,
            leaves,
            single,
        })
    }

    /// Properties of a file that begins with these batches: columns for which a dictionary does not pay have none.
    fn properties(&self, first: &[RecordBatch]) -> WriterPropertiesPtr {
        let without = self.single.iter().enumerate().filter_map(|(position, path)| {
            let path = path.as_ref()?;
            let arrays = first.iter().filter_map(|batch| batch.columns().get(position));
            (!dictionary::pays(arrays)).then_some(path)
        });
        let mut without = without.peekable();
        if without.peek().is_none() {
            return self.properties.clone();
        }
        let builder = without.fold(self.properties.as_ref().clone().into_builder(), |builder, path| {
            builder.set_column_dictionary_enabled(path.clone(), false)
        });
        Arc::new(builder.build())
    }
}

/// A finished file.
#[derive(Debug)]
pub struct WrittenFile {
    /// Where it lies.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its footer.
    pub footer: ParquetMetaData,
}

/// A file in the making.
pub struct FileWriter {
    path: String,
    layout: Arc<FileLayout>,
    writer: SerializedFileWriter<Sink>,
    sink: Sink,
    factory: ArrowRowGroupWriterFactory,
    /// Columns of the open row group.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
    groups: usize,
}

impl std::fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWriter").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl FileWriter {
    /// Starts a file that will begin with the batches `first`, which are still to be written.
    pub fn create(storage: &Storage, path: String, layout: Arc<FileLayout>, first: &[RecordBatch]) -> Result<Self> {
        let sink = Sink::new(storage.output(&path)?);
        let writer = SerializedFileWriter::new(sink.clone(), layout.schema.clone(), layout.properties(first))
            .map_err(|error| failed(&path, &sink, &error))?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, layout.arrow.clone());
        Ok(Self { path, layout, writer, sink, factory, columns: Vec::new(), rows: 0, groups: 0 })
    }

    /// Appends batches; `side_by_side` encodes their columns on the pool.
    pub fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        let mut run: Vec<RecordBatch> = Vec::new();
        for batch in batches {
            let mut start = 0;
            while start < batch.num_rows() {
                let length = (batch.num_rows() - start).min(self.layout.row_group_rows - self.rows);
                run.push(batch.slice(start, length));
                start += length;
                self.rows += length;
                if self.rows >= self.layout.row_group_rows {
                    self.encode(&std::mem::take(&mut run), side_by_side)?;
                    self.close_row_group()?;
                }
            }
        }
        self.encode(&run, side_by_side)?;
        if self.encoded() >= self.layout.row_group_bytes { self.close_row_group() } else { Ok(()) }
    }

    /// Encodes batches into the open row group, each column over all of them.
    fn encode(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        if self.columns.is_empty() {
            let columns = self.factory.create_column_writers(self.groups);
            self.columns = columns.map_err(|error| failed(&self.path, &self.sink, &error))?;
        }
        let mut rest = self.columns.as_mut_slice();
        let mut tasks: Vec<(usize, &ArrowField, &mut [ArrowColumnWriter])> = Vec::new();
        for (position, (field, leaves)) in self.layout.arrow.fields().iter().zip(&self.layout.leaves).enumerate() {
            let (writers, others) = rest.split_at_mut_checked(*leaves).unwrap_or_default();
            tasks.push((position, field, writers));
            rest = others;
        }
        let encode = |(position, field, writers): (usize, &ArrowField, &mut [ArrowColumnWriter])| {
            for array in batches.iter().filter_map(|batch| batch.columns().get(position)) {
                let leaves = compute_leaves(field, array)?;
                leaves.iter().zip(writers.iter_mut()).try_for_each(|(leaf, writer)| writer.write(leaf))?;
            }
            Ok(())
        };
        let done = match side_by_side && tasks.len() > 1 {
            true => runtime::pool()?.install(|| tasks.into_par_iter().with_max_len(1).try_for_each(encode)),
            false => tasks.into_iter().try_for_each(encode),
        };
        done.map_err(|error| failed(&self.path, &self.sink, &error))
    }

    /// Ends the open row group, if there is one.
    pub fn close_row_group(&mut self) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let columns = std::mem::take(&mut self.columns);
        let pool = runtime::pool()?;
        let written = (|| {
            // Closing a column compresses its last page and its dictionary.
            let close = || columns.into_par_iter().with_max_len(1).map(ArrowColumnWriter::close).collect::<Vec<_>>();
            let chunks: Vec<_> = pool.install(close).into_iter().collect::<std::result::Result<_, _>>()?;
            let mut group = self.writer.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close().map(|_| ())
        })();
        (self.rows, self.groups) = (0, self.groups + 1);
        written.map_err(|error| failed(&self.path, &self.sink, &error))
    }

    /// Bytes of the open row group as they would be encoded now.
    pub fn encoded(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// Memory that the open row group holds.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::memory_size).sum()
    }

    /// Bytes that the file would have if it were closed now.
    pub fn size(&self) -> u64 {
        (self.writer.bytes_written() + self.encoded()) as u64
    }

    /// Closes the file, which appears under its name.
    pub fn finish(mut self) -> Result<WrittenFile> {
        self.close_row_group()?;
        let footer = self.writer.finish().map_err(|error| failed(&self.path, &self.sink, &error))?;
        let bytes = self.sink.finish()?;
        Ok(WrittenFile { path: self.path, bytes, footer })
    }

    /// Gives up: nothing stays behind.
    pub fn abort(self) {
        self.sink.abort();
    }
}

/// The error of a write: the store's own where it failed, else the encoder's.
fn failed(path: &str, sink: &Sink, error: &ParquetError) -> Error {
    sink.failure().unwrap_or_else(|| Error::column("(data)", format!("cannot be written to {path}: {error}")))
}

/// An output as a `Write`; bytes are gathered, and a failure of the store is kept with its type.
#[derive(Clone)]
struct Sink(Arc<Mutex<SinkState>>);

struct SinkState {
    output: Option<Box<dyn Output>>,
    pending: Vec<u8>,
    bytes: u64,
    failure: Option<Error>,
}

impl Sink {
    fn new(output: Box<dyn Output>) -> Self {
        Self(Arc::new(Mutex::new(SinkState { output: Some(output), pending: Vec::new(), bytes: 0, failure: None })))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> Option<Error> {
        self.state().failure.take()
    }

    fn finish(&self) -> Result<u64> {
        let mut state = self.state();
        state.push()?;
        let output = state.output.take().ok_or_else(|| Error::Internal("a file closed twice".into()))?;
        output.finish()?;
        Ok(state.bytes)
    }

    fn abort(&self) {
        if let Some(output) = self.state().output.take() {
            output.abort();
        }
    }
}

impl SinkState {
    fn push(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.pending));
        let output = self.output.as_mut().ok_or_else(|| Error::Internal("a write to a closed file".into()))?;
        output.write(bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        state.pending.extend_from_slice(buffer);
        state.bytes += buffer.len() as u64;
        if state.pending.len() >= FLUSH_BYTES
            && let Err(error) = state.push()
        {
            let shown = error.to_string();
            state.failure = Some(error);
            return Err(io::Error::other(shown));
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
