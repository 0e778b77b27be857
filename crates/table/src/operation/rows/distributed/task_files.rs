//! What a worker has written for a change: files without rows that were taken out, or files of new rows.

use icefield_format::manifest::DataFile;

use super::plan::RowChangePlan;
use super::removed::RemovedRows;
use crate::error::Result;
use crate::storage::{Leftover, Storage};

/// The result of one worker.
#[derive(Debug)]
pub enum TaskFiles {
    /// Of a [`RowRemover`](super::RowRemover).
    Removed(RemovedRows),
    /// Of a [`TableWriter`](crate::write::TableWriter): new rows.
    Added(Vec<DataFile>),
}

impl TaskFiles {
    /// Deserializes a result of either kind.
    ///
    /// # Errors
    /// Other bytes, and the result of another change.
    pub fn from_bytes(bytes: &[u8], plan: &RowChangePlan) -> Result<Self> {
        match RemovedRows::claimed(bytes) {
            true => Ok(Self::Removed(RemovedRows::from_bytes(bytes, plan)?)),
            false => Ok(Self::Added(plan.write().files_from_bytes(bytes)?)),
        }
    }

    /// The files that were written.
    pub fn files(&self) -> impl Iterator<Item = &DataFile> {
        let (first, second) = match self {
            Self::Removed(removed) => (removed.added(), removed.added_deletes()),
            Self::Added(files) => (files.as_slice(), [].as_slice()),
        };
        first.iter().chain(second)
    }
}

impl RowChangePlan {
    /// Deletes files of this change, which was certainly not committed, and returns what could not be deleted; with `search`
    /// also files that no worker has reported.
    ///
    /// # Errors
    /// A data folder that cannot be listed.
    pub fn discard(&self, storage: &Storage, written: &[TaskFiles], search: bool) -> Result<Leftover> {
        self.write().discard(storage, &all(written), search)
    }

    /// Deletes the files of lost attempts of this change, which was committed with these results.
    ///
    /// # Errors
    /// As [`RowChangePlan::discard`].
    pub fn discard_lost(&self, storage: &Storage, committed: &[TaskFiles]) -> Result<Leftover> {
        self.write().discard_lost(storage, &all(committed))
    }
}

fn all(written: &[TaskFiles]) -> Vec<DataFile> {
    written.iter().flat_map(TaskFiles::files).cloned().collect()
}
