//! The walk over the blocks of a manifest: bytes in, columns out, each byte seen once.
//!
//! Partition tuples are told apart by their bytes: a tuple that was met before is neither kept again nor asked about again.

use std::sync::Arc;

use arrow_array::UInt32Array;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::DataType;
use hashbrown::HashMap;

use crate::avro::{Block, Container, Cursor, Decompressor, Fault};
use crate::limits::MEMORY_VARIABLE;
use crate::value::Value;
use crate::{Error, Limits, Result};

use super::columns::{Lists, Numbers, Strings, item};
use super::entry_columns::{Entries, ManifestHeader, Tally};
use super::list::ManifestFile;
use super::metrics::MetricColumn;
use super::options::{PartitionFilter, ReadOptions};
use super::partition::{self, FixedForm, PartitionColumn, PartitionSteps};
use super::steps::{ListField, NumberField, Step, Steps, TextField};
use super::wanted::{Metric, Metrics};
use super::{FileContent, ManifestContent, Status};

/// What a manifest list hands down to the entries of a manifest ("Manifest Inheritance", "First Row ID Inheritance").
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited {
    snapshot_id: i64,
    sequence_number: i64,
    next_row_id: Option<i64>,
}

impl Inherited {
    pub(super) fn of(manifest: &ManifestFile) -> Self {
        Self {
            snapshot_id: manifest.added_snapshot_id,
            sequence_number: manifest.sequence_number,
            next_row_id: manifest.first_row_id.filter(|_| manifest.content == ManifestContent::Data),
        }
    }

    /// A null sequence number is the manifest's where the file was added with it, and 0 in what was written as v1.
    fn sequence_number(&self, written: Option<i64>, status: Status) -> Option<i64> {
        let inherits = self.sequence_number == 0 || status == Status::Added;
        written.or(inherits.then_some(self.sequence_number))
    }

    /// Files without a row id get the next ones in their order. A manifest that has none to give is older than row lineage:
    /// what its entries say does not count.
    fn first_row_id(&mut self, written: Option<i64>, status: Status, records: i64) -> Result<Option<i64>, Fault> {
        let Some(next) = self.next_row_id else { return Ok(None) };
        if !status.is_live() || written.is_some() {
            return Ok(written);
        }
        self.next_row_id = Some(next.checked_add(records).ok_or(Fault::Range)?);
        Ok(Some(next))
    }
}

/// Bytes that the columns take for an entry, beside its texts, lists and maps: most of them are numbers that may be null.
const ENTRY_BYTES: usize = 160;
/// Bytes of a partition value, in the tuples and in the entries.
const PARTITION_VALUE_BYTES: usize = 16;
/// Entries, and bytes of them, after which the size of the columns is looked at.
const LOOK_EVERY: u64 = 256;
const LOOK_EVERY_BYTES: usize = 1 << 20;

/// What one entry holds beside its lists, maps and partition.
#[derive(Debug, Default)]
struct Row<'b> {
    status: Option<i64>,
    snapshot_id: Option<i64>,
    sequence_number: Option<i64>,
    file_sequence_number: Option<i64>,
    content: Option<i64>,
    record_count: Option<i64>,
    file_size: Option<i64>,
    sort_order_id: Option<i64>,
    first_row_id: Option<i64>,
    content_offset: Option<i64>,
    content_size: Option<i64>,
    file_path: Option<&'b [u8]>,
    file_format: Option<&'b [u8]>,
    key_metadata: Option<&'b [u8]>,
    referenced_data_file: Option<&'b [u8]>,
    has_split_offsets: bool,
    has_equality_ids: bool,
    has_metric: [bool; 6],
    /// The place of its partition tuple.
    tuple: u32,
    /// Whether the partition filter leaves it out.
    excluded: bool,
}

impl<'b> Row<'b> {
    #[inline]
    fn set_number(&mut self, field: NumberField, value: Option<i64>) {
        match field {
            NumberField::Status => self.status = value,
            NumberField::SnapshotId => self.snapshot_id = value,
            NumberField::SequenceNumber => self.sequence_number = value,
            NumberField::FileSequenceNumber => self.file_sequence_number = value,
            NumberField::Content => self.content = value,
            NumberField::RecordCount => self.record_count = value,
            NumberField::FileSize => self.file_size = value,
            NumberField::SortOrderId => self.sort_order_id = value,
            NumberField::FirstRowId => self.first_row_id = value,
            NumberField::ContentOffset => self.content_offset = value,
            NumberField::ContentSize => self.content_size = value,
        }
    }

