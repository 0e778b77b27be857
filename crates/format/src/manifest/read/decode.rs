//! Decodes the blocks of a manifest to columns in a single pass over the bytes.
//!
//! Partition tuples are identified by their bytes: a tuple that occurred before is neither stored nor passed to the
//! filter again.

use std::sync::Arc;

use arrow_array::UInt32Array;
use arrow_array::types::Int64Type;
use arrow_buffer::BooleanBufferBuilder;
use hashbrown::HashMap;

use crate::avro::{Block, Container, Cursor, Decompressor, Fault};
use crate::limits::MEMORY_VARIABLE;
use crate::value::Value;
use crate::{Error, Limits, Result};

use super::options::{PartitionFilter, ReadOptions};
use super::read_field::{Encoding, Extent, MetricField, ReadField};
use super::steps::{Step, Steps};
use crate::manifest::builders::NumberBuilder;
use crate::manifest::entry_columns::{Entries, ManifestHeader, Tally};
use crate::manifest::fields::EntryField;
use crate::manifest::list::ManifestFile;
use crate::manifest::metrics::MetricBuilder;
use crate::manifest::partition::{FixedForm, PartitionBuilder, PartitionSteps};
use crate::manifest::wanted::{FieldIds, Metrics};
use crate::manifest::{FileContent, ManifestContent, Status, partition};

/// What entries inherit from the manifest list ("Manifest Inheritance", "First Row ID Inheritance").
#[derive(Debug, Clone, Copy)]
pub(in crate::manifest) struct Inherited {
    content: ManifestContent,
    snapshot_id: i64,
    sequence_number: i64,
    next_row_id: NextRowId,
}

/// The row id for the next file without one of its own.
#[derive(Debug, Clone, Copy)]
enum NextRowId {
    /// The manifest was written before row lineage: row ids in its entries are ignored.
    None,
    /// Row id of the next file's first row.
    Known(i64),
    /// Unknown, because the row count of an earlier file is unknown.
    Unknown,
}

impl Inherited {
    pub(in crate::manifest) fn of(manifest: &ManifestFile) -> Self {
        let next = manifest.first_row_id.filter(|_| manifest.content == ManifestContent::Data);
        Self {
            content: manifest.content,
            snapshot_id: manifest.added_snapshot_id,
            sequence_number: manifest.sequence_number,
            next_row_id: next.map_or(NextRowId::None, NextRowId::Known),
        }
    }

    /// A null sequence number is inherited from the manifest if the file was added by it, and is 0 in manifests written
    /// as v1.
    fn sequence_number(&self, written: Option<i64>, status: Status) -> Option<i64> {
        let inherits = self.sequence_number == 0 || status == Status::Added;
        written.or(inherits.then_some(self.sequence_number))
    }

    /// Assigns the next row ids, in order, to files without one. A manifest without a first row id was written before
    /// row lineage: row ids in its entries are ignored.
    fn first_row_id(&mut self, written: Option<i64>, status: Status, records: i64) -> Result<Option<i64>, Stop> {
        let next = match self.next_row_id {
            NextRowId::None => return Ok(None),
            _ if !status.is_live() || written.is_some() => return Ok(written),
            NextRowId::Known(next) => next,
            NextRowId::Unknown => {
                let message = "it follows from the record_count of the files before it, and one of them does not know its own (-1)";
                return Err(Stop::Wrong(EntryField::first_row_id, message.to_owned()));
            }
        };
        self.next_row_id = match records {
            ..0 => NextRowId::Unknown,
            records => NextRowId::Known(next.checked_add(records).ok_or(Fault::Range)?),
        };
        Ok(Some(next))
    }

    /// Refuses entries that contradict their manifest. Accepting them would silently return deletes as rows, or apply
    /// deletes to the wrong rows.
    fn check(&self, row: &Row<'_>) -> Result<(), Stop> {
        let is_data = row.content == FileContent::Data;
        let path = || String::from_utf8_lossy(row.file_path);
        if is_data != (self.content == ManifestContent::Data) {
            let what = if is_data { "a data file" } else { "a delete file" };
            let message = format!("{what} in a manifest of {}: {}", self.content, path());
            return Err(Stop::Wrong(EntryField::content, message));
        }
        for (field, number) in [
            (EntryField::sequence_number, row.sequence_number),
            (EntryField::file_sequence_number, row.file_sequence_number),
        ] {
            // A manifest that is not committed yet has no sequence number.
            let most = if self.sequence_number < 0 { i64::MAX } else { self.sequence_number };
            if let Some(number) = number.filter(|number| !(0..=most).contains(number)) {
                let message =
                    format!("{number} is not among 0 to {most}, the sequence number of its manifest: {}", path());
                return Err(Stop::Wrong(field, message));
            }
        }
        match row.first_row_id {
            Some(id) if id < 0 => Err(Stop::Wrong(EntryField::first_row_id, format!("{id} is below 0: {}", path()))),
            _ => Ok(()),
        }
    }
}

