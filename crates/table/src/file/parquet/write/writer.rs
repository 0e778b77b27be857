//! Writes Parquet data files ("Appendix A: Parquet"): columns are encoded in parallel, and row groups closed by bytes
//! and rows.
//!
//! A column writer takes about 100 KiB for its codec contexts and buffers, however few rows it has. So with very many
//! columns, rows are buffered and encoded some columns at a time when their row group ends.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use icefield_format::encryption::KeyMetadata;
use icefield_format::types::{Schema, Type};
use icefield_format::value::variant::shape::Fit;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type as ParquetType, TypePtr};
use rayon::prelude::*;

use super::options::ParquetOptions;
use super::schema::{Shredded, parquet_schema};
use super::{dictionary, shredding, uuids};
use crate::arrow::size::bytes_of;
use crate::error::{Error, Result};
use crate::file::modes::Modes;
use crate::file::parquet::metrics;
use crate::file::parquet::variant::Fault;
use crate::file::parquet::variant::shred::Shredding;
use crate::file::shapes::Shapes;
use crate::file::sink::Sink;
use crate::file::{FileWriter, WrittenFile, is_stored};
use crate::runtime;
use crate::storage::{FileKey, Storage};

/// Shared by all Parquet files of one writer.
#[derive(Debug)]
pub struct ParquetLayout {
    table: Arc<Schema>,
    modes: Modes,
    options: ParquetOptions,
    schema: TypePtr,
    /// The columns of the file.
    arrow: SchemaRef,
    /// The columns of the batches, whose variants are whole.
    given: SchemaRef,
    /// What the columns are shredded as.
    shredded: Vec<Option<Shredding>>,
    /// Columns of variants that are shredded by their first rows.
    inferred: Vec<(usize, i32)>,
    properties: WriterPropertiesPtr,
    row_group_bytes: usize,
    row_group_rows: usize,
    /// Number of leaves of each column.
    leaves: Vec<usize>,
    /// Paths in the file of the single-leaf columns.
    single: Vec<Option<ColumnPath>>,
    /// Whether rows are buffered because there are very many columns.
    gathers: bool,
}

/// Maximum number of pages of a column in a row group of an encrypted file: each is bound to its number, an `i16`.
const MOST_PAGES: usize = i16::MAX as usize;
/// Maximum number of leaves that are encoded as rows arrive.
const MOST_OPEN: usize = 1_000;
/// Leaves of buffered rows that a thread encodes at a time, if there are enough.
const LEAVES_AT_ONCE: usize = 32;

impl ParquetLayout {
    /// The layout of files with a table schema whose batches arrive as `given`.
    pub fn new(schema: &Arc<Schema>, given: SchemaRef, options: &ParquetOptions, modes: Modes) -> Result<Self> {
        let shapes = shredding::given(schema, options)?;
        let variants = schema.fields().iter().filter(|field| is_stored(field)).enumerate();
        let variants = variants.filter(|(_, field)| field.ty == Type::Variant && !shapes.contains_key(&field.id));
        let inferred = match options.inferring_rows {
            Some(_) => variants.map(|(position, field)| (position, field.id)).collect(),
            None => Vec::new(),
        };
        Self::shredded(schema, given, options, modes, &shapes, inferred)
    }

