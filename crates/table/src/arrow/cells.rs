//! Columns of stored batches, found by field id, and single values of arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use icefield_format::types::{PrimitiveType, Schema};
use icefield_format::value::Value;

use crate::error::{Error, Result};

/// A column of stored batches, or a field inside structs.
#[derive(Debug, Clone)]
pub(crate) struct StoredColumn {
    names: Vec<String>,
}

impl std::fmt::Display for StoredColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.names.join("."))
    }
}

impl StoredColumn {
    /// The column with a field id; fields in lists and maps are not found.
    pub(crate) fn find(schema: &Schema, id: i32) -> Result<Self> {
        let name = schema.column_name(id).unwrap_or("?");
        let path =
            schema.accessor(id).ok_or_else(|| Error::invalid(format!("column {name} ({id}) cannot be used here")))?;
        let mut names = Vec::with_capacity(path.len());
        let mut fields = schema.fields();
        for position in path {
            let Some(field) = fields.get(*position) else { break };
            names.push(field.name.clone());
            fields = field.ty.as_struct().map_or(&[][..], |inner| &inner.fields);
        }
        Ok(Self { names })
    }

    /// The column with this path.
    pub(crate) fn named(names: Vec<String>) -> Self {
        Self { names }
    }

    /// Its values; null where a parent struct is null.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let missing = || Error::Internal(format!("no column {} in a stored batch", self.names.join(".")));
        let (first, rest) = self.names.split_first().ok_or_else(missing)?;
        let mut array = batch.column_by_name(first).ok_or_else(missing)?.clone();
        let mut nulls: Option<NullBuffer> = None;
        for name in rest {
            let parent = array.as_struct_opt().ok_or_else(missing)?;
            nulls = NullBuffer::union(nulls.as_ref(), parent.nulls());
            array = parent.column_by_name(name).ok_or_else(missing)?.clone();
        }
        let Some(around) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(array) };
        let nulls = NullBuffer::union(Some(&around), array.nulls());
        let data = array.to_data().into_builder().nulls(nulls).build();
        data.map(make_array).map_err(|error| Error::Internal(error.to_string()))
    }
}

/// A value of an array with a primitive type.
pub(crate) fn value_at(array: &ArrayRef, ty: &PrimitiveType, row: usize) -> Result<Option<Value>> {
    if row >= array.len() || array.is_null(row) {
        return Ok(None);
    }
    let value = match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row)),
        DataType::Date32 => Value::Int(array.as_primitive::<Date32Type>().value(row)),
        DataType::Int64 => Value::Long(array.as_primitive::<Int64Type>().value(row)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Value::Long(array.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Value::Long(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Value::Long(array.as_primitive::<TimestampNanosecondType>().value(row))
        }
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => Value::Decimal(array.as_primitive::<Decimal128Type>().value(row)),
        DataType::Utf8 => Value::String(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::String(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Value::String(array.as_string_view().value(row).to_owned()),
        DataType::Binary => Value::Binary(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Binary(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Binary(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => fixed(array.as_fixed_size_binary().value(row), ty)?,
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys().get(row).copied().unwrap_or(0);
            return value_at(dictionary.values(), ty, key);
        }
        other => return Err(Error::Internal(format!("no {ty} value of an array of {other}"))),
    };
    Ok(Some(value))
}

fn fixed(bytes: &[u8], ty: &PrimitiveType) -> Result<Value> {
    match ty {
        PrimitiveType::Uuid => {
            let bytes = bytes.try_into().map_err(|_| Error::Internal("a uuid of another length".into()))?;
            Ok(Value::Uuid(bytes))
        }
        _ => Ok(Value::Binary(bytes.to_vec())),
    }
}