/// Memory per entry in the columns, apart from texts, lists and maps; most columns are nullable numbers.
const ENTRY_BYTES: usize = 160;
/// Memory per partition value, in the tuples and in the entries.
const PARTITION_VALUE_BYTES: usize = 16;
/// Number of entries, and of bytes, after which the size of the columns is checked again.
const LOOK_EVERY: u64 = 256;
const LOOK_EVERY_BYTES: usize = 1 << 20;

macro_rules! built {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        /// The fields of one entry; for lists and maps, only whether they are present.
        #[derive(Default)]
        struct Row<'b> {
            $($name: <$value as ReadField>::Cell<'b>,)*
            /// Index of its partition tuple.
            tuple: u32,
            /// Whether the partition filter excludes it.
            excluded: bool,
        }

        /// Builds the columns of [`Entries`].
        #[derive(Default)]
        pub(in crate::manifest) struct EntriesBuilder {
            pub(in crate::manifest) tally: Tally,
            /// For each entry whether its metrics were read; `None` if all were.
            metrics_read: Option<BooleanBufferBuilder>,
            position: NumberBuilder<Int64Type>,
            tuples: Tuples,
            tuple_of: Vec<u32>,
            $($name: <$value as ReadField>::Builder,)*
        }

        impl EntriesBuilder {
            /// Reads a field of the unfinished row.
            #[inline]
            fn read<'b>(
                &mut self,
                field: EntryField,
                row: &mut Row<'b>,
                cursor: &mut Cursor<'b>,
                encoding: &Encoding,
                extent: Extent,
            ) -> Result<(), Fault> {
                match field {
                    $(EntryField::$name => {
                        <$value as ReadField>::read(&mut row.$name, &mut self.$name, cursor, encoding, extent)
                    })*
                }
            }

            /// Ends the row.
            fn push(&mut self, position: i64, row: Row<'_>) {
                self.metrics_read.iter_mut().for_each(|read| read.append(!row.excluded));
                self.position.push(Some(position));
                self.tuple_of.push(row.tuple);
                $(<$value as ReadField>::push(&mut self.$name, row.$name);)*
            }

            fn discard_row(&mut self) {
                $(<$value as ReadField>::discard_row(&mut self.$name);)*
            }

            /// Memory decoded so far, excluding texts, which are no longer than their block.
            fn bytes(&self) -> usize {
                let tuple = self.tuples.columns.len().saturating_mul(PARTITION_VALUE_BYTES);
                let rows = self.tuple_of.len().saturating_mul(ENTRY_BYTES.saturating_add(tuple));
                let tuples = self.tuples.count.saturating_mul(tuple.saturating_add(ENTRY_BYTES));
                rows.saturating_add(tuples)$(.saturating_add(<$value as ReadField>::nested_bytes(&self.$name)))*
            }

            pub(in crate::manifest) fn finish(self, header: Arc<ManifestHeader>, steps: &Steps) -> Result<Entries> {
                let fields = steps.partition().map(|partition| partition.fields.as_slice()).unwrap_or_default();
                let tuples = partition::finish(self.tuples.columns, fields, self.tuples.count)?;
                let tuple_of = UInt32Array::from(self.tuple_of);
                Ok(Entries {
                    header,
                    tally: self.tally,
                    metrics_read: self.metrics_read.map(|mut read| read.finish()),
                    position: self.position.finish(),
                    partition: partition::of_rows(&tuples, &tuple_of)?,
                    partition_type: partition::type_of(fields),
                    tuples: Arc::new(tuples),
                    tuple_of,
                    $($name: <$value as ReadField>::finish(self.$name, stringify!($name))?,)*
                })
            }
        }
    };
}

entry_fields!(all, built);

macro_rules! wanted_metrics {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        impl EntriesBuilder {
            /// Creates builders for the requested metrics.
            fn with_metrics(mut self, metrics: &Metrics) -> Self {
                let builder = |is_bound, ids: &FieldIds| {
                    (*ids != FieldIds::None).then(|| MetricBuilder::new(is_bound, ids.clone()))
                };
                $(self.$name = builder(<$value as MetricField>::IS_BOUND, &metrics.$name);)*
                self
            }
        }
    };
}

entry_fields!(metric, wanted_metrics);

