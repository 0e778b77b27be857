//! Decides by metrics which files may contain matching rows ("Scan Planning": inclusive evaluation).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use arrow_buffer::BooleanBuffer;

use crate::error::Result;
use crate::value::Value;

use super::files::Judge;
use super::statistics::{FileStatistics, StatisticsColumns, TermStatistics};
use crate::expr::BoundExpr;
use crate::expr::bind::BoundPredicate;
use crate::expr::datum::Datum;
use crate::expr::predicate::{Comparison, Test};

/// Decides whether any row of a file may match; if not, the file can be skipped.
#[derive(Debug, Clone)]
pub struct InclusiveMetrics(BoundExpr);

impl InclusiveMetrics {
    /// Creates an evaluator for an expression.
    #[must_use]
    pub fn new(expr: &BoundExpr) -> Self {
        Self(expr.rewrite_not())
    }

    /// Ids of the fields whose metrics the evaluator uses.
    #[must_use]
    pub fn field_ids(&self) -> BTreeSet<i32> {
        self.0.predicates().map(|predicate| predicate.term.reference.id).collect()
    }

    /// Whether any row of the file may match.
    pub fn might_match(&self, file: &impl FileStatistics) -> bool {
        JUDGE.file(&self.0, file)
    }

    /// For each of many files, whether any of its rows may match.
    pub fn evaluate(&self, files: &StatisticsColumns) -> Result<BooleanBuffer> {
        JUDGE.files(&self.0, files)
    }
}

const JUDGE: Judge = Judge {
    of_metrics: might_match,
    of_count: |rows| match rows {
        0 => Some(false),
        // Old imported files may have an unknown row count.
        ..0 => Some(true),
        _ => None,
    },
};

fn might_match(predicate: &BoundPredicate, statistics: &TermStatistics<'_>) -> bool {
    let plain = predicate.term.is_plain();
    match &predicate.test {
        Test::IsNull => !predicate.term.keeps_values() || statistics.may_contain_null(),
        Test::NotNull => !statistics.contains_nulls_only(),
        Test::IsNan => !statistics.contains_nulls_only() && (!plain || statistics.may_contain_nan()),
        // If the counts leave out rows with null parents, such rows still match.
        Test::NotNan => !(plain && statistics.contains_nans_only() && statistics.counts_all_rows()),
        Test::Compare(Comparison::NotEq, literal) => {
            Datum::of(literal).is_none_or(|literal| !is_unique(statistics, |v| v.order(literal).is_eq()))
        }
        Test::NotIn(set) => !is_unique(statistics, |value| set.contains(value)),
        Test::Compare(comparison, literal) => {
            has_values(statistics)
                && Datum::of(literal).is_none_or(|literal| might_compare(statistics, *comparison, literal))
        }
        Test::In(set) => {
            has_values(statistics)
                && statistics.with_bounds(|lower, upper| match lower {
                    Some(lower) if !lower.is_nan() => set.any_within(Some(lower), upper),
                    _ => true,
                })
        }
        Test::StartsWith(Value::String(prefix)) => {
            !statistics.contains_nulls_only()
                && ((!plain && predicate.term.extract.is_none()) || might_start_with(statistics, prefix.as_bytes()))
        }
        Test::NotStartsWith(Value::String(prefix)) => {
            statistics.may_contain_null() || !all_start_with(statistics, prefix.as_bytes())
        }
        Test::StartsWith(_) | Test::NotStartsWith(_) => true,
        Test::Intersects(envelope) => {
            let field = &statistics.field;
            !statistics.contains_nulls_only() && envelope.may_meet(field.lower, field.upper)
        }
        // A shape without points is disjoint from every box.
        Test::Disjoint(_) => !statistics.contains_nulls_only(),
    }
}

/// Whether there may be a value to compare, that is, neither only nulls nor only NaN.
fn has_values(statistics: &TermStatistics<'_>) -> bool {
    !statistics.contains_nulls_only() && !statistics.contains_nans_only()
}

fn might_compare(statistics: &TermStatistics<'_>, comparison: Comparison, literal: Datum<'_>) -> bool {
    statistics.with_order(literal, |lower, upper| match comparison {
        Comparison::Lt => lower.is_none_or(Ordering::is_lt),
        Comparison::LtEq => lower.is_none_or(Ordering::is_le),
        Comparison::Gt => upper.is_none_or(Ordering::is_gt),
        Comparison::GtEq => upper.is_none_or(Ordering::is_ge),
        Comparison::Eq => lower.is_none_or(Ordering::is_le) && upper.is_none_or(Ordering::is_ge),
        Comparison::NotEq => true,
    })
}

/// Whether all rows have the same value, and it satisfies `such`.
fn is_unique(statistics: &TermStatistics<'_>, such: impl FnOnce(Datum<'_>) -> bool) -> bool {
    if statistics.may_contain_null() {
        return false;
    }
    statistics.with_bounds(|lower, upper| match (lower, upper) {
        (Some(Datum::Float(_)), _) if statistics.may_contain_nan() => false,
        (Some(lower), Some(upper)) => !lower.is_nan() && lower.order(upper).is_eq() && such(lower),
        _ => false,
    })
}

/// Whether a value may start with the prefix. A lower bound above the prefix excludes it, unless the bound starts with
/// it.
fn might_start_with(statistics: &TermStatistics<'_>, prefix: &[u8]) -> bool {
    statistics.with_bounds(|lower, upper| match (lower, upper) {
        (Some(Datum::Bytes(lower)), upper) => {
            let beyond = lower > prefix && !lower.starts_with(prefix);
            !beyond && !matches!(upper, Some(Datum::Bytes(upper)) if upper < prefix)
        }
        _ => true,
    })
}

/// Whether both bounds, and therefore all values, start with the prefix.
pub(super) fn all_start_with(statistics: &TermStatistics<'_>, prefix: &[u8]) -> bool {
    statistics.with_bounds(|lower, upper| match (lower, upper) {
        (Some(Datum::Bytes(lower)), Some(Datum::Bytes(upper))) => {
            lower.starts_with(prefix) && upper.starts_with(prefix)
        }
        _ => false,
    })
}
