//! The same rows in the different Arrow layouts of a type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, i256};
use arrow_schema::{Field, Fields, Schema};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;

use crate::expressions::world::{Row, columns, schema, value_of};

/// The number of layouts that [`array`] has.
pub const LAYOUTS: usize = 4;

fn field(name: &str, id: i32, array: &ArrayRef) -> Field {
    let id = HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]);
    Field::new(name, array.data_type().clone(), true).with_metadata(id)
}

/// Rows of the world's schema, with columns in the layout with this number; odd layouts have other names than the
/// schema.
pub fn batch(rows: &[Row], layout: usize) -> RecordBatch {
    let named = |name: &str| if layout % 2 == 1 { format!("renamed_{name}") } else { name.to_owned() };
    let (mut fields, mut arrays, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    for (name, id, ty) in columns() {
        let array = array(rows.iter().map(|row| value_of(row, id)), &ty, layout);
        match name.strip_prefix("st.") {
            Some(name) => inner.push((Arc::new(field(&named(name), id, &array)), array)),
            None => {
                fields.push(field(&named(name), id, &array));
                arrays.push(array);
            }
        }
    }
    let present = NullBuffer::from_iter(rows.iter().map(|row| row.last().unwrap().is_some()));
    let (inner_fields, inner_arrays): (Vec<_>, Vec<_>) = inner.into_iter().unzip();
    let st: ArrayRef = Arc::new(StructArray::new(Fields::from(inner_fields), inner_arrays, Some(present)));
    fields.push(field(&named("st"), 15, &st));
    arrays.push(st);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Partition tuples of a spec.
pub fn partitions(spec: &PartitionSpec, tuples: &[Row]) -> RecordBatch {
    let types = spec.partition_type(&schema());
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (position, part) in types.fields.iter().enumerate() {
        let array = array(tuples.iter().map(|tuple| tuple[position].as_ref()), part.ty.as_primitive().unwrap(), 0);
        fields.push(field(&part.name, part.id, &array));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn int(value: &Value) -> i32 {
    if let Value::Int(value) = value { *value } else { panic!("{value:?}") }
}

fn long(value: &Value) -> i64 {
    match value {
        Value::Long(value) => *value,
        Value::Int(value) => i64::from(*value),
        other => panic!("{other:?}"),
    }
}

fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::Binary(value) => value,
        Value::Uuid(value) => value,
        other => panic!("{other:?}"),
    }
}

fn text(value: &Value) -> &str {
    if let Value::String(value) = value { value } else { panic!("{value:?}") }
}

fn decimal(value: &Value) -> i128 {
    if let Value::Decimal(value) = value { *value } else { panic!("{value:?}") }
}

/// Values in the layout with this number; types with fewer layouts repeat theirs.
fn array<'a>(values: impl Iterator<Item = Option<&'a Value>>, ty: &PrimitiveType, layout: usize) -> ArrayRef {
    use PrimitiveType as P;
    let values: Vec<Option<&Value>> = values.collect();
    let ints = || values.iter().map(|value| value.map(int));
    let longs = || values.iter().map(|value| value.map(long));
    let binary = || values.iter().map(|value| value.map(bytes));
    let strings = || values.iter().map(|value| value.map(text));
    match (ty, layout) {
        (P::Boolean, _) => {
            let boolean = |value: &Value| *value == Value::Boolean(true);
            Arc::new(values.iter().map(|value| value.map(boolean)).collect::<BooleanArray>())
        }
        (P::Int, 2) => Arc::new(longs().collect::<Int64Array>()),
        (P::Int, 3) => dictionary(Arc::new(ints().collect::<Int32Array>())),
        (P::Int, _) => Arc::new(ints().collect::<Int32Array>()),
        (P::Date, 2) => Arc::new(longs().map(|days| days.map(|days| days * 86_400_000)).collect::<Date64Array>()),
        (P::Date, _) => Arc::new(ints().collect::<Date32Array>()),
        (P::Long, 2) => runs(&longs().collect::<Int64Array>()),
        (P::Long, 3) => dictionary(Arc::new(longs().collect::<Int64Array>())),
        (P::Long, _) => Arc::new(longs().collect::<Int64Array>()),
        (P::Time, 2) => {
            Arc::new(longs().map(|micros| micros.map(|micros| micros * 1000)).collect::<Time64NanosecondArray>())
        }
        (P::Time, _) => Arc::new(longs().collect::<Time64MicrosecondArray>()),
        (P::Timestamp, 2) => {
            Arc::new(longs().map(|micros| micros.map(|micros| micros * 1000 + 7)).collect::<TimestampNanosecondArray>())
        }
        (P::Timestamp, _) => Arc::new(longs().collect::<TimestampMicrosecondArray>()),
        (P::TimestamptzNs, _) => Arc::new(longs().collect::<TimestampNanosecondArray>().with_timezone("UTC")),
        (P::Float, _) => {
            let float = |value: &Value| if let Value::Float(value) = value { *value } else { panic!("{value:?}") };
            Arc::new(values.iter().map(|value| value.map(float)).collect::<Float32Array>())
        }
        (P::Double, _) => {
            let double = |value: &Value| if let Value::Double(value) = value { *value } else { panic!("{value:?}") };
            Arc::new(values.iter().map(|value| value.map(double)).collect::<Float64Array>())
        }
        (P::Decimal { .. }, layout) => decimals(&values, layout),
        (P::String, 0) => Arc::new(strings().collect::<StringArray>()),
        (P::String, 1) => Arc::new(strings().collect::<LargeStringArray>()),
        (P::String, 2) => Arc::new(strings().collect::<StringViewArray>()),
        (P::String, _) => Arc::new(strings().collect::<DictionaryArray<Int8Type>>()),
        (P::Uuid, _) => Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(binary(), 16).unwrap()),
        (P::Fixed(width), 0 | 1) => {
            let width = i32::try_from(*width).unwrap();
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(binary(), width).unwrap())
        }
        (_, 1) => Arc::new(binary().collect::<LargeBinaryArray>()),
        (_, 2) => Arc::new(binary().collect::<BinaryViewArray>()),
        (_, 3) => dictionary(Arc::new(binary().collect::<BinaryArray>())),
        (_, _) => Arc::new(binary().collect::<BinaryArray>()),
    }
}

