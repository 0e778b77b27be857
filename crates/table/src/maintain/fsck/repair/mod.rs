//! Repairs what is certain in the current snapshot of a branch, by a new snapshot.
//!
//! What a file says of itself (its size, its footer, its rows) corrects what its entry in a manifest says, and what
//! manifests say corrects manifest lists and totals. Everything else is left, with a reason. Entries keep their snapshot
//! ids, sequence numbers and row ids. Older snapshots keep the damage until they expire.

mod content;
mod entry;
mod manifest;
mod why;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use icefield_format::Limits;
use icefield_format::manifest::{FileContent, ManifestEntry};
use icefield_format::metadata::{Snapshot, TableMetadata};

use super::context::{Check, Finding, FsckOptions, Level};
use super::snapshot;
use crate::commit::{Change, Committed, SnapshotOptions, SnapshotProducer};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::maintain::export::exported_snapshots;
use crate::snapshot::parallel::locked;
use crate::storage::Storage;
use crate::table::Table;
use content::Repair;

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
    fn of(finding: &Finding, before: String, after: String) -> Self {
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
    fn of(finding: &Finding, entry: &ManifestEntry) -> Self {
        let is_data = entry.file.content == FileContent::Data;
        Self { finding: finding.clone(), reason: why::of(finding.check, is_data) }
    }

    fn other(finding: Finding) -> Self {
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
    fn correct(&mut self, most: usize, all: impl IntoIterator<Item = Correction>) {
        for one in all {
            self.corrected += 1;
            if self.corrections.len() < most {
                self.corrections.push(one);
            }
        }
    }

    fn leave(&mut self, most: usize, all: impl IntoIterator<Item = Left>) {
        for one in all {
            self.left_count += 1;
            if self.left.len() < most {
                self.left.push(one);
            }
        }
    }

    /// Drops findings about the snapshot as a whole that come from an entry which was corrected.
    fn drop_solved(&mut self) {
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
    fn add(&mut self, most: usize, other: Self) {
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
struct Scope<'a> {
    storage: &'a Storage,
    table: &'a Committed,
    limits: &'a Limits,
    options: RepairOptions,
}

impl<'a> Scope<'a> {
    /// A check of its own, of which all findings are returned.
    fn check(&self, level: Level) -> Check<'a> {
        let options = FsckOptions { level, most: usize::MAX, only_current: true };
        Check::new(self.storage, self.table, self.limits, options)
    }
}

/// Repairs the current snapshot of a branch.
///
/// # Errors
/// Those of a check ([`fsck`](super::fsck)) and of the commit.
pub fn repair(table: &Table, options: RepairOptions, snapshot: SnapshotOptions) -> Result<Repaired> {
    let planned = preview(table, options, &snapshot.branch)?;
    if planned.corrected == 0 {
        return Ok(planned);
    }
    let done = Arc::new(Mutex::new(Repaired::default()));
    let branch = snapshot.branch.clone();
    let content = Repair::new(table, options, &branch, done.clone());
    let mut change = SnapshotProducer::new(table.storage().clone(), content, snapshot);
    let table = table.make(&mut change)?;
    let mut done = locked(&done).clone();
    add_unsolved(&mut done, &table, options, &branch)?;
    Ok(Repaired { table: Some(table), snapshot_id: change.made_snapshot_id(), ..done })
}

/// Adds what is left of the snapshot as a whole, and was expected to be solved by the corrections of entries.
fn add_unsolved(done: &mut Repaired, table: &Table, options: RepairOptions, branch: &str) -> Result<()> {
    let Some(head) = head(table.metadata(), branch) else { return Ok(()) };
    let limits = limits()?;
    let scope = Scope { storage: table.storage(), table: table.committed(), limits: &limits, options };
    let check = scope.check(Level::Manifests);
    snapshot::check_one(&check, head)?;
    let known: HashSet<&str> = done.left.iter().map(|left| left.finding.check).collect();
    let new = check.finish()?.findings.into_iter().filter(|finding| !known.contains(finding.check));
    let new: Vec<Left> = new.map(Left::other).collect();
    done.leave(options.most, new);
    Ok(())
}

/// What [`repair`] would do; nothing is written.
///
/// # Errors
/// Those of a check.
pub fn preview(table: &Table, options: RepairOptions, branch: &str) -> Result<Repaired> {
    if options.level < Level::Footers {
        return Err(Error::invalid("level: expected footers or rows"));
    }
    if exported_snapshots(table.metadata()).is_some() {
        return Err(Error::invalid("the table is an export without data files, which cannot be repaired"));
    }
    let metadata = table.metadata();
    if metadata.current_snapshot().is_some() && metadata.reference(branch).is_none() && branch != "main" {
        return Err(Error::invalid(format!("repair: the table has no branch '{branch}'")));
    }
    Repair::new(table, options, branch, Arc::default()).preview(metadata)
}

/// The current snapshot of a branch.
fn head<'a>(base: &'a TableMetadata, branch: &str) -> Option<&'a Snapshot> {
    let found = base.reference(branch).and_then(|reference| base.snapshot(reference.snapshot_id));
    found.or_else(|| base.current_snapshot()).map(|snapshot| &**snapshot)
}
