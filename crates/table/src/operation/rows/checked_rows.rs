//! Checks that the new rows of an overwrite match its filter: other rows would be added beside existing ones that the
//! overwrite keeps.

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::expr::Condition;
use icefield_format::types::Schema;

use crate::error::{Error, Result};
use crate::operation::condition::row_condition::RowTests;
use crate::write::Matching;
use crate::write::conform::Conform;
use crate::write::intake::Intake;

/// Passes rows through and fails at one that does not match a condition. Rows are tested after conversion to the
/// table's types, with defaults filled in.
pub(super) struct CheckedRows<'a> {
    batches: &'a mut dyn Iterator<Item = Result<RecordBatch>>,
    intake: Intake,
    tests: RowTests,
    condition: String,
    /// Number of rows that have passed.
    rows: u64,
}

impl<'a> CheckedRows<'a> {
    /// # Errors
    /// A condition, or columns, that do not fit the table.
    pub(super) fn new(
        table: &Schema,
        given: &ArrowSchema,
        batches: &'a mut dyn Iterator<Item = Result<RecordBatch>>,
        matching: Matching,
        condition: &Condition,
        case_sensitive: bool,
    ) -> Result<Self> {
        let tests = RowTests::new(condition, table, case_sensitive)?;
        let intake = Intake::new(Conform::new(table, given, matching)?, None, None);
        Ok(Self { batches, intake, tests, condition: condition.to_string(), rows: 0 })
    }

    fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        let matching = self.tests.matching(&self.intake.prepare(batch)?.chunk)?;
        if let Some(row) = (0_u64..).zip(matching.iter()).find_map(|(row, matches)| (!matches).then_some(row)) {
            let (row, condition) = (self.rows + row, &self.condition);
            return Err(Error::invalid(format!(
                "overwrite: row {row} of the new rows does not match the filter {condition}: nothing was changed; mend the rows or \
                 the filter, or leave check_rows out"
            )));
        }
        self.rows += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        Ok(())
    }
}

impl Iterator for CheckedRows<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(batch.and_then(|batch| self.check(&batch).map(|()| batch)))
    }
}
