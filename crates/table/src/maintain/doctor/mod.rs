//! Says what makes a table slow or large, what that costs, and which call repairs it.
//!
//! The current snapshot is read once, manifest by manifest; memory grows with its partitions. No data file is opened.

mod advice;
mod files;
mod properties;
mod survey;

use icefield_format::metadata::properties::GC_ENABLED;
use icefield_format::metadata::retention::ExpireSnapshots;

use crate::clock::now_ms;
use crate::commit::Committed;
use crate::error::Result;
use crate::limits::limits;
use crate::maintain::export::exported_snapshots;
use crate::maintain::fsck::{FsckOptions, Level, fsck};
use crate::storage::Storage;
pub use advice::Advice;
use survey::Survey;

/// Findings about a table: those that cost most requests and bytes first.
///
/// # Errors
/// Metadata or manifests that cannot be read.
pub fn doctor(storage: &Storage, table: &Committed) -> Result<Vec<Advice>> {
    let limits = limits()?;
    let mut found = properties::flaws(&table.metadata);
    let table = &if found.is_empty() { table.clone() } else { properties::readable(table) };
    let metadata = &table.metadata;
    let report = fsck(storage, table, FsckOptions { level: Level::Manifests, most: 1, only_current: true })?;
    found.extend(properties::contradictions(metadata)?);
    found.extend(old_snapshots(table)?);
    let exported = exported_snapshots(metadata);
    let has_manifests =
        exported.is_none_or(|exported| metadata.current_snapshot_id().is_none_or(|id| exported.contains(&id)));
    // The damage is the finding if it makes manifests unreadable.
    match Survey::of(storage, metadata, &limits) {
        Ok(survey) => {
            found.extend(files::of_files(metadata, &survey)?);
            found.extend(files::of_metadata(storage, table, &survey)?);
        }
        Err(_) if report.errors > 0 || !has_manifests => {}
        Err(error) => return Err(error),
    }
    if report.errors > 0 {
        let first = report.findings.first();
        let shown = first.map(|one| format!(": {} in {}", one.check, one.file)).unwrap_or_default();
        found.push(Advice {
            name: "damage",
            message: format!("{} errors in metadata and manifests{shown}", report.errors),
            repair: "table.fsck()".to_owned(),
            ..Advice::default()
        });
    }
    found.sort_by(|one, other| {
        (other.requests, other.bytes, one.name, &one.subject).cmp(&(
            one.requests,
            one.bytes,
            other.name,
            &other.subject,
        ))
    });
    Ok(found)
}

/// Snapshots that an expiry would remove.
fn old_snapshots(table: &Committed) -> Result<Option<Advice>> {
    let metadata = &table.metadata;
    if !GC_ENABLED.read(metadata.properties()) {
        return Ok(None);
    }
    let expiry = ExpireSnapshots::default().plan(metadata, now_ms())?;
    if expiry.removed_snapshots.is_empty() {
        return Ok(None);
    }
    // Files that a snapshot removed are unused once all snapshots before it have expired.
    let kept = expiry.kept_snapshots.iter().filter_map(|id| metadata.snapshot(*id));
    let oldest = kept.map(|snapshot| snapshot.sequence_number).min().unwrap_or(0);
    let removed = metadata.snapshots().iter().filter(|snapshot| snapshot.sequence_number <= oldest);
    let bytes =
        removed.filter_map(|snapshot| snapshot.summary.as_ref()?.get("removed-files-size")?.parse::<u64>().ok());
    let count = expiry.removed_snapshots.len();
    Ok(Some(Advice {
        name: "old-snapshots",
        message: format!("{count} snapshots are older than the table keeps them"),
        bytes: bytes.fold(0, u64::saturating_add),
        requests: count as u64,
        repair: "table.expire_snapshots()".to_owned(),
        ..Advice::default()
    }))
}
