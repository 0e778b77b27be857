//! The Parquet schema of a data file ("Appendix A: Parquet"): field ids, logical types, three-level lists and maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::types::{EdgeAlgorithm, Field, PrimitiveType, Schema, Type};
use icefield_format::value::variant::{Kind, Shape};
use parquet::basic::{EdgeInterpolationAlgorithm, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{Type as ParquetType, TypePtr};

use crate::error::{Error, Result};
use crate::file::is_stored;
use crate::file::parquet::variant::shred::Shredding;

/// What the variant columns of a file are shredded as, by field id.
pub(super) type Shredded = BTreeMap<i32, Shredding>;

/// The root of the Parquet schema. Columns of type `unknown` are left out, because they contain only nulls.
pub(super) fn parquet_schema(schema: &Schema, shredded: &Shredded) -> Result<TypePtr> {
    let root = ParquetType::group_type_builder("table").with_fields(children(schema.fields(), "", shredded)?);
    root.build().map(Arc::new).map_err(|error| Error::unsupported(format!("a Parquet file of this schema: {error}")))
}

fn children(fields: &[Field], parent: &str, shredded: &Shredded) -> Result<Vec<TypePtr>> {
    let stored: Vec<TypePtr> = fields
        .iter()
        .filter(|field| is_stored(field))
        .map(|field| node(field, &field.name, parent, shredded))
        .collect::<Result<_>>()?;
    if stored.is_empty() {
        let place = if parent.is_empty() { "a table" } else { parent };
        return Err(Error::unsupported(format!("{place}: a Parquet file cannot hold a struct without fields")));
    }
    Ok(stored)
}

fn node(field: &Field, name: &str, parent: &str, shredded: &Shredded) -> Result<TypePtr> {
    let path = if parent.is_empty() { field.name.clone() } else { format!("{parent}.{}", field.name) };
    let repetition = if field.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let group = |fields: Vec<TypePtr>, logical: Option<LogicalType>| {
        ParquetType::group_type_builder(name)
            .with_repetition(repetition)
            .with_id(Some(field.id))
            .with_logical_type(logical)
            .with_fields(fields)
            .build()
    };
    let built = match &field.ty {
        Type::Primitive(ty) => return primitive(field, ty, name, repetition, &path),
        Type::Variant => group(variant_parts(shredded.get(&field.id))?, Some(LogicalType::variant(Some(1)))),
        Type::Struct(inner) => group(children(&inner.fields, &path, shredded)?, None),
        Type::List(list) => {
            let element = node(&list.element, "element", &path, shredded)?;
            group(vec![repeated("list", vec![element])?], Some(LogicalType::List))
        }
        Type::Map(map) => {
            let pair = vec![node(&map.key, "key", &path, shredded)?, node(&map.value, "value", &path, shredded)?];
            group(vec![repeated("key_value", pair)?], Some(LogicalType::Map))
        }
    };
    built.map(Arc::new).map_err(|error| Error::column(path, error.to_string()))
}

/// The middle level of a list or map, which lets readers tell an empty one from null.
fn repeated(name: &str, fields: Vec<TypePtr>) -> Result<TypePtr> {
    let group = ParquetType::group_type_builder(name).with_repetition(Repetition::REPEATED).with_fields(fields).build();
    group.map(Arc::new).map_err(internal)
}

fn variant_parts(shredded: Option<&Shredding>) -> Result<Vec<TypePtr>> {
    let metadata = binary("metadata", Repetition::REQUIRED)?;
    Ok(match shredded {
        None => vec![metadata, binary("value", Repetition::REQUIRED)?],
        Some(shredding) => {
            let [value, typed] = pair(&shredding.shape)?;
            vec![metadata, value, typed]
        }
    })
}

fn binary(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let built = ParquetType::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition).build();
    built.map(Arc::new).map_err(internal)
}

