//! Deletes of rows by a filter.

use icefield_format::expr::Expr;

use super::matching::Matches;
use super::replace_rows::{RowOptions, RowsReplaced, replace};
use super::row_change::Command;
use crate::commit::Transaction;
use crate::error::Result;
use crate::storage::Storage;

/// Deletes the rows that a scan with the filter has: rows stay for which it is false or, as with `x = 1` where `x` is null,
/// unknown. Files all of whose rows match are removed unread.
///
/// # Errors
/// What is wrong with the filter, the table or the storage. What was written is deleted then.
pub fn delete_rows(
    storage: &Storage,
    transaction: &mut Transaction,
    filter: &Expr,
    case_sensitive: bool,
    options: RowOptions,
) -> Result<RowsReplaced> {
    transaction.check_open()?;
    let metadata = transaction.metadata()?.clone();
    let matches = Matches::find(storage, &metadata, &options.snapshot.branch, filter, case_sensitive)?;
    replace(storage, transaction, &matches, Command::Delete, None, options)
}
