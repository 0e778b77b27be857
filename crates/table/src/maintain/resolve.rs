//! Resolves commits with an unknown outcome.

use crate::commit::Committed;
use crate::error::UnknownCommit;
use crate::storage::Storage;

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// The commit has landed.
    Committed,
    /// The commit has not landed and never will.
    NotCommitted,
    /// The commit was not found: it may still land, or the table's history no longer shows it.
    Unknown,
}

/// Determines the outcome of a commit from the catalog's current table.
///
/// The commit has landed if the table has its snapshot, or its metadata file, now or in the log. It never will if the
/// table has moved on from the metadata file that the commit was based on, because the commit can only replace that
/// one. The outcome stays unknown if the catalog writes the metadata itself, or if the log does not go back far enough
/// (`write.metadata.previous-versions-max`).
pub fn resolve(now: &Committed, commit: &UnknownCommit) -> Resolution {
    let metadata = &now.metadata;
    let log = metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str());
    let files: Vec<&str> = log.chain([now.location.as_str()]).collect();
    let has_snapshot = commit.snapshot_id.is_some_and(|id| metadata.snapshot(id).is_some());
    let own = commit.location.as_deref();
    if has_snapshot || own.is_some_and(|own| files.contains(&own)) {
        return Resolution::Committed;
    }
    let base = commit.base.as_deref().filter(|_| own.is_some());
    let place = base.and_then(|base| files.iter().position(|file| *file == base));
    match place {
        Some(place) if place + 1 < files.len() => Resolution::NotCommitted,
        _ => Resolution::Unknown,
    }
}

/// Deletes the files of a commit that has certainly not landed; returns their locations.
pub fn clean_up(storage: &Storage, commit: &UnknownCommit) -> Vec<String> {
    let files: Vec<String> = commit.files.iter().chain(&commit.location).cloned().collect();
    storage.discard(&files, "files of a commit that has not landed");
    files
}