/// Runs of one row each.
fn runs(values: &Int64Array) -> ArrayRef {
    let ends = Int32Array::from_iter_values(1..=i32::try_from(values.len()).unwrap());
    Arc::new(RunArray::<Int32Type>::try_new(&ends, values).unwrap())
}

/// A dictionary with a value for each row, whose value is null if the row is null.
fn dictionary(values: ArrayRef) -> ArrayRef {
    let keys = Int32Array::from_iter_values(0..i32::try_from(values.len()).unwrap());
    Arc::new(DictionaryArray::<Int32Type>::new(keys, values))
}

/// Decimals of scale 2 in four widths; the widest has another scale.
fn decimals(values: &[Option<&Value>], layout: usize) -> ArrayRef {
    let unscaled = values.iter().map(|value| value.map(decimal));
    match layout {
        0 => Arc::new(unscaled.collect::<Decimal128Array>().with_precision_and_scale(9, 2).unwrap()),
        1 => {
            let narrow = unscaled.map(|value| value.map(|value| i32::try_from(value).unwrap()));
            Arc::new(narrow.collect::<Decimal32Array>().with_precision_and_scale(9, 2).unwrap())
        }
        2 => {
            let narrow = unscaled.map(|value| value.map(|value| i64::try_from(value).unwrap() * 10));
            Arc::new(narrow.collect::<Decimal64Array>().with_precision_and_scale(18, 3).unwrap())
        }
        _ => {
            let wide = unscaled.map(|value| value.map(|value| i256::from_i128(value * 100)));
            Arc::new(wide.collect::<Decimal256Array>().with_precision_and_scale(50, 4).unwrap())
        }
    }
}
