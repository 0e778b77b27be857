//! Builds partition columns from the values in a manifest.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeBinaryArray, NullArray};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use arrow_schema::{DataType, TimeUnit};

use crate::avro::decimal::unscaled;
use crate::avro::{Cursor, Fault};
use crate::manifest::builders::{BytesBuilder, NumberBuilder};
use crate::spec::untyped;
use crate::types::{Field, PrimitiveType};
use crate::value::Value;
use crate::{Error, Result};

use super::wire::{FixedForm, Wire};

/// Maximum size of one column of fixed values, including nulls.
const MOST_FIXED_BYTES: usize = 1 << 30;

/// The Arrow type of a partition value.
pub(super) fn arrow_type(ty: &PrimitiveType) -> DataType {
    use PrimitiveType as P;
    match ty {
        P::Unknown => DataType::Null,
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
        P::String | P::Unrecognized(_) => DataType::Utf8,
        P::Uuid => DataType::FixedSizeBinary(16),
        P::Fixed(size) => DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX)),
        P::Binary | P::Geometry { .. } | P::Geography { .. } => DataType::Binary,
    }
}

/// Builds a partition column.
#[derive(Debug)]
pub(in crate::manifest) struct PartitionBuilder {
    ty: PrimitiveType,
    values: PartitionValues,
}

#[derive(Debug)]
enum PartitionValues {
    Nulls(usize),
    Booleans(BooleanBufferBuilder, NullBufferBuilder),
    Ints(NumberBuilder<Int32Type>),
    Longs(NumberBuilder<Int64Type>),
    Floats(NumberBuilder<Float32Type>),
    Doubles(NumberBuilder<Float64Type>),
    Decimals(NumberBuilder<Decimal128Type>),
    Bytes(BytesBuilder),
    /// Values of one length.
    Fixed(usize, Vec<u8>, NullBufferBuilder),
}

impl PartitionBuilder {
    pub(super) fn new(field: &Field) -> Self {
        use PrimitiveType as P;
        let ty = field.ty.as_primitive().cloned().unwrap_or(P::Unknown);
        let values = match &ty {
            P::Unknown => PartitionValues::Nulls(0),
            P::Boolean => PartitionValues::Booleans(BooleanBufferBuilder::new(0), NullBufferBuilder::new(0)),
            P::Int | P::Date => PartitionValues::Ints(NumberBuilder::default()),
            P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs => {
                PartitionValues::Longs(NumberBuilder::default())
            }
            P::Float => PartitionValues::Floats(NumberBuilder::default()),
            P::Double => PartitionValues::Doubles(NumberBuilder::default()),
            P::Decimal { .. } => PartitionValues::Decimals(NumberBuilder::default()),
            P::String | P::Unrecognized(_) | P::Binary | P::Geometry { .. } | P::Geography { .. } => {
                PartitionValues::Bytes(BytesBuilder::default())
            }
            P::Uuid => PartitionValues::Fixed(16, Vec::new(), NullBufferBuilder::new(0)),
            P::Fixed(size) => PartitionValues::Fixed(*size as usize, Vec::new(), NullBufferBuilder::new(0)),
        };
        Self { ty, values }
    }

