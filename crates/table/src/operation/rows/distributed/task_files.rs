//! The result of any worker of a change: rewritten files and delete files, or files of new rows.

use icefield_format::manifest::DataFile;

use super::plan::RowChangePlan;
use super::removed::RemovedRows;
use crate::error::Result;
use crate::storage::{Leftover, Storage};

/// The result of one worker of a change.
#[derive(Debug)]
pub enum TaskFiles {
    /// The result of a [`RowRemover`](super::RowRemover).
    Removed(RemovedRows),
    /// New rows, written by a [`TableWriter`](crate::write::TableWriter).
    Added(Vec<DataFile>),
}

impl TaskFiles {
    /// Deserializes a result of either kind.
    ///
    /// # Errors
    /// Bytes that are neither, or the result of another change.
    pub fn from_bytes(bytes: &[u8], plan: &RowChangePlan) -> Result<Self> {
        match RemovedRows::claimed(bytes) {
            true => Ok(Self::Removed(RemovedRows::from_bytes(bytes, plan)?)),
            false => Ok(Self::Added(plan.write().files_from_bytes(bytes)?)),
        }
    }

    /// The files that the worker has written.
    pub fn files(&self) -> impl Iterator<Item = &DataFile> {
        let (first, second) = match self {
            Self::Removed(removed) => (removed.added(), removed.added_deletes()),
            Self::Added(files) => (files.as_slice(), [].as_slice()),
        };
        first.iter().chain(second)
    }
}

impl RowChangePlan {
    /// Deletes the files of this change, which was certainly not committed, and returns those that could not be
    /// deleted. With `search`, also deletes files that no worker has reported.
    ///
    /// # Errors
    /// The data folder cannot be listed.
    pub fn discard(&self, storage: &Storage, written: &[TaskFiles], search: bool) -> Result<Leftover> {
        self.write().discard(storage, &all(written), search)
    }

    /// Deletes the files of failed attempts at tasks of this change, which was committed with these results.
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
