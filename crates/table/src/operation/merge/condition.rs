//! Conditions on joined rows: filters that may also compare columns of both sides.

use std::collections::HashSet;

use arrow_buffer::BooleanBuffer;
use icefield_format::expr::{BoundExpr, ColumnComparison, Comparison, Condition, ConditionPredicate, Expression, Term};

use super::joined::{Joined, Sides, columns_of};
use crate::error::{Error, Result};
use crate::operation::condition::compared::{ComparedAs, ONLY_COLUMNS};

/// A condition bound to the columns of joined rows; `NOT` has been pushed into its predicates.
#[derive(Debug)]
pub(crate) struct BoundCondition(Expression<BoundTest>);

/// A predicate on joined rows.
#[derive(Debug)]
enum BoundTest {
    Filter(BoundExpr),
    Columns(Box<ComparedColumns>),
}

/// A comparison of two columns.
#[derive(Debug)]
struct ComparedColumns {
    left: Vec<String>,
    comparison: Comparison,
    right: Vec<String>,
    ty: ComparedAs,
    /// The comparison as text, for errors.
    text: String,
}

impl BoundCondition {
    /// # Errors
    /// A column that neither side has, a literal that does not fit one, and columns that cannot be compared.
    pub(crate) fn new(condition: &Condition, sides: &Sides<'_>, case_sensitive: bool) -> Result<Self> {
        if let Some(filter) = condition.as_filter() {
            return Ok(Self(Expression::Predicate(BoundTest::Filter(sides.bind(&filter, case_sensitive)?))));
        }
        let mut leaf = |leaf: &ConditionPredicate| {
            Ok::<_, Error>(Expression::Predicate(match leaf {
                ConditionPredicate::Literals(predicate) => {
                    BoundTest::Filter(sides.bind(&Expression::Predicate(predicate.clone()), case_sensitive)?)
                }
                ConditionPredicate::Columns(columns) => {
                    BoundTest::Columns(Box::new(ComparedColumns::new(columns, sides, case_sensitive)?))
                }
            }))
        };
        Ok(Self(condition.rewrite_not().try_map(&mut leaf)?))
    }

    /// The columns that the condition uses, by their names in joined rows.
    pub(crate) fn columns(&self) -> HashSet<String> {
        let mut columns = HashSet::new();
        for test in self.0.predicates() {
            match test {
                BoundTest::Filter(filter) => columns.extend(columns_of(filter)),
                BoundTest::Columns(compared) => {
                    columns
                        .extend([&compared.left, &compared.right].into_iter().filter_map(|path| path.first().cloned()));
                }
            }
        }
        columns
    }

    /// The rows for which the condition is true.
    pub(crate) fn matching(&self, rows: &Joined) -> Result<BooleanBuffer> {
        matching(&self.0, rows)
    }
}

fn matching(condition: &Expression<BoundTest>, rows: &Joined) -> Result<BooleanBuffer> {
    Ok(match condition {
        Expression::True => BooleanBuffer::new_set(rows.rows().num_rows()),
        Expression::False => BooleanBuffer::new_unset(rows.rows().num_rows()),
        Expression::Not(child) => !&matching(child, rows)?,
        Expression::And(left, right) => &matching(left, rows)? & &matching(right, rows)?,
        Expression::Or(left, right) => &matching(left, rows)? | &matching(right, rows)?,
        Expression::Predicate(BoundTest::Filter(filter)) => rows.matching(filter)?.values().clone(),
        Expression::Predicate(BoundTest::Columns(compared)) => compared.matching(rows)?,
    })
}

impl ComparedColumns {
    fn new(columns: &ColumnComparison, sides: &Sides<'_>, case_sensitive: bool) -> Result<Self> {
        let text = columns.to_string();
        let column = |term: &Term| {
            if term.transform.is_some() || term.extract.is_some() {
                return Err(Error::unsupported(format!("{text}: of {term} {ONLY_COLUMNS}")));
            }
            let (side, name) = term.name.split_once('.').unwrap_or((&term.name, ""));
            let side = if case_sensitive { side.to_owned() } else { side.to_lowercase() };
            sides.column(&format!("{side}.{name}"), case_sensitive).ok_or_else(|| {
                let message = sides.missing(&term.name);
                Error::invalid(format!("{text}: {message}"))
            })
        };
        let (left, right) = (column(&columns.left)?, column(&columns.right)?);
        let types = (sides.type_of(&left)?, sides.type_of(&right)?);
        let ty = ComparedAs::of(&types.0, &types.1).ok_or_else(|| {
            Error::invalid(format!("{text}: columns of the types {} and {} cannot be compared", types.0, types.1))
        })?;
        Ok(Self { left, comparison: columns.comparison, right, ty, text })
    }

    fn matching(&self, rows: &Joined) -> Result<BooleanBuffer> {
        let found = self.ty.matching(&rows.column(&self.left)?, self.comparison, &rows.column(&self.right)?);
        found.map_err(|error| Error::invalid(format!("{}: {error}", self.text)))
    }
}