    pub(super) fn push_null(&mut self) -> Result<(), Fault> {
        match &mut self.values {
            PartitionValues::Nulls(rows) => *rows += 1,
            PartitionValues::Booleans(values, valid) => {
                values.append(false);
                valid.append_null();
            }
            PartitionValues::Ints(values) => values.push(None),
            PartitionValues::Longs(values) => values.push(None),
            PartitionValues::Floats(values) => values.push(None),
            PartitionValues::Doubles(values) => values.push(None),
            PartitionValues::Decimals(values) => values.push(None),
            PartitionValues::Bytes(values) => values.push(None),
            PartitionValues::Fixed(size, values, valid) => {
                // A null takes as much memory as a value, so a large type with many nulls is refused rather than
                // allocated.
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

    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>, wire: &Wire, form: FixedForm) -> Result<(), Fault> {
        // Skipped values are null, including fields written as `null` because their source column was dropped, although
        // older schemas know their type.
        if let Wire::Skip(skip) = wire {
            skip.run(cursor)?;
            return self.push_null();
        }
        match &mut self.values {
            PartitionValues::Bytes(values) if let Wire::Shown(ty, wire) = wire => {
                let mut one = Self::new(&Field::optional(0, "", ty.clone()));
                one.read(cursor, wire, form)?;
                let text = one.last().map(|value| untyped::to_text(&value, ty)).transpose();
                values.push(text.map_err(|_| Fault::Range)?.as_deref().map(str::as_bytes));
            }
            PartitionValues::Nulls(rows) => *rows += 1,
            PartitionValues::Booleans(values, valid) => {
                values.append(cursor.boolean()?);
                valid.append_non_null();
            }
            PartitionValues::Ints(values) => values.push(Some(cursor.int()?)),
            PartitionValues::Longs(values) => {
                let factor = if let Wire::Long(factor) = wire { *factor } else { 1 };
                values.push(Some(cursor.long()?.checked_mul(factor).ok_or(Fault::Range)?));
            }
            PartitionValues::Floats(values) => values.push(Some(f32::from_le_bytes(cursor.array()?))),
            PartitionValues::Doubles(values) if *wire == Wire::Float => {
                values.push(Some(f64::from(f32::from_le_bytes(cursor.array()?))))
            }
            PartitionValues::Doubles(values) => values.push(Some(f64::from_le_bytes(cursor.array()?))),
            // An empty value is zero.
            PartitionValues::Decimals(values) => values.push(Some(match bytes(cursor, wire, form)? {
                [] => 0,
                bytes => unscaled(bytes)?,
            })),
            PartitionValues::Bytes(values) => {
                let bytes = bytes(cursor, wire, form)?;
                if self.ty == PrimitiveType::String {
                    simdutf8::basic::from_utf8(bytes).map_err(|_| Fault::Text)?;
                }
                values.push(Some(bytes));
            }
            PartitionValues::Fixed(size, values, valid) => {
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

    /// Keeps the first `rows` rows and discards the rest.
    pub(in crate::manifest) fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            PartitionValues::Nulls(count) => *count = rows.min(*count),
            PartitionValues::Booleans(values, valid) => {
                values.truncate(rows);
                valid.truncate(rows);
            }
            PartitionValues::Ints(values) => values.truncate(rows),
            PartitionValues::Longs(values) => values.truncate(rows),
            PartitionValues::Floats(values) => values.truncate(rows),
            PartitionValues::Doubles(values) => values.truncate(rows),
            PartitionValues::Decimals(values) => values.truncate(rows),
            PartitionValues::Bytes(values) => values.truncate(rows),
            PartitionValues::Fixed(size, values, valid) => {
                values.truncate(rows.saturating_mul(*size));
                valid.truncate(rows);
            }
        }
    }

    /// Returns the value of the last row.
    pub(in crate::manifest) fn last(&self) -> Option<Value> {
        match &self.values {
            PartitionValues::Nulls(_) => None,
            PartitionValues::Booleans(values, valid) => {
                let row = values.len().checked_sub(1)?;
                valid.is_valid(row).then(|| Value::Boolean(values.get_bit(row)))
            }
            PartitionValues::Ints(values) => values.last().map(Value::Int),
            PartitionValues::Longs(values) => values.last().map(Value::Long),
            PartitionValues::Floats(values) => values.last().map(Value::Float),
            PartitionValues::Doubles(values) => values.last().map(Value::Double),
            PartitionValues::Decimals(values) => values.last().map(Value::Decimal),
            PartitionValues::Bytes(values) => values.last().map(|bytes| match self.ty {
                PrimitiveType::String | PrimitiveType::Unrecognized(_) => {
                    Value::String(String::from_utf8_lossy(bytes).into_owned())
                }
                _ => Value::Binary(bytes.to_vec()),
            }),
            PartitionValues::Fixed(size, values, valid) => {
                let row = valid.len().checked_sub(1)?;
                let bytes = values.get(values.len().checked_sub(*size)?..)?;
                valid.is_valid(row).then(|| match (&self.ty, bytes.try_into()) {
                    (PrimitiveType::Uuid, Ok(uuid)) => Value::Uuid(uuid),
                    _ => Value::Binary(bytes.to_vec()),
                })
            }
        }
    }

    pub(super) fn finish(self, name: &str) -> Result<ArrayRef> {
        let bad = |error: arrow_schema::ArrowError| Error::corrupt(format!("partition.{name}"), error.to_string());
        Ok(match self.values {
            PartitionValues::Nulls(rows) => Arc::new(NullArray::new(rows)),
            PartitionValues::Booleans(mut values, mut valid) => {
                Arc::new(BooleanArray::new(values.finish(), valid.finish()))
            }
            PartitionValues::Ints(values) if self.ty == PrimitiveType::Date => {
                Arc::new(values.finish().reinterpret_cast::<Date32Type>())
            }
            PartitionValues::Ints(values) => Arc::new(values.finish()),
            PartitionValues::Longs(values) => longs(&self.ty, values),
            PartitionValues::Floats(values) => Arc::new(values.finish()),
            PartitionValues::Doubles(values) => Arc::new(values.finish()),
            PartitionValues::Decimals(values) => Arc::new(values.finish().with_data_type(arrow_type(&self.ty))),
            PartitionValues::Bytes(values)
                if matches!(self.ty, PrimitiveType::String | PrimitiveType::Unrecognized(_)) =>
            {
                Arc::new(values.finish_text(name)?)
            }
            PartitionValues::Bytes(values) => Arc::new(values.finish_binary()),
            PartitionValues::Fixed(size, values, mut valid) => {
                let rows = valid.len();
                let size = i32::try_from(size).unwrap_or(i32::MAX);
                Arc::new(
                    FixedSizeBinaryArray::try_new_with_len(size, values.into(), valid.finish(), rows).map_err(bad)?,
                )
            }
        })
    }
}

fn longs(ty: &PrimitiveType, values: NumberBuilder<Int64Type>) -> ArrayRef {
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

/// Reads the bytes of a value.
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
