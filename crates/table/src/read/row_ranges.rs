//! Ranges of rows that a filter on `_pos` and `_row_id` keeps of a file, computed before decoding: both number the
//! rows of a file.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::expr::{BoundExpr, BoundPredicate, Comparison, Expression, Test, ValueSet};
use icefield_format::types::arrow::field_id;
use icefield_format::types::reserved::{POS, ROW_ID};
use icefield_format::value::Value;

use crate::file::ranges::{both, either};

/// One past the last row number that a file may have.
const END: u64 = i64::MAX.unsigned_abs();

/// The rows that a filter keeps, by number in the file; `None` if that may be all. `fields` are the file's columns;
/// rows without a stored id inherit theirs from `first_row_id`.
pub(super) fn rows_left(filter: &BoundExpr, fields: &Fields, first_row_id: Option<i64>) -> Option<Vec<Range<u64>>> {
    let is_stored = fields.iter().any(|field| field_id(field) == Some(ROW_ID.id));
    let numbers = TestedNumber { first_row_id: first_row_id.filter(|_| !is_stored) };
    let left = numbers.left(filter);
    (left != all()).then_some(left)
}

fn all() -> Vec<Range<u64>> {
    std::iter::once(0..END).collect()
}

/// Which number of a row the filter tests.
struct TestedNumber {
    /// The first row's id, if row ids are inherited and not stored.
    first_row_id: Option<i64>,
}

impl TestedNumber {
    /// `filter` has no `NOT`.
    fn left(&self, filter: &BoundExpr) -> Vec<Range<u64>> {
        match filter {
            Expression::False => Vec::new(),
            Expression::And(left, right) => both(&self.left(left), &self.left(right)),
            Expression::Or(left, right) => either(&self.left(left), &self.left(right)),
            Expression::Predicate(predicate) => self.of_test(predicate).unwrap_or_else(all),
            Expression::True | Expression::Not(_) => all(),
        }
    }

    fn of_test(&self, predicate: &BoundPredicate) -> Option<Vec<Range<u64>>> {
        let term = &predicate.term;
        let first = match term.reference.id {
            id if id == POS.id => 0,
            id if id == ROW_ID.id => self.first_row_id?,
            _ => return None,
        };
        if term.transform.is_some() || term.extract.is_some() {
            return None;
        }
        ranges(&predicate.test, first)
    }
}

/// The rows whose numbers pass a test; the first row has the number `first`.
fn ranges(test: &Test<Value, Arc<ValueSet>>, first: i64) -> Option<Vec<Range<u64>>> {
    let row = |value: &Value| match value {
        Value::Long(value) => Some(i128::from(*value) - i128::from(first)),
        _ => None,
    };
    let place = |row: i128| u64::try_from(row.clamp(0, i128::from(END))).unwrap_or(END);
    let range = |start: i128, end: i128| Some(place(start)..place(end)).filter(|range| range.start < range.end);
    let (none, end) = (i128::MIN, i128::MAX);
    let found = match test {
        Test::Compare(Comparison::Lt, value) => range(none, row(value)?),
        Test::Compare(Comparison::LtEq, value) => range(none, row(value)? + 1),
        Test::Compare(Comparison::Gt, value) => range(row(value)? + 1, end),
        Test::Compare(Comparison::GtEq, value) => range(row(value)?, end),
        Test::Compare(Comparison::Eq, value) => range(row(value)?, row(value)? + 1),
        Test::In(set) => {
            let rows = set.values().iter().map(row).collect::<Option<Vec<_>>>()?;
            let single: Vec<_> = rows.into_iter().filter_map(|row| range(row, row + 1)).collect();
            return Some(either(&single, &[]));
        }
        _ => return None,
    };
    Some(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use icefield_format::expr::Expr;
    use icefield_format::types::{Field, reserved};
    use icefield_format::types::{PrimitiveType, Schema};

    use super::*;

    fn found(filter: &str, first_row_id: Option<i64>) -> Option<Vec<(u64, u64)>> {
        let fields =
            vec![Field::optional(1, "x", PrimitiveType::Int), reserved::POS.to_field(), reserved::ROW_ID.to_field()];
        let schema = Schema::new(0, fields).unwrap();
        let bound = Expr::parse(filter).unwrap().bind(&schema, true).unwrap().rewrite_not();
        let left = rows_left(&bound, &Fields::empty(), first_row_id)?;
        Some(left.into_iter().map(|range| (range.start, range.end)).collect())
    }

    #[test]
    fn rows_are_counted_from_the_first_one() {
        for (filter, expected) in [
            ("_pos < 10", Some(vec![(0, 10)])),
            ("_pos <= 10 AND x > 1", Some(vec![(0, 11)])),
            ("_pos > 9223372036854775806", Some(vec![])),
            ("_pos >= 5 AND _pos != 7", Some(vec![(5, END)])),
            ("NOT (_pos < 5 OR _pos >= 8)", Some(vec![(5, 8)])),
            ("_pos IN (9, 3, 4, -1)", Some(vec![(3, 5), (9, 10)])),
            ("_pos < 0", Some(vec![])),
            ("_pos < 5 OR x = 1", None),
            ("_pos IS NOT NULL", None),
            ("_row_id = 103", Some(vec![(3, 4)])),
            ("_row_id < 50", Some(vec![])),
            ("_row_id >= 50", None),
            ("_row_id >= -9223372036854775808 AND _pos = 2", Some(vec![(2, 3)])),
        ] {
            assert_eq!(found(filter, Some(100)), expected, "{filter}");
        }
        assert_eq!(found("_row_id = 103", None), None);
    }
}
