//! Writes a file.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Schema};

use super::column::{ColumnWriter, Plan, can_bloom};
use super::encryption::{EncryptedStripe, Encryptor};
use super::options::WriterOptions;
use super::sink::Sink;
use super::stream::{Context, compress_all};
use super::stripe::{StreamBytes, StripeContent, StripeWriter};
use super::tail::{MAGIC, Tail};
use super::texts;
use crate::compress::Compressor;
use crate::error::{Error, Result};
use crate::origin::Origin;
use crate::pool::Pool;
use crate::predicate::BloomBuilder;
use crate::proto::{ColumnStatistics, Message, Stream, StreamKind, StripeFooter, StripeInformation, StripeStatistics};
use crate::types::{Kind, TypeDescription};
use crate::zone::Zone;

/// Maximum rows encoded at a time.
const MAX_STEP: usize = 10_000;
/// Minimum rows encoded at a time.
const MIN_STEP: usize = 64;
/// Minimum rows of a batch that are encoded by several threads.
const MANY_ROWS: usize = 1 << 10;

/// Writes one file, batch by batch.
///
/// After an error the file is incomplete, and every further call returns an error. If the writer is dropped before
/// [`Writer::finish`], the file is incomplete too.
///
/// Source: the whole "ORC Specification v2".
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    options: WriterOptions,
    arrow: Vec<DataType>,
    schema: TypeDescription,
    root: Box<dyn ColumnWriter>,
    context: Context,
    /// The number of bytes written to the sink.
    offset: u64,
    /// The number of rows in the current stripe, and in its current row group.
    stripe_rows: u64,
    group_rows: u64,
    stripes: Vec<StripeInformation>,
    stripe_statistics: Vec<StripeStatistics>,
    user_metadata: Vec<(String, Vec<u8>)>,
    writes_zone: bool,
    encryption: Option<Encryptor>,
    /// The size at which the current stripe is written; padding changes it.
    stripe_limit: usize,
    failed: bool,
}

/// What a finished file contains.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFile {
    /// Length of the file in bytes.
    pub length: u64,
    /// Number of rows.
    pub rows: u64,
    /// The positions of the stripes, in order.
    pub stripes: Vec<WrittenStripe>,
    /// The types, with column ids and attributes.
    pub schema: TypeDescription,
    /// Statistics of the whole file by column id; those of encrypted columns are of the masked values.
    pub statistics: Vec<ColumnStatistics>,
    /// Statistics of each stripe by column id, also of the masked values.
    pub stripe_statistics: Vec<StripeStatistics>,
}

/// The position of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenStripe {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Number of rows.
    pub rows: u64,
}

impl<S: Sink> Writer<S> {
    /// Creates a writer for batches with this schema, and writes the header to the sink.
    ///
    /// Metadata of a field becomes attributes of its type (such as `iceberg.id`), except for
    /// [`TYPE_KEY`](crate::TYPE_KEY), whose value is the exact type: `char(7)`, `varchar(20)`, `geometry(OGC:CRS84)`.
    ///
    /// # Errors
    ///
    /// Arrow types without an ORC type, invalid options, unknown time zones and columns; errors of the sink and of the
    /// key provider.
    pub fn try_new(mut sink: S, schema: &Schema, options: WriterOptions) -> Result<Self> {
        options.check()?;
        let mut types = types(schema, options.bare_root)?;
        let own = options.encryption.as_ref();
        let mut encryption = own.map(|own| Encryptor::new(own, &mut types)).transpose()?;
        let walk = types.walk();
        let has = |kind: &Kind| walk.iter().any(|node| node.kind == *kind);
        let writes_zone = has(&Kind::Timestamp) || has(&Kind::TimestampInstant);
        let plan = Plan {
            options: &options,
            zone: Zone::named(&options.timezone)?,
            bloom_columns: bloom_columns(&types, &options.bloom_filter_columns)?,
            bloom: BloomBuilder::new(u64::from(options.row_index_stride), options.bloom_filter_fpp)?,
            encrypted: encryption.as_ref().map(Encryptor::roots).unwrap_or_default(),
        };
        let root = plan.writer(&types)?;
        for (variant, (column, _)) in plan.encrypted.iter().enumerate() {
            // Set the statistics of no values, because a file without rows has no stripe that would set them.
            let mut statistics = Vec::new();
            if let Some(node) = types.find(*column) {
                plan.plain_writer(node)?.file_statistics(&mut statistics);
            }
            if let Some(encryption) = &mut encryption {
                encryption.set_statistics(variant, statistics);
            }
        }
        let block = options.block(walk.len());
        let compressor = Compressor::new(options.compression, options.compression_level, block)?;
        sink.append(MAGIC)?;
        Ok(Self {
            sink,
            arrow: schema.fields().iter().map(|field| field.data_type().clone()).collect(),
            root,
            context: Context::new(compressor),
            offset: MAGIC.len() as u64,
            stripe_rows: 0,
            group_rows: 0,
            stripes: Vec::new(),
            stripe_statistics: Vec::new(),
            user_metadata: options.user_metadata.clone(),
            writes_zone,
            stripe_limit: options.stripe_size,
            schema: types,
            options,
            encryption,
            failed: false,
        })
    }

