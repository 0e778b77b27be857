//! Compiles the steps that read one manifest entry, from the writer's schema and the reader's options.

use crate::avro::{RecordSchema, Schema, Skip};
use crate::types::StructType;
use crate::{Error, Result};

use super::read_field::{Encoding, ReadField};
use crate::manifest::fields::{DATA_FILE, EntryField, PARTITION, Record};
use crate::manifest::partition::PartitionSteps;
use crate::manifest::presence::{PLACE, Presence, reduce, unexpected};
use crate::manifest::wanted::{FieldIds, Metrics};
use crate::manifest::{FileContent, Status};

/// A step that reads or skips part of an entry.
#[derive(Debug)]
pub(super) enum Step {
    Field(EntryField, Encoding),
    Partition(PartitionSteps),
    /// The union around the data file, if the writer made it optional.
    Enter(Presence),
    Skip(Skip),
}

macro_rules! declared {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $value:ty => $($declared:tt)* })*) => {
        impl EntryField {
            /// Whether a manifest without the field is refused.
            fn is_required(self) -> bool {
                match self { $(Self::$name => <$value as ReadField>::REQUIRED,)* }
            }

            /// Determines how the field is encoded; an error if the writer's schema does not fit.
            fn encoding(self, name: &str, schema: &Schema) -> Result<Encoding> {
                let (encoding, expected) = match self {
                    $(Self::$name => {
                        (<$value as ReadField>::encoding(schema, self.nested_ids()), <$value as ReadField>::EXPECTED)
                    })*
                };
                encoding.ok_or_else(|| unexpected(name, schema, expected))
            }
        }
    };
}

entry_fields!(all, declared);

/// The steps for an entry, with their names for errors.
#[derive(Debug)]
pub(in crate::manifest) struct Steps {
    pub(super) steps: Vec<Step>,
    pub(super) names: Vec<String>,
    /// Minimum length of an entry in bytes; at least one.
    pub(super) min_bytes: u64,
}

impl Steps {
    /// Compiles the writer's schema. `partition` is the type to read partition values as; by default, the type in the
    /// writer's schema.
    pub(in crate::manifest) fn compile(
        schema: &Schema,
        partition: Option<&StructType>,
        metrics: &Metrics,
    ) -> Result<Self> {
        let Schema::Record(record) = schema else {
            return Err(Error::corrupt(PLACE, format!("expected a record for an entry, found {}", schema.word())));
        };
        let mut steps = Self { steps: Vec::new(), names: Vec::new(), min_bytes: Skip::of(schema).min_bytes().max(1) };
        steps.record(record, Record::Entry, partition, metrics)?;
        Ok(steps)
    }

    /// Adds the steps for a record, in its field order; unknown fields are skipped.
    fn record(
        &mut self,
        record: &RecordSchema,
        of: Record,
        partition: Option<&StructType>,
        metrics: &Metrics,
    ) -> Result<()> {
        let mut found = Vec::with_capacity(record.fields.len());
        for field in EntryField::of(of) {
            match record.field(field.id(), &[field.name()]) {
                Some((index, _)) => found.push((index, field)),
                None if field.is_required() => return Err(missing(field.name(), field.id())),
                None => {}
            }
        }
        let structure = match of {
            Record::Entry => DATA_FILE,
            Record::File => PARTITION,
        };
        let structure_at = record.field(structure.id, structure.names).map(|(index, _)| index);
        if of == Record::Entry && structure_at.is_none() {
            return Err(missing(structure.name(), structure.id));
        }
        for (index, field) in record.fields.iter().enumerate() {
            let (name, schema) = (field.name.as_str(), &field.schema);
            match found.iter().find(|(at, _)| *at == index) {
                Some((_, declared)) => self.field(*declared, name, schema, metrics)?,
                None if Some(index) != structure_at => self.skip(name, schema),
                None if of == Record::Entry => self.data_file(schema, partition, metrics)?,
                None => self.push(name, Step::Partition(PartitionSteps::compile(schema, partition)?)),
            }
        }
        Ok(())
    }

    fn field(&mut self, field: EntryField, name: &str, schema: &Schema, metrics: &Metrics) -> Result<()> {
        // An optional field that is always null in this file has no union.
        let is_absent = !field.is_required() && matches!(reduce(schema), Some((_, Schema::Null)));
        if is_absent || metrics.of(field) == Some(&FieldIds::None) {
            self.skip(name, schema);
        } else {
            self.push(name, Step::Field(field, field.encoding(name, schema)?));
        }
        Ok(())
    }

    /// The steps for the partition tuple; `None` if the writer has no such field.
    pub(super) fn partition(&self) -> Option<&PartitionSteps> {
        self.steps.iter().find_map(|step| if let Step::Partition(partition) = step { Some(partition) } else { None })
    }

    /// Whether the encoding of `fixed` partition values matters.
    pub(in crate::manifest) fn has_fixed(&self) -> bool {
        self.partition().is_some_and(|partition| partition.has_fixed)
    }

    fn push(&mut self, name: &str, step: Step) {
        self.steps.push(step);
        self.names.push(name.to_owned());
    }

    fn skip(&mut self, name: &str, schema: &Schema) {
        self.push(name, Step::Skip(Skip::of(schema)));
    }

    fn data_file(&mut self, schema: &Schema, partition: Option<&StructType>, metrics: &Metrics) -> Result<()> {
        let Some((presence, Schema::Record(record))) = reduce(schema) else {
            return Err(unexpected("data_file", schema, "a record"));
        };
        if presence != Presence::Required {
            self.push("data_file", Step::Enter(presence));
        }
        self.record(record, Record::File, partition, metrics)?;
        if self.partition().is_none() && partition.is_some_and(|partition| !partition.fields.is_empty()) {
            return Err(Error::corrupt(PLACE, "the field partition is missing, but the spec has partition fields"));
        }
        Ok(())
    }
}

fn missing(name: &str, id: i32) -> Error {
    Error::corrupt(PLACE, format!("required field {name} (id {id}) is missing"))
}
