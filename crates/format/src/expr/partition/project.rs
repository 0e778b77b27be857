//! Projects predicates on rows to predicates on partitions ("Scan Planning").
//!
//! An inclusive projection matches every partition that may contain a matching row; a strict one matches only
//! partitions whose rows all match. A projection is bound to the partition tuple of its spec: field ids and positions
//! are those of the tuple.

use std::convert::Infallible;
use std::sync::Arc;

use crate::spec::{PartitionField, PartitionSpec};
use crate::transform::Transform;
use crate::types::{PrimitiveType, Type};
use crate::value::Value;

use crate::expr::bind::{BoundPredicate, BoundReference, BoundTerm, PathStep, bound};
use crate::expr::predicate::{Comparison, Test};
use crate::expr::{BoundExpr, Expression};

/// A test whose values are not yet a set.
type Projected = Test<Value, Vec<Value>>;

/// Kind of projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Inclusive,
    Strict,
}

/// Returns a predicate for the partitions that may contain matching rows.
#[must_use]
pub fn project_inclusive(expr: &BoundExpr, spec: &PartitionSpec) -> BoundExpr {
    project(
        expr,
        spec,
        |predicate, field, position| {
            project_leaf(predicate, field, position, Mode::Inclusive).unwrap_or(Expression::True)
        },
        BoundExpr::and,
        Expression::True,
    )
}

/// Returns a predicate for the partitions whose rows all match.
#[must_use]
pub fn project_strict(expr: &BoundExpr, spec: &PartitionSpec) -> BoundExpr {
    project(
        expr,
        spec,
        |predicate, field, position| {
            project_leaf(predicate, field, position, Mode::Strict).unwrap_or(Expression::False)
        },
        BoundExpr::or,
        Expression::False,
    )
}

/// Projects an expression. If a column has several partition fields, a matching row satisfies all of their inclusive
/// projections, and any one of their strict projections is sufficient.
fn project(
    expr: &BoundExpr,
    spec: &PartitionSpec,
    leaf: impl Fn(&BoundPredicate, &PartitionField, usize) -> BoundExpr,
    combine: fn(BoundExpr, BoundExpr) -> BoundExpr,
    none: BoundExpr,
) -> BoundExpr {
    let projected: Result<_, Infallible> = expr.rewrite_not().try_map(&mut |predicate| {
        let fields = spec.fields.iter().enumerate();
        let of_column = fields.filter(|(_, field)| field.source_ids == [predicate.term.reference.id]);
        let projections = of_column.map(|(position, field)| leaf(predicate, field, position));
        Ok(projections.reduce(combine).unwrap_or_else(|| none.clone()))
    });
    match projected {
        Ok(projected) => projected,
    }
}

/// Projects a predicate through one partition field of its column, if possible.
pub(super) fn project_leaf(
    predicate: &BoundPredicate,
    field: &PartitionField,
    position: usize,
    mode: Mode,
) -> Option<BoundExpr> {
    if predicate.term.extract.is_some() {
        return None;
    }
    let source = &predicate.term.reference.ty;
    let reference = partition_reference(field, position, source)?;
    let (transform, test) = match (&predicate.term.transform, &field.transform) {
        (_, Transform::Void | Transform::Unknown(_)) => return None,
        // The partition value is the column's value, so every test of the column applies to it.
        (transform, Transform::Identity) => (transform.clone().filter(|t| !t.is_identity()), as_is(&predicate.test)),
        // The predicate tests exactly the value that the partition stores.
        (Some(asked), stored) if asked == stored => (None, as_is(&predicate.test)),
        (Some(_), _) => return None,
        (None, transform) => (None, project_test(&predicate.test, transform, source, mode)?),
    };
    let ty = match &transform {
        Some(transform) => transform.result_type(&reference.ty)?,
        None => reference.ty.clone(),
    };
    let plain = predicate.term.transform.is_none() && transform.is_none();
    let wrapped = if plain { field.transform.wrapped(source) } else { None };
    let unknown = match test {
        Test::IsNull | Test::NotNull => None,
        _ => field.transform.wrapped_before_promotion(source),
    };
    let term = Arc::new(BoundTerm { reference, transform, extract: None, ty });
    let projected = match (wrapped, &test) {
        (Some(wrapped), Test::Compare(comparison, _)) => of_wrapped(&term, *comparison, wrapped, mode, test),
        _ => bound(term.clone(), test),
    };
    // Rows from before the promotion may have this partition value instead of the transform's result.
    Some(match (unknown, mode) {
        (None, _) => projected,
        (Some(value), Mode::Inclusive) => BoundExpr::or(projected, bound(term, Test::Compare(Comparison::Eq, value))),
        (Some(value), Mode::Strict) => BoundExpr::and(projected, bound(term, Test::Compare(Comparison::NotEq, value))),
    })
}

