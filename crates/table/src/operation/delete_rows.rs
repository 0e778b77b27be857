//! Deletes of rows by a condition.

use icefield_format::expr::Condition;

use super::matching::Matches;
use super::replace_rows::{RowOptions, RowsReplaced, replace};
use super::row_change::Command;
use crate::commit::Transaction;
use crate::error::Result;
use crate::storage::Storage;

/// Deletes the rows that a condition holds for, as a scan with such a filter has them: rows stay for which it is false or, as with
/// `x = 1` where `x` is null, unknown. Files all of whose rows match are removed unread.
///
/// # Errors
/// What is wrong with the condition, the table or the storage. What was written is deleted then.
pub fn delete_rows(
    storage: &Storage,
    transaction: &mut Transaction,
    condition: &Condition,
    case_sensitive: bool,
    options: RowOptions,
) -> Result<RowsReplaced> {
    transaction.check_open()?;
    let metadata = transaction.metadata()?.clone();
    let (branch, memory) = (&options.snapshot.branch, options.memory);
    let matches = Matches::find(storage, &metadata, branch, condition, case_sensitive, memory)?;
    replace(storage, transaction, &matches, Command::Delete, None, options)
}