    /// The layout of a file whose variants are shredded.
    fn shredded(
        schema: &Arc<Schema>,
        given: SchemaRef,
        options: &ParquetOptions,
        modes: Modes,
        shapes: &Shredded,
        inferred: Vec<(usize, i32)>,
    ) -> Result<Self> {
        let root = parquet_schema(schema, shapes)?;
        let stored = schema.fields().iter().filter(|field| is_stored(field));
        let shredded: Vec<Option<Shredding>> = stored.map(|field| shapes.get(&field.id).cloned()).collect();
        let field = |(field, shredding): (&FieldRef, &Option<Shredding>)| match shredding {
            Some(shredding) => Arc::new(field.as_ref().clone().with_data_type(DataType::Struct(shredding.parts()))),
            None => field.clone(),
        };
        let fields: Fields = given.fields().iter().zip(&shredded).map(field).collect();
        let arrow = Arc::new(ArrowSchema::new(fields));
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
            table: schema.clone(),
            modes,
            properties: Arc::new(options.parquet(schema, &descriptor)),
            options: options.clone(),
            schema: root,
            arrow,
            given,
            shredded,
            inferred,
            row_group_bytes: options.row_group_bytes,
            row_group_rows: options.row_group_rows,
            gathers: descriptor.num_columns() > MOST_OPEN,
            leaves,
            single,
        })
    }

    /// Rows of a file that have to be known before it is created; `None` if all of its columns are known.
    pub(super) fn awaited_rows(&self) -> Option<usize> {
        self.options.inferring_rows.filter(|_| !self.inferred.is_empty())
    }

    /// The layout of a file that begins with these batches: its variants are shredded as the first rows are.
    pub(super) fn of_rows(self: &Arc<Self>, first: &[RecordBatch], rows: usize) -> Result<Arc<Self>> {
        let mut shapes = shredding::given(&self.table, &self.options)?;
        for (position, id) in &self.inferred {
            let name = self.given.fields().get(*position).map_or("", |field| field.name());
            let columns = first.iter().filter_map(|batch| batch.columns().get(*position));
            if let Some(shape) = shredding::inferred(columns, rows).map_err(|error| error.in_column(name))? {
                shapes.insert(*id, Shredding { shape, fit: Fit::Exact });
            }
        }
        let (given, modes) = (self.given.clone(), self.modes.clone());
        Self::shredded(&self.table, given, &self.options, modes, &shapes, Vec::new()).map(Arc::new)
    }

    /// Properties of a file that begins with these batches: columns for which a dictionary does not pay off have
    /// none.
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

/// A Parquet file being written.
pub struct ParquetWriter {
    path: String,
    layout: Arc<ParquetLayout>,
    writer: SerializedFileWriter<Sink>,
    sink: Sink,
    factory: ArrowRowGroupWriterFactory,
    /// Columns of the open row group.
    columns: Vec<ArrowColumnWriter>,
    /// Whether rows are buffered.
    gathers: bool,
    /// Buffered rows of the open row group, and their bytes in memory.
    gathered: Vec<RecordBatch>,
    gathered_bytes: usize,
    rows: usize,
    groups: usize,
    shapes: Shapes,
}

impl std::fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetWriter").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl ParquetWriter {
    /// Starts a file that will begin with the batches `first`, which are not written yet.
    pub fn create(storage: &Storage, path: String, layout: Arc<ParquetLayout>, first: &[RecordBatch]) -> Result<Self> {
        let mut properties = layout.properties(first);
        let key = match storage.file_key() {
            Some(FileKey::OfFormat(key)) => Some(key),
            _ => None,
        };
        if let Some(key) = key {
            properties =
                encrypted(&properties, key, &layout).map_err(|error| Error::invalid(format!("{path}: {error}")))?;
        }
        let sink = Sink::new(storage.output(&path)?);
        let writer = SerializedFileWriter::new(sink.clone(), layout.schema.clone(), properties)
            .map_err(|error| failed(&path, &sink, &error))?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, layout.arrow.clone());
        let shapes = Shapes::new(&layout.table, &layout.modes);
        // Each column is bound to its place in the file, which the library knows only if it opens all of them.
        let gathers = layout.gathers && key.is_none();
        Ok(Self {
            path,
            gathers,
            layout,
            writer,
            sink,
            factory,
            columns: Vec::new(),
            gathered: Vec::new(),
            gathered_bytes: 0,
            rows: 0,
            groups: 0,
            shapes,
        })
    }

    /// Encodes batches into the open row group, column by column.
    fn encode(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        if self.gathers {
            self.gathered_bytes += batches.iter().map(bytes_of).sum::<usize>();
            self.gathered.extend_from_slice(batches);
            return Ok(());
        }
        if self.columns.is_empty() {
            let columns = self.factory.create_column_writers(self.groups);
            self.columns = columns.map_err(|error| failed(&self.path, &self.sink, &error))?;
        }
        let tasks = self.layout.columns(0..self.layout.leaves.len(), &mut self.columns);
        let encode = |column: Column<'_>| column.encode(batches);
        let done = match side_by_side && tasks.len() > 1 {
            true => runtime::pool()?.install(|| tasks.into_par_iter().with_max_len(1).try_for_each(encode)),
            false => tasks.into_iter().try_for_each(encode),
        };
        done.map_err(|error| failed(&self.path, &self.sink, &error))
    }

    /// Encoded bytes of the open row group so far; in-memory bytes for buffered rows.
    fn encoded(&self) -> usize {
        self.gathered_bytes + self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum::<usize>()
    }

    /// Encodes and closes the columns of buffered rows, some at a time.
    fn encode_gathered(&mut self) -> Result<Vec<ArrowColumnChunk>> {
        let rows = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        let (layout, properties, group) = (&self.layout, self.writer.properties(), self.groups);
        let encode = |columns: Range<usize>| {
            let mut writers = layout.some_columns(&columns, properties)?.create_column_writers(group)?;
            layout.columns(columns, &mut writers).into_iter().try_for_each(|column| column.encode(&rows))?;
            writers.into_iter().map(ArrowColumnWriter::close).collect::<std::result::Result<Vec<_>, ParquetError>>()
        };
        let encoded: Vec<_> = runtime::pool()?
            .install(|| layout.shares().into_par_iter().with_max_len(1).map(encode).collect::<Vec<_>>());
        let chunks = encoded.into_iter().collect::<std::result::Result<Vec<_>, _>>();
        Ok(chunks.map_err(|error| failed(&self.path, &self.sink, &error))?.into_iter().flatten().collect())
    }

    /// Closes the columns of the open row group.
    fn encode_open(&mut self) -> Result<Vec<ArrowColumnChunk>> {
        let columns = std::mem::take(&mut self.columns);
        // Closing a column compresses its last page and its dictionary.
        let close = || columns.into_par_iter().with_max_len(1).map(ArrowColumnWriter::close).collect::<Vec<_>>();
        let chunks = runtime::pool()?.install(close).into_iter().collect::<std::result::Result<_, _>>();
        chunks.map_err(|error| failed(&self.path, &self.sink, &error))
    }
}

