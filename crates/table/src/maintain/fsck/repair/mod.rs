//! Repairs what is certain in the current snapshot of a branch, by a new snapshot.
//!
//! What a file says of itself (its size, its footer, its rows) corrects what its entry in a manifest says, and what
//! manifests say corrects manifest lists and totals. Everything else is left, with a reason. Entries keep their snapshot
//! ids, sequence numbers and row ids. Older snapshots keep the damage until they expire.

mod content;
mod entry;
mod manifest;
mod report;
mod why;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::context::Level;
use super::snapshot;
use crate::commit::{Change, SnapshotOptions, SnapshotProducer};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::maintain::export::exported_snapshots;
use crate::snapshot::parallel::locked;
use crate::table::Table;
use content::{Repair, head};
use report::Scope;
pub use report::{Correction, Left, RepairOptions, Repaired};

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
    let mut change = SnapshotProducer::new(table.storage().clone(), content, snapshot).on_existing_branch();
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