    #[inline]
    fn set_text(&mut self, field: TextField, value: Option<&'b [u8]>) {
        match field {
            TextField::FilePath => self.file_path = value,
            TextField::FileFormat => self.file_format = value,
            TextField::KeyMetadata => self.key_metadata = value,
            TextField::ReferencedDataFile => self.referenced_data_file = value,
        }
    }
}

/// The columns in the making.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) tally: Tally,
    /// Of which entries the metrics were read; none: of all.
    metrics_read: Option<BooleanBufferBuilder>,
    position: Numbers<Int64Type>,
    status: Numbers<Int32Type>,
    snapshot_id: Numbers<Int64Type>,
    sequence_number: Numbers<Int64Type>,
    file_sequence_number: Numbers<Int64Type>,
    content: Numbers<Int32Type>,
    file_path: Strings,
    file_format: Strings,
    tuples: Tuples,
    tuple_of: Vec<u32>,
    record_count: Numbers<Int64Type>,
    file_size: Numbers<Int64Type>,
    metrics: [Option<MetricColumn>; 6],
    key_metadata: Strings,
    split_offsets: Lists<Int64Type>,
    equality_ids: Lists<Int32Type>,
    sort_order_id: Numbers<Int32Type>,
    first_row_id: Numbers<Int64Type>,
    referenced_data_file: Strings,
    content_offset: Numbers<Int64Type>,
    content_size: Numbers<Int64Type>,
    /// Elements of one list and pairs of one map of an entry, at the most.
    most_items: u64,
}

impl Columns {
    fn new(steps: &Steps, metrics: &Metrics) -> Self {
        let metric =
            |metric: Metric| metrics.wants(metric).then(|| MetricColumn::new(metric, metrics.of(metric).clone()));
        Self {
            tally: Tally::default(),
            metrics_read: None,
            position: Numbers::default(),
            status: Numbers::default(),
            snapshot_id: Numbers::default(),
            sequence_number: Numbers::default(),
            file_sequence_number: Numbers::default(),
            content: Numbers::default(),
            file_path: Strings::default(),
            file_format: Strings::default(),
            tuples: Tuples::new(steps),
            tuple_of: Vec::new(),
            record_count: Numbers::default(),
            file_size: Numbers::default(),
            metrics: Metric::ALL.map(metric),
            key_metadata: Strings::default(),
            split_offsets: Lists::default(),
            equality_ids: Lists::default(),
            sort_order_id: Numbers::default(),
            first_row_id: Numbers::default(),
            referenced_data_file: Strings::default(),
            content_offset: Numbers::default(),
            content_size: Numbers::default(),
            most_items: u64::MAX,
        }
    }

    fn metric(&mut self, metric: Metric) -> Option<&mut MetricColumn> {
        self.metrics.get_mut(metric as usize).and_then(Option::as_mut)
    }

    /// Reads the items of a list into the row in the making.
    fn list(&mut self, field: ListField, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let mut room = self.most_items;
        loop {
            let (count, _) = cursor.items()?;
            room = room.checked_sub(count).ok_or(Fault::TooLong)?;
            match field {
                _ if count == 0 => return Ok(()),
                ListField::SplitOffsets => {
                    (0..count).try_for_each(|_| cursor.long().map(|value| self.split_offsets.add(value)))?
                }
                ListField::EqualityIds => {
                    (0..count).try_for_each(|_| cursor.int().map(|value| self.equality_ids.add(value)))?
                }
            }
        }
    }

    /// Bytes that were decoded so far, beside texts, which are no longer than the block that they stand in.
    fn bytes(&self) -> usize {
        let metrics: usize = self.metrics.iter().flatten().map(MetricColumn::bytes).sum();
        let tuple = self.tuples.columns.len().saturating_mul(PARTITION_VALUE_BYTES);
        let rows = self.tuple_of.len().saturating_mul(ENTRY_BYTES.saturating_add(tuple));
        let tuples = self.tuples.count.saturating_mul(tuple.saturating_add(ENTRY_BYTES));
        let lists = self.split_offsets.bytes() + self.equality_ids.bytes();
        rows.saturating_add(tuples).saturating_add(metrics).saturating_add(lists)
    }

