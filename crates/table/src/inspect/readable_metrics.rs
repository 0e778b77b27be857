//! The column `readable_metrics`: the metrics of each table column, typed.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BinaryArray, PrimitiveArray, StructArray};
use arrow_schema::{DataType, FieldRef, Fields, TimeUnit};
use icefield_format::manifest::{Entries, FieldIds, MetricMap, Metrics};
use icefield_format::types::{Field, PrimitiveType, Schema, StructType, Type};
use icefield_format::value::{Value, binary};

use super::batch::{internal, missing};
use crate::arrow::constant;
use crate::error::{Error, Result};

/// Name of the column.
pub(super) const NAME: &str = "readable_metrics";

/// Each metric: its name here, the source map, its description.
const METRICS: [(&str, &str, &str); 6] = [
    ("column_size", "column_sizes", "Total size on disk"),
    ("value_count", "value_counts", "Total count, including null and NaN"),
    ("null_value_count", "null_value_counts", "Null value count"),
    ("nan_value_count", "nan_value_counts", "NaN value count"),
    ("lower_bound", "lower_bounds", "Lower bound"),
    ("upper_bound", "upper_bounds", "Upper bound"),
];

/// The fields of a metadata table, followed by the metrics of every primitive table column, ordered by name.
pub(super) fn joined(mut fields: Vec<Field>, table: &Schema) -> Result<Vec<Field>> {
    let mut last = Schema::new(0, fields.clone())?.highest_field_id();
    let mut next = || {
        last = last.saturating_add(1);
        last
    };
    let mut columns = Vec::new();
    for &id in table.ids() {
        let (Some(name), Some(Type::Primitive(ty))) = (table.column_name(id), table.find_type(id)) else { continue };
        let column = next();
        let metrics = METRICS.iter().map(|(metric, map, doc)| {
            let ty = if map.ends_with("bounds") { ty.clone() } else { PrimitiveType::Long };
            Field::optional(next(), *metric, ty).with_doc(*doc)
        });
        let metrics = Type::Struct(Arc::new(StructType::new(metrics.collect())));
        columns.push(Field::optional(column, name, metrics).with_doc(format!("Metrics for column {name}")));
    }
    // Java sorts by UTF-16 units.
    columns.sort_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
    let metrics = Type::Struct(Arc::new(StructType::new(columns)));
    fields.push(Field::optional(next(), NAME, metrics).with_doc("Column metrics in readable form"));
    Ok(fields)
}

/// The metrics to read for some columns of files (`file`) and some readable metrics.
pub(super) fn wanted(file: Option<&StructType>, readable: Option<&Field>, table: &Schema) -> Result<Metrics> {
    let readable = readable.and_then(|field| field.ty.as_struct());
    let ids = |metric: &str, map: &str| -> Result<FieldIds> {
        if file.is_some_and(|file| file.field_named(map).is_some()) {
            return Ok(FieldIds::All);
        }
        let mut ids = Vec::new();
        for column in readable.iter().flat_map(|columns| &columns.fields) {
            if column.ty.as_struct().is_some_and(|metrics| metrics.field_named(metric).is_some()) {
                ids.push(source(table, &column.name)?.0);
            }
        }
        Ok(if ids.is_empty() { FieldIds::None } else { FieldIds::only(ids) })
    };
    let mut found = METRICS.iter().map(|(metric, map, _)| ids(metric, map));
    let mut take = || found.next().unwrap_or(Ok(FieldIds::None));
    Ok(Metrics {
        column_sizes: take()?,
        value_counts: take()?,
        null_value_counts: take()?,
        nan_value_counts: take()?,
        lower_bounds: take()?,
        upper_bounds: take()?,
    })
}

/// The table column of a readable metric.
fn source<'a>(table: &'a Schema, name: &str) -> Result<(i32, &'a PrimitiveType)> {
    let field = table.find_by_name(name, true)?;
    field.and_then(|field| Some((field.id, field.ty.as_primitive()?))).ok_or_else(|| missing(name))
}

/// The metrics of a manifest's files; `fields` are the selected columns.
pub(super) fn column(table: &Schema, entries: &Entries, fields: &Fields) -> Result<ArrayRef> {
    let columns = fields.iter().map(|field| of_column(table, entries, field)).collect::<Result<Vec<_>>>()?;
    let made = StructArray::try_new_with_length(fields.clone(), columns, None, entries.len());
    Ok(Arc::new(made.map_err(internal)?))
}

