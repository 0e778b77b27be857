//! Partition tuples of manifest entries as typed columns ("102 partition").
//!
//! Values are read as the partition type that the caller gives (the spec over the current schema), so a column promoted since
//! the manifest was written, and a field that the writer lacks, come out right.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, NullArray, StructArray, UInt32Array};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use arrow_schema::{DataType, Field as ArrowField, Fields, TimeUnit};
use arrow_select::take::take;

use crate::avro::{Cursor, Fault, Logical, Schema, Skip};
use crate::types::arrow::FIELD_ID_KEY;
use crate::types::{Field, PrimitiveType, StructType, Type};
use crate::value::Value;
use crate::{Error, Result};

use super::columns::{Numbers, Strings};
use super::presence::{Presence, reduce, unexpected};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Bytes of one column of fixed values, nulls included.
const MOST_FIXED_BYTES: usize = 1 << 30;

/// How the bytes of `fixed` values stand in a manifest. The Java library writes a length before them although its schema
/// says `fixed`; other writers do as the schema says. Both are read: see `entries::read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FixedForm {
    Plain,
    Prefixed,
}

/// How a value stands in the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wire {
    Boolean,
    /// A number of at most 32 bits.
    Int,
    /// A number, and what it is multiplied by.
    Long(i64),
    Float,
    Double,
    /// A length and bytes.
    Prefixed,
    /// So many bytes.
    Fixed(u64),
    /// So many bytes, or a length and as many bytes.
    FixedEither(u64),
    /// A uuid as text.
    UuidText,
    /// What is not wanted.
    Skip(Skip),
}

/// A step over one field of the writer's partition record.
#[derive(Debug)]
enum PartitionStep {
    Field { column: usize, presence: Presence, wire: Wire },
    Skip(Skip),
}

/// The walk over a partition tuple.
#[derive(Debug)]
pub(super) struct PartitionSteps {
    presence: Presence,
    steps: Vec<PartitionStep>,
    /// The fields that are read.
    pub(super) fields: Vec<Field>,
    /// Columns that the writer does not have: null in all rows.
    absent: Vec<usize>,
    /// Whether it matters how `fixed` values stand.
    pub(super) has_fixed: bool,
}

impl PartitionSteps {
    pub(super) fn compile(schema: &Schema, wanted: Option<&StructType>) -> Result<Self> {
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
            steps.iter().any(|step| matches!(step, PartitionStep::Field { wire: Wire::FixedEither(_), .. }));
        Ok(Self { presence, steps, fields, absent, has_fixed })
    }

