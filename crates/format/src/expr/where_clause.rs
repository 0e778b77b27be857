//! Gives filters the null semantics of SQL's `WHERE`.
//!
//! In SQL, null is neither equal nor unequal to a value: `WHERE` keeps no nulls for `!=`, `NOT IN`, `NOT LIKE` or under
//! `NOT`. Iceberg's expressions match null there. A filter written as text follows SQL, in reads as in changes; an
//! expression built by a program or a protocol follows Iceberg.

use std::convert::Infallible;

use crate::types::PrimitiveType;
use crate::value::Value;

use super::Expression;
use super::condition::{Condition, ConditionPredicate};
use super::literal::Literal;
use super::predicate::{Comparison, Expr, Predicate, Test};

impl Expr {
    /// Returns an expression that matches the rows that SQL's `WHERE` keeps: of the rows that this one matches, all
    /// except those that match only because of a null.
    #[must_use]
    pub fn as_sql(&self) -> Self {
        guarded(self.rewrite_not().try_map(&mut |predicate: &Predicate| {
            Ok(with(predicate.not_null(), Expression::Predicate(predicate.clone()), Expression::Predicate))
        }))
    }
}

impl Condition {
    /// Like [`Expr::as_sql`], for a condition. Comparisons of two columns need no change, since null never matches
    /// them.
    #[must_use]
    pub fn as_sql(&self) -> Self {
        let literals = |predicate| Expression::Predicate(ConditionPredicate::Literals(predicate));
        guarded(self.rewrite_not().try_map(&mut |test: &ConditionPredicate| {
            let not_null = match test {
                ConditionPredicate::Literals(predicate) => predicate.not_null(),
                ConditionPredicate::Columns(_) => None,
            };
            Ok(with(not_null, Expression::Predicate(test.clone()), literals))
        }))
    }
}

fn guarded<P>(expression: Result<Expression<P>, Infallible>) -> Expression<P> {
    match expression {
        Ok(expression) => expression,
        Err(never) => match never {},
    }
}

fn with<P>(
    not_null: Option<Predicate>,
    own: Expression<P>,
    leaf: impl FnOnce(Predicate) -> Expression<P>,
) -> Expression<P> {
    match not_null {
        Some(not_null) => Expression::and(leaf(not_null), own),
        None => own,
    }
}

impl Predicate {
    /// Returns an `IS NOT NULL` test if null matches, or may match, this predicate.
    fn not_null(&self) -> Option<Self> {
        let matches_null = match &self.test {
            Test::Compare(Comparison::NotEq, _) | Test::NotIn(_) | Test::NotStartsWith(_) => true,
            Test::Compare(Comparison::Eq, _) => false,
            // A comparison with a literal outside the column's type is true for every row, including null.
            Test::Compare(_, literal) => may_lie_beyond(literal),
            _ => false,
        };
        matches_null.then(|| Self { term: self.term.clone(), test: Test::NotNull })
    }
}

/// Whether a literal may be outside the range of its column's type.
fn may_lie_beyond(literal: &Literal) -> bool {
    match (literal.ty(), literal.value()) {
        (PrimitiveType::Long, Value::Long(number)) => i32::try_from(*number).is_err(),
        (_, Value::Double(number)) => number.abs() > 1e9,
        (_, Value::Decimal(_)) => true,
        // Years of more than four digits have a sign.
        (_, Value::String(text)) => text.starts_with(['+', '-']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, meaning: &str) {
        assert_eq!(Condition::parse(text).unwrap().as_sql().to_string(), meaning, "{text}");
        if let Ok(filter) = Expr::parse(text) {
            assert_eq!(filter.as_sql().to_string(), meaning, "{text}");
        }
    }

    #[test]
    fn null_passes_no_comparison() {
        check("a = 1", "a = 1");
        check("a < 1 OR a IS NULL", "a < 1 OR a IS NULL");
        check("a != 1", "a IS NOT NULL AND a != 1");
        check("a NOT IN (1, 2)", "a IS NOT NULL AND a NOT IN (1, 2)");
        check("a NOT LIKE 'x%'", "a IS NOT NULL AND a NOT LIKE 'x%'");
        check("NOT (a = 1)", "a IS NOT NULL AND a != 1");
        check("NOT (a IN (1, 2) AND b < 3)", "a IS NOT NULL AND a NOT IN (1, 2) OR b >= 3");
        check("NOT NOT a != 1", "a IS NOT NULL AND a != 1");
        check("NOT (a != 1)", "a = 1");
        check("bucket(4, a) != 1", "bucket(4, a) IS NOT NULL AND bucket(4, a) != 1");
        check("v:a::long != 1", "v:a::long IS NOT NULL AND v:a::long != 1");
        check("a IS NOT NAN", "a IS NOT NAN");
        check("NOT a IS NULL", "a IS NOT NULL");
        check("a < b AND c != 1", "a < b AND (c IS NOT NULL AND c != 1)");
        check("NOT (a < b)", "a >= b");
        // This is true for every value of an `int`.
        check("a < 1099511627776", "a IS NOT NULL AND a < 1099511627776");
        check("a <= 5", "a <= 5");
    }
}
