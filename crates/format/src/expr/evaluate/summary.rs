//! Decides by partition summaries which manifests may contain matching files ("Manifest Lists", `field_summary`).

use crate::types::PrimitiveType;
use crate::value::Value;

use super::mask;
use crate::expr::BoundExpr;
use crate::expr::bind::BoundPredicate;
use crate::expr::datum::Datum;
use crate::expr::predicate::{Comparison, Test};

/// Summary of one partition field in a manifest.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldSummary<'a> {
    /// Whether any partition value is null.
    pub contains_null: bool,
    /// Whether any partition value is NaN; `None` if the writer did not record it.
    pub contains_nan: Option<bool>,
    /// Lower bound of the values other than null and NaN, in binary form; `None` if there are only null and NaN.
    pub lower: Option<&'a [u8]>,
    /// Upper bound of the values other than null and NaN.
    pub upper: Option<&'a [u8]>,
}

/// Decides whether any file of a manifest may match; if not, the manifest can be skipped.
#[derive(Debug, Clone)]
pub struct SummaryEvaluator(BoundExpr);

impl SummaryEvaluator {
    /// Creates an evaluator for an expression on partitions, that is, an inclusive projection.
    #[must_use]
    pub fn new(partition_filter: &BoundExpr) -> Self {
        Self(partition_filter.rewrite_not())
    }

    /// Whether any file of the manifest may match; `summaries` has one for each field of the spec, or is `None` if the
    /// manifest list has no summaries.
    #[must_use]
    pub fn might_match(&self, summaries: Option<&[FieldSummary<'_>]>) -> bool {
        let Some(summaries) = summaries else { return true };
        mask::decide(&self.0, &|predicate| {
            let position = predicate.term.reference.path.as_ref().and_then(|path| path.first());
            let summary = position.and_then(|step| summaries.get(step.position));
            summary.is_none_or(|summary| might_match(predicate, summary))
        })
    }
}

fn might_match(predicate: &BoundPredicate, summary: &FieldSummary<'_>) -> bool {
    // The term is a transform of an identity field. The summary describes the column, which says little about the term.
    if !predicate.term.is_plain() {
        return !matches!(predicate.test, Test::IsNull) || !predicate.term.keeps_values() || summary.contains_null;
    }
    let Some(ty) = predicate.term.reference.primitive() else { return true };
    let floating = matches!(ty, PrimitiveType::Float | PrimitiveType::Double);
    let values = PartitionValues { ty, summary };
    match &predicate.test {
        Test::IsNull => summary.contains_null,
        Test::NotNull => {
            summary.lower.is_some() || !summary.contains_null || floating && summary.contains_nan != Some(false)
        }
        Test::IsNan => summary.contains_nan != Some(false),
        Test::NotNan => summary.contains_nan != Some(true) || summary.contains_null || summary.lower.is_some(),
        Test::Compare(Comparison::NotEq, literal) => match (values.unique(), Datum::of(literal)) {
            (Some(value), Some(literal)) => !value.order(literal).is_eq(),
            _ => true,
        },
        Test::NotIn(set) => values.unique().is_none_or(|value| !set.contains(value)),
        Test::NotStartsWith(Value::String(prefix)) => {
            let prefix = prefix.as_bytes();
            let all = |bound: Option<&[u8]>| bound.is_some_and(|bound| bound.starts_with(prefix));
            summary.contains_null || !(all(summary.lower) && all(summary.upper))
        }
        // All values are null or NaN, which match none of the tests below.
        _ if summary.lower.is_none() => false,
        Test::Compare(comparison, literal) => {
            Datum::of(literal).is_none_or(|literal| values.might_compare(*comparison, literal))
        }
        Test::In(set) => set.any_within(values.lower(), values.upper()),
        Test::StartsWith(Value::String(prefix)) => {
            let prefix = prefix.as_bytes();
            let below = |bound: &[u8]| bound > prefix && !bound.starts_with(prefix);
            !summary.lower.is_some_and(below) && summary.upper.is_none_or(|bound| bound >= prefix)
        }
        Test::StartsWith(_) | Test::NotStartsWith(_) | Test::Intersects(_) | Test::Disjoint(_) => true,
    }
}

/// The partition values of a manifest other than null and NaN.
struct PartitionValues<'a> {
    ty: &'a PrimitiveType,
    summary: &'a FieldSummary<'a>,
}

impl PartitionValues<'_> {
    fn lower(&self) -> Option<Datum<'_>> {
        Datum::of_bounds(self.ty, self.summary.lower, self.summary.upper).0
    }

    fn upper(&self) -> Option<Datum<'_>> {
        Datum::of_bounds(self.ty, self.summary.lower, self.summary.upper).1
    }

    fn might_compare(&self, comparison: Comparison, literal: Datum<'_>) -> bool {
        let lower = self.lower().map(|lower| lower.order(literal));
        let upper = self.upper().map(|upper| upper.order(literal));
        match comparison {
            Comparison::Lt => lower.is_none_or(std::cmp::Ordering::is_lt),
            Comparison::LtEq => lower.is_none_or(std::cmp::Ordering::is_le),
            Comparison::Gt => upper.is_none_or(std::cmp::Ordering::is_gt),
            Comparison::GtEq => upper.is_none_or(std::cmp::Ordering::is_ge),
            Comparison::Eq => {
                lower.is_none_or(std::cmp::Ordering::is_le) && upper.is_none_or(std::cmp::Ordering::is_ge)
            }
            Comparison::NotEq => true,
        }
    }

    /// The only value, if there are no other values, nulls or NaN.
    fn unique(&self) -> Option<Datum<'_>> {
        let floating = matches!(self.ty, PrimitiveType::Float | PrimitiveType::Double);
        if self.summary.contains_null || floating && self.summary.contains_nan != Some(false) {
            return None;
        }
        let (lower, upper) = (self.lower()?, self.upper()?);
        lower.order(upper).is_eq().then_some(lower)
    }
}
