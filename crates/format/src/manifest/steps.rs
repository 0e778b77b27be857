//! The steps that walk one manifest entry, compiled from the writer's schema and from what the reader wants.

use crate::avro::{RecordSchema, Schema, Skip};
use crate::types::StructType;
use crate::{Error, Result};

use super::fields::{Known, entry, file};
use super::metrics::{PairOrder, pair_order};
use super::partition::PartitionSteps;
use super::presence::{PLACE, Presence, reduce, unexpected};
use super::wanted::{Metric, Metrics};

/// A field of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberField {
    Status,
    SnapshotId,
    SequenceNumber,
    FileSequenceNumber,
    Content,
    RecordCount,
    FileSize,
    SortOrderId,
    FirstRowId,
    ContentOffset,
    ContentSize,
}

/// A field of text or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextField {
    FilePath,
    FileFormat,
    KeyMetadata,
    ReferencedDataFile,
}

/// A field of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListField {
    SplitOffsets,
    EqualityIds,
}

/// One step of the walk over an entry.
#[derive(Debug)]
pub(super) enum Step {
    Number(NumberField, Presence),
    Text(TextField, Presence),
    /// A list, and how to pass over the whole field.
    List(ListField, Presence, Skip),
    /// A metrics map, and how to pass over the whole field.
    Metric(Metric, Presence, PairOrder, Skip),
    Partition(PartitionSteps),
    /// The branch of the data file, where the writer made it optional.
    Enter(Presence),
    Skip(Skip),
}

/// What a field of an entry or a data file is read as.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Number(NumberField),
    Text(TextField),
    List(ListField),
    Metric(Metric),
    Partition,
    File,
}

impl Kind {
    fn is_required(self) -> bool {
        matches!(
            self,
            Self::Number(NumberField::Status | NumberField::RecordCount | NumberField::FileSize)
                | Self::Text(TextField::FilePath | TextField::FileFormat)
                | Self::File
        )
    }
}

const ENTRY: [(Known, Kind); 5] = [
    (entry::STATUS, Kind::Number(NumberField::Status)),
    (entry::SNAPSHOT_ID, Kind::Number(NumberField::SnapshotId)),
    (entry::SEQUENCE_NUMBER, Kind::Number(NumberField::SequenceNumber)),
    (entry::FILE_SEQUENCE_NUMBER, Kind::Number(NumberField::FileSequenceNumber)),
    (entry::DATA_FILE, Kind::File),
];

const FILE: [(Known, Kind); 20] = [
    (file::CONTENT, Kind::Number(NumberField::Content)),
    (file::FILE_PATH, Kind::Text(TextField::FilePath)),
    (file::FILE_FORMAT, Kind::Text(TextField::FileFormat)),
    (file::PARTITION, Kind::Partition),
    (file::RECORD_COUNT, Kind::Number(NumberField::RecordCount)),
    (file::FILE_SIZE, Kind::Number(NumberField::FileSize)),
    (file::COLUMN_SIZES, Kind::Metric(Metric::ColumnSizes)),
    (file::VALUE_COUNTS, Kind::Metric(Metric::ValueCounts)),
    (file::NULL_VALUE_COUNTS, Kind::Metric(Metric::NullValueCounts)),
    (file::NAN_VALUE_COUNTS, Kind::Metric(Metric::NanValueCounts)),
    (file::LOWER_BOUNDS, Kind::Metric(Metric::LowerBounds)),
    (file::UPPER_BOUNDS, Kind::Metric(Metric::UpperBounds)),
    (file::KEY_METADATA, Kind::Text(TextField::KeyMetadata)),
    (file::SPLIT_OFFSETS, Kind::List(ListField::SplitOffsets)),
    (file::EQUALITY_IDS, Kind::List(ListField::EqualityIds)),
    (file::SORT_ORDER_ID, Kind::Number(NumberField::SortOrderId)),
    (file::FIRST_ROW_ID, Kind::Number(NumberField::FirstRowId)),
    (file::REFERENCED_DATA_FILE, Kind::Text(TextField::ReferencedDataFile)),
    (file::CONTENT_OFFSET, Kind::Number(NumberField::ContentOffset)),
    (file::CONTENT_SIZE, Kind::Number(NumberField::ContentSize)),
];

/// The walk over an entry, and the names of its steps for errors.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    pub(super) names: Vec<String>,
    /// The fewest bytes that an entry takes; at least one.
    pub(super) min_bytes: u64,
}

impl Steps {
    /// Compiles the writer's schema. `partition` is the type that partition values are read as; without it, what the
    /// writer's schema says.
    pub(super) fn compile(schema: &Schema, partition: Option<&StructType>, metrics: &Metrics) -> Result<Self> {
        let Schema::Record(record) = schema else {
            return Err(Error::corrupt(PLACE, format!("entries are not records but {}", schema.word())));
        };
        let mut steps = Self { steps: Vec::new(), names: Vec::new(), min_bytes: Skip::of(schema).min_bytes().max(1) };
        steps.record(record, &ENTRY, partition, metrics)?;
        Ok(steps)
    }

