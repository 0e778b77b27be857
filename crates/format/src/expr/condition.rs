//! Conditions over the columns of several tables: filters in which two columns may be compared, `source.day > target.day`.

use super::expression::{Expression, Leaf};
use super::predicate::{Comparison, Expr, Predicate, Term};

/// A condition by column names.
pub type Condition = Expression<ConditionPredicate>;

/// A test of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionPredicate {
    /// A column, or a transform of it, beside literals.
    Literals(Predicate),
    /// Two columns beside each other.
    Columns(ColumnComparison),
}

/// How two columns compare. Null compares with nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnComparison {
    /// The left one.
    pub left: Term,
    /// How they compare.
    pub comparison: Comparison,
    /// The right one.
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
    /// The same condition as a filter, where no two columns are compared.
    pub fn as_filter(&self) -> Option<Expr> {
        let leaf = |leaf: &ConditionPredicate| match leaf {
            ConditionPredicate::Literals(predicate) => Ok(Expression::Predicate(predicate.clone())),
            ConditionPredicate::Columns(_) => Err(()),
        };
        self.try_map(&mut { leaf }).ok()
    }

    /// A filter that matches each row that this condition holds for: what it says of columns beside literals.
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
