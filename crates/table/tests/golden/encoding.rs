//! Converts Arrow values to the JSON encoding of the golden data ("The JSON encoding of values" in its README).

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, TimeUnit};
use icefield_format::value::decimal;
use libtest_mimic::Failed;
use serde_json::{Map, Value as Json, json};

/// The rows of batches as objects, sorted by their text.
pub fn rows(batches: &[RecordBatch]) -> Vec<Json> {
    let row = |batch: &RecordBatch, row| {
        let fields = batch.schema_ref().fields().iter().zip(batch.columns());
        Json::Object(fields.map(|(field, column)| (field.name().clone(), value(field, column, row))).collect())
    };
    sorted(batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at))).collect())
}

/// Rows in the order of their texts.
pub fn sorted(mut rows: Vec<Json>) -> Vec<Json> {
    rows.sort_by_key(ToString::to_string);
    rows
}

fn value(field: &Field, array: &dyn Array, row: usize) -> Json {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Json::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row)),
        DataType::Date32 => json!(array.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(_) => json!(array.as_primitive::<Time64MicrosecondType>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            json!(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            json!(array.as_primitive::<TimestampNanosecondType>().value(row))
        }
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            let unscaled = array.as_primitive::<Decimal128Type>().value(row);
            json!(decimal::to_plain_string(unscaled, scale.cast_unsigned()))
        }
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Binary => json!(hex(array.as_binary::<i32>().value(row))),
        DataType::FixedSizeBinary(_) => {
            let text = hex(array.as_fixed_size_binary().value(row));
            let is_uuid = field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid");
            if is_uuid { json!(dashed(&text)) } else { json!(text) }
        }
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(array.as_struct().columns());
            Json::Object(parts.map(|(field, column)| (field.name().clone(), value(field, column, row))).collect())
        }
        DataType::List(element) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|at| value(element, &items, at)).collect()
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { panic!("a map of {entries}") };
            let pairs = array.as_map().value(row);
            let part = |place: usize, at| value(&pair[place], pairs.column(place), at);
            let mut pairs: Vec<Json> = (0..pairs.len()).map(|at| json!([part(0, at), part(1, at)])).collect();
            pairs.sort_by(|a, b| match (a[0].as_i64(), b[0].as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a[0].to_string().cmp(&b[0].to_string()),
            });
            Json::Array(pairs)
        }
        other => panic!("no encoding for {other}"),
    }
}

fn float(value: f64) -> Json {
    match value {
        value if value.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        value if value == 0.0 && value.is_sign_negative() => json!("-0.0"),
        value => json!(value),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn dashed(hex: &str) -> String {
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The same row with only some of its members.
pub fn pick(row: &Json, names: &[&str]) -> Json {
    let members = row.as_object().unwrap().iter().filter(|(name, _)| names.contains(&name.as_str()));
    Json::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Fails if two values differ, and names the first member that does.
pub fn same(path: &str, found: &Json, expected: &Json) -> Result<(), Failed> {
    match (found, expected) {
        (Json::Object(a), Json::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().zip(b.values()).try_for_each(|((name, a), b)| same(&format!("{path}.{name}"), a, b))
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().try_for_each(|(at, (a, b))| same(&format!("{path}[{at}]"), a, b))
        }
        (a, b) if a == b => Ok(()),
        (a, b) => Err(format!("{path}: {a} and not {b}").into()),
    }
}