/// Adjusts a comparison of partition values for the value that the smallest numbers wrap around to: it is the largest
/// partition value, but its rows are the smallest.
fn of_wrapped(term: &Arc<BoundTerm>, comparison: Comparison, wrapped: Value, mode: Mode, test: Projected) -> BoundExpr {
    let projected = bound(term.clone(), test);
    let is = |comparison| bound(term.clone(), Test::Compare(comparison, wrapped));
    match (mode, comparison) {
        (Mode::Inclusive, Comparison::Lt | Comparison::LtEq) => BoundExpr::or(projected, is(Comparison::Eq)),
        (Mode::Strict, Comparison::Gt | Comparison::GtEq) => BoundExpr::and(projected, is(Comparison::NotEq)),
        _ => projected,
    }
}

/// The partition field as a column of the partition tuple.
fn partition_reference(field: &PartitionField, position: usize, source: &Type) -> Option<BoundReference> {
    Some(BoundReference {
        name: field.name.clone(),
        id: field.field_id,
        ty: field.transform.result_type(source)?,
        path: Some(vec![PathStep { position, id: field.field_id, name: field.name.clone() }]),
        nullable: true,
    })
}

fn as_is<L: Clone>(test: &Test<L, Arc<crate::expr::bind::ValueSet>>) -> Test<L, Vec<Value>> {
    match test {
        Test::IsNull => Test::IsNull,
        Test::NotNull => Test::NotNull,
        Test::IsNan => Test::IsNan,
        Test::NotNan => Test::NotNan,
        Test::Compare(comparison, value) => Test::Compare(*comparison, value.clone()),
        Test::StartsWith(prefix) => Test::StartsWith(prefix.clone()),
        Test::NotStartsWith(prefix) => Test::NotStartsWith(prefix.clone()),
        Test::In(set) => Test::In(set.values().to_vec()),
        Test::NotIn(set) => Test::NotIn(set.values().to_vec()),
        Test::Intersects(envelope) => Test::Intersects(*envelope),
        Test::Disjoint(envelope) => Test::Disjoint(*envelope),
    }
}

/// Converts a test of the column to a test of the transform's result.
fn project_test(
    test: &Test<Value, Arc<crate::expr::bind::ValueSet>>,
    transform: &Transform,
    source: &Type,
    mode: Mode,
) -> Option<Projected> {
    let apply = |value: &Value| transform.apply(source, Some(value)).ok().flatten();
    let projected = match (test, mode) {
        // A transform maps null, and nothing else, to null.
        (Test::IsNull, _) => return Some(Test::IsNull),
        (Test::NotNull, _) => return Some(Test::NotNull),
        (Test::In(set), Mode::Inclusive) => Test::In(set.values().iter().map(apply).collect::<Option<_>>()?),
        (Test::NotIn(set), Mode::Strict) => Test::NotIn(set.values().iter().map(apply).collect::<Option<_>>()?),
        (Test::Compare(Comparison::Eq, value), Mode::Inclusive) => Test::Compare(Comparison::Eq, apply(value)?),
        (Test::Compare(Comparison::NotEq, value), Mode::Strict) => Test::Compare(Comparison::NotEq, apply(value)?),
        (Test::Compare(Comparison::Eq | Comparison::NotEq, _), _) => return None,
        (Test::Compare(comparison, value), _) if transform.preserves_order() => {
            project_order(*comparison, value, transform, source, mode)?
        }
        (Test::StartsWith(Value::String(prefix)), _) => project_prefix(prefix, true, transform, mode)?,
        (Test::NotStartsWith(Value::String(prefix)), _) => project_prefix(prefix, false, transform, mode)?,
        _ => return None,
    };
    let may_be_off_by_one = match transform {
        Transform::Day => *source != Type::Primitive(PrimitiveType::Date),
        Transform::Year | Transform::Month | Transform::Hour => true,
        _ => false,
    };
    Some(if may_be_off_by_one { allow_off_by_one(projected, mode) } else { projected })
}