    /// Reads one tuple: every column grows by a value.
    pub(super) fn read(
        &self,
        cursor: &mut Cursor<'_>,
        columns: &mut [PartitionColumn],
        form: FixedForm,
    ) -> Result<(), Fault> {
        if !self.presence.is_some(cursor)? {
            return columns.iter_mut().try_for_each(PartitionColumn::push_null);
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
        self.absent.iter().filter_map(|column| columns.get_mut(*column).map(PartitionColumn::push_null)).collect()
    }

    /// Empty columns for the fields.
    pub(super) fn columns(&self) -> Vec<PartitionColumn> {
        self.fields.iter().map(PartitionColumn::new).collect()
    }
}

fn step(column: usize, field: &Field, schema: &Schema) -> Result<PartitionStep> {
    let target = field.ty.as_primitive();
    let made = match (reduce(schema), target) {
        (_, None) => None,
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

/// How a value of the target's type is made of what was written, or `None` where that makes no sense.
fn wire(schema: &Schema, target: &PrimitiveType) -> Option<Wire> {
    use PrimitiveType as P;
    Some(match (target, schema) {
        (P::Boolean, Schema::Boolean) => Wire::Boolean,
        (P::Int | P::Date, Schema::Int(_) | Schema::Long(_)) => Wire::Int,
        (P::Long, Schema::Int(_) | Schema::Long(_)) => Wire::Long(1),
        (P::Time, Schema::Int(logical) | Schema::Long(logical)) => match logical {
            Some(Logical::TimeMillis) => Wire::Long(1000),
            _ => Wire::Long(1),
        },
        (P::Timestamp | P::Timestamptz, Schema::Int(_)) => Wire::Long(MICROS_PER_DAY),
        (P::Timestamp | P::Timestamptz, Schema::Long(logical)) => match logical {
            Some(Logical::TimestampMillis { .. }) => Wire::Long(1000),
            Some(Logical::TimestampNanos { .. }) => return None,
            _ => Wire::Long(1),
        },
        (P::TimestampNs | P::TimestamptzNs, Schema::Int(_)) => Wire::Long(MICROS_PER_DAY * 1000),
        (P::TimestampNs | P::TimestamptzNs, Schema::Long(logical)) => match logical {
            Some(Logical::TimestampMillis { .. }) => Wire::Long(1_000_000),
            Some(Logical::TimestampMicros { .. }) => Wire::Long(1000),
            _ => Wire::Long(1),
        },
        (P::Float | P::Double, Schema::Float) => Wire::Float,
        (P::Double, Schema::Double) => Wire::Double,
        (P::Decimal { .. }, Schema::Fixed(size, _)) => Wire::Fixed(*size),
        (P::Uuid, Schema::Fixed(16, _)) => Wire::Fixed(16),
        (P::Uuid, Schema::String(_)) => Wire::UuidText,
        (P::Fixed(_) | P::Binary | P::Geometry { .. } | P::Geography { .. }, Schema::Fixed(size, _)) => {
            Wire::FixedEither(*size)
        }
        (P::Decimal { .. } | P::Uuid | P::Fixed(_), Schema::Bytes(_)) => Wire::Prefixed,
        (P::String | P::Binary | P::Geometry { .. } | P::Geography { .. }, Schema::String(_) | Schema::Bytes(_)) => {
            Wire::Prefixed
        }
        _ => return None,
    })
}

/// The field that the writer's schema describes, for readers that know no spec.
fn written_field(index: usize, field: &crate::avro::RecordField) -> Result<Field> {
    let (_, schema) = reduce(&field.schema).ok_or_else(|| unexpected(&field.name, &field.schema, "a value or null"))?;
    let ty = match schema {
        Schema::Null => PrimitiveType::Unknown,
        Schema::Boolean => PrimitiveType::Boolean,
        Schema::Int(Some(Logical::Date)) => PrimitiveType::Date,
        Schema::Int(Some(Logical::TimeMillis)) | Schema::Long(Some(Logical::TimeMicros)) => PrimitiveType::Time,
        Schema::Int(_) => PrimitiveType::Int,
        Schema::Long(Some(Logical::TimestampMillis { utc } | Logical::TimestampMicros { utc })) => {
            if *utc {
                PrimitiveType::Timestamptz
            } else {
                PrimitiveType::Timestamp
            }
        }
        Schema::Long(Some(Logical::TimestampNanos { utc })) => {
            if *utc {
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
        Schema::Fixed(size, _) => {
            PrimitiveType::Fixed(u32::try_from(*size).map_err(|_| unexpected(&field.name, schema, "a size"))?)
        }
        Schema::Bytes(_) => PrimitiveType::Binary,
        Schema::String(_) => PrimitiveType::String,
        _ => return Err(unexpected(&field.name, schema, "a primitive")),
    };
    let id = field.field_id.unwrap_or(1000i32.saturating_add(i32::try_from(index).unwrap_or(i32::MAX)));
    Ok(Field::optional(id, field.iceberg_name.as_ref().unwrap_or(&field.name).clone(), ty))
}

/// A partition column in the making.
#[derive(Debug)]
pub(super) struct PartitionColumn {
    ty: PrimitiveType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Nulls(usize),
    Booleans(BooleanBufferBuilder, NullBufferBuilder),
    Ints(Numbers<Int32Type>),
    Longs(Numbers<Int64Type>),
    Floats(Numbers<Float32Type>),
    Doubles(Numbers<Float64Type>),
    Decimals(Numbers<Decimal128Type>),
    Bytes(Strings),
    /// All of one length.
    Fixed(usize, Vec<u8>, NullBufferBuilder),
}

impl PartitionColumn {
    fn new(field: &Field) -> Self {
        use PrimitiveType as P;
        let ty = field.ty.as_primitive().cloned().unwrap_or(P::Unknown);
        let values = match &ty {
            P::Unknown | P::Unrecognized(_) => Values::Nulls(0),
            P::Boolean => Values::Booleans(BooleanBufferBuilder::new(0), NullBufferBuilder::new(0)),
            P::Int | P::Date => Values::Ints(Numbers::default()),
            P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs => {
                Values::Longs(Numbers::default())
            }
            P::Float => Values::Floats(Numbers::default()),
            P::Double => Values::Doubles(Numbers::default()),
            P::Decimal { .. } => Values::Decimals(Numbers::default()),
            P::String | P::Binary | P::Geometry { .. } | P::Geography { .. } => Values::Bytes(Strings::default()),
            P::Uuid => Values::Fixed(16, Vec::new(), NullBufferBuilder::new(0)),
            P::Fixed(size) => Values::Fixed(*size as usize, Vec::new(), NullBufferBuilder::new(0)),
        };
        Self { ty, values }
    }

    fn push_null(&mut self) -> Result<(), Fault> {
        match &mut self.values {
            Values::Nulls(rows) => *rows += 1,
            Values::Booleans(values, valid) => {
                values.append(false);
                valid.append_null();
            }
            Values::Ints(values) => values.push(None),
            Values::Longs(values) => values.push(None),
            Values::Floats(values) => values.push(None),
            Values::Doubles(values) => values.push(None),
            Values::Decimals(values) => values.push(None),
            Values::Bytes(values) => values.push(None),
            Values::Fixed(size, values, valid) => {
                // A null takes as much room as a value: a large type and many nulls are refused, not allocated.
                let length = values.len().saturating_add(*size);
                if length > MOST_FIXED_BYTES {
                    return Err(Fault::TooLong);
                }
                values.resize(length, 0);
                valid.append_null();
            }
        }
        Ok(())
    }

    fn read(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, form: FixedForm) -> Result<(), Fault> {
        // Also a field that was written as `null`, its source being gone, and whose type older schemas know.
        if let Wire::Skip(skip) = wire {
            skip.run(cursor)?;
            return self.push_null();
        }
        match &mut self.values {
            Values::Nulls(rows) => *rows += 1,
            Values::Booleans(values, valid) => {
                values.append(cursor.boolean()?);
                valid.append_non_null();
            }
            Values::Ints(values) => values.push(Some(cursor.int()?)),
            Values::Longs(values) => {
                let factor = if let Wire::Long(factor) = wire { *factor } else { 1 };
                values.push(Some(cursor.long()?.checked_mul(factor).ok_or(Fault::Range)?));
            }
            Values::Floats(values) => values.push(Some(f32::from_le_bytes(cursor.array()?))),
            Values::Doubles(values) if *wire == Wire::Float => {
                values.push(Some(f64::from(f32::from_le_bytes(cursor.array()?))))
            }
            Values::Doubles(values) => values.push(Some(f64::from_le_bytes(cursor.array()?))),
            Values::Decimals(values) => values.push(Some(unscaled(bytes(cursor, wire, form)?)?)),
            Values::Bytes(values) => {
                let bytes = bytes(cursor, wire, form)?;
                if self.ty == PrimitiveType::String {
                    simdutf8::basic::from_utf8(bytes).map_err(|_| Fault::Text)?;
                }
                values.push(Some(bytes));
            }
            Values::Fixed(size, values, valid) => {
                let bytes = bytes(cursor, wire, form)?;
                if *wire == Wire::UuidText {
                    values.extend_from_slice(uuid::Uuid::try_parse_ascii(bytes).map_err(|_| Fault::Text)?.as_bytes());
                } else if bytes.len() == *size {
                    values.extend_from_slice(bytes);
                } else {
                    return Err(Fault::Length);
                }
                valid.append_non_null();
            }
        }
        Ok(())
    }

    /// Forgets all rows but the first `rows`.
    pub(super) fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Values::Nulls(count) => *count = rows.min(*count),
            Values::Booleans(values, valid) => {
                values.truncate(rows);
                valid.truncate(rows);
            }
            Values::Ints(values) => values.truncate(rows),
            Values::Longs(values) => values.truncate(rows),
            Values::Floats(values) => values.truncate(rows),
            Values::Doubles(values) => values.truncate(rows),
            Values::Decimals(values) => values.truncate(rows),
            Values::Bytes(values) => values.truncate(rows),
            Values::Fixed(size, values, valid) => {
                values.truncate(rows.saturating_mul(*size));
                valid.truncate(rows);
            }
        }
    }

    /// The value of the last row.
    pub(super) fn last(&self) -> Option<Value> {
        match &self.values {
            Values::Nulls(_) => None,
            Values::Booleans(values, valid) => {
                let row = values.len().checked_sub(1)?;
                valid.is_valid(row).then(|| Value::Boolean(values.get_bit(row)))
            }
            Values::Ints(values) => values.last().map(Value::Int),
            Values::Longs(values) => values.last().map(Value::Long),
            Values::Floats(values) => values.last().map(Value::Float),
            Values::Doubles(values) => values.last().map(Value::Double),
            Values::Decimals(values) => values.last().map(Value::Decimal),
            Values::Bytes(values) => values.last().map(|bytes| match self.ty {
                PrimitiveType::String => Value::String(String::from_utf8_lossy(bytes).into_owned()),
                _ => Value::Binary(bytes.to_vec()),
            }),
            Values::Fixed(size, values, valid) => {
                let row = valid.len().checked_sub(1)?;
                let bytes = values.get(values.len().checked_sub(*size)?..)?;
                valid.is_valid(row).then(|| match (&self.ty, bytes.try_into()) {
                    (PrimitiveType::Uuid, Ok(uuid)) => Value::Uuid(uuid),
                    _ => Value::Binary(bytes.to_vec()),
                })
            }
        }
    }

    fn finish(self, name: &str) -> Result<ArrayRef> {
        let bad = |error: arrow_schema::ArrowError| Error::corrupt(format!("partition.{name}"), error.to_string());
        Ok(match self.values {
            Values::Nulls(rows) => Arc::new(NullArray::new(rows)),
            Values::Booleans(mut values, mut valid) => Arc::new(BooleanArray::new(values.finish(), valid.finish())),
            Values::Ints(values) if self.ty == PrimitiveType::Date => {
                Arc::new(values.finish().reinterpret_cast::<Date32Type>())
            }
            Values::Ints(values) => Arc::new(values.finish()),
            Values::Longs(values) => longs(&self.ty, values),
            Values::Floats(values) => Arc::new(values.finish()),
            Values::Doubles(values) => Arc::new(values.finish()),
            Values::Decimals(values) => Arc::new(values.finish().with_data_type(arrow_type(&self.ty))),
            Values::Bytes(values) if self.ty == PrimitiveType::String => Arc::new(values.finish_text(name)?),
            Values::Bytes(values) => Arc::new(values.finish_binary()),
            Values::Fixed(size, values, mut valid) => {
                let rows = valid.len();
                let size = i32::try_from(size).unwrap_or(i32::MAX);
                Arc::new(
                    FixedSizeBinaryArray::try_new_with_len(size, values.into(), valid.finish(), rows).map_err(bad)?,
                )
            }
        })
    }
}

fn longs(ty: &PrimitiveType, values: Numbers<Int64Type>) -> ArrayRef {
    let array = values.finish();
    match ty {
        PrimitiveType::Time => Arc::new(array.reinterpret_cast::<Time64MicrosecondType>()),
        PrimitiveType::Timestamp => Arc::new(array.reinterpret_cast::<TimestampMicrosecondType>()),
        PrimitiveType::Timestamptz => {
            Arc::new(array.reinterpret_cast::<TimestampMicrosecondType>().with_timezone("UTC"))
        }
        PrimitiveType::TimestampNs => Arc::new(array.reinterpret_cast::<TimestampNanosecondType>()),
        PrimitiveType::TimestamptzNs => {
            Arc::new(array.reinterpret_cast::<TimestampNanosecondType>().with_timezone("UTC"))
        }
        _ => Arc::new(array),
    }
}

/// The bytes of a value.
fn bytes<'a>(cursor: &mut Cursor<'a>, wire: &Wire, form: FixedForm) -> Result<&'a [u8], Fault> {
    match wire {
        Wire::Fixed(size) => cursor.take(*size),
        Wire::FixedEither(size) if form == FixedForm::Plain => cursor.take(*size),
        Wire::FixedEither(size) => {
            let before = *cursor;
            let bytes = cursor.bytes()?;
            if bytes.len() as u64 == *size {
                return Ok(bytes);
            }
            *cursor = before;
            Err(Fault::Length)
        }
        _ => cursor.bytes(),
    }
}

/// The number of a big-endian two's complement.
fn unscaled(bytes: &[u8]) -> Result<i128, Fault> {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let fill = if negative { 0xff } else { 0 };
    // Bytes that only repeat the sign may stand before sixteen that matter.
    let (extra, kept) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut whole = [fill; 16];
    whole.iter_mut().rev().zip(kept.iter().rev()).for_each(|(to, from)| *to = *from);
    let number = i128::from_be_bytes(whole);
    if extra.iter().any(|byte| *byte != fill) || (number < 0) != negative {
        return Err(Fault::Range);
    }
    Ok(number)
}

/// The Arrow type of a partition value.
pub(super) fn arrow_type(ty: &PrimitiveType) -> DataType {
    use PrimitiveType as P;
    match ty {
        P::Unknown | P::Unrecognized(_) => DataType::Null,
        P::Boolean => DataType::Boolean,
        P::Int => DataType::Int32,
        P::Long => DataType::Int64,
        P::Float => DataType::Float32,
        P::Double => DataType::Float64,
        P::Decimal { precision, scale } => DataType::Decimal128(*precision, scale.cast_signed()),
        P::Date => DataType::Date32,
        P::Time => DataType::Time64(TimeUnit::Microsecond),
        P::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        P::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        P::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        P::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        P::String => DataType::Utf8,
        P::Uuid => DataType::FixedSizeBinary(16),
        P::Fixed(size) => DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX)),
        P::Binary | P::Geometry { .. } | P::Geography { .. } => DataType::Binary,
    }
}