    /// Forgets the row in the making.
    fn take_back(&mut self) {
        self.split_offsets.take_back();
        self.equality_ids.take_back();
        self.metrics.iter_mut().flatten().for_each(MetricColumn::take_back);
    }

    pub(super) fn finish(self, header: Arc<ManifestHeader>, steps: &Steps) -> Result<Entries> {
        let fields = steps.partition().map(|partition| partition.fields.as_slice()).unwrap_or_default();
        let tuples = partition::finish(self.tuples.columns, fields, self.tuples.count)?;
        let tuple_of = UInt32Array::from(self.tuple_of);
        let metrics_read = self.metrics_read.map(|mut read| read.finish());
        let [column_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds] =
            self.metrics.map(|column| column.map(MetricColumn::finish));
        Ok(Entries {
            header,
            tally: self.tally,
            metrics_read,
            position: self.position.finish(),
            status: self.status.finish(),
            snapshot_id: self.snapshot_id.finish(),
            sequence_number: self.sequence_number.finish(),
            file_sequence_number: self.file_sequence_number.finish(),
            content: self.content.finish(),
            file_path: self.file_path.finish_text("file_path")?,
            file_format: self.file_format.finish_text("file_format")?,
            partition: partition::of_rows(&tuples, &tuple_of)?,
            partition_type: partition::type_of(fields),
            tuples: Arc::new(tuples),
            tuple_of,
            record_count: self.record_count.finish(),
            file_size_in_bytes: self.file_size.finish(),
            column_sizes,
            value_counts,
            null_value_counts,
            nan_value_counts,
            lower_bounds,
            upper_bounds,
            key_metadata: self.key_metadata.finish_binary(),
            split_offsets: self.split_offsets.finish(item(DataType::Int64)),
            equality_ids: self.equality_ids.finish(item(DataType::Int32)),
            sort_order_id: self.sort_order_id.finish(),
            first_row_id: self.first_row_id.finish(),
            referenced_data_file: self.referenced_data_file.finish_text("referenced_data_file")?,
            content_offset: self.content_offset.finish(),
            content_size_in_bytes: self.content_size.finish(),
        })
    }
}

/// Why the walk stopped: a fault in the bytes, or an error of the partition filter.
enum Stop {
    Fault(Fault),
    Filter(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The partition tuples that were met, each once.
#[derive(Debug)]
struct Tuples {
    columns: Vec<PartitionColumn>,
    count: usize,
    /// The place of each tuple, by its bytes.
    seen: HashMap<Box<[u8]>, u32>,
    /// For each tuple whether the partition filter keeps it.
    kept: Vec<bool>,
}

impl Tuples {
    fn new(steps: &Steps) -> Self {
        let columns = steps.partition().map(|partition| partition.columns()).unwrap_or_default();
        Self { columns, count: 0, seen: HashMap::new(), kept: Vec::new() }
    }

    /// Reads a tuple and gives its place.
    fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        steps: &PartitionSteps,
        form: FixedForm,
        filter: Option<&PartitionFilter<'_>>,
    ) -> Result<u32, Stop> {
        let before = *cursor;
        steps.read(cursor, &mut self.columns, form)?;
        let bytes = cursor.since(&before);
        if let Some(&place) = self.seen.get(bytes) {
            let count = self.count;
            self.columns.iter_mut().for_each(|column| column.truncate(count));
            return Ok(place);
        }
        let kept = match filter {
            None => true,
            Some(filter) => {
                let tuple: Vec<Option<Value>> = self.columns.iter().map(PartitionColumn::last).collect();
                filter(&tuple).map_err(Stop::Filter)?
            }
        };
        let place = u32::try_from(self.count).map_err(|_| Fault::TooLong)?;
        self.seen.insert(bytes.into(), place);
        self.kept.push(kept);
        self.count += 1;
        Ok(place)
    }

    fn keeps(&self, place: u32) -> bool {
        self.kept.get(place as usize).copied().unwrap_or(true)
    }
}

/// Decodes the blocks of one manifest.
pub(super) struct Decoder<'a> {
    steps: &'a Steps,
    live_only: bool,
    keep_excluded: bool,
    form: FixedForm,
    inherited: Option<Inherited>,
    filter: Option<&'a PartitionFilter<'a>>,
    columns: Columns,
    most_bytes: usize,
    position: i64,
    /// The step that the walk is at, for errors.
    at: usize,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(
        steps: &'a Steps,
        options: &ReadOptions<'a>,
        inherited: Option<Inherited>,
        form: FixedForm,
    ) -> Self {
        let mut columns = Columns::new(steps, &options.metrics);
        let marked = options.keep_excluded && options.partition_filter.is_some();
        columns.metrics_read = marked.then(|| BooleanBufferBuilder::new(0));
        Self {
            steps,
            live_only: options.live_only,
            keep_excluded: options.keep_excluded,
            form,
            inherited,
            filter: options.partition_filter,
            columns,
            most_bytes: usize::MAX,
            position: 0,
            at: 0,
        }
    }

