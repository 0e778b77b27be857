//! Encodes rows of Arrow batches as Avro.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, StringArray,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use icefield_format::avro::Encoder;
use icefield_format::avro::from_type::decimal_bytes;
use icefield_format::types::{Field, PrimitiveType, Type};

use crate::error::{Error, Result};
use crate::file::is_stored;

/// The values of a field in the rows of a batch.
pub(super) struct EncodedField {
    optional: bool,
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    /// Not stored.
    Unknown,
    Boolean(BooleanArray),
    Int(arrow_buffer::ScalarBuffer<i32>),
    Long(arrow_buffer::ScalarBuffer<i64>),
    Float(arrow_buffer::ScalarBuffer<f32>),
    Double(arrow_buffer::ScalarBuffer<f64>),
    /// With a fixed number of bytes.
    Decimal(arrow_buffer::ScalarBuffer<i128>, usize),
    Fixed(FixedSizeBinaryArray),
    Text(StringArray),
    LargeText(LargeStringArray),
    Bytes(BinaryArray),
    LargeBytes(LargeBinaryArray),
    Struct(Vec<EncodedField>),
    List(Vec<i64>, Box<EncodedField>),
    Map(Vec<i64>, Box<EncodedField>, Box<EncodedField>),
}

/// The columns for the fields of a struct; the arrays are those of the stored fields.
pub(super) fn columns(fields: &[Field], arrays: &[ArrayRef]) -> Result<Vec<EncodedField>> {
    let mut arrays = arrays.iter();
    let column = |field: &Field| {
        if !is_stored(field) {
            return Ok(EncodedField { optional: false, nulls: None, values: Values::Unknown });
        }
        let array = arrays.next().ok_or_else(|| misfit(field, "nothing"))?;
        EncodedField::new(field, array)
    };
    fields.iter().map(column).collect()
}

fn misfit(field: &Field, found: impl std::fmt::Display) -> Error {
    Error::Internal(format!("column {} of type {} comes as {found}", field.name, field.ty))
}

impl EncodedField {
    fn new(field: &Field, array: &ArrayRef) -> Result<Self> {
        Ok(Self { optional: !field.required, nulls: array.logical_nulls(), values: Values::new(field, array)? })
    }

    /// Writes the value of a row.
    pub(super) fn write(&self, row: usize, out: &mut Encoder) -> Result<(), Missing> {
        if matches!(self.values, Values::Unknown) {
            return Ok(());
        }
        let is_some = self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        if self.optional {
            out.some(is_some);
        }
        match (is_some, self.optional) {
            (true, _) => self.values.write(row, out),
            (false, true) => Ok(()),
            (false, false) => Err(Missing),
        }
    }
}

/// A null in a required field, which Avro cannot store.
pub(super) struct Missing;

impl Values {
    fn new(field: &Field, array: &ArrayRef) -> Result<Self> {
        Ok(match (&field.ty, array.data_type()) {
            (Type::Primitive(ty), _) => return Self::primitive(field, ty, array),
            (Type::Struct(ty), DataType::Struct(_)) => Self::Struct(columns(&ty.fields, array.as_struct().columns())?),
            (Type::Variant, DataType::Struct(_)) => {
                let part = |name: &str| {
                    let found = array.as_struct().column_by_name(name);
                    let found = found.ok_or_else(|| misfit(field, array.data_type()))?;
                    EncodedField::new(&Field::required(0, name, PrimitiveType::Binary), found)
                };
                Self::Struct(vec![part("metadata")?, part("value")?])
            }
            (Type::List(ty), DataType::List(_)) => {
                let list = array.as_list::<i32>();
                let offsets = list.offsets().iter().map(|offset| i64::from(*offset)).collect();
                Self::List(offsets, Box::new(inner(&ty.element, list.values())?))
            }
            (Type::List(ty), DataType::LargeList(_)) => {
                let list = array.as_list::<i64>();
                Self::List(list.offsets().to_vec(), Box::new(inner(&ty.element, list.values())?))
            }
            (Type::Map(ty), DataType::Map(..)) => {
                let map = array.as_map();
                let offsets = map.offsets().iter().map(|offset| i64::from(*offset)).collect();
                let (key, value) = (inner(&ty.key, map.keys())?, inner(&ty.value, map.values())?);
                Self::Map(offsets, Box::new(key), Box::new(value))
            }
            (_, found) => return Err(misfit(field, found)),
        })
    }