    /// Steps for the fields of a record, in their order; those that `known` lacks are passed over.
    fn record(
        &mut self,
        record: &RecordSchema,
        known: &[(Known, Kind)],
        partition: Option<&StructType>,
        metrics: &Metrics,
    ) -> Result<()> {
        let mut found = Vec::with_capacity(known.len());
        for (field, kind) in known {
            match record.field(field.id, field.names) {
                Some((index, _)) => found.push((index, *kind)),
                None if kind.is_required() => {
                    let name = field.name();
                    return Err(Error::corrupt(PLACE, format!("required field {name} (id {}) is missing", field.id)));
                }
                None => {}
            }
        }
        for (index, field) in record.fields.iter().enumerate() {
            let (name, schema) = (field.name.as_str(), &field.schema);
            match found.iter().find(|(at, _)| *at == index).map(|(_, kind)| *kind) {
                Some(Kind::Number(number)) => self.number(number, name, schema)?,
                Some(Kind::Text(text)) => self.text(text, name, schema)?,
                Some(Kind::List(list)) => self.list(list, name, schema)?,
                Some(Kind::Metric(metric)) => self.metric(metric, name, schema, metrics)?,
                Some(Kind::Partition) => self.push(name, Step::Partition(PartitionSteps::compile(schema, partition)?)),
                Some(Kind::File) => self.data_file(schema, partition, metrics)?,
                None => self.skip(name, schema),
            }
        }
        Ok(())
    }

    /// The walk over the partition tuple; none where the writer has no such field.
    pub(super) fn partition(&self) -> Option<&PartitionSteps> {
        self.steps.iter().find_map(|step| if let Step::Partition(partition) = step { Some(partition) } else { None })
    }

    /// Whether it matters how `fixed` partition values stand in the bytes.
    pub(super) fn has_fixed(&self) -> bool {
        self.partition().is_some_and(|partition| partition.has_fixed)
    }

    fn push(&mut self, name: &str, step: Step) {
        self.steps.push(step);
        self.names.push(name.to_owned());
    }

    fn skip(&mut self, name: &str, schema: &Schema) {
        self.push(name, Step::Skip(Skip::of(schema)));
    }

    fn number(&mut self, number: NumberField, name: &str, schema: &Schema) -> Result<()> {
        match reduce(schema) {
            Some((presence, Schema::Int(_) | Schema::Long(_))) => self.push(name, Step::Number(number, presence)),
            // An optional number that the writer never has.
            Some((_, Schema::Null)) => self.skip(name, schema),
            _ => return Err(unexpected(name, schema, "a number")),
        }
        Ok(())
    }

    fn text(&mut self, text: TextField, name: &str, schema: &Schema) -> Result<()> {
        match reduce(schema) {
            Some((presence, Schema::String(_) | Schema::Bytes(_))) => self.push(name, Step::Text(text, presence)),
            Some((_, Schema::Null)) => self.skip(name, schema),
            _ => return Err(unexpected(name, schema, "text or bytes")),
        }
        Ok(())
    }

    fn list(&mut self, list: ListField, name: &str, schema: &Schema) -> Result<()> {
        match reduce(schema) {
            Some((presence, Schema::Array(array))) if matches!(array.items, Schema::Int(_) | Schema::Long(_)) => {
                self.push(name, Step::List(list, presence, Skip::of(schema)));
            }
            Some((_, Schema::Null)) => self.skip(name, schema),
            _ => return Err(unexpected(name, schema, "a list of numbers")),
        }
        Ok(())
    }

    fn metric(&mut self, metric: Metric, name: &str, schema: &Schema, metrics: &Metrics) -> Result<()> {
        let reduced = reduce(schema);
        if !metrics.wants(metric) || matches!(reduced, Some((_, Schema::Null))) {
            self.skip(name, schema);
            return Ok(());
        }
        let pair = reduced.and_then(|(presence, inner)| match inner {
            Schema::Array(array) => match &array.items {
                Schema::Record(record) => Some((presence, pair_order(record, metric)?)),
                _ => None,
            },
            _ => None,
        });
        let (presence, pair) = pair.ok_or_else(|| unexpected(name, schema, "an array of keys and values"))?;
        self.push(name, Step::Metric(metric, presence, pair, Skip::of(schema)));
        Ok(())
    }

    fn data_file(&mut self, schema: &Schema, partition: Option<&StructType>, metrics: &Metrics) -> Result<()> {
        let Some((presence, Schema::Record(record))) = reduce(schema) else {
            return Err(unexpected("data_file", schema, "a record"));
        };
        if presence != Presence::Required {
            self.push("data_file", Step::Enter(presence));
        }
        self.record(record, &FILE, partition, metrics)?;
        if self.partition().is_none() && partition.is_some_and(|partition| !partition.fields.is_empty()) {
            return Err(Error::corrupt(PLACE, "the field partition is missing, and the spec is partitioned"));
        }
        Ok(())
    }
}