    pub(super) fn run(mut self, container: &Container<'_>, limits: &Limits) -> Result<Columns> {
        let mut decompressor = Decompressor::new(container.codec, limits);
        self.columns.most_items = limits.fields as u64;
        for (number, block) in container.blocks().enumerate() {
            let block = block?;
            let data = decompressor.run(block.data, block.offset)?;
            self.most_bytes = limits.decoded_bytes.saturating_sub(data.len());
            self.block(number, block, data)?;
        }
        Ok(self.columns)
    }

    fn block(&mut self, number: usize, block: Block<'_>, data: &[u8]) -> Result<()> {
        if block.count > data.len() as u64 / self.steps.min_bytes {
            let message = format!("claims {} entries in {} bytes", block.count, data.len());
            return Err(Error::corrupt_at(format!("manifest block {number}"), block.offset, message));
        }
        let mut cursor = Cursor::new(data);
        let mut looked_at = usize::MAX;
        for entry in 0..block.count {
            let left = cursor.rest().len();
            let is_due = entry % LOOK_EVERY == 0 || looked_at.saturating_sub(left) > LOOK_EVERY_BYTES;
            looked_at = if is_due { left } else { looked_at };
            if is_due && self.columns.bytes() > self.most_bytes {
                let message = beyond_memory(self.most_bytes);
                return Err(Error::corrupt_at(
                    format!("manifest block {number}, entry {entry}"),
                    block.offset,
                    message,
                ));
            }
            self.entry(&mut cursor).map_err(|stop| match stop {
                Stop::Filter(error) => error,
                Stop::Fault(fault) => {
                    let field = self.steps.names.get(self.at).map_or("end", String::as_str);
                    // Offsets within a compressed block count decompressed bytes.
                    fault.at(
                        format!("manifest block {number}, entry {entry}, {field}"),
                        (data.len() - cursor.rest().len()) as u64,
                    )
                }
            })?;
        }
        if !cursor.is_empty() {
            let message = format!("{} bytes are left after its last entry", cursor.rest().len());
            return Err(Error::corrupt_at(format!("manifest block {number}"), block.offset, message));
        }
        Ok(())
    }