/// A table column in a file, and its leaves.
struct Column<'a> {
    position: usize,
    field: &'a ArrowField,
    shredding: Option<&'a Shredding>,
    writers: &'a mut [ArrowColumnWriter],
}

impl Column<'_> {
    fn encode(self, batches: &[RecordBatch]) -> std::result::Result<(), ParquetError> {
        for array in batches.iter().filter_map(|batch| batch.columns().get(self.position)) {
            let shredded = self.shredding.map(|shredding| self.shred(shredding, array)).transpose()?;
            let leaves = compute_leaves(self.field, shredded.as_ref().unwrap_or(array))?;
            leaves.iter().zip(self.writers.iter_mut()).try_for_each(|(leaf, writer)| writer.write(leaf))?;
        }
        Ok(())
    }

    fn shred(&self, shredding: &Shredding, array: &ArrayRef) -> std::result::Result<ArrayRef, ParquetError> {
        let shredded = shredding.shred(array);
        let fault = |fault: Fault| {
            let message = format!("variant {} of a batch: {}", fault.row, fault.message);
            ParquetError::External(Box::new(BadVariant { column: self.field.name().clone(), message }))
        };
        shredded.map(|array| Arc::new(array) as ArrayRef).map_err(fault)
    }
}

/// A variant that cannot be shredded, as an error of the encoder.
#[derive(Debug)]
struct BadVariant {
    column: String,
    message: String,
}

impl std::fmt::Display for BadVariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadVariant {}

