//! Checks the metrics of a file: counts and bounds, with each other and with its partition.

use std::cmp::Ordering;
use std::collections::HashMap;

use icefield_format::manifest::DataFile;
use icefield_format::spec::PartitionField;
use icefield_format::transform::Transform;
use icefield_format::types::{PrimitiveType, Schema, Type, is_promotion_allowed};
use icefield_format::value::order::compare;
use icefield_format::value::{Value, binary};

use super::context::{At, Check};

/// The current type of a column, or the last one if it was dropped; `None` if files may have values of other types,
/// because the table was replaced by one with another column of that name.
pub(super) fn primitive<'a>(check: &'a Check<'_>, id: i32) -> Option<&'a PrimitiveType> {
    let of = |schema: &'a Schema| schema.find_type(id).and_then(Type::as_primitive);
    let current = of(check.metadata.current_schema());
    let ty = current.or_else(|| check.metadata.schemas().iter().rev().find_map(|schema| of(schema)))?;
    (!has_other_types(check, id, &Type::Primitive(ty.clone()))).then_some(ty)
}

/// Whether the column has had a type that is not promoted to this one.
pub(super) fn has_other_types(check: &Check<'_>, id: i32, ty: &Type) -> bool {
    let version = check.metadata.format_version().number();
    let fits = |other: &Type| match (other, ty) {
        (Type::Primitive(from), Type::Primitive(to)) => from == to || is_promotion_allowed(other, to, version),
        (Type::Primitive(_), _) | (_, Type::Primitive(_)) => false,
        _ => true,
    };
    check.metadata.schemas().iter().filter_map(|schema| schema.find_type(id)).any(|other| !fits(other))
}

/// The name of a column for findings.
pub(super) fn shown(check: &Check<'_>, metric: &str, id: i32) -> String {
    let mut schemas = std::iter::once(check.metadata.current_schema()).chain(check.metadata.schemas().iter().rev());
    match schemas.find_map(|schema| schema.column_name(id)) {
        Some(name) => format!("{metric}[{id}: {name}]"),
        None => format!("{metric}[{id}]"),
    }
}

/// The field id in a name that [`shown`] has made.
pub(super) fn column_of(shown: &str) -> Option<i32> {
    let (_, rest) = shown.split_once('[')?;
    rest.split([':', ']']).next()?.parse().ok()
}

/// Whether a type's bounds may be truncated.
pub(super) fn is_truncated(ty: &PrimitiveType) -> bool {
    matches!(ty, PrimitiveType::String | PrimitiveType::Binary | PrimitiveType::Fixed(_))
}

/// Compares two values. Zeros are equal: writers differ in the sign of those in bounds.
pub(super) fn order(ty: &PrimitiveType, one: &Value, other: &Value) -> Ordering {
    let is_zero = |value: &Value| match value {
        Value::Float(number) => *number == 0.0,
        Value::Double(number) => *number == 0.0,
        _ => false,
    };
    if is_zero(one) && is_zero(other) { Ordering::Equal } else { compare(ty, one, other) }
}

fn is_ordered(ty: &PrimitiveType) -> bool {
    !matches!(
        ty,
        PrimitiveType::Uuid | PrimitiveType::Unknown | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }
    )
}

pub(super) fn check(at: At<'_>, check: &Check<'_>, file: &DataFile) {
    let map = |pairs: &Option<Vec<(i32, i64)>>| -> HashMap<i32, i64> { pairs.iter().flatten().copied().collect() };
    let values = map(&file.value_counts);
    let top: Vec<i32> = check.metadata.current_schema().fields().iter().map(|field| field.id).collect();
    for (id, count) in file.value_counts.iter().flatten() {
        let is_primitive = primitive(check, *id).is_some();
        if *count < 0 || (top.contains(id) && is_primitive && file.record_count >= 0 && *count != file.record_count) {
            at.error("value-count", &shown(check, "value_counts", *id), file.record_count, count);
        }
    }
    for (name, pairs) in [("null_value_counts", &file.null_value_counts), ("nan_value_counts", &file.nan_value_counts)]
    {
        for (id, count) in pairs.iter().flatten() {
            let most = values.get(id).copied().unwrap_or(i64::MAX);
            if *count < 0 || *count > most {
                let check_name = if name == "null_value_counts" { "null-count" } else { "nan-count" };
                at.error(check_name, &shown(check, name, *id), format!("0 to {most}"), count);
            }
        }
    }
    let sizes = file.column_sizes.iter().flatten();
    let total = sizes.clone().fold(0i64, |sum, (_, size)| sum.saturating_add(*size));
    if sizes.clone().any(|(_, size)| *size < 0) || total > file.file_size_in_bytes.max(0) {
        let expected = format!("at most {} bytes together", file.file_size_in_bytes);
        at.warning("column-sizes", "column_sizes", expected, total);
    }
    let bounds = Bounds::read(at, check, file);
    check_partition(at, check, file, &bounds);
}