/// The Arrow fields of a partition type, as [`Entries::partition`](super::Entries) has them.
pub fn arrow_fields(ty: &StructType) -> Fields {
    let field =
        |field: &Field| arrow_field(field, arrow_type(field.ty.as_primitive().unwrap_or(&PrimitiveType::Unknown)));
    ty.fields.iter().map(field).collect()
}

fn arrow_field(field: &Field, data_type: DataType) -> ArrowField {
    let id = [(FIELD_ID_KEY.to_owned(), field.id.to_string())];
    ArrowField::new(&field.name, data_type, true).with_metadata(std::collections::HashMap::from(id))
}

/// The columns as one struct column of `rows` rows; field ids stand in the fields' metadata (`PARQUET:field_id`).
pub(super) fn finish(columns: Vec<PartitionColumn>, fields: &[Field], rows: usize) -> Result<StructArray> {
    let mut arrays = Vec::with_capacity(columns.len());
    let mut arrow = Vec::with_capacity(columns.len());
    for (column, field) in columns.into_iter().zip(fields) {
        let array = column.finish(&field.name)?;
        arrow.push(arrow_field(field, array.data_type().clone()));
        arrays.push(array);
    }
    let made = StructArray::try_new_with_length(Fields::from(arrow), arrays, None, rows);
    made.map_err(|error| Error::corrupt("partition", error.to_string()))
}