    fn entry(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let mut row = Row::default();
        let steps = self.steps;
        for (at, step) in steps.steps.iter().enumerate() {
            self.at = at;
            match step {
                Step::Skip(skip) => skip.run(cursor)?,
                Step::Number(field, presence) => {
                    let value = if presence.is_some(cursor)? { Some(cursor.long()?) } else { None };
                    row.set_number(*field, value);
                }
                Step::Text(field, presence) => {
                    let value = if presence.is_some(cursor)? { Some(cursor.bytes()?) } else { None };
                    row.set_text(*field, value);
                }
                Step::Metric(.., skip) if row.excluded => skip.run(cursor)?,
                Step::List(_, _, skip) if row.excluded && !self.keep_excluded => skip.run(cursor)?,
                Step::List(field, presence, _) => {
                    let is_some = presence.is_some(cursor)?;
                    if is_some {
                        self.columns.list(*field, cursor)?;
                    }
                    match field {
                        ListField::SplitOffsets => row.has_split_offsets = is_some,
                        ListField::EqualityIds => row.has_equality_ids = is_some,
                    }
                }
                Step::Metric(metric, presence, order, _) => {
                    let is_some = presence.is_some(cursor)?;
                    let most = self.columns.most_items;
                    if let Some(column) = self.columns.metric(*metric).filter(|_| is_some) {
                        column.read(cursor, order, most)?;
                    }
                    row.has_metric.get_mut(*metric as usize).into_iter().for_each(|has| *has = is_some);
                }
                Step::Partition(partition) => {
                    let tuples = &mut self.columns.tuples;
                    row.tuple = tuples.read(cursor, partition, self.form, self.filter)?;
                    row.excluded |= !tuples.keeps(row.tuple);
                }
                Step::Enter(presence) => {
                    if !presence.is_some(cursor)? {
                        return Err(Fault::Branch.into());
                    }
                }
            }
        }
        self.at = steps.steps.len();
        self.end(row)
    }

    /// Ends an entry: checks it, fills in what it inherits, and keeps it or not.
    fn end(&mut self, row: Row<'_>) -> Result<(), Stop> {
        let position = self.position;
        self.position += 1;
        let status = number(row.status)?.ok_or(Fault::Range)?;
        let status = Status::from_id(status).map_err(|_| Fault::Range)?;
        let content = FileContent::from_id(number(row.content)?.unwrap_or(0)).map_err(|_| Fault::Range)?;
        let record_count = row.record_count.ok_or(Fault::Branch)?;
        let (mut snapshot_id, mut sequence_number, mut file_sequence_number, mut first_row_id) =
            (row.snapshot_id, row.sequence_number, row.file_sequence_number, row.first_row_id);
        if let Some(inherited) = &mut self.inherited {
            snapshot_id = snapshot_id.or(Some(inherited.snapshot_id));
            sequence_number = inherited.sequence_number(sequence_number, status);
            file_sequence_number = inherited.sequence_number(file_sequence_number, status);
            first_row_id = inherited.first_row_id(first_row_id, status, record_count)?;
        }
        let columns = &mut self.columns;
        columns.tally.add(status);
        if (row.excluded && !self.keep_excluded) || (self.live_only && !status.is_live()) {
            columns.take_back();
            return Ok(());
        }
        columns.metrics_read.iter_mut().for_each(|read| read.append(!row.excluded));
        columns.position.push(Some(position));
        columns.status.push(Some(status.id()));
        columns.snapshot_id.push(snapshot_id);
        columns.sequence_number.push(sequence_number);
        columns.file_sequence_number.push(file_sequence_number);
        columns.content.push(Some(content.id()));
        columns.file_path.push(Some(row.file_path.ok_or(Fault::Branch)?));
        columns.file_format.push(Some(row.file_format.ok_or(Fault::Branch)?));
        columns.record_count.push(Some(record_count));
        columns.file_size.push(Some(row.file_size.ok_or(Fault::Branch)?));
        for (column, has) in columns.metrics.iter_mut().zip(row.has_metric) {
            column.iter_mut().for_each(|column| column.end(has));
        }
        columns.key_metadata.push(row.key_metadata);
        columns.split_offsets.end(row.has_split_offsets);
        columns.equality_ids.end(row.has_equality_ids);
        columns.sort_order_id.push(number(row.sort_order_id)?);
        columns.first_row_id.push(first_row_id);
        columns.referenced_data_file.push(row.referenced_data_file);
        columns.content_offset.push(row.content_offset);
        columns.content_size.push(row.content_size);
        columns.tuple_of.push(row.tuple);
        Ok(())
    }
}

/// What a file says that becomes more in memory than its budget.
pub(super) fn beyond_memory(most: usize) -> String {
    format!(
        "needs more than the {most} bytes of memory that are left for a file of its size; if you trust the file, raise \
         this limit with {MEMORY_VARIABLE}=BYTES"
    )
}

fn number(value: Option<i64>) -> Result<Option<i32>, Fault> {
    value.map(i32::try_from).transpose().map_err(|_| Fault::Range)
}