/// `value` and `typed_value`, which have no field ids.
fn pair(shape: &Shape) -> Result<[TypePtr; 2]> {
    let group = |fields: Vec<TypePtr>, logical: Option<LogicalType>| {
        ParquetType::group_type_builder("typed_value")
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .with_fields(fields)
            .build()
            .map(Arc::new)
            .map_err(internal)
    };
    let typed = match shape {
        Shape::Primitive(kind) => typed_primitive(*kind)?,
        Shape::Object(fields) => {
            let fields = fields.iter().map(|(name, shape)| required(name, shape)).collect::<Result<_>>()?;
            group(fields, None)?
        }
        Shape::Array(element) => {
            group(vec![repeated("list", vec![required("element", element)?])?], Some(LogicalType::List))?
        }
    };
    Ok([binary("value", Repetition::OPTIONAL)?, typed])
}

/// The group of a shredded field or element. It is required: a field that is missing has null in both of its columns.
fn required(name: &str, shape: &Shape) -> Result<TypePtr> {
    let group = ParquetType::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_fields(pair(shape)?.to_vec())
        .build();
    group.map(Arc::new).map_err(internal)
}

/// A primitive `typed_value`, by the table of `VariantShredding.md`.
fn typed_primitive(kind: Kind) -> Result<TypePtr> {
    let plain = |ty: PrimitiveType| physical(&ty, "typed_value");
    let (physical, length, logical) = match kind {
        Kind::Int8 => (Physical::INT32, -1, Some(LogicalType::integer(8, true))),
        Kind::Int16 => (Physical::INT32, -1, Some(LogicalType::integer(16, true))),
        Kind::Int32 => (Physical::INT32, -1, Some(LogicalType::integer(32, true))),
        Kind::Int64 => (Physical::INT64, -1, Some(LogicalType::integer(64, true))),
        Kind::Boolean => plain(PrimitiveType::Boolean)?,
        Kind::Float => plain(PrimitiveType::Float)?,
        Kind::Double => plain(PrimitiveType::Double)?,
        Kind::Decimal { precision, scale } => plain(PrimitiveType::Decimal { precision, scale })?,
        Kind::Date => plain(PrimitiveType::Date)?,
        Kind::Time => plain(PrimitiveType::Time)?,
        Kind::Timestamp { is_utc: false } => plain(PrimitiveType::Timestamp)?,
        Kind::Timestamp { is_utc: true } => plain(PrimitiveType::Timestamptz)?,
        Kind::TimestampNanos { is_utc: false } => plain(PrimitiveType::TimestampNs)?,
        Kind::TimestampNanos { is_utc: true } => plain(PrimitiveType::TimestamptzNs)?,
        Kind::String => plain(PrimitiveType::String)?,
        Kind::Binary => plain(PrimitiveType::Binary)?,
        Kind::Uuid => plain(PrimitiveType::Uuid)?,
    };
    let mut builder = ParquetType::primitive_type_builder("typed_value", physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_length(length)
        .with_logical_type(logical);
    if let Kind::Decimal { precision, scale } = kind {
        builder = builder.with_precision(i32::from(precision)).with_scale(i32::from(scale));
    }
    builder.build().map(Arc::new).map_err(internal)
}

fn internal(error: parquet::errors::ParquetError) -> Error {
    Error::Internal(error.to_string())
}

fn primitive(field: &Field, ty: &PrimitiveType, name: &str, repetition: Repetition, path: &str) -> Result<TypePtr> {
    let (physical, length, logical) = physical(ty, path)?;
    let mut builder = ParquetType::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_id(Some(field.id))
        .with_length(length)
        .with_logical_type(logical);
    if let PrimitiveType::Decimal { precision, scale } = ty {
        builder = builder.with_precision(i32::from(*precision)).with_scale(i32::from(*scale));
    }
    builder.build().map(Arc::new).map_err(|error| Error::column(path, error.to_string()))
}

/// Physical type, length if fixed, and logical type, by the table of Appendix A.
fn physical(ty: &PrimitiveType, path: &str) -> Result<(Physical, i32, Option<LogicalType>)> {
    let timestamp = |utc, unit| (Physical::INT64, -1, Some(LogicalType::timestamp(utc, unit)));
    Ok(match ty {
        PrimitiveType::Boolean => (Physical::BOOLEAN, -1, None),
        PrimitiveType::Int => (Physical::INT32, -1, None),
        PrimitiveType::Long => (Physical::INT64, -1, None),
        PrimitiveType::Float => (Physical::FLOAT, -1, None),
        PrimitiveType::Double => (Physical::DOUBLE, -1, None),
        PrimitiveType::Decimal { precision, scale } => {
            let logical = LogicalType::decimal(i32::from(*scale), i32::from(*precision));
            match precision {
                0..=9 => (Physical::INT32, -1, Some(logical)),
                10..=18 => (Physical::INT64, -1, Some(logical)),
                _ => (Physical::FIXED_LEN_BYTE_ARRAY, decimal_bytes(*precision), Some(logical)),
            }
        }
        PrimitiveType::Date => (Physical::INT32, -1, Some(LogicalType::Date)),
        PrimitiveType::Time => (Physical::INT64, -1, Some(LogicalType::time(false, TimeUnit::MICROS))),
        PrimitiveType::Timestamp => timestamp(false, TimeUnit::MICROS),
        PrimitiveType::Timestamptz => timestamp(true, TimeUnit::MICROS),
        PrimitiveType::TimestampNs => timestamp(false, TimeUnit::NANOS),
        PrimitiveType::TimestamptzNs => timestamp(true, TimeUnit::NANOS),
        PrimitiveType::String => (Physical::BYTE_ARRAY, -1, Some(LogicalType::String)),
        PrimitiveType::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, 16, Some(LogicalType::Uuid)),
        PrimitiveType::Fixed(0) => {
            return Err(Error::unsupported(format!(
                "column {path}: a Parquet file cannot hold values of no bytes ({ty})"
            )));
        }
        PrimitiveType::Fixed(length) => {
            let length =
                i32::try_from(*length).map_err(|_| Error::column(path, format!("{ty} is too long for Parquet")))?;
            (Physical::FIXED_LEN_BYTE_ARRAY, length, None)
        }
        PrimitiveType::Binary => (Physical::BYTE_ARRAY, -1, None),
        PrimitiveType::Geometry { crs } => {
            (Physical::BYTE_ARRAY, -1, Some(LogicalType::geometry(crs.as_deref().map(str::to_owned))))
        }
        PrimitiveType::Geography { crs, algorithm } => {
            let edges = algorithm.map(edges);
            (Physical::BYTE_ARRAY, -1, Some(LogicalType::geography(crs.as_deref().map(str::to_owned), edges)))
        }
        PrimitiveType::Unknown | PrimitiveType::Unrecognized(_) => {
            return Err(Error::unsupported(format!("column {path}: writing a column of the type {ty}")));
        }
    })
}

/// The smallest number of bytes for every unscaled value of a precision.
fn decimal_bytes(precision: u8) -> i32 {
    let largest = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX) - 1;
    // One more bit for the sign.
    let bits = 128 - largest.leading_zeros() + 1;
    i32::try_from(bits.div_ceil(8)).unwrap_or(16)
}

fn edges(algorithm: EdgeAlgorithm) -> EdgeInterpolationAlgorithm {
    match algorithm {
        EdgeAlgorithm::Spherical => EdgeInterpolationAlgorithm::SPHERICAL,
        EdgeAlgorithm::Vincenty => EdgeInterpolationAlgorithm::VINCENTY,
        EdgeAlgorithm::Thomas => EdgeInterpolationAlgorithm::THOMAS,
        EdgeAlgorithm::Andoyer => EdgeInterpolationAlgorithm::ANDOYER,
        EdgeAlgorithm::Karney => EdgeInterpolationAlgorithm::KARNEY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_the_fewest_bytes() {
        for (precision, bytes) in [(19, 9), (20, 9), (21, 9), (22, 10), (28, 12), (37, 16), (38, 16)] {
            assert_eq!(decimal_bytes(precision), bytes, "decimal({precision})");
        }
    }
}
