//! Casts rows to the Arrow types of an engine with fewer types (Spark), losing no more than necessary.
//!
//! uuid becomes string, fixed becomes binary, nanoseconds become microseconds (rounded down), and `time` in
//! microseconds becomes nanoseconds. Strings and binaries take any of their layouts, dictionaries included. Otherwise
//! the types must be equal except for the names of list elements, metadata and nullability.
//!
//! `read::reshape` and `write::conform` also rebuild nested arrays, but not by such casts: reading follows a plan of
//! where each field comes from, and writing drops the values of null rows and reports the row of a fault.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, SchemaRef, TimeUnit};

use crate::error::{Error, Result};

/// A cast of batches to an engine's schema, column by column.
#[derive(Debug, Clone)]
pub struct Recast {
    target: SchemaRef,
}

impl Recast {
    /// Checks that each column has a counterpart, by position.
    pub fn new(from: &SchemaRef, target: SchemaRef) -> Result<Self> {
        if from.fields().len() != target.fields().len() {
            return Err(Error::invalid(format!(
                "rows have {} columns, but the schema that is asked for has {}",
                from.fields().len(),
                target.fields().len()
            )));
        }
        for (from, to) in from.fields().iter().zip(target.fields()) {
            if !castable(from.data_type(), to.data_type()) {
                let reason = format!("is {}, which cannot be converted to {}", from.data_type(), to.data_type());
                return Err(Error::column(from.name(), reason));
            }
        }
        Ok(Self { target })
    }

    /// The batch in the engine's types.
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let fields = self.target.fields().iter();
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.target.clone(), columns, &options)
            .map_err(|error| Error::invalid(format!("rows do not fit the schema that is asked for: {error}")))
    }
}

fn castable(from: &DataType, to: &DataType) -> bool {
    use DataType::{Binary, FixedSizeBinary, List, Map, Struct, Time64, Timestamp, Utf8};
    match (from, to) {
        (FixedSizeBinary(16), Utf8) | (FixedSizeBinary(_), Binary) => true,
        (Timestamp(TimeUnit::Nanosecond, a), Timestamp(TimeUnit::Microsecond, b)) => a.is_some() == b.is_some(),
        (Timestamp(a, x), Timestamp(b, y)) => a == b && x.is_some() == y.is_some(),
        (Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)) => true,
        (List(a), List(b)) => castable(a.data_type(), b.data_type()),
        (Map(a, _), Map(b, _)) => castable(a.data_type(), b.data_type()),
        (Struct(a), Struct(b)) if is_variant(from) && is_variant(to) => a.len() == b.len(),
        (Struct(a), Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| castable(a.data_type(), b.data_type()))
        }
        (a, b) => a == b || (layout(a).is_some() && layout(a) == layout(b)),
    }
}

/// Whether a type is a layout of string (true) or binary (false), if it is either.
fn layout(ty: &DataType) -> Option<bool> {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(true),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Some(false),
        DataType::Dictionary(key, value) if key.is_integer() => match value.as_ref() {
            DataType::Dictionary(..) => None,
            value => layout(value),
        },
        _ => None,
    }
}

/// A variant is a struct of two binaries, in either order.
fn is_variant(ty: &DataType) -> bool {
    let DataType::Struct(fields) = ty else { return false };
    fields.len() == 2 && ["metadata", "value"].iter().all(|name| fields.iter().any(|field| field.name() == *name))
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let misfit = |error| Error::invalid(format!("rows do not fit the schema that is asked for: {error}"));
    Ok(match (array.data_type(), to) {
        (from, to) if from == to => array.clone(),
        (DataType::FixedSizeBinary(16), DataType::Utf8) => uuid_text(array),
        (DataType::FixedSizeBinary(_), DataType::Binary) | (DataType::Time64(_), DataType::Time64(_)) => {
            arrow_cast::cast(array, to).map_err(misfit)?
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, _), DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>();
            let micros: PrimitiveArray<TimestampMicrosecondType> = nanos.unary(|value| value.div_euclid(1000));
            Arc::new(micros.with_data_type(to.clone()))
        }
        (DataType::Timestamp(..), DataType::Timestamp(..)) => arrow_cast::cast(array, to).map_err(misfit)?,
        (DataType::List(_), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let values = cast(list.values(), field.data_type())?;
            let offsets = list.offsets().clone();
            Arc::new(ListArray::try_new(field.clone(), offsets, values, list.nulls().cloned()).map_err(misfit)?)
        }
        (DataType::Map(..), DataType::Map(field, sorted)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = cast(&entries, field.data_type())?.as_struct().clone();
            let offsets = map.offsets().clone();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, map.nulls().cloned(), *sorted).map_err(misfit)?)
        }
        (from @ DataType::Struct(_), DataType::Struct(fields)) => {
            let parent = array.as_struct();
            let by_name = is_variant(from) && is_variant(to);
            let child = |(place, field): (usize, &arrow_schema::FieldRef)| {
                let found = if by_name { parent.column_by_name(field.name()) } else { parent.columns().get(place) };
                let found = found.ok_or_else(|| Error::Internal("a struct without its column".to_owned()))?;
                cast(found, field.data_type())
            };
            let columns = fields.iter().enumerate().map(child).collect::<Result<Vec<_>>>()?;
            let nulls = parent.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, parent.len()).map_err(misfit)?)
        }
        (from, to) if castable(from, to) => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options).map_err(misfit)?
        }
        (from, to) => return Err(Error::invalid(format!("{from} cannot be converted to {to}"))),
    })
}

/// The canonical text of uuids.
fn uuid_text(array: &ArrayRef) -> ArrayRef {
    let values = array.as_fixed_size_binary();
    let mut builder = StringBuilder::with_capacity(values.len(), values.len() * 36);
    let mut text = String::with_capacity(36);
    for value in values {
        match value {
            None => builder.append_null(),
            Some(bytes) => {
                text.clear();
                for (place, byte) in bytes.iter().enumerate() {
                    let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{dash}{byte:02x}");
                }
                builder.append_value(&text);
            }
        }
    }
    Arc::new(builder.finish())
}
