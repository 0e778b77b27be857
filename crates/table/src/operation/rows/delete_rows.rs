//! Deletes rows by a condition.

use icefield_format::expr::Condition;

use super::matching::Matches;
use super::replace_rows::{RowOptions, RowsReplaced};
use super::row_change::Command;
use crate::commit::Transaction;
use crate::error::Result;

impl Transaction {
    /// Deletes the rows that a condition matches, as in the filter of a scan. Rows stay if the condition is false or
    /// unknown, as `x = 1` is if `x` is null. Files in which all rows match are removed without being read.
    ///
    /// # Errors
    /// An invalid condition, or an error of the table or the storage; written files are deleted.
    pub fn delete_rows(
        &mut self,
        condition: &Condition,
        case_sensitive: bool,
        options: RowOptions,
    ) -> Result<RowsReplaced> {
        self.check_open()?;
        let metadata = self.metadata()?.clone();
        let (branch, memory) = (&options.snapshot.branch, options.memory);
        let matches = Matches::find(self.storage(), &metadata, branch, condition, case_sensitive, memory)?;
        self.replace_rows(&matches, Command::Delete, None, options)
    }
}