/// The decoded bounds of a file.
pub(super) struct Bounds {
    pub(super) lower: HashMap<i32, Value>,
    pub(super) upper: HashMap<i32, Value>,
}

impl Bounds {
    fn read(at: At<'_>, check: &Check<'_>, file: &DataFile) -> Self {
        let decode = |name: &str, pairs: &Option<Vec<(i32, Vec<u8>)>>| {
            let mut found = HashMap::new();
            for (id, bytes) in pairs.iter().flatten() {
                let Some(ty) = primitive(check, *id).filter(|ty| is_ordered(ty)) else { continue };
                match binary::from_bytes(bytes, ty) {
                    Ok(value) => drop(found.insert(*id, value)),
                    Err(error) => at.error("bound-unreadable", &shown(check, name, *id), format!("a {ty}"), error),
                }
            }
            found
        };
        let bounds = Self {
            lower: decode("lower_bounds", &file.lower_bounds),
            upper: decode("upper_bounds", &file.upper_bounds),
        };
        for (id, lower) in &bounds.lower {
            if let (Some(upper), Some(ty)) = (bounds.upper.get(id), primitive(check, *id))
                && order(ty, lower, upper).is_gt()
            {
                let expected = format!("at most the upper bound, {upper:?}");
                at.error("bounds-order", &shown(check, "lower_bounds", *id), expected, format!("{lower:?}"));
            }
        }
        bounds
    }
}

/// Checks the partition values that the bounds determine.
fn check_partition(at: At<'_>, check: &Check<'_>, file: &DataFile, bounds: &Bounds) {
    let Some(spec) = check.metadata.partition_spec(file.partition_spec_id) else { return };
    if file.partition.len() != spec.fields.len() {
        return at.error("entry-partition", "partition", format!("{} values", spec.fields.len()), file.partition.len());
    }
    for (field, value) in spec.fields.iter().zip(&file.partition) {
        check_identity(at, check, field, value.as_ref(), bounds);
        let Some((lower, upper)) = results(check, field, bounds) else { continue };
        // Bounds may be of some rows only: those with a null have the null partition.
        let has_nulls = field
            .source_id()
            .is_some_and(|id| file.null_value_counts.iter().flatten().any(|(of, nulls)| *of == id && *nulls > 0));
        let is_one = lower == upper;
        let is_right = value.as_ref().is_some_and(|value| same(value, &lower) || same(value, &upper));
        if !is_one || has_nulls || !is_right {
            let expected = if is_one { format!("{lower:?}") } else { format!("one value, not {lower:?} to {upper:?}") };
            at.error("entry-partition", &format!("partition.{}", field.name), expected, format!("{value:?}"));
        }
    }
}

/// Truncated bounds do not say what all values are, but the value of an identity partition is within them.
fn check_identity(at: At<'_>, check: &Check<'_>, field: &PartitionField, value: Option<&Value>, bounds: &Bounds) {
    let Some(id) = field.source_id().filter(|_| field.transform == Transform::Identity) else { return };
    let (Some(ty), Some(value)) = (primitive(check, id), value) else { return };
    if !is_truncated(ty) {
        return;
    }
    let is_below = bounds.lower.get(&id).is_some_and(|lower| order(ty, value, lower).is_lt());
    let is_above = bounds.upper.get(&id).is_some_and(|upper| order(ty, value, upper).is_gt());
    if is_below || is_above {
        let (lower, upper) = (bounds.lower.get(&id), bounds.upper.get(&id));
        let expected = format!("within the bounds of the column, {lower:?} to {upper:?}");
        at.error("entry-partition", &format!("partition.{}", field.name), expected, format!("{value:?}"));
    }
}

/// The transformed bounds of the source column, if they are bounds of all its transformed values.
fn results(check: &Check<'_>, field: &PartitionField, bounds: &Bounds) -> Option<(Value, Value)> {
    let id = field.source_id()?;
    let ty = primitive(check, id)?;
    let is_exact = !is_truncated(ty) && !matches!(ty, PrimitiveType::Float | PrimitiveType::Double);
    let (lower, upper) = (bounds.lower.get(&id)?, bounds.upper.get(&id)?);
    if !is_exact || field.transform.is_void() || (!field.transform.preserves_order() && lower != upper) {
        return None;
    }
    let of = ty.clone().into();
    let apply = |value: &Value| field.transform.apply(&of, Some(value)).ok().flatten();
    Some((apply(lower)?, apply(upper)?))
}

/// Whether two values are equal, in spite of a promotion of their type.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Long(number) => Some(i128::from(*number)),
        _ => None,
    };
    one == other || (number(one).is_some() && number(one) == number(other))
}
