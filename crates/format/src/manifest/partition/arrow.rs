//! Arrow form of partition columns: their types and fields, and access to their values.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, StructArray, UInt32Array};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use arrow_select::take::take;

use crate::types::arrow::FIELD_ID_KEY;
use crate::types::{Field, PrimitiveType, StructType, Type};
use crate::value::Value;
use crate::{Error, Result};

use super::builder::{PartitionBuilder, arrow_type};

/// The Arrow fields of a partition type, as in [`Entries::partition`](super::Entries).
pub fn arrow_fields(ty: &StructType) -> Fields {
    let field =
        |field: &Field| arrow_field(field, arrow_type(field.ty.as_primitive().unwrap_or(&PrimitiveType::Unknown)));
    ty.fields.iter().map(field).collect()
}

fn arrow_field(field: &Field, data_type: DataType) -> ArrowField {
    let id = [(FIELD_ID_KEY.to_owned(), field.id.to_string())];
    ArrowField::new(&field.name, data_type, true).with_metadata(std::collections::HashMap::from(id))
}

/// Combines the columns in a struct column of `rows` rows; field ids are in the fields' metadata (`PARQUET:field_id`).
pub(in crate::manifest) fn finish(
    columns: Vec<PartitionBuilder>,
    fields: &[Field],
    rows: usize,
) -> Result<StructArray> {
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

/// Returns the tuple of each row.
pub(in crate::manifest) fn of_rows(tuples: &StructArray, tuple_of: &UInt32Array) -> Result<StructArray> {
    let columns = tuples.columns().iter().map(|column| take(column, tuple_of, None));
    let made = columns
        .collect::<Result<Vec<_>, _>>()
        .and_then(|columns| StructArray::try_new_with_length(tuples.fields().clone(), columns, None, tuple_of.len()));
    made.map_err(|error| Error::corrupt("partition", error.to_string()))
}

/// Reads a value of a column: `Some(None)` for null, `None` if the column has another type.
pub(in crate::manifest) fn value(column: &ArrayRef, ty: &Type, row: usize) -> Option<Option<Value>> {
    use PrimitiveType as P;
    let ty = ty.as_primitive()?;
    if *column.data_type() != arrow_type(ty) {
        return None;
    }
    if row >= column.len() || column.is_null(row) || *ty == P::Unknown {
        return Some(None);
    }
    let column = column.as_ref();
    Some(Some(match ty {
        P::Unknown => return Some(None),
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
        P::String | P::Unrecognized(_) => Value::String(column.as_string_opt::<i32>()?.value(row).to_owned()),
        P::Uuid => Value::Uuid(column.as_fixed_size_binary_opt()?.value(row).try_into().ok()?),
        P::Fixed(_) => Value::Binary(column.as_fixed_size_binary_opt()?.value(row).to_vec()),
        P::Binary | P::Geometry { .. } | P::Geography { .. } => {
            Value::Binary(column.as_binary_opt::<i32>()?.value(row).to_vec())
        }
    }))
}

/// The partition type with these fields.
pub(in crate::manifest) fn type_of(fields: &[Field]) -> StructType {
    StructType { fields: fields.to_vec() }
}