    fn primitive(field: &Field, ty: &PrimitiveType, array: &ArrayRef) -> Result<Self> {
        use PrimitiveType as P;
        let instant = |unit| {
            let zone = matches!(ty, P::Timestamptz | P::TimestamptzNs).then(|| "UTC".into());
            DataType::Timestamp(unit, zone)
        };
        let as_type = |wanted: DataType| as_type(array, &wanted).map_err(|error| misfit(field, error));
        Ok(match ty {
            P::Boolean => Self::Boolean(as_type(DataType::Boolean)?.as_boolean().clone()),
            P::Int => Self::Int(as_type(DataType::Int32)?.as_primitive::<Int32Type>().values().clone()),
            P::Date => Self::Int(as_type(DataType::Date32)?.as_primitive::<Date32Type>().values().clone()),
            P::Long => Self::Long(as_type(DataType::Int64)?.as_primitive::<Int64Type>().values().clone()),
            P::Time => {
                let times = as_type(DataType::Time64(TimeUnit::Microsecond))?;
                Self::Long(times.as_primitive::<Time64MicrosecondType>().values().clone())
            }
            P::Timestamp | P::Timestamptz => {
                let times = as_type(instant(TimeUnit::Microsecond))?;
                Self::Long(times.as_primitive::<TimestampMicrosecondType>().values().clone())
            }
            P::TimestampNs | P::TimestamptzNs => {
                let times = as_type(instant(TimeUnit::Nanosecond))?;
                Self::Long(times.as_primitive::<TimestampNanosecondType>().values().clone())
            }
            P::Float => Self::Float(as_type(DataType::Float32)?.as_primitive::<Float32Type>().values().clone()),
            P::Double => Self::Double(as_type(DataType::Float64)?.as_primitive::<Float64Type>().values().clone()),
            P::Decimal { precision, scale } => {
                let numbers = as_type(DataType::Decimal128(*precision, scale.cast_signed()))?;
                Self::Decimal(numbers.as_primitive::<Decimal128Type>().values().clone(), decimal_bytes(*precision))
            }
            P::Uuid => Self::Fixed(as_type(DataType::FixedSizeBinary(16))?.as_fixed_size_binary().clone()),
            P::Fixed(length) => {
                let length = i32::try_from(*length).map_err(|_| misfit(field, array.data_type()))?;
                Self::Fixed(as_type(DataType::FixedSizeBinary(length))?.as_fixed_size_binary().clone())
            }
            P::String => match array.data_type() {
                DataType::Utf8 => Self::Text(array.as_string::<i32>().clone()),
                _ => Self::LargeText(as_type(DataType::LargeUtf8)?.as_string::<i64>().clone()),
            },
            P::Binary | P::Geometry { .. } | P::Geography { .. } => match array.data_type() {
                DataType::Binary => Self::Bytes(array.as_binary::<i32>().clone()),
                _ => Self::LargeBytes(as_type(DataType::LargeBinary)?.as_binary::<i64>().clone()),
            },
            P::Unknown => Self::Unknown,
            P::Unrecognized(name) => {
                return Err(Error::unsupported(format!("column {}: writing a column of the type {name}", field.name)));
            }
        })
    }

    fn write(&self, row: usize, out: &mut Encoder) -> Result<(), Missing> {
        match self {
            Self::Unknown => {}
            Self::Boolean(values) => out.boolean(values.value(row)),
            Self::Int(values) => out.int(values[row]),
            Self::Long(values) => out.long(values[row]),
            Self::Float(values) => out.raw(&values[row].to_le_bytes()),
            Self::Double(values) => out.raw(&values[row].to_le_bytes()),
            Self::Decimal(values, size) => {
                let bytes = values[row].to_be_bytes();
                out.raw(bytes.get(16 - size..).unwrap_or_default());
            }
            Self::Fixed(values) => out.raw(values.value(row)),
            Self::Text(values) => out.bytes(values.value(row).as_bytes()),
            Self::LargeText(values) => out.bytes(values.value(row).as_bytes()),
            Self::Bytes(values) => out.bytes(values.value(row)),
            Self::LargeBytes(values) => out.bytes(values.value(row)),
            Self::Struct(columns) => columns.iter().try_for_each(|column| column.write(row, out))?,
            Self::List(offsets, element) => items(offsets, row, out, |item, out| element.write(item, out))?,
            Self::Map(offsets, key, value) => items(offsets, row, out, |item, out| {
                key.write(item, out)?;
                value.write(item, out)
            })?,
        }
        Ok(())
    }
}

fn inner(field: &Field, values: &ArrayRef) -> Result<EncodedField> {
    match is_stored(field) {
        true => EncodedField::new(field, values),
        false => Ok(EncodedField { optional: false, nulls: None, values: Values::Unknown }),
    }
}

/// Writes the items of a list: one block, and the end marker.
fn items(
    offsets: &[i64],
    row: usize,
    out: &mut Encoder,
    write: impl Fn(usize, &mut Encoder) -> Result<(), Missing>,
) -> Result<(), Missing> {
    let place = |at: usize| usize::try_from(offsets[at]).unwrap_or(0);
    let places = place(row)..place(row + 1);
    if !places.is_empty() {
        out.length(places.len());
        places.into_iter().try_for_each(|item| write(item, out))?;
    }
    out.length(0);
    Ok(())
}

fn as_type(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == wanted {
        return Ok(array.clone());
    }
    cast_with_options(array, wanted, &CastOptions { safe: false, ..CastOptions::default() })
}
