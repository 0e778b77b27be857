//! Row changes by several workers: planned in one place, carried out by tasks, and committed in one snapshot.
//!
//! A change removes rows, given as positions in data files, and adds others. A [`RowChangePlan`] lists the files that
//! may have such rows. An engine reads its tasks, chooses rows, and sends all positions of a file to one
//! [`RowRemover`]. Like a change by a single process ([`Removals`](super::row_change::Removals)), the remover decides
//! whether to drop, rewrite or mark the file, and writes the new files.
//! [`Table::commit_rows`](crate::Table::commit_rows) makes the snapshot, with the same checks.

mod commit;
mod envelope;
mod files;
mod partitions;
mod plan;
mod removed;
mod remover;
mod task_files;

pub use commit::Collected;
pub(crate) use envelope::Kind;
pub(crate) use partitions::replace_written;
pub use plan::{Request, RowChangePlan};
pub use removed::RemovedRows;
pub use remover::RowRemover;
pub use task_files::TaskFiles;