/// Projects `<`, `<=`, `>` and `>=` through a transform that preserves order.
///
/// Inclusive: the bound is made closed first, so that `< 10` through `truncate[10]` becomes `<= 0` and not `<= 10`.
/// Strict: the bound is made open, since the partition that contains the bound may have values on both sides of it.
fn project_order(
    comparison: Comparison,
    value: &Value,
    transform: &Transform,
    source: &Type,
    mode: Mode,
) -> Option<Projected> {
    use Comparison as C;
    let (by, result) = match (mode, comparison) {
        (Mode::Inclusive, C::Lt) => (-1, C::LtEq),
        (Mode::Inclusive, C::LtEq) => (0, C::LtEq),
        (Mode::Inclusive, C::Gt) => (1, C::GtEq),
        (Mode::Inclusive, C::GtEq) => (0, C::GtEq),
        (Mode::Strict, C::Lt) => (0, C::Lt),
        (Mode::Strict, C::LtEq) => (1, C::Lt),
        (Mode::Strict, C::Gt) => (0, C::Gt),
        (Mode::Strict, C::GtEq) => (-1, C::Gt),
        (_, C::Eq | C::NotEq) => return None,
    };
    let (moved, overflowed) = neighbour(value, by);
    let bound = transform.apply(source, Some(&moved)).ok().flatten()?;
    // `truncate` wraps around near the smallest number. The bound is then wrong, which is harmless only if it weakens
    // the projection.
    let wrapped = !overflowed && matches!(transform, Transform::Truncate(_)) && is_above(&bound, &moved);
    let harmless = matches!(result, C::LtEq | C::Gt);
    (!wrapped || harmless).then_some(Test::Compare(result, bound))
}

/// Returns the next smaller or larger number, and whether it overflowed. Text and bytes have no neighbours and are
/// returned unchanged.
fn neighbour(value: &Value, by: i8) -> (Value, bool) {
    match value {
        Value::Int(number) => {
            let (number, wrapped) = number.overflowing_add(i32::from(by));
            (Value::Int(number), wrapped)
        }
        Value::Long(number) => {
            let (number, wrapped) = number.overflowing_add(i64::from(by));
            (Value::Long(number), wrapped)
        }
        Value::Decimal(number) => {
            let (number, wrapped) = number.overflowing_add(i128::from(by));
            (Value::Decimal(number), wrapped)
        }
        other => (other.clone(), false),
    }
}

fn is_above(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a > b,
        (Value::Long(a), Value::Long(b)) => a > b,
        (Value::Decimal(a), Value::Decimal(b)) => a > b,
        _ => false,
    }
}

/// Projects a prefix through `truncate`: a shorter prefix than the width stays as it is, one of the same length is the
/// whole result, and a longer one is cut.
fn project_prefix(prefix: &str, starts: bool, transform: &Transform, mode: Mode) -> Option<Projected> {
    let Transform::Truncate(width) = transform else { return None };
    let width = usize::try_from(*width).ok()?;
    let text = Value::String(prefix.to_owned());
    let cut = || Value::String(prefix.chars().take(width).collect());
    match (prefix.chars().count().cmp(&width), starts, mode) {
        (std::cmp::Ordering::Less, true, _) => Some(Test::StartsWith(text)),
        (std::cmp::Ordering::Less, false, _) => Some(Test::NotStartsWith(text)),
        (std::cmp::Ordering::Equal, true, _) => Some(Test::Compare(Comparison::Eq, text)),
        (std::cmp::Ordering::Equal, false, _) => Some(Test::Compare(Comparison::NotEq, text)),
        (std::cmp::Ordering::Greater, true, Mode::Inclusive) => Some(Test::StartsWith(cut())),
        (std::cmp::Ordering::Greater, false, Mode::Strict) => Some(Test::NotStartsWith(cut())),
        (std::cmp::Ordering::Greater, ..) => None,
    }
}

/// Early writers stored times before 1970 one partition too high (`day(1969-12-31T10:00)` was 0), and their tables are
/// still in use. So a projection below zero allows for it: the inclusive one also accepts the next partition, the
/// strict one excludes it.
fn allow_off_by_one(projected: Projected, mode: Mode) -> Projected {
    use Comparison as C;
    match (projected, mode) {
        (Test::Compare(C::LtEq, Value::Int(bound)), Mode::Inclusive) if bound < 0 => {
            Test::Compare(C::LtEq, Value::Int(bound + 1))
        }
        (Test::Compare(C::Gt, Value::Int(bound)), Mode::Strict) if bound <= 0 => {
            Test::Compare(C::Gt, Value::Int(bound + 1))
        }
        (Test::Compare(C::Eq, value), Mode::Inclusive) => Test::In(with_next(vec![value])),
        (Test::Compare(C::NotEq, value), Mode::Strict) => Test::NotIn(with_next(vec![value])),
        (Test::In(values), _) => Test::In(with_next(values)),
        (Test::NotIn(values), _) => Test::NotIn(with_next(values)),
        (other, _) => other,
    }
}

/// The values, and for each negative one also the next.
fn with_next(mut values: Vec<Value>) -> Vec<Value> {
    let next = |value: &Value| match value {
        Value::Int(number) if *number < 0 => Some(Value::Int(number + 1)),
        _ => None,
    };
    let extra: Vec<_> = values.iter().filter_map(next).collect();
    values.extend(extra);
    values
}
