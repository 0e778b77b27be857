//! Operations on the rows that a condition matches: deletes, updates and overwrites. A data file is rewritten without
//! these rows or gets delete files.

mod checked_rows;
pub mod delete_rows;
pub mod distributed;
pub mod matching;
pub mod overwrite_rows;
pub mod replace_rows;
pub(crate) mod rewrite_groups;
pub mod row_change;
pub(super) mod widened;