    /// The types of the file.
    pub fn schema(&self) -> &TypeDescription {
        &self.schema
    }

    /// Number of rows written so far.
    pub fn rows(&self) -> u64 {
        self.stripes.iter().filter_map(|stripe| stripe.number_of_rows).sum::<u64>() + self.stripe_rows
    }

    /// The number of bytes written plus those held for the current stripe: roughly the length of the file if it ended
    /// now.
    pub fn estimated_length(&self) -> u64 {
        self.offset + self.memory() as u64
    }

    /// Bytes held in memory for the current stripe.
    pub fn memory(&self) -> usize {
        self.root.memory()
    }

    /// From now on, encodes columns in parallel on this pool, or one after the other with `None`. The bytes of the file
    /// do not depend on it.
    pub fn set_pool(&mut self, pool: Option<Arc<dyn Pool>>) {
        self.context.pool = pool;
    }

    /// Writes the rows of a batch. Full stripes are written to the sink.
    ///
    /// # Errors
    ///
    /// A batch with another schema, values that ORC cannot hold, errors of the sink.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.guarded(|this| this.write_batch(batch))
    }

    /// Writes the rows of a batch, `step` (at least one) at a time, and calls `check` before each step, whose error
    /// ends the call. The calling thread alone encodes a batch of few rows.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`], and the error of `check`, after which the file is incomplete.
    pub fn write_in_steps(
        &mut self,
        batch: &RecordBatch,
        step: usize,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let lent = if batch.num_rows() < MANY_ROWS { self.context.pool.take() } else { None };
        let written = self.guarded(|this| {
            let mut at = 0;
            while at < batch.num_rows() {
                check()?;
                let count = step.max(1).min(batch.num_rows() - at);
                this.write_batch(&batch.slice(at, count))?;
                at += count;
            }
            Ok(())
        });
        self.context.pool = self.context.pool.take().or(lent);
        written
    }

    /// Ends the current stripe and writes it to the sink.
    ///
    /// # Errors
    ///
    /// Errors of the sink.
    pub fn flush(&mut self) -> Result<()> {
        self.guarded(Self::write_stripe)
    }

    /// Writes the last stripe and the tail, and returns the sink.
    ///
    /// # Errors
    ///
    /// Errors of the sink.
    pub fn finish(mut self) -> Result<(S, WrittenFile)> {
        self.guarded(Self::write_stripe)?;
        let mut statistics = Vec::new();
        self.root.file_statistics(&mut statistics);
        let written = |stripe: &StripeInformation| {
            let lengths = [stripe.index_length, stripe.data_length, stripe.footer_length];
            WrittenStripe {
                offset: stripe.offset.unwrap_or(0),
                length: lengths.iter().flatten().sum(),
                rows: stripe.number_of_rows.unwrap_or(0),
            }
        };
        let stripes: Vec<_> = self.stripes.iter().map(written).collect();
        let rows = self.rows();
        let compressor = &mut self.context.compressor;
        let encryption = self.encryption.map(|own| own.tail(self.stripes.len(), compressor)).transpose()?;
        let tail = Tail {
            encryption,
            schema: &self.schema,
            options: &self.options,
            origin: Origin { calendar: Some(self.options.calendar), ..Origin::default() },
            content_length: self.offset,
            stripes: self.stripes,
            stripe_statistics: self.stripe_statistics.clone(),
            statistics: statistics.clone(),
            user_metadata: &self.user_metadata,
        };
        let tail = tail.encode(&mut self.context.compressor)?;
        self.sink.append(&tail)?;
        let file = WrittenFile {
            length: self.offset + tail.len() as u64,
            rows,
            stripes,
            schema: self.schema,
            statistics,
            stripe_statistics: self.stripe_statistics,
        };
        Ok((self.sink, file))
    }

    fn guarded(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.failed {
            return Err(Error::invalid("this writer has failed: its file is incomplete"));
        }
        self.failed = true;
        work(self)?;
        self.failed = false;
        Ok(())
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema_ref();
        let same = |(own, field): (&DataType, &Arc<arrow_schema::Field>)| own.equals_datatype(field.data_type());
        if self.arrow.len() != schema.fields().len() || !self.arrow.iter().zip(schema.fields()).all(same) {
            return Err(Error::invalid(format!("expected a batch of {}, got {schema}", self.schema)));
        }
        if !self.options.trusted_texts {
            texts::check(batch, self.rows())?;
        }
        let root: ArrayRef = match batch.columns() {
            [only] if self.options.bare_root => Arc::clone(only),
            columns => {
                let (fields, columns) = (schema.fields().clone(), columns.to_vec());
                Arc::new(StructArray::try_new_with_length(fields, columns, None, batch.num_rows())?)
            }
        };
        let step = self.step(&root);
        let mut at = 0;
        while at < root.len() {
            at += self.write_rows(&root, at, step)?;
        }
        Ok(())
    }

    /// The number of rows to write between two checks of the memory: few if rows are wide.
    fn step(&self, root: &ArrayRef) -> usize {
        let data = root.to_data();
        let bytes = data.get_slice_memory_size().unwrap_or_else(|_| root.get_array_memory_size());
        let row = (bytes / root.len().max(1)).max(1);
        (self.options.stripe_size / 8 / row).clamp(MIN_STEP, MAX_STEP)
    }

    /// Writes up to `step` rows, all in the current row group; returns their number.
    fn write_rows(&mut self, root: &ArrayRef, at: usize, step: usize) -> Result<usize> {
        let stride = u64::from(self.options.row_index_stride);
        let mut count = step.min(root.len() - at) as u64;
        if stride > 0 {
            count = count.min(stride - self.group_rows);
        }
        if let Some(most) = self.options.stripe_rows {
            count = count.min(most - self.stripe_rows);
        }
        if self.group_rows == 0 {
            self.root.begin_group(&self.context);
        }
        self.root.write(&root.slice(at, count as usize), &mut self.context)?;
        self.group_rows += count;
        self.stripe_rows += count;
        if self.group_rows == stride {
            self.root.end_group(&mut self.context)?;
            self.group_rows = 0;
        }
        let full = self.options.stripe_rows.is_some_and(|most| self.stripe_rows >= most);
        if full || self.memory() >= self.stripe_limit {
            self.write_stripe()?;
        }
        Ok(count as usize)
    }

    fn write_stripe(&mut self) -> Result<()> {
        if self.stripe_rows == 0 {
            return Ok(());
        }
        if self.group_rows > 0 {
            self.root.end_group(&mut self.context)?;
        }
        let mut stripe = StripeWriter::new(&mut self.context);
        self.root.finish(&mut stripe)?;
        let StripeContent { index, data, encodings, statistics, variants } = stripe.content;
        let length = |streams: &[StreamBytes]| -> u64 { streams.iter().map(|stream| stream.bytes.len() as u64).sum() };
        let id = self.stripes.len() as u64 + 1;
        let encrypted = self.encryption.as_mut().map(|encryption| encryption.stripe(variants, id)).transpose()?;
        let area = |kind: StreamKind, streams: fn(&EncryptedStripe) -> &[StreamBytes]| {
            let bytes = encrypted.as_ref().map(|encrypted| length(streams(encrypted)));
            bytes.map(|length| Stream { kind: Some(kind), column: None, length: Some(length) })
        };
        let mut streams: Vec<_> = index.iter().map(StreamBytes::message).collect();
        streams.extend(area(StreamKind::EncryptedIndex, |encrypted| &encrypted.index));
        streams.extend(data.iter().map(StreamBytes::message));
        streams.extend(area(StreamKind::EncryptedData, |encrypted| &encrypted.data));
        let encrypted = encrypted.unwrap_or_default();
        let footer = StripeFooter {
            streams,
            columns: encodings,
            writer_timezone: self.writes_zone.then(|| self.options.timezone.clone()),
            encryption: encrypted.footer,
        };
        let footer = compress_all(footer.encode(), &mut self.context.compressor)?;
        let index_length = length(&index) + length(&encrypted.index);
        let data_length = length(&data) + length(&encrypted.data);
        self.pad(index_length + data_length + footer.len() as u64)?;
        self.stripes.push(StripeInformation {
            offset: Some(self.offset),
            index_length: Some(index_length),
            data_length: Some(data_length),
            footer_length: Some(footer.len() as u64),
            number_of_rows: Some(self.stripe_rows),
            // Only the first stripe has these: readers count on from its id, and use its keys for all stripes.
            encrypt_stripe_id: self.encryption.as_ref().filter(|_| id == 1).map(|_| id),
            encrypted_local_keys: match &self.encryption {
                Some(encryption) if id == 1 => encryption.wrapped_keys(),
                _ => Vec::new(),
            },
        });
        self.stripe_statistics.push(StripeStatistics { col_stats: statistics });
        for stream in index.iter().chain(&encrypted.index).chain(&data).chain(&encrypted.data) {
            self.append(&stream.bytes)?;
        }
        self.append(&footer)?;
        (self.stripe_rows, self.group_rows) = (0, 0);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.append(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Keeps a stripe of this many bytes from crossing the end of a block. If little of the block is left, the rest is
    /// filled with zeros. Otherwise the limit of the next stripe is set to what this one leaves.
    fn pad(&mut self, stripe: u64) -> Result<()> {
        let Some(block) = self.options.block_size else { return Ok(()) };
        let wanted = self.options.stripe_size as u64;
        let left = block - self.offset % block;
        if left < stripe && left as f64 <= self.options.block_padding_tolerance * wanted as f64 {
            let zeros = vec![0; left as usize];
            self.append(&zeros)?;
        }
        let after = block - (self.offset + stripe) % block;
        let little = after as f64 <= self.options.block_padding_tolerance * wanted as f64;
        self.stripe_limit = if little { wanted } else { wanted.min(after) } as usize;
        Ok(())
    }
}

/// Converts a schema to a type tree.
fn types(schema: &Schema, bare_root: bool) -> Result<TypeDescription> {
    if !bare_root {
        return TypeDescription::from_arrow(schema);
    }
    let [only] = schema.fields().as_ref() else {
        return Err(Error::invalid(format!(
            "a root that is not a struct has one field, got {}",
            schema.fields().len()
        )));
    };
    let mut root = TypeDescription::from_arrow_field(only)?;
    root.number();
    Ok(root)
}

/// The ids of the columns at these paths and below them that can have a Bloom filter.
fn bloom_columns(types: &TypeDescription, paths: &[String]) -> Result<HashSet<u32>> {
    let mut found = HashSet::new();
    for path in paths {
        let node = types.find_path(path).filter(|_| !path.is_empty());
        let node = node.ok_or_else(|| Error::invalid(format!("column {path} for a bloom filter does not exist")))?;
        found.extend(node.walk().into_iter().filter(|node| can_bloom(&node.kind)).map(|node| node.column));
    }
    Ok(found)
}
