//! Statistics of shredded variants ("Data Skipping" of `VariantShredding.md`), in the form of variant bounds in
//! manifests.

use arrow_schema::{DataType, Fields, TimeUnit};
use icefield_format::types::PrimitiveType;
use icefield_format::value::bounds::{lower_bound, upper_bound};
use icefield_format::value::variant::path::Step;
use icefield_format::value::variant::{Node, Path, Tree};
use icefield_format::value::{Value, binary, order};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::bounds::{Bounds, bounds};
use crate::file::leaves::skip;

/// The encoding of a variant that is null.
const VARIANT_NULL: [u8; 1] = [0];

/// A value inside a variant that has its own column.
pub(in crate::file::parquet) struct Shredded {
    path: Path,
    /// The leaf for values that do not have the column's type.
    value: Option<usize>,
    typed: usize,
    ty: PrimitiveType,
    /// Bits of integers that are shorter than those of the type.
    bits: Option<u8>,
}

/// Finds the shredded values of a variant, outside arrays; `next` is its first leaf.
pub(in crate::file::parquet) fn find(parts: &Fields, next: &mut usize) -> Vec<Shredded> {
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
            // A list has no bounds here: all of its elements have one path.
            (name, ty) => {
                let bits = match ty {
                    DataType::Int8 => Some(8),
                    DataType::Int16 => Some(16),
                    _ => None,
                };
                typed = typed.or_else(|| Some((*next, of_column(ty).filter(|_| name == "typed_value")?, bits)));
                skip(ty, next);
            }
        }
    }
    if let Some((typed, ty, bits)) = typed {
        out.push(Shredded { path: Path::new(path.clone()), value, typed, ty, bits });
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
        // Values of other types are in `value`, and in no statistics of the typed column.
        if !one.value.is_none_or(is_empty) {
            continue;
        }
        let Some((low, high)) = statistics(one.typed).and_then(|statistics| bounds(statistics, &one.ty)) else {
            continue;
        };
        let tree = |bytes: Option<Vec<u8>>| one.tree(&binary::from_bytes(&bytes?, &one.ty).ok()?);
        lower.extend(tree(low).map(|low| (one.path.to_string(), low)));
        upper.extend(tree(high).map(|high| (one.path.to_string(), high)));
    }
    (object(lower), object(upper))
}

/// Metadata and value of an object, one after the other.
fn object(fields: Vec<(String, Tree)>) -> Option<Vec<u8>> {
    let (mut bytes, value) = Tree::Object(fields.into_iter().collect()).encode().ok()?;
    bytes.extend(value);
    Some(bytes)
}

/// Bounds of a variant for the manifest, for the paths whose values are all in their own columns, in all row groups; as
/// in the Java library, variant nulls do not count as other values. Texts and bytes are cut to `length`.
///
/// Columns with NaN have no bounds, because a manifest does not say that such a path has NaN.
pub(in crate::file::parquet) fn of_file(footer: &ParquetMetaData, shredded: &[Shredded], length: usize) -> Bounds {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for one in shredded {
        let Some((low, high)) = one.of_groups(footer.row_groups()) else { continue };
        let low = one.tree(&lower_bound(low, &one.ty, length));
        lower.extend(low.map(|low| (one.path.to_string(), low)));
        let high = upper_bound(high, &one.ty, length).and_then(|high| one.tree(&high));
        upper.extend(high.map(|high| (one.path.to_string(), high)));
    }
    let some = |fields: Vec<(String, Tree)>| if fields.is_empty() { None } else { object(fields) };
    (some(lower), some(upper))
}

impl Shredded {
    /// The smallest and the largest value; `None` without values, or if they are not known of all.
    fn of_groups(&self, groups: &[RowGroupMetaData]) -> Option<(Value, Value)> {
        let mut found: Option<(Value, Value)> = None;
        for group in groups {
            let chunk = |leaf: usize| Some((group.columns().get(leaf)?, group.columns().get(leaf)?.statistics()?));
            let nulls =
                |statistics: &Statistics| statistics.null_count_opt().and_then(|count| i64::try_from(count).ok());
            if let Some(value) = self.value {
                let (column, statistics) = chunk(value)?;
                let is_empty = nulls(statistics)? == column.num_values();
                let bounds = (statistics.min_bytes_opt(), statistics.max_bytes_opt());
                if !is_empty && bounds != (Some(&VARIANT_NULL), Some(&VARIANT_NULL)) {
                    return None;
                }
            }
            let (column, statistics) = chunk(self.typed)?;
            // Without values the row group does not widen the bounds.
            if nulls(statistics)? == column.num_values() {
                continue;
            }
            if matches!(self.ty, PrimitiveType::Float | PrimitiveType::Double) && statistics.nan_count_opt() != Some(0)
            {
                return None;
            }
            let (low, high) = bounds(statistics, &self.ty)?;
            let value = |bytes: Vec<u8>| binary::from_bytes(&bytes, &self.ty).ok();
            let (low, high) = (value(low?)?, value(high?)?);
            found = Some(match found {
                None => (low, high),
                Some((lowest, highest)) => (
                    if order::compare(&self.ty, &low, &lowest).is_lt() { low } else { lowest },
                    if order::compare(&self.ty, &high, &highest).is_gt() { high } else { highest },
                ),
            });
        }
        found
    }

    /// A bound as a value of the column's type: bounds of one path have one type.
    fn tree(&self, bound: &Value) -> Option<Tree> {
        let node = match (&self.ty, bound, self.bits) {
            (_, Value::Int(number), Some(8)) => Node::Int8(i8::try_from(*number).ok()?),
            (_, Value::Int(number), Some(_)) => Node::Int16(i16::try_from(*number).ok()?),
            (PrimitiveType::Decimal { precision, scale }, Value::Decimal(unscaled), _) => {
                let bytes = match precision {
                    0..=9 => 4,
                    10..=18 => 8,
                    _ => 16,
                };
                Node::Decimal { unscaled: *unscaled, scale: *scale, bytes }
            }
            _ => return Tree::of_value(bound, &self.ty),
        };
        Some(Tree::fixed(node))
    }
}
