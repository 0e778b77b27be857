//! Conditions over several tables: filters that may also compare two columns, `source.day > target.day`.

use super::expression::{Expression, Leaf};
use super::predicate::{Comparison, Expr, Predicate, Term};

/// A condition by column names.
pub type Condition = Expression<ConditionPredicate>;

/// A test of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionPredicate {
    /// Compares a column, or a transform of it, with literals.
    Literals(Predicate),
    /// Compares two columns.
    Columns(ColumnComparison),
}

/// A comparison of two columns. It is never true for null.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnComparison {
    /// Left side.
    pub left: Term,
    /// The comparison.
    pub comparison: Comparison,
    /// Right side.
    pub right: Term,
}

impl Leaf for ConditionPredicate {
    fn negate(&self) -> Self {
        match self {
            Self::Literals(predicate) => Self::Literals(predicate.negate()),
            Self::Columns(columns) => {
                Self::Columns(ColumnComparison { comparison: columns.comparison.negate(), ..columns.clone() })
            }
        }
    }
}

impl Condition {
    /// Converts the condition to a filter; `None` if it compares two columns.
    pub fn as_filter(&self) -> Option<Expr> {
        let leaf = |leaf: &ConditionPredicate| match leaf {
            ConditionPredicate::Literals(predicate) => Ok(Expression::Predicate(predicate.clone())),
            ConditionPredicate::Columns(_) => Err(()),
        };
        self.try_map(&mut { leaf }).ok()
    }

    /// Returns a filter that matches at least the rows of this condition: comparisons of two columns are dropped.
    pub fn weakened(&self) -> Expr {
        let mut leaf = |leaf: &ConditionPredicate| {
            Ok::<_, std::convert::Infallible>(match leaf {
                ConditionPredicate::Literals(predicate) => Expression::Predicate(predicate.clone()),
                ConditionPredicate::Columns(_) => Expression::True,
            })
        };
        match self.rewrite_not().try_map(&mut leaf) {
            Ok(filter) => filter,
            Err(never) => match never {},
        }
    }
}

impl From<&Expr> for Condition {
    fn from(filter: &Expr) -> Self {
        let mut leaf = |predicate: &Predicate| {
            Ok::<_, std::convert::Infallible>(Expression::Predicate(ConditionPredicate::Literals(predicate.clone())))
        };
        match filter.try_map(&mut leaf) {
            Ok(condition) => condition,
            Err(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(condition: &str, filter: &str) {
        assert_eq!(Condition::parse(condition).unwrap().weakened().to_string(), filter, "{condition}");
    }

    #[test]
    fn a_filter_that_is_left_of_a_condition_matches_no_fewer_rows() {
        check("a < b", "TRUE");
        check("NOT a < b", "TRUE");
        check("a < b AND c = 1", "c = 1");
        check("a < b OR c = 1", "TRUE");
        check("NOT (a < b OR c = 1)", "c != 1");
        check("NOT (a < b AND c = 1) AND d IS NULL", "d IS NULL");
        check("(a < b OR c = 1) AND (d = 2 OR e = 3)", "d = 2 OR e = 3");
    }
}