/// Why decoding stopped: a fault in the bytes, an invalid field, or an error from the partition filter.
enum Stop {
    Fault(Fault),
    Wrong(EntryField, String),
    Filter(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The distinct partition tuples.
#[derive(Debug, Default)]
struct Tuples {
    columns: Vec<PartitionBuilder>,
    count: usize,
    /// Index of each tuple, by its bytes.
    seen: HashMap<Box<[u8]>, u32>,
    /// For each tuple, whether the partition filter keeps it.
    kept: Vec<bool>,
}

impl Tuples {
    fn new(steps: &Steps) -> Self {
        let columns = steps.partition().map(|partition| partition.columns()).unwrap_or_default();
        Self { columns, ..Self::default() }
    }

    /// Reads a tuple and returns its index.
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
        // Only reading a tuple shows where it ends; if it occurred before, the values just read are discarded.
        if let Some(&place) = self.seen.get(bytes) {
            let count = self.count;
            self.columns.iter_mut().for_each(|column| column.truncate(count));
            return Ok(place);
        }
        let kept = match filter {
            None => true,
            Some(filter) => {
                let tuple: Vec<Option<Value>> = self.columns.iter().map(PartitionBuilder::last).collect();
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
pub(in crate::manifest) struct Decoder<'a> {
    steps: &'a Steps,
    live_only: bool,
    keep_excluded: bool,
    form: FixedForm,
    inherited: Option<Inherited>,
    filter: Option<&'a PartitionFilter<'a>>,
    columns: EntriesBuilder,
    /// Limit of elements per list and of pairs per map.
    max_items: u64,
    /// Memory limit of the columns.
    max_bytes: usize,
    position: i64,
    /// The current step, for errors.
    at: usize,
}

impl<'a> Decoder<'a> {
    pub(in crate::manifest) fn new(
        steps: &'a Steps,
        options: &ReadOptions<'a>,
        inherited: Option<Inherited>,
        form: FixedForm,
    ) -> Self {
        let marked = options.keep_excluded && options.partition_filter.is_some();
        let columns = EntriesBuilder {
            tuples: Tuples::new(steps),
            metrics_read: marked.then(|| BooleanBufferBuilder::new(0)),
            ..EntriesBuilder::default()
        };
        Self {
            steps,
            live_only: options.live_only,
            keep_excluded: options.keep_excluded,
            form,
            inherited,
            filter: options.partition_filter,
            columns: columns.with_metrics(&options.metrics),
            max_items: u64::MAX,
            max_bytes: usize::MAX,
            position: 0,
            at: 0,
        }
    }

    pub(in crate::manifest) fn run(mut self, container: &Container<'_>, limits: &Limits) -> Result<EntriesBuilder> {
        let mut decompressor = Decompressor::new(container.codec, limits);
        self.max_items = limits.fields as u64;
        for (number, block) in container.blocks().enumerate() {
            let block = block?;
            let data = decompressor.run(block.data, block.offset)?;
            // The block and the columns are in memory at the same time.
            self.max_bytes = limits.decoded_bytes.saturating_sub(data.len());
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
            if is_due && self.columns.bytes() > self.max_bytes {
                let message = beyond_memory(self.max_bytes);
                return Err(Error::corrupt_at(
                    format!("manifest block {number}, entry {entry}"),
                    block.offset,
                    message,
                ));
            }
            self.entry(&mut cursor).map_err(|stop| match stop {
                Stop::Filter(error) => error,
                Stop::Wrong(field, message) => Error::corrupt_at(
                    format!("manifest block {number}, entry {entry}, {}", field.name()),
                    (data.len() - cursor.rest().len()) as u64,
                    message,
                ),
                Stop::Fault(fault) => {
                    let field = self.steps.names.get(self.at).map_or("end", String::as_str);
                    // Offsets in a compressed block count decompressed bytes.
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
                Step::Field(field, encoding) => {
                    let extent = Extent {
                        lists: !row.excluded || self.keep_excluded,
                        metrics: !row.excluded,
                        max_items: self.max_items,
                    };
                    self.columns.read(*field, &mut row, cursor, encoding, extent)?;
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

    /// Ends an entry: fills in inherited values, and keeps or excludes it.
    fn end(&mut self, mut row: Row<'_>) -> Result<(), Stop> {
        let position = self.position;
        self.position += 1;
        let status = row.status.ok_or(Fault::Range)?;
        if let Some(inherited) = &mut self.inherited {
            inherited.check(&row)?;
            row.snapshot_id = row.snapshot_id.or(Some(inherited.snapshot_id));
            row.sequence_number = inherited.sequence_number(row.sequence_number, status);
            row.file_sequence_number = inherited.sequence_number(row.file_sequence_number, status);
            row.first_row_id = inherited.first_row_id(row.first_row_id, status, row.record_count)?;
        }
        self.columns.tally.add(status);
        if (row.excluded && !self.keep_excluded) || (self.live_only && !status.is_live()) {
            self.columns.discard_row();
        } else {
            self.columns.push(position, row);
        }
        Ok(())
    }
}

/// Message for a file that exceeds its memory budget.
pub(super) fn beyond_memory(most: usize) -> String {
    format!(
        "needs more than the {most} bytes of memory that are left for a file of its size; if you trust the file, raise \
         this limit with {MEMORY_VARIABLE}=BYTES"
    )
}
