//! Decides by metrics whether all rows of a file match ("Scan Planning": strict evaluation).

use std::cmp::Ordering;

use arrow_buffer::BooleanBuffer;

use crate::error::Result;
use crate::types::{PrimitiveType, Type};
use crate::value::Value;

use super::files::Judge;
use super::metrics::all_start_with;
use super::statistics::{FileStatistics, StatisticsColumns, TermStatistics};
use crate::expr::BoundExpr;
use crate::expr::bind::BoundPredicate;
use crate::expr::datum::Datum;
use crate::expr::predicate::{Comparison, Test};

/// Decides whether all rows of a file certainly match.
///
/// Whole files are deleted because of this decision. So nulls and NaN are assumed to be present unless metrics rule
/// them out, even where the Java library takes a missing count for zero.
#[derive(Debug, Clone)]
pub struct StrictMetrics(BoundExpr);

impl StrictMetrics {
    /// Creates an evaluator for an expression.
    #[must_use]
    pub fn new(expr: &BoundExpr) -> Self {
        Self(expr.rewrite_not())
    }

    /// Whether every row of the file matches.
    pub fn must_match(&self, file: &impl FileStatistics) -> bool {
        JUDGE.file(&self.0, file)
    }

    /// For each of many files, whether all of its rows match.
    pub fn evaluate(&self, files: &StatisticsColumns) -> Result<BooleanBuffer> {
        JUDGE.files(&self.0, files)
    }
}

const JUDGE: Judge = Judge { of_metrics: must_match, of_count: |rows| (rows == 0).then_some(true) };

fn must_match(predicate: &BoundPredicate, statistics: &TermStatistics<'_>) -> bool {
    let reference = &predicate.term.reference;
    // The metrics describe the column, not the result of a transform or an extraction.
    if !predicate.term.is_plain() {
        return false;
    }
    match &predicate.test {
        Test::IsNan => return statistics.contains_nans_only() && statistics.counts_all_rows(),
        Test::NotNan => return !statistics.may_contain_nan() || statistics.contains_nulls_only(),
        // The metrics of nested columns do not say how many rows they cover.
        _ if reference.is_nested() => return false,
        _ => {}
    }
    match &predicate.test {
        Test::IsNull => statistics.contains_nulls_only(),
        Test::NotNull => !statistics.may_contain_null(),
        Test::Compare(Comparison::NotEq, literal) => {
            let literal = Datum::of(literal);
            literal.is_some_and(|literal| {
                all_outside(statistics, |lower, upper| {
                    lower.is_some_and(|lower| lower.order(literal).is_gt())
                        || upper.is_some_and(|upper| upper.order(literal).is_lt())
                })
            })
        }
        Test::NotIn(set) => all_outside(statistics, |lower, upper| {
            (lower.is_some() || upper.is_some()) && !set.any_within(lower, upper)
        }),
        Test::Compare(comparison, literal) => {
            only_values(statistics)
                && Datum::of(literal).is_some_and(|literal| must_compare(statistics, *comparison, literal))
        }
        Test::In(set) => {
            only_values(statistics)
                && statistics.with_bounds(|lower, upper| match (lower, upper) {
                    (Some(lower), Some(upper)) => lower.order(upper).is_eq() && set.contains(lower),
                    _ => false,
                })
        }
        Test::StartsWith(Value::String(prefix)) => {
            only_values(statistics) && all_start_with(statistics, prefix.as_bytes())
        }
        Test::NotStartsWith(Value::String(prefix)) => {
            statistics.contains_nulls_only() || none_starts_with(statistics, prefix.as_bytes())
        }
        Test::IsNan | Test::NotNan | Test::StartsWith(_) | Test::NotStartsWith(_) => false,
        Test::Intersects(_) | Test::Disjoint(_) => false,
    }
}

/// Whether the column certainly has neither nulls nor NaN.
fn only_values(statistics: &TermStatistics<'_>) -> bool {
    let floating = matches!(statistics.term.ty, Type::Primitive(PrimitiveType::Float | PrimitiveType::Double));
    let required = !statistics.term.reference.nullable;
    (required || !statistics.may_contain_null()) && (!floating || !statistics.may_contain_nan())
}

fn must_compare(statistics: &TermStatistics<'_>, comparison: Comparison, literal: Datum<'_>) -> bool {
    statistics.with_order(literal, |lower, upper| match comparison {
        Comparison::Lt => upper.is_some_and(Ordering::is_lt),
        Comparison::LtEq => upper.is_some_and(Ordering::is_le),
        Comparison::Gt => lower.is_some_and(Ordering::is_gt),
        Comparison::GtEq => lower.is_some_and(Ordering::is_ge),
        Comparison::Eq => lower.is_some_and(Ordering::is_eq) && upper.is_some_and(Ordering::is_eq),
        Comparison::NotEq => false,
    })
}

/// For tests that match null and NaN: whether all other values are `outside`.
fn all_outside(
    statistics: &TermStatistics<'_>,
    outside: impl FnOnce(Option<Datum<'_>>, Option<Datum<'_>>) -> bool,
) -> bool {
    if statistics.contains_nulls_only() || statistics.contains_nans_only() {
        return true;
    }
    statistics.with_bounds(|lower, upper| !lower.is_some_and(Datum::is_nan) && outside(lower, upper))
}

/// Whether the bounds exclude every value with the prefix.
fn none_starts_with(statistics: &TermStatistics<'_>, prefix: &[u8]) -> bool {
    statistics.with_bounds(|lower, upper| {
        let below = |bound: &[u8]| bound > prefix && !bound.starts_with(prefix);
        matches!(lower, Some(Datum::Bytes(lower)) if below(lower))
            || matches!(upper, Some(Datum::Bytes(upper)) if upper < prefix)
    })
}
