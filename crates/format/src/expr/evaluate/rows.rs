//! Evaluates expressions on rows, in Arrow batches or one by one.
//!
//! Null matches `IS NULL`, `!=`, `NOT IN`, `NOT LIKE` and `IS NOT NAN`; NaN matches `IS NAN`, `!=` and `NOT IN`. `NOT`
//! is pushed down to the predicates first, so neither `x < 5` nor `NOT x < 5` matches null.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, FieldRef};

use crate::error::{Error, Result};
use crate::types::arrow::FIELD_ID_KEY;
use crate::value::Value;
use crate::value::variant::Variant;

use super::{compare, mask};
use crate::expr::bind::{BoundPredicate, BoundReference, BoundTerm, PathStep};
use crate::expr::datum::Datum;
use crate::expr::predicate::{Comparison, Test};
use crate::expr::{BoundExpr, Expression};

/// Provides the columns of an expression.
pub trait ColumnSource {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the column of a reference.
    fn column(&self, reference: &BoundReference) -> Result<TermColumn>;
}

/// The values of a column, and its nulls.
#[derive(Debug, Clone)]
pub struct TermColumn {
    values: ArrayRef,
    nulls: Option<NullBuffer>,
}

impl TermColumn {
    /// A column whose nulls are those of its values.
    #[must_use]
    pub fn new(values: ArrayRef) -> Self {
        let nulls = values.logical_nulls();
        Self { values, nulls }
    }

    /// A column inside structs, which is also null where a struct is null.
    fn within(values: ArrayRef, parent: Option<&NullBuffer>) -> Self {
        let nulls = NullBuffer::union(values.logical_nulls().as_ref(), parent);
        Self { values, nulls }
    }
}

/// Finds columns by the field ids in the batch's schema, and fields without an id by name.
impl ColumnSource for RecordBatch {
    fn len(&self) -> usize {
        self.num_rows()
    }

    fn column(&self, reference: &BoundReference) -> Result<TermColumn> {
        find(self.schema_ref().fields(), self.columns(), None, reference)
    }
}

impl ColumnSource for StructArray {
    fn len(&self) -> usize {
        Array::len(self)
    }

    fn column(&self, reference: &BoundReference) -> Result<TermColumn> {
        find(self.fields(), self.columns(), self.nulls(), reference)
    }
}

/// Follows the path of a column through structs.
fn find(
    fields: &[FieldRef],
    columns: &[ArrayRef],
    nulls: Option<&NullBuffer>,
    reference: &BoundReference,
) -> Result<TermColumn> {
    let path = reference.path.as_deref().unwrap_or_default();
    let missing = || Error::invalid(format!("the rows have no column {} (field {})", reference.name, reference.id));
    let (first, rest) = path.split_first().ok_or_else(|| {
        Error::unsupported(format!("column {} is inside a list or map: rows cannot be filtered by it", reference.name))
    })?;
    let mut array = step(fields, columns, first).ok_or_else(missing)?;
    let mut nulls = nulls.cloned();
    for next in rest {
        let parent = array.as_any().downcast_ref::<StructArray>().ok_or_else(missing)?;
        nulls = NullBuffer::union(nulls.as_ref(), parent.nulls());
        array = step(parent.fields(), parent.columns(), next).ok_or_else(missing)?;
    }
    Ok(TermColumn::within(Arc::clone(array), nulls.as_ref()))
}

fn step<'a>(fields: &[FieldRef], columns: &'a [ArrayRef], step: &PathStep) -> Option<&'a ArrayRef> {
    let id = |field: &FieldRef| field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse::<i32>().ok());
    let by_id = fields.iter().position(|field| id(field) == Some(step.id));
    let place = by_id.or_else(|| fields.iter().position(|field| id(field).is_none() && *field.name() == step.name));
    columns.get(place?)
}

impl BoundExpr {
    /// Evaluates the expression on a batch; the result has no nulls.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        Ok(BooleanArray::new(self.evaluate_columns(batch)?, None))
    }

    /// Evaluates the expression on the rows of a source.
    pub fn evaluate_columns(&self, rows: &impl ColumnSource) -> Result<BooleanBuffer> {
        mask::evaluate(&self.rewrite_not(), rows.len(), &mut |predicate| {
            let column = rows.column(&predicate.term.reference)?;
            if column.values.len() != rows.len() {
                let (found, rows, name) = (column.values.len(), rows.len(), &predicate.term.reference.name);
                return Err(Error::invalid(format!("column {name} has {found} rows: expected {rows}")));
            }
            evaluate_predicate(predicate, column)
        })
    }

    /// Whether a row matches, given one value for each field of the schema or of the partition tuple. Values inside
    /// lists and maps count as null.
    #[must_use]
    pub fn matches(&self, row: &[Option<Value>]) -> bool {
        matches(self, row, false)
    }
}

impl BoundPredicate {
    /// Whether a row with this value in the column matches.
    #[must_use]
    pub fn matches_value(&self, value: Option<&Value>) -> bool {
        test_value(&self.test, self.term.of_value(value).as_deref(), false)
    }
}

impl BoundTerm {
    /// Computes the term from a value of the column; null if the transform has no result.
    fn of_value<'a>(&self, value: Option<&'a Value>) -> Option<Cow<'a, Value>> {
        if let Some(extract) = &self.extract {
            let Value::Variant { metadata, value } = value? else { return None };
            return Variant::new(metadata, value)
                .and_then(|variant| extract.of(variant))
                .ok()
                .flatten()
                .map(Cow::Owned);
        }
        match &self.transform {
            Some(transform) => transform.apply(&self.reference.ty, value).ok().flatten().map(Cow::Owned),
            None => value.map(Cow::Borrowed),
        }
    }
}

