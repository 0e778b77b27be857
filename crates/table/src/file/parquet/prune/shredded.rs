//! Statistics of shredded variants ("Data Skipping" of `VariantShredding.md`), in the form of variant bounds in
//! manifests.

use arrow_schema::{DataType, Fields, TimeUnit};
use icefield_format::types::PrimitiveType;
use icefield_format::value::binary;
use icefield_format::value::variant::path::Step;
use icefield_format::value::variant::{Path, Tree};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::bounds::{Bounds, bounds};
use crate::file::leaves::skip;

/// A value inside a variant that has its own column.
pub(in crate::file::parquet) struct Shredded {
    path: Path,
    /// The leaf for values that do not have the column's type.
    value: Option<usize>,
    typed: usize,
    ty: PrimitiveType,
}

/// Finds the shredded values of a variant, outside arrays; `next` is its first leaf.
pub(super) fn find(parts: &Fields, next: &mut usize) -> Vec<Shredded> {
    let mut out = Vec::new();
    group(parts, &mut Vec::new(), next, &mut out);
    out
}

fn group(parts: &Fields, path: &mut Vec<Step>, next: &mut usize, out: &mut Vec<Shredded>) {
    let (mut value, mut typed) = (None, None);
    for part in parts {
        match (part.name().as_str(), part.data_type()) {
            ("value", DataType::Binary) => {
                value = Some(*next);
                *next += 1;
            }
            ("typed_value", DataType::Struct(fields)) => {
                for field in fields {
                    match field.data_type() {
                        DataType::Struct(parts) => {
                            path.push(Step::Field(field.name().clone()));
                            group(parts, path, next, out);
                            path.pop();
                        }
                        other => skip(other, next),
                    }
                }
            }
            (name, ty) => {
                typed = typed.or_else(|| Some((*next, of_column(ty).filter(|_| name == "typed_value")?)));
                skip(ty, next);
            }
        }
    }
    if let Some((typed, ty)) = typed {
        out.push(Shredded { path: Path::new(path.clone()), value, typed, ty });
    }
}

/// The type whose order a column's statistics use. Uuids are left out, because writers order them in two ways.
fn of_column(ty: &DataType) -> Option<PrimitiveType> {
    use PrimitiveType as P;
    Some(match ty {
        DataType::Boolean => P::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => P::Int,
        DataType::Int64 => P::Long,
        DataType::Float32 => P::Float,
        DataType::Float64 => P::Double,
        DataType::Date32 => P::Date,
        DataType::Time64(TimeUnit::Microsecond) => P::Time,
        DataType::Timestamp(TimeUnit::Microsecond, None) => P::Timestamp,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => P::Timestamptz,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => P::TimestampNs,
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => P::TimestamptzNs,
        DataType::Utf8 => P::String,
        DataType::Binary => P::Binary,
        DataType::Decimal128(precision, scale) => {
            P::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? }
        }
        _ => return None,
    })
}

/// Bounds of a row group: objects with those paths whose values are all in their own columns.
pub(super) fn of_group(group: &RowGroupMetaData, shredded: &[Shredded]) -> Bounds {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for one in shredded {
        let statistics = |leaf: usize| group.columns().get(leaf)?.statistics();
        let is_empty = |leaf: usize| {
            let nulls =
                statistics(leaf).and_then(Statistics::null_count_opt).and_then(|count| i64::try_from(count).ok());
            nulls.is_some() && nulls == group.columns().get(leaf).map(|column| column.num_values())
        };
        if !one.value.is_none_or(is_empty) {
            continue;
        }
        let Some((low, high)) = statistics(one.typed).and_then(|statistics| bounds(statistics, &one.ty)) else {
            continue;
        };
        let tree = |bytes: Option<Vec<u8>>| Tree::of_value(&binary::from_bytes(&bytes?, &one.ty).ok()?, &one.ty);
        lower.extend(tree(low).map(|low| (one.path.to_string(), low)));
        upper.extend(tree(high).map(|high| (one.path.to_string(), high)));
    }
    let object = |fields: Vec<(String, Tree)>| {
        let (mut bytes, value) = Tree::Object(fields.into_iter().collect()).encode().ok()?;
        bytes.extend(value);
        Some(bytes)
    };
    (object(lower), object(upper))
}