impl ParquetLayout {
    /// Pairs columns with their writers.
    fn columns<'a>(&'a self, columns: Range<usize>, writers: &'a mut [ArrowColumnWriter]) -> Vec<Column<'a>> {
        let mut rest = writers;
        let all = self.arrow.fields().iter().zip(&self.leaves).zip(&self.shredded).enumerate();
        let some = all.skip(columns.start).take(columns.len());
        let column =
            |(position, ((field, leaves), shredding)): (usize, ((&'a FieldRef, &usize), &'a Option<Shredding>))| {
                let (writers, others) = std::mem::take(&mut rest).split_at_mut_checked(*leaves).unwrap_or_default();
                rest = others;
                Column { position, field, shredding: shredding.as_ref(), writers }
            };
        some.map(column).collect()
    }

    /// Splits the columns into shares that are encoded one after the other.
    fn shares(&self) -> Vec<Range<usize>> {
        let (mut shares, mut start, mut leaves) = (Vec::new(), 0, 0);
        for (column, of_column) in self.leaves.iter().enumerate() {
            leaves += of_column;
            if leaves >= LEAVES_AT_ONCE || column + 1 == self.leaves.len() {
                shares.push(start..column + 1);
                (start, leaves) = (column + 1, 0);
            }
        }
        shares
    }

    /// A factory for the writers of some columns; the file's own factory makes writers for all columns.
    fn some_columns(
        &self,
        columns: &Range<usize>,
        properties: &WriterPropertiesPtr,
    ) -> std::result::Result<ArrowRowGroupWriterFactory, ParquetError> {
        let fields = self.schema.get_fields().get(columns.clone()).unwrap_or_default().to_vec();
        let root = ParquetType::group_type_builder(self.schema.name()).with_fields(fields).build()?;
        let arrow = self.arrow.fields().iter().skip(columns.start).take(columns.len()).cloned().collect::<Fields>();
        let nowhere = SerializedFileWriter::new(std::io::sink(), Arc::new(root), properties.clone())?;
        Ok(ArrowRowGroupWriterFactory::new(&nowhere, Arc::new(ArrowSchema::new(arrow))))
    }
}

impl FileWriter for ParquetWriter {
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        self.shapes.add(batches);
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
                    self.close_group()?;
                }
            }
        }
        self.encode(&run, side_by_side)?;
        if self.encoded() >= self.layout.row_group_bytes { self.close_group() } else { Ok(()) }
    }

    fn close_group(&mut self) -> Result<()> {
        let chunks = match (self.columns.is_empty(), self.gathered.is_empty()) {
            (true, true) => return Ok(()),
            (true, false) => self.encode_gathered()?,
            (false, _) => self.encode_open()?,
        };
        let written = (|| {
            let mut group = self.writer.next_row_group()?;
            for mut chunk in chunks {
                uuids::keep_common_bounds(&mut chunk)?;
                chunk.append_to_row_group(&mut group)?;
            }
            group.close().map(|_| ())
        })();
        (self.rows, self.groups) = (0, self.groups + 1);
        written.map_err(|error| failed(&self.path, &self.sink, &error))
    }

    fn memory(&self) -> usize {
        self.gathered_bytes + self.columns.iter().map(ArrowColumnWriter::memory_size).sum::<usize>()
    }

    fn size(&self) -> u64 {
        (self.writer.bytes_written() + self.encoded()) as u64
    }

    fn finish(mut self: Box<Self>) -> Result<WrittenFile> {
        self.close_group()?;
        let footer = self.writer.finish().map_err(|error| failed(&self.path, &self.sink, &error))?;
        let mut metrics =
            metrics::from_footer(&footer, self.layout.arrow.fields(), &self.layout.table, &self.layout.modes)?;
        self.shapes.finish(&mut metrics);
        let bytes = self.sink.finish()?;
        Ok(WrittenFile { path: self.path, bytes, metrics, key_metadata: None })
    }

    fn abort(self: Box<Self>) {
        self.sink.abort();
    }
}

/// Properties that encrypt the footer and all columns by the key of the file, as the Java library does. Without Bloom
/// filters, which the library would store unencrypted.
fn encrypted(
    properties: &WriterProperties,
    key: &KeyMetadata,
    layout: &ParquetLayout,
) -> Result<WriterPropertiesPtr, ParquetError> {
    let file = FileEncryptionProperties::builder(key.key.clone());
    let file = file.with_aad_prefix(key.aad_prefix.clone()).with_aad_prefix_storage(false).build()?;
    // So large that neither rows nor bytes make more pages of a row group than can be numbered, even together.
    let page_rows = layout.row_group_rows.div_ceil(MOST_PAGES / 2).max(properties.data_page_row_count_limit());
    let page_bytes = layout.row_group_bytes.div_ceil(MOST_PAGES / 2).max(properties.data_page_size_limit());
    let mut builder = properties.clone().into_builder().set_bloom_filter_enabled(false);
    builder = builder.set_data_page_row_count_limit(page_rows).set_data_page_size_limit(page_bytes);
    for column in SchemaDescriptor::new(layout.schema.clone()).columns() {
        if properties.bloom_filter_properties(column.path()).is_some() {
            builder = builder.set_column_bloom_filter_enabled(column.path().clone(), false);
        }
    }
    Ok(Arc::new(builder.with_file_encryption_properties(file).build()))
}

/// The error of a write: the store's own error if it failed, otherwise the encoder's.
fn failed(path: &str, sink: &Sink, error: &ParquetError) -> Error {
    if let Some(failure) = sink.failure() {
        return failure;
    }
    match error {
        ParquetError::External(inner) if let Some(bad) = inner.downcast_ref::<BadVariant>() => {
            Error::column(bad.column.clone(), bad.message.clone())
        }
        _ => Error::column("(data)", format!("cannot be written to {path}: {error}")),
    }
}
