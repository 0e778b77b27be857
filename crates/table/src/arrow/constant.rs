//! Single values as Arrow arrays: partition constants, defaults, literals.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, MapArray, PrimitiveArray, StructArray, UInt64Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use icefield_format::types::Type;
use icefield_format::value::Value;

use crate::error::{Error, Result};

/// Values of an Iceberg type as an array of the Arrow type in which a reader returns them.
pub fn array(values: &[Option<&Value>], ty: &Type, wanted: &DataType) -> Result<ArrayRef> {
    Ok(match wanted {
        DataType::Null => arrow_array::new_null_array(wanted, values.len()),
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            for value in values {
                builder.append_option(pick(*value, |value| match value {
                    Value::Boolean(found) => Some(*found),
                    _ => None,
                })?);
            }
            Arc::new(builder.finish())
        }
        DataType::Int32 => numbers::<Int32Type>(values, int, wanted)?,
        DataType::Date32 => numbers::<Date32Type>(values, int, wanted)?,
        DataType::Int64 => numbers::<Int64Type>(values, long, wanted)?,
        DataType::Time64(TimeUnit::Microsecond) => numbers::<Time64MicrosecondType>(values, long, wanted)?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType>(values, long, wanted)?,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers::<TimestampNanosecondType>(values, long, wanted)?,
        DataType::Float32 => numbers::<Float32Type>(
            values,
            |value| match value {
                Value::Float(found) => Some(*found),
                _ => None,
            },
            wanted,
        )?,
        DataType::Float64 => numbers::<Float64Type>(
            values,
            |value| match value {
                Value::Double(found) => Some(*found),
                Value::Float(found) => Some(f64::from(*found)),
                _ => None,
            },
            wanted,
        )?,
        DataType::Decimal128(..) => numbers::<Decimal128Type>(
            values,
            |value| match value {
                Value::Decimal(found) => Some(*found),
                _ => None,
            },
            wanted,
        )?,
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            for value in values {
                match value {
                    None => builder.append_null(),
                    Some(Value::String(found)) => builder.append_value(found),
                    Some(_) => return Err(misfit(wanted)),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            for value in values {
                builder.append_option(pick(*value, bytes)?);
            }
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for value in values {
                match pick(*value, bytes)? {
                    None => builder.append_null(),
                    Some(found) => builder.append_value(found).map_err(|_| misfit(wanted))?,
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => nested(values, ty, wanted)?,
        _ => return Err(misfit(wanted)),
    })
}

/// One value as a column of `rows` rows.
pub fn repeat(value: Option<&Value>, ty: &Type, wanted: &DataType, rows: usize) -> Result<ArrayRef> {
    let Some(value) = value else { return Ok(arrow_array::new_null_array(wanted, rows)) };
    let one = array(&[Some(value)], ty, wanted)?;
    let zeros = UInt64Array::from_value(0, rows);
    take(&one, &zeros, None).map_err(|error| Error::Internal(error.to_string()))
}

fn numbers<T: ArrowPrimitiveType>(
    values: &[Option<&Value>],
    read: impl Fn(&Value) -> Option<T::Native>,
    wanted: &DataType,
) -> Result<ArrayRef> {
    let natives = values.iter().map(|value| pick(*value, &read)).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(natives).with_data_type(wanted.clone())))
}

fn int(value: &Value) -> Option<i32> {
    match value {
        Value::Int(found) => Some(*found),
        _ => None,
    }
}

fn long(value: &Value) -> Option<i64> {
    match value {
        Value::Long(found) => Some(*found),
        Value::Int(found) => Some(i64::from(*found)),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Binary(found) => Some(found),
        Value::Uuid(found) => Some(found),
        Value::String(found) => Some(found.as_bytes()),
        _ => None,
    }
}

fn pick<'a, T>(value: Option<&'a Value>, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
    match value {
        None => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| Error::Internal(format!("{value:?} is not of its type"))),
    }
}

fn misfit(wanted: &DataType) -> Error {
    Error::unsupported(format!("a constant of Arrow type {wanted}"))
}

fn nested(values: &[Option<&Value>], ty: &Type, wanted: &DataType) -> Result<ArrayRef> {
    if values.iter().all(Option::is_none) {
        return Ok(arrow_array::new_null_array(wanted, values.len()));
    }
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    let built: std::result::Result<ArrayRef, _> = match (ty, wanted) {
        (Type::Struct(ty), DataType::Struct(fields)) => {
            let children = ty.fields.iter().zip(fields).enumerate().map(|(place, (field, target))| {
                let child: Vec<_> = values
                    .iter()
                    .map(|value| match value {
                        Some(Value::Struct(children)) => children.get(place).and_then(Option::as_ref),
                        _ => None,
                    })
                    .collect();
                array(&child, &field.ty, target.data_type())
            });
            let children = children.collect::<Result<Vec<_>>>()?;
            StructArray::try_new_with_length(fields.clone(), children, Some(nulls), values.len())
                .map(|built| Arc::new(built) as ArrayRef)
        }
        (Type::List(ty), DataType::List(target)) => {
            let lists = values.iter().map(|value| match value {
                Some(Value::List(items)) => items.as_slice(),
                _ => &[],
            });
            let items: Vec<_> = lists.clone().flatten().map(Option::as_ref).collect();
            let items = array(&items, &ty.element.ty, target.data_type())?;
            let offsets = OffsetBuffer::from_lengths(lists.map(<[_]>::len));
            ListArray::try_new(target.clone(), offsets, items, Some(nulls)).map(|built| Arc::new(built) as ArrayRef)
        }
        (Type::Map(ty), DataType::Map(target, sorted)) => {
            let DataType::Struct(pair) = target.data_type() else { return Err(misfit(wanted)) };
            let [key_target, value_target] = &pair[..] else { return Err(misfit(wanted)) };
            let maps = values.iter().map(|value| match value {
                Some(Value::Map(entries)) => entries.as_slice(),
                _ => &[],
            });
            let keys: Vec<_> = maps.clone().flatten().map(|(key, _)| Some(key)).collect();
            let items: Vec<_> = maps.clone().flatten().map(|(_, value)| value.as_ref()).collect();
            let keys = array(&keys, &ty.key.ty, key_target.data_type())?;
            let items = array(&items, &ty.value.ty, value_target.data_type())?;
            let offsets = OffsetBuffer::from_lengths(maps.map(<[_]>::len));
            StructArray::try_new(pair.clone(), vec![keys, items], None)
                .and_then(|entries| MapArray::try_new(target.clone(), offsets, entries, Some(nulls), *sorted))
                .map(|built| Arc::new(built) as ArrayRef)
        }
        _ => return Err(misfit(wanted)),
    };
    built.map_err(|error| Error::Internal(error.to_string()))
}