fn of_column(table: &Schema, entries: &Entries, field: &FieldRef) -> Result<ArrayRef> {
    let (id, ty) = source(table, field.name())?;
    let DataType::Struct(metrics) = field.data_type() else { return Err(missing(field.name())) };
    let metric = |metric: &FieldRef| -> Result<ArrayRef> {
        let counts = |map: &Option<MetricMap>| match map {
            Some(map) => Arc::new(map.counts(id)) as ArrayRef,
            None => arrow_array::new_null_array(&DataType::Int64, entries.len()),
        };
        let bounds = |map: &Option<MetricMap>| match map {
            Some(map) => typed(&map.bounds(id), ty, metric.data_type()).map_err(|error| match error {
                Error::Format(error) => {
                    Error::Format(error.within(&format!("{} of column {}", metric.name(), field.name())))
                }
                other => other,
            }),
            None => Ok(arrow_array::new_null_array(metric.data_type(), entries.len())),
        };
        match metric.name().as_str() {
            "column_size" => Ok(counts(&entries.column_sizes)),
            "value_count" => Ok(counts(&entries.value_counts)),
            "null_value_count" => Ok(counts(&entries.null_value_counts)),
            "nan_value_count" => Ok(counts(&entries.nan_value_counts)),
            "lower_bound" => bounds(&entries.lower_bounds),
            "upper_bound" => bounds(&entries.upper_bounds),
            other => Err(missing(other)),
        }
    };
    let columns = metrics.iter().map(metric).collect::<Result<Vec<_>>>()?;
    let made = StructArray::try_new_with_length(metrics.clone(), columns, None, entries.len());
    Ok(Arc::new(made.map_err(internal)?))
}

/// Bounds as values of the column's type.
fn typed(bounds: &BinaryArray, ty: &PrimitiveType, wanted: &DataType) -> Result<ArrayRef> {
    Ok(match wanted {
        DataType::Null => arrow_array::new_null_array(wanted, bounds.len()),
        DataType::Binary => Arc::new(bounds.clone()),
        DataType::Utf8 => arrow_cast::cast(bounds, wanted)
            .map_err(|error| icefield_format::Error::corrupt("", format!("no text: {error}")))?,
        DataType::Int32 => numbers::<Int32Type>(bounds, ty, wanted, int)?,
        DataType::Date32 => numbers::<Date32Type>(bounds, ty, wanted, int)?,
        DataType::Int64 => numbers::<Int64Type>(bounds, ty, wanted, long)?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType>(bounds, ty, wanted, long)?,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers::<TimestampNanosecondType>(bounds, ty, wanted, long)?,
        DataType::Float32 => numbers::<Float32Type>(bounds, ty, wanted, |value| match value {
            Value::Float(number) => Some(number),
            _ => None,
        })?,
        DataType::Float64 => numbers::<Float64Type>(bounds, ty, wanted, |value| match value {
            Value::Double(number) => Some(number),
            _ => None,
        })?,
        _ => {
            let values = bounds.iter().map(|bytes| bound(bytes, ty));
            let values = values.collect::<Result<Vec<_>>>()?;
            let values: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
            constant::array(&values, &Type::Primitive(ty.clone()), wanted)?
        }
    })
}

fn bound(bytes: Option<&[u8]>, ty: &PrimitiveType) -> Result<Option<Value>> {
    Ok(bytes.map(|bytes| binary::bound_from_bytes(bytes, ty)).transpose()?.flatten())
}

fn int(value: Value) -> Option<i32> {
    if let Value::Int(number) = value { Some(number) } else { None }
}

fn long(value: Value) -> Option<i64> {
    if let Value::Long(number) = value { Some(number) } else { None }
}

fn numbers<T: ArrowPrimitiveType>(
    bounds: &BinaryArray,
    ty: &PrimitiveType,
    wanted: &DataType,
    read: impl Fn(Value) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let natives = bounds.iter().map(|bytes| Ok(bound(bytes, ty)?.and_then(&read)));
    let natives = natives.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(natives).with_data_type(wanted.clone())))
}