fn evaluate_predicate(predicate: &BoundPredicate, column: TermColumn) -> Result<BooleanBuffer> {
    let len = column.values.len();
    let TermColumn { values, nulls } = transformed(&predicate.term, column)?;
    let valid = || nulls.as_ref().map_or_else(|| BooleanBuffer::new_set(len), |nulls| nulls.inner().clone());
    let mask = match &predicate.test {
        Test::IsNull => return Ok(!&valid()),
        Test::NotNull => return Ok(valid()),
        _ if *values.data_type() == DataType::Null => BooleanBuffer::new_unset(len),
        test => compare::evaluate(test, &predicate.term.ty, &values)?,
    };
    // The mask is meaningless where the value is null.
    Ok(match &nulls {
        None => mask,
        Some(nulls) if null_matches(&predicate.test) => &mask | &!nulls.inner(),
        Some(nulls) => &mask & nulls.inner(),
    })
}

/// Whether null matches a test.
fn null_matches<L, S>(test: &Test<L, S>) -> bool {
    matches!(
        test,
        Test::IsNull | Test::NotNan | Test::Compare(Comparison::NotEq, _) | Test::NotIn(_) | Test::NotStartsWith(_)
    )
}

fn transformed(term: &BoundTerm, column: TermColumn) -> Result<TermColumn> {
    if let Some(extract) = &term.extract {
        let name = &term.reference.name;
        let values = extract.column(&column.values).map_err(|error| error.within(&format!("column {name}, ")))?;
        return Ok(TermColumn::within(values, column.nulls.as_ref()));
    }
    match &term.transform {
        None => Ok(column),
        Some(transform) if transform.is_identity() => Ok(column),
        Some(transform) => {
            let source = term
                .reference
                .primitive()
                .map_or_else(|| Ok(Arc::clone(&column.values)), |ty| compare::canonical(&column.values, ty))?;
            let result = transform.kernel(&source)?;
            Ok(TermColumn::within(result, column.nulls.as_ref()))
        }
    }
}

/// Evaluates an expression on a row. `negated` pushes `NOT` down to the predicates without rewriting the expression.
fn matches(expr: &BoundExpr, row: &[Option<Value>], negated: bool) -> bool {
    match (expr, negated) {
        (Expression::True, _) => !negated,
        (Expression::False, _) => negated,
        (Expression::Not(child), _) => matches(child, row, !negated),
        (Expression::And(left, right), false) | (Expression::Or(left, right), true) => {
            matches(left, row, negated) && matches(right, row, negated)
        }
        (Expression::Or(left, right), false) | (Expression::And(left, right), true) => {
            matches(left, row, negated) || matches(right, row, negated)
        }
        (Expression::Predicate(predicate), _) => {
            let value = term_value(&predicate.term, row);
            test_value(&predicate.test, value.as_deref(), negated)
        }
    }
}

/// Computes the term from a row; null if the transform has no result.
fn term_value<'a>(term: &BoundTerm, row: &'a [Option<Value>]) -> Option<Cow<'a, Value>> {
    let mut fields = row;
    let mut value = None;
    for step in term.reference.path.as_deref()? {
        value = fields.get(step.position)?.as_ref();
        fields = match value? {
            Value::Struct(inner) => inner,
            _ => &[],
        };
    }
    term.of_value(value)
}

fn test_value(test: &Test<Value, Arc<crate::expr::ValueSet>>, value: Option<&Value>, negated: bool) -> bool {
    let datum = value.and_then(Datum::of);
    let matched = match test {
        Test::IsNull => value.is_none(),
        Test::NotNull => value.is_some(),
        Test::IsNan => datum.is_some_and(Datum::is_nan),
        Test::NotNan => !datum.is_some_and(Datum::is_nan),
        Test::Compare(comparison, literal) => {
            let order = datum.zip(Datum::of(literal)).and_then(|(value, literal)| value.row_order(literal));
            match (comparison, order) {
                (Comparison::Eq, order) => order.is_some_and(std::cmp::Ordering::is_eq),
                (Comparison::NotEq, order) => !order.is_some_and(std::cmp::Ordering::is_eq),
                // A value without an order matches neither a comparison nor its opposite.
                (_, None) => return false,
                (Comparison::Lt, Some(order)) => order.is_lt(),
                (Comparison::LtEq, Some(order)) => order.is_le(),
                (Comparison::Gt, Some(order)) => order.is_gt(),
                (Comparison::GtEq, Some(order)) => order.is_ge(),
            }
        }
        Test::StartsWith(prefix) => starts_with(value, prefix),
        Test::NotStartsWith(prefix) => !starts_with(value, prefix),
        Test::In(set) => datum.is_some_and(|datum| set.contains(datum)),
        Test::NotIn(set) => !datum.is_some_and(|datum| set.contains(datum)),
        Test::Intersects(envelope) | Test::Disjoint(envelope) => {
            let met = match value {
                Some(Value::Binary(shape)) => envelope.meets(shape),
                _ => None,
            };
            // Null and invalid shapes match neither `Intersects` nor `Disjoint`.
            return met.is_some_and(|met| (met == matches!(test, Test::Intersects(_))) != negated);
        }
    };
    matched != negated
}

fn starts_with(value: Option<&Value>, prefix: &Value) -> bool {
    matches!((value, prefix), (Some(Value::String(text)), Value::String(prefix)) if text.starts_with(prefix.as_str()))
}
