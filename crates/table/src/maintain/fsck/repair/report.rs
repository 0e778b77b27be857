//! What is to be repaired, and what was.

use std::collections::HashSet;

use icefield_format::Limits;
use icefield_format::manifest::{FileContent, ManifestEntry};

use super::why;
use crate::commit::Committed;
use crate::maintain::fsck::context::{Check, Finding, FsckOptions, Level};
use crate::storage::Storage;
use crate::table::Table;

/// What to repair.
#[derive(Debug, Clone, Copy)]
pub struct RepairOptions {
    /// How much is read: footers, or all rows too.
    pub level: Level,
    /// Removes data files from the table that do not exist: their rows are lost.
    pub remove_missing_files: bool,
    /// Removes delete files from the table that do not exist: the rows that they delete come back.
    pub remove_missing_deletes: bool,
    /// Maximum number of corrections, and of findings that are left, that are returned; all are counted.
    pub most: usize,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { level: Level::Footers, remove_missing_files: false, remove_missing_deletes: false, most: 10_000 }
    }
}

/// A field that was corrected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Correction {
    /// The name of the check that found the fault.
    pub check: &'static str,
    /// The file that was described wrongly.
    pub file: String,
    /// The field.
    pub field: String,
    /// The wrong value.
    pub before: String,
    /// The new value.
    pub after: String,
    /// The manifest or the list that had the wrong value.
    pub described_by: String,
}

impl Correction {
    pub(super) fn of(finding: &Finding, before: String, after: String) -> Self {
        Self {
            check: finding.check,
            file: finding.file.clone(),
            field: finding.field.clone(),
            before,
            after,
            described_by: finding.described_by.clone(),
        }
    }
}

/// A finding that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// The finding.
    pub finding: Finding,
    /// Why it was left.
    pub reason: &'static str,
}

impl Left {
    pub(super) fn of(finding: &Finding, entry: &ManifestEntry) -> Self {
        let is_data = entry.file.content == FileContent::Data;
        Self { finding: finding.clone(), reason: why::of(finding.check, is_data) }
    }

    pub(super) fn other(finding: Finding) -> Self {
        let reason = why::of(finding.check, true);
        Self { finding, reason }
    }
}

/// What a repair has done, or would do.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Corrected fields, by check and file.
    pub corrections: Vec<Correction>,
    /// Number of all corrections.
    pub corrected: u64,
    /// Findings that were left.
    pub left: Vec<Left>,
    /// Number of all of them.
    pub left_count: u64,
    /// Manifests that were written again.
    pub manifests: u64,
    /// Data files that were removed from the table.
    pub removed_files: u64,
    /// Rows of the removed data files.
    pub removed_rows: i64,
    /// Delete files that were removed from the table.
    pub removed_deletes: u64,
    /// The table after the repair; `None` if nothing was committed.
    pub table: Option<Table>,
    /// The new snapshot.
    pub snapshot_id: Option<i64>,
}

impl Repaired {
    pub(super) fn correct(&mut self, most: usize, all: impl IntoIterator<Item = Correction>) {
        for one in all {
            self.corrected += 1;
            if self.corrections.len() < most {
                self.corrections.push(one);
            }
        }
    }

    pub(super) fn leave(&mut self, most: usize, all: impl IntoIterator<Item = Left>) {
        for one in all {
            self.left_count += 1;
            if self.left.len() < most {
                self.left.push(one);
            }
        }
    }

    /// Drops findings about the snapshot as a whole that come from an entry which was corrected.
    pub(super) fn drop_solved(&mut self) {
        let is_counted = |correction: &Correction| correction.field == "record_count";
        let files: HashSet<&str> =
            self.corrections.iter().filter(|one| is_counted(one)).map(|one| one.file.as_str()).collect();
        let before = self.left.len();
        self.left.retain(|left| match left.finding.check {
            "vector-rows" => !files.contains(left.finding.file.as_str()),
            "row-ids-overlap" => files.is_empty(),
            _ => true,
        });
        self.left_count -= (before - self.left.len()) as u64;
    }

    /// Adds the result of a manifest.
    pub(super) fn add(&mut self, most: usize, other: Self) {
        self.manifests += other.manifests;
        self.removed_files += other.removed_files;
        self.removed_deletes += other.removed_deletes;
        self.removed_rows = self.removed_rows.saturating_add(other.removed_rows);
        self.corrected += other.corrected - other.corrections.len() as u64;
        self.left_count += other.left_count - other.left.len() as u64;
        self.correct(most, other.corrections);
        self.leave(most, other.left);
    }
}

/// What entries are checked and corrected with.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) storage: &'a Storage,
    pub(super) table: &'a Committed,
    pub(super) limits: &'a Limits,
    pub(super) options: RepairOptions,
}

impl<'a> Scope<'a> {
    /// A separate check without a limit of findings.
    pub(super) fn check(&self, level: Level) -> Check<'a> {
        let options = FsckOptions { level, most: usize::MAX, only_current: true };
        Check::new(self.storage, self.table, self.limits, options)
    }
}
