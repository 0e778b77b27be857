//! Deletes of rows by a condition.

use icefield_format::expr::Condition;

use super::matching::Matches;
use super::replace_rows::{RowOptions, RowsReplaced};
use super::row_change::Command;
use crate::commit::Transaction;
use crate::error::Result;

impl Transaction {
    /// Deletes the rows that a condition holds for, as a scan with such a filter has them: rows stay for which it is false or, as with
    /// `x = 1` where `x` is null, unknown. Files all of whose rows match are removed unread.
    ///
    /// # Errors
    /// What is wrong with the condition, the table or the storage. What was written is deleted then.
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
