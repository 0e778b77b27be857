//! Evaluates an expression on the metrics of one or many files.

use arrow_buffer::BooleanBuffer;

use crate::error::Result;

use super::mask;
use super::statistics::{FileStatistics, StatisticsColumns, TermStatistics};
use crate::expr::BoundExpr;
use crate::expr::bind::BoundPredicate;

/// The rules of an evaluator for files.
pub(super) struct Judge {
    /// What the metrics of a predicate's column decide.
    pub(super) of_metrics: fn(&BoundPredicate, &TermStatistics<'_>) -> bool,
    /// What the row count alone decides, if anything.
    pub(super) of_count: fn(i64) -> Option<bool>,
}

impl Judge {
    /// Evaluates the expression for one file.
    pub(super) fn file(&self, expr: &BoundExpr, file: &impl FileStatistics) -> bool {
        let record_count = file.record_count();
        (self.of_count)(record_count).unwrap_or_else(|| {
            mask::decide(expr, &|predicate| {
                let field = file.field(predicate.term.reference.id);
                (self.of_metrics)(predicate, &TermStatistics { term: &predicate.term, field, record_count })
            })
        })
    }

    /// Evaluates the expression for each of many files.
    pub(super) fn files(&self, expr: &BoundExpr, files: &StatisticsColumns) -> Result<BooleanBuffer> {
        let records = files.record_counts();
        let count = |row: usize| records.get(row).copied().unwrap_or(-1);
        let mask = mask::evaluate(expr, files.len(), &mut |predicate| {
            let field = files.of_field(predicate.term.reference.id);
            let of = |row| TermStatistics { term: &predicate.term, field: field(row), record_count: count(row) };
            Ok(BooleanBuffer::collect_bool(files.len(), |row| (self.of_metrics)(predicate, &of(row))))
        })?;
        if records.iter().all(|count| (self.of_count)(*count).is_none()) {
            return Ok(mask);
        }
        let answer = |row| (self.of_count)(count(row)).unwrap_or_else(|| mask.value(row));
        Ok(BooleanBuffer::collect_bool(files.len(), answer))
    }
}
