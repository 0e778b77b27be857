//! Reads partition tuples in steps compiled from the writer's schema and the requested partition type.

use crate::Result;
use crate::avro::{Cursor, Fault, Logical, Schema, Skip};
use crate::manifest::presence::{Presence, reduce, unexpected};
use crate::types::{Field, PrimitiveType, StructType};

use super::builder::PartitionBuilder;
use super::wire::{FixedForm, Wire, wire};

/// A step that reads or skips one field of the writer's partition record.
#[derive(Debug)]
enum PartitionStep {
    Field { column: usize, presence: Presence, wire: Wire },
    Skip(Skip),
}

/// The compiled steps for a partition tuple.
#[derive(Debug)]
pub(in crate::manifest) struct PartitionSteps {
    presence: Presence,
    steps: Vec<PartitionStep>,
    /// The fields to read.
    pub(in crate::manifest) fields: Vec<Field>,
    /// Columns that the writer does not have: null in all rows.
    absent: Vec<usize>,
    /// Whether the encoding of `fixed` values matters (see [`FixedForm`]).
    pub(in crate::manifest) has_fixed: bool,
}

impl PartitionSteps {
    pub(in crate::manifest) fn compile(schema: &Schema, wanted: Option<&StructType>) -> Result<Self> {
        let Some((presence, Schema::Record(record))) = reduce(schema) else {
            return Err(unexpected("partition", schema, "a record"));
        };
        let fields = match wanted {
            Some(wanted) => wanted.fields.clone(),
            None => record
                .fields
                .iter()
                .enumerate()
                .map(|(index, field)| written_field(index, field))
                .collect::<Result<_>>()?,
        };
        let mut columns = vec![None; record.fields.len()];
        let mut absent = Vec::new();
        for (column, field) in fields.iter().enumerate() {
            let sanitized = crate::avro::name::sanitized(&field.name);
            let found = record.field(field.id, &[field.name.as_str(), &sanitized]);
            match found.and_then(|(index, _)| columns.get_mut(index)) {
                Some(place) => *place = Some((column, field)),
                None => absent.push(column),
            }
        }
        let steps = record.fields.iter().zip(columns).map(|(written, column)| match column {
            Some((column, field)) => step(column, field, &written.schema),
            None => Ok(PartitionStep::Skip(Skip::of(&written.schema))),
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let has_fixed =
            steps.iter().any(|step| matches!(step, PartitionStep::Field { wire, .. } if wire.is_fixed_either()));
        Ok(Self { presence, steps, fields, absent, has_fixed })
    }

    /// Reads one tuple and appends a value to every column.
    pub(in crate::manifest) fn read(
        &self,
        cursor: &mut Cursor<'_>,
        columns: &mut [PartitionBuilder],
        form: FixedForm,
    ) -> Result<(), Fault> {
        if !self.presence.is_some(cursor)? {
            return columns.iter_mut().try_for_each(PartitionBuilder::push_null);
        }
        for step in &self.steps {
            match step {
                PartitionStep::Skip(skip) => skip.run(cursor)?,
                PartitionStep::Field { column, presence, wire } => {
                    let Some(column) = columns.get_mut(*column) else { continue };
                    if presence.is_some(cursor)? {
                        column.read(cursor, wire, form)?;
                    } else {
                        column.push_null()?;
                    }
                }
            }
        }
        self.absent.iter().filter_map(|column| columns.get_mut(*column).map(PartitionBuilder::push_null)).collect()
    }

    /// Creates empty columns for the fields.
    pub(in crate::manifest) fn columns(&self) -> Vec<PartitionBuilder> {
        self.fields.iter().map(PartitionBuilder::new).collect()
    }
}

fn step(column: usize, field: &Field, schema: &Schema) -> Result<PartitionStep> {
    let target = field.ty.as_primitive();
    let made = match (reduce(schema), target) {
        (_, None) => None,
        // For an unrecognized type only the manifest's schema describes the values, which are shown if they are
        // primitive.
        (Some((presence, schema)), Some(PrimitiveType::Unrecognized(_))) if shown(schema).is_some() => {
            shown(schema).map(|wire| (presence, wire))
        }
        (_, Some(PrimitiveType::Unknown | PrimitiveType::Unrecognized(_))) | (Some((_, Schema::Null)), _) => {
            Some((Presence::Required, Wire::Skip(Skip::of(schema))))
        }
        (Some((presence, schema)), Some(target)) => wire(schema, target).map(|wire| (presence, wire)),
        (None, _) => None,
    };
    let (presence, wire) =
        made.ok_or_else(|| unexpected(&field.name, schema, "a value of the partition field's type"))?;
    Ok(PartitionStep::Field { column, presence, wire })
}

fn shown(schema: &Schema) -> Option<Wire> {
    let ty = written_type(schema).filter(|ty| *ty != PrimitiveType::Unknown)?;
    let wire = Box::new(wire(schema, &ty)?);
    Some(Wire::Shown(ty, wire))
}

/// The field as the writer's schema describes it, for readers that do not know the spec.
fn written_field(index: usize, field: &crate::avro::RecordField) -> Result<Field> {
    let (_, schema) = reduce(&field.schema).ok_or_else(|| unexpected(&field.name, &field.schema, "a value or null"))?;
    let ty = written_type(schema).ok_or_else(|| unexpected(&field.name, schema, "a primitive"))?;
    let id = field.field_id.unwrap_or(1000i32.saturating_add(i32::try_from(index).unwrap_or(i32::MAX)));
    Ok(Field::optional(id, field.iceberg_name.as_ref().unwrap_or(&field.name).clone(), ty))
}

/// The type as the writer's schema describes it; `None` if it is not primitive.
fn written_type(schema: &Schema) -> Option<PrimitiveType> {
    Some(match schema {
        Schema::Null => PrimitiveType::Unknown,
        Schema::Boolean => PrimitiveType::Boolean,
        Schema::Int(Some(Logical::Date)) => PrimitiveType::Date,
        Schema::Int(Some(Logical::TimeMillis)) | Schema::Long(Some(Logical::TimeMicros)) => PrimitiveType::Time,
        Schema::Int(_) => PrimitiveType::Int,
        Schema::Long(Some(Logical::TimestampMillis { utc } | Logical::TimestampMicros { utc })) => {
            if *utc == Some(true) { PrimitiveType::Timestamptz } else { PrimitiveType::Timestamp }
        }
        Schema::Long(Some(Logical::TimestampNanos { utc })) => {
            if *utc == Some(true) {
                PrimitiveType::TimestamptzNs
            } else {
                PrimitiveType::TimestampNs
            }
        }
        Schema::Long(_) => PrimitiveType::Long,
        Schema::Float => PrimitiveType::Float,
        Schema::Double => PrimitiveType::Double,
        Schema::Fixed(_, Some(Logical::Decimal { precision, scale }))
        | Schema::Bytes(Some(Logical::Decimal { precision, scale })) => {
            PrimitiveType::Decimal { precision: *precision, scale: *scale }
        }
        Schema::Fixed(16, Some(Logical::Uuid)) | Schema::String(Some(Logical::Uuid)) => PrimitiveType::Uuid,
        Schema::Fixed(size, _) => PrimitiveType::Fixed(u32::try_from(*size).ok()?),
        Schema::Bytes(_) => PrimitiveType::Binary,
        Schema::String(_) => PrimitiveType::String,
        _ => return None,
    })
}
