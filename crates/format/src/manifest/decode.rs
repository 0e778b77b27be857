//! The walk over the blocks of a manifest: bytes in, columns out, each byte seen once.

use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use hashbrown::HashMap;

use crate::avro::{Block, Container, Cursor, Decompressor, Fault};
use crate::value::Value;
use crate::{Error, Limits, Result};

use super::columns::{Lists, Numbers, Strings, item};
use super::entries::{Entries, ManifestHeader, PartitionFilter, ReadOptions};
use super::list::ManifestFile;
use super::metrics::{Metric, MetricColumn, Metrics};
use super::partition::{self, FixedForm, PartitionColumn};
use super::steps::{ListField, NumberField, Step, Steps, TextField};
use super::{FileContent, ManifestContent, Status};

/// Bytes of partition tuples whose verdict is remembered.
const REMEMBERED_BYTES: usize = 1 << 22;

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
    has_partition: bool,
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
    rows: usize,
    position: Numbers<Int64Type>,
    status: Numbers<Int32Type>,
    snapshot_id: Numbers<Int64Type>,
    sequence_number: Numbers<Int64Type>,
    file_sequence_number: Numbers<Int64Type>,
    content: Numbers<Int32Type>,
    file_path: Strings,
    file_format: Strings,
    partition: Vec<PartitionColumn>,
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
}

impl Columns {
    fn new(steps: &Steps, metrics: &Metrics) -> Self {
        let metric =
            |metric: Metric| metrics.wants(metric).then(|| MetricColumn::new(metric, metrics.of(metric).clone()));
        Self {
            rows: 0,
            position: Numbers::default(),
            status: Numbers::default(),
            snapshot_id: Numbers::default(),
            sequence_number: Numbers::default(),
            file_sequence_number: Numbers::default(),
            content: Numbers::default(),
            file_path: Strings::default(),
            file_format: Strings::default(),
            partition: steps.partition().map(|partition| partition.columns()).unwrap_or_default(),
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
        }
    }

    fn metric(&mut self, metric: Metric) -> Option<&mut MetricColumn> {
        self.metrics.get_mut(metric as usize).and_then(Option::as_mut)
    }

    /// Reads the items of a list into the row in the making.
    fn list(&mut self, field: ListField, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        loop {
            let (count, _) = cursor.items()?;
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

    /// Forgets the row in the making.
    fn take_back(&mut self) {
        self.split_offsets.take_back();
        self.equality_ids.take_back();
        self.metrics.iter_mut().flatten().for_each(MetricColumn::take_back);
        let rows = self.rows;
        self.partition.iter_mut().for_each(|column| column.truncate(rows));
    }

    pub(super) fn finish(self, header: ManifestHeader, steps: &Steps) -> Result<Entries> {
        let fields = steps.partition().map(|partition| partition.fields.as_slice()).unwrap_or_default();
        let [column_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds] =
            self.metrics.map(|column| column.map(MetricColumn::finish));
        Ok(Entries {
            header,
            position: self.position.finish(),
            status: self.status.finish(),
            snapshot_id: self.snapshot_id.finish(),
            sequence_number: self.sequence_number.finish(),
            file_sequence_number: self.file_sequence_number.finish(),
            content: self.content.finish(),
            file_path: self.file_path.finish_text("file_path")?,
            file_format: self.file_format.finish_text("file_format")?,
            partition: partition::finish(self.partition, fields, self.rows)?,
            partition_type: partition::type_of(fields),
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

/// The partition filter, and what it said of tuples already seen, by their bytes.
struct Verdicts<'a> {
    filter: &'a PartitionFilter<'a>,
    seen: HashMap<Box<[u8]>, bool>,
    bytes: usize,
    tuple: Vec<Option<Value>>,
}

impl<'a> Verdicts<'a> {
    fn keeps(&mut self, bytes: &[u8], columns: &[PartitionColumn]) -> Result<bool> {
        if let Some(&verdict) = self.seen.get(bytes) {
            return Ok(verdict);
        }
        self.tuple.clear();
        self.tuple.extend(columns.iter().map(PartitionColumn::last));
        let verdict = (self.filter)(&self.tuple)?;
        self.bytes = self.bytes.saturating_add(bytes.len() + 64);
        if self.bytes > REMEMBERED_BYTES {
            self.seen.clear();
            self.bytes = 0;
        }
        self.seen.insert(bytes.into(), verdict);
        Ok(verdict)
    }
}

/// Decodes the blocks of one manifest.
pub(super) struct Decoder<'a> {
    steps: &'a Steps,
    live_only: bool,
    form: FixedForm,
    inherited: Option<Inherited>,
    verdicts: Option<Verdicts<'a>>,
    columns: Columns,
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
        let verdicts = |filter| Verdicts { filter, seen: HashMap::new(), bytes: 0, tuple: Vec::new() };
        Self {
            steps,
            live_only: options.live_only,
            form,
            inherited,
            verdicts: options.partition_filter.map(verdicts),
            columns: Columns::new(steps, &options.metrics),
            position: 0,
            at: 0,
        }
    }

    pub(super) fn run(mut self, container: &Container<'_>, limits: &Limits) -> Result<Columns> {
        let mut decompressor = Decompressor::new(container.codec, limits);
        for (number, block) in container.blocks().enumerate() {
            let block = block?;
            self.block(number, block, decompressor.run(block.data, block.offset)?)?;
        }
        Ok(self.columns)
    }

    fn block(&mut self, number: usize, block: Block<'_>, data: &[u8]) -> Result<()> {
        if block.count > data.len() as u64 / self.steps.min_bytes {
            let message = format!("says it has {} entries in {} bytes", block.count, data.len());
            return Err(Error::corrupt_at(format!("manifest block {number}"), block.offset, message));
        }
        let mut cursor = Cursor::new(data);
        for entry in 0..block.count {
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
                Step::List(_, _, skip) | Step::Metric(.., skip) if row.excluded => skip.run(cursor)?,
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
                    if let Some(column) = self.columns.metric(*metric).filter(|_| is_some) {
                        column.read(cursor, order)?;
                    }
                    row.has_metric.get_mut(*metric as usize).into_iter().for_each(|has| *has = is_some);
                }
                Step::Partition(partition) => {
                    let before = *cursor;
                    partition.read(cursor, &mut self.columns.partition, self.form)?;
                    if let Some(verdicts) = &mut self.verdicts {
                        row.excluded |=
                            !verdicts.keeps(cursor.since(&before), &self.columns.partition).map_err(Stop::Filter)?;
                    }
                    row.has_partition = true;
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
        if row.excluded || (self.live_only && !status.is_live()) {
            self.columns.take_back();
            return Ok(());
        }
        let columns = &mut self.columns;
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
        columns.rows += 1;
        Ok(())
    }
}

fn number(value: Option<i64>) -> Result<Option<i32>, Fault> {
    value.map(i32::try_from).transpose().map_err(|_| Fault::Range)
}
