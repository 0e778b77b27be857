//! Residuals: the part of a filter that is still to be tested within a partition ("Scan Planning").
//!
//! The partition's values decide some predicates for all of its rows; these become constants, and the rest is the
//! residual.

use std::sync::Arc;

use crate::error::Result;
use crate::spec::PartitionSpec;
use crate::value::Value;

use super::project::{Mode, project_leaf};
use crate::expr::bind::BoundPredicate;
use crate::expr::evaluate::rows::ColumnSource;
use crate::expr::{BoundExpr, Expression, Leaf};

/// Computes the residuals of an expression under a spec.
#[derive(Debug, Clone)]
pub struct Residuals {
    expr: Expression<Decidable>,
    leaves: usize,
}

/// A predicate, and the partition predicates that may decide it.
#[derive(Debug, Clone)]
struct Decidable {
    predicate: Arc<BoundPredicate>,
    /// Whether it is under an odd number of negations: then the projections are those of its negation.
    negated: bool,
    /// A strict and an inclusive projection for each partition field of its column.
    projections: Vec<(Option<BoundExpr>, Option<BoundExpr>)>,
    number: usize,
}

/// Result of a predicate in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Outcome {
    Open,
    AllMatch,
    NoneMatch,
}

impl Residuals {
    /// Prepares the residuals of an expression for partitions of `spec`.
    #[must_use]
    pub fn new(expr: &BoundExpr, spec: &PartitionSpec) -> Self {
        let mut leaves = 0;
        let expr = prepare(expr, spec, false, &mut leaves);
        Self { expr, leaves }
    }

    /// Returns the residual in the partition with these values, one for each field of the spec.
    #[must_use]
    pub fn of_partition(&self, partition: &[Option<Value>]) -> BoundExpr {
        let matches = |projection: &Option<BoundExpr>| projection.as_ref().map(|expr| expr.matches(partition));
        resolve(&self.expr, &|leaf| leaf.outcome(matches))
    }

    /// Returns the residuals of many partitions: for each one an index in the list, which has one residual for each
    /// combination of outcomes.
    pub fn of_partitions(&self, partitions: &impl ColumnSource) -> Result<(Vec<u32>, Vec<BoundExpr>)> {
        let len = partitions.len();
        let mut outcomes: Vec<Vec<Outcome>> = vec![vec![Outcome::Open; len]; self.leaves];
        for leaf in self.expr.predicates() {
            let Some(of_leaf) = outcomes.get_mut(leaf.number) else { continue };
            leaf.outcomes(partitions, of_leaf)?;
        }
        let mut places = std::collections::HashMap::<Vec<Outcome>, u32>::new();
        let mut residuals = Vec::new();
        let mut out = Vec::with_capacity(len);
        let mut key = Vec::with_capacity(self.leaves);
        for row in 0..len {
            key.clear();
            key.extend(outcomes.iter().filter_map(|of_leaf| of_leaf.get(row).copied()));
            let place = match places.get(&key) {
                Some(place) => *place,
                None => {
                    let place = u32::try_from(residuals.len()).unwrap_or(u32::MAX);
                    residuals.push(resolve(&self.expr, &|leaf| key.get(leaf.number).copied().unwrap_or(Outcome::Open)));
                    places.insert(key.clone(), place);
                    place
                }
            };
            out.push(place);
        }
        Ok((out, residuals))
    }
}

impl Decidable {
    /// Returns the outcome from the first field that decides; `matches` evaluates a projection.
    fn outcome(&self, matches: impl Fn(&Option<BoundExpr>) -> Option<bool>) -> Outcome {
        for (strict, inclusive) in &self.projections {
            if matches(strict) == Some(true) {
                return Outcome::AllMatch;
            }
            if matches(inclusive) == Some(false) {
                return Outcome::NoneMatch;
            }
        }
        Outcome::Open
    }

    fn outcomes(&self, partitions: &impl ColumnSource, out: &mut [Outcome]) -> Result<()> {
        for (strict, inclusive) in &self.projections {
            let strict = strict.as_ref().map(|expr| expr.evaluate_columns(partitions)).transpose()?;
            let inclusive = inclusive.as_ref().map(|expr| expr.evaluate_columns(partitions)).transpose()?;
            for (row, outcome) in out.iter_mut().enumerate().filter(|(_, outcome)| **outcome == Outcome::Open) {
                if strict.as_ref().is_some_and(|mask| mask.value(row)) {
                    *outcome = Outcome::AllMatch;
                } else if inclusive.as_ref().is_some_and(|mask| !mask.value(row)) {
                    *outcome = Outcome::NoneMatch;
                }
            }
        }
        Ok(())
    }
}

fn prepare(expr: &BoundExpr, spec: &PartitionSpec, negated: bool, leaves: &mut usize) -> Expression<Decidable> {
    match expr {
        Expression::True => Expression::True,
        Expression::False => Expression::False,
        Expression::Not(child) => Expression::not(prepare(child, spec, !negated, leaves)),
        Expression::And(left, right) => {
            Expression::and(prepare(left, spec, negated, leaves), prepare(right, spec, negated, leaves))
        }
        Expression::Or(left, right) => {
            Expression::or(prepare(left, spec, negated, leaves), prepare(right, spec, negated, leaves))
        }
        Expression::Predicate(predicate) => {
            let meant = if negated { predicate.negate() } else { Arc::clone(predicate) };
            let fields = spec.fields.iter().enumerate();
            let of_column = fields.filter(|(_, field)| field.source_ids == [predicate.term.reference.id]);
            let both = |(position, field)| {
                let strict = project_leaf(&meant, field, position, Mode::Strict);
                (strict, project_leaf(&meant, field, position, Mode::Inclusive))
            };
            let projections = of_column.map(both).collect();
            *leaves += 1;
            Expression::Predicate(Decidable {
                predicate: Arc::clone(predicate),
                negated,
                projections,
                number: *leaves - 1,
            })
        }
    }
}

fn resolve(expr: &Expression<Decidable>, outcome: &impl Fn(&Decidable) -> Outcome) -> BoundExpr {
    match expr {
        Expression::True => Expression::True,
        Expression::False => Expression::False,
        Expression::Not(child) => Expression::not(resolve(child, outcome)),
        Expression::And(left, right) => Expression::and(resolve(left, outcome), resolve(right, outcome)),
        Expression::Or(left, right) => Expression::or(resolve(left, outcome), resolve(right, outcome)),
        Expression::Predicate(leaf) => match (outcome(leaf), leaf.negated) {
            (Outcome::Open, _) => Expression::Predicate(Arc::clone(&leaf.predicate)),
            (Outcome::AllMatch, false) | (Outcome::NoneMatch, true) => Expression::True,
            (Outcome::NoneMatch, false) | (Outcome::AllMatch, true) => Expression::False,
        },
    }
}
