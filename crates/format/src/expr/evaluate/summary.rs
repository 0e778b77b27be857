//! Which manifests may hold matching files, by the summaries of their partition values ("Manifest Lists", `field_summary`).

use crate::types::PrimitiveType;
use crate::value::Value;

use super::mask;
use crate::expr::BoundExpr;
use crate::expr::bind::BoundPredicate;
use crate::expr::datum::Datum;
use crate::expr::predicate::{Comparison, Test};

/// The summary of one partition field over a manifest.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldSummary<'a> {
    /// Whether a partition value is null.
    pub contains_null: bool,
    /// Whether a partition value is NaN; `None` if the writer did not record it.
    pub contains_nan: Option<bool>,
    /// Not greater than any value other than null and NaN, in binary form; `None` without such a value.
    pub lower: Option<&'a [u8]>,
    /// Not less than any value other than null and NaN.
    pub upper: Option<&'a [u8]>,
}

/// Decides whether any file of a manifest may match; if not, none does.
#[derive(Debug, Clone)]
pub struct SummaryEvaluator(BoundExpr);

impl SummaryEvaluator {
    /// The evaluator of an expression on partitions, that is of an inclusive projection.
    #[must_use]
    pub fn new(partition_filter: &BoundExpr) -> Self {
        Self(partition_filter.rewrite_not())
    }

    /// Whether a file of the manifest may match; `summaries` are those of the fields of the spec, none where the manifest list
    /// has none.
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
    // A transform of an identity field: the summary is that of the column, and says little of the term.
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

/// The partition values of a manifest that are neither null nor NaN.
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

    /// The only value, if there is no other value, null or NaN.
    fn unique(&self) -> Option<Datum<'_>> {
        let floating = matches!(self.ty, PrimitiveType::Float | PrimitiveType::Double);
        if self.summary.contains_null || floating && self.summary.contains_nan != Some(false) {
            return None;
        }
        let (lower, upper) = (self.lower()?, self.upper()?);
        lower.order(upper).is_eq().then_some(lower)
    }
}