/// The tuple of each row.
pub(super) fn of_rows(tuples: &StructArray, tuple_of: &UInt32Array) -> Result<StructArray> {
    let columns = tuples.columns().iter().map(|column| take(column, tuple_of, None));
    let made = columns
        .collect::<Result<Vec<_>, _>>()
        .and_then(|columns| StructArray::try_new_with_length(tuples.fields().clone(), columns, None, tuple_of.len()));
    made.map_err(|error| Error::corrupt("partition", error.to_string()))
}

/// The value of a row of a finished column: `Some(None)` is null, `None` a column of another type.
pub(super) fn value(column: &ArrayRef, ty: &Type, row: usize) -> Option<Option<Value>> {
    use PrimitiveType as P;
    let ty = ty.as_primitive()?;
    if *column.data_type() != arrow_type(ty) {
        return None;
    }
    if row >= column.len() || column.is_null(row) || matches!(ty, P::Unknown | P::Unrecognized(_)) {
        return Some(None);
    }
    let column = column.as_ref();
    Some(Some(match ty {
        P::Unknown | P::Unrecognized(_) => return Some(None),
        P::Boolean => Value::Boolean(column.as_boolean_opt()?.value(row)),
        P::Int => Value::Int(column.as_primitive_opt::<Int32Type>()?.value(row)),
        P::Date => Value::Int(column.as_primitive_opt::<Date32Type>()?.value(row)),
        P::Long => Value::Long(column.as_primitive_opt::<Int64Type>()?.value(row)),
        P::Time => Value::Long(column.as_primitive_opt::<Time64MicrosecondType>()?.value(row)),
        P::Timestamp | P::Timestamptz => Value::Long(column.as_primitive_opt::<TimestampMicrosecondType>()?.value(row)),
        P::TimestampNs | P::TimestamptzNs => {
            Value::Long(column.as_primitive_opt::<TimestampNanosecondType>()?.value(row))
        }
        P::Float => Value::Float(column.as_primitive_opt::<Float32Type>()?.value(row)),
        P::Double => Value::Double(column.as_primitive_opt::<Float64Type>()?.value(row)),
        P::Decimal { .. } => Value::Decimal(column.as_primitive_opt::<Decimal128Type>()?.value(row)),
        P::String => Value::String(column.as_string_opt::<i32>()?.value(row).to_owned()),
        P::Uuid => Value::Uuid(column.as_fixed_size_binary_opt()?.value(row).try_into().ok()?),
        P::Fixed(_) => Value::Binary(column.as_fixed_size_binary_opt()?.value(row).to_vec()),
        P::Binary | P::Geometry { .. } | P::Geography { .. } => {
            Value::Binary(column.as_binary_opt::<i32>()?.value(row).to_vec())
        }
    }))
}

/// The partition type of fields.
pub(super) fn type_of(fields: &[Field]) -> StructType {
    StructType { fields: fields.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_length() {
        for (bytes, number) in [
            (&[][..], Ok(0)),
            (&[0xff], Ok(-1)),
            (&[0x00, 0x80], Ok(128)),
            (&[0xff; 20], Ok(-1)),
            (&[0x7f, 0xff], Ok(0x7fff)),
        ] {
            assert_eq!(unscaled(bytes), number);
        }
        let mut large = [0u8; 17];
        large[0] = 1;
        assert_eq!(unscaled(&large), Err(Fault::Range));
        large[0] = 0;
        large[1] = 0x80;
        assert_eq!(unscaled(&large), Err(Fault::Range), "a sign that changes when the extra byte goes");
    }
}
