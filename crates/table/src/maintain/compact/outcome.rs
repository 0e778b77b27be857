//! What a compaction has done.

use icefield_format::manifest::DataFile;

use super::groups::Group;
use crate::commit::{IDEMPOTENCY_KEY, SnapshotOptions, made_by_key};
use crate::error::Result;
use crate::table::Table;

/// The effects of a compaction, made or planned: Java's counts.
#[derive(Debug, Clone, Default)]
pub struct Compacted {
    /// The table after it; `None` if nothing was committed.
    pub table: Option<Table>,
    /// The snapshots, oldest first.
    pub snapshot_ids: Vec<i64>,
    /// Whether an earlier run with the same idempotency key made the compaction.
    pub made_before: bool,
    /// Groups that were found.
    pub groups: usize,
    /// Data files that were replaced.
    pub rewritten_data_files: usize,
    /// Data files that replace them; in a dry run the expected number.
    pub added_data_files: usize,
    /// Bytes of the replaced files.
    pub rewritten_bytes: i64,
    /// Data files of groups that could not be rewritten.
    pub failed_data_files: usize,
    /// Delete files that were removed.
    pub removed_delete_files: usize,
    /// Why groups or commits failed, which others outlived.
    pub failures: Vec<String>,
}

/// A group and its new files.
pub(super) struct Rewritten<'a> {
    pub(super) group: &'a Group,
    pub(super) files: Vec<DataFile>,
}

/// What an earlier run with the same idempotency key made.
pub(super) fn made_before(table: &Table, options: &SnapshotOptions) -> Result<Option<Compacted>> {
    let Some(key) = options.properties.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let made = made_by_key(table.metadata(), &options.branch, key)?;
    Ok(made.map(|made| Compacted { made_before: true, snapshot_ids: vec![made], ..Compacted::default() }))
}

impl Compacted {
    /// Counts a group and its new files.
    pub(super) fn add(&mut self, group: &Group, files: usize) {
        self.rewritten_data_files += group.inputs.len();
        self.added_data_files += files;
        self.rewritten_bytes = self.rewritten_bytes.saturating_add(group.bytes);
        self.removed_delete_files += group.inputs.iter().map(|input| input.vectors.len()).sum::<usize>();
    }
}
