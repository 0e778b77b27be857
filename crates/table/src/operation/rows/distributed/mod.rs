//! Changes of rows that several workers make: planned in one place, made by tasks, and committed in one snapshot.
//!
//! A change takes rows out, given as positions in data files, and adds others. A [`RowChangePlan`] names the files that may
//! have such rows; an engine reads its tasks, decides, and sends all positions of a file to one [`RowRemover`]. That one
//! decides what becomes of the file, as changes by one process do ([`Removals`](super::row_change::Removals)), and
//! writes what that needs. [`Table::commit_rows`](crate::Table::commit_rows) makes the snapshot, with the same checks.

mod commit;
mod envelope;
mod files;
mod partitions;
mod plan;
mod removed;
mod remover;
mod task_files;

pub use commit::Collected;
pub(crate) use partitions::replace_written;
pub use plan::{Request, RowChangePlan};
pub use removed::RemovedRows;
pub use remover::RowRemover;
pub use task_files::TaskFiles;
