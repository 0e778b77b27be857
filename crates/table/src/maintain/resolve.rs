//! What became of a commit whose outcome was unknown.

use crate::commit::Committed;
use crate::error::UnknownCommit;
use crate::storage::Storage;

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It has landed.
    Committed,
    /// It has not landed, and never will.
    NotCommitted,
    /// It was not found, and may still land, or the table does not remember any more.
    Unknown,
}

/// What became of a commit, by the table as the catalog has it now.
///
/// It has landed if the table has its snapshot, or has had its metadata file. It never will if the table has gone on from the
/// metadata file that the commit was made of: a commit holds only from that one. Where a catalog writes metadata itself, or
/// the table's log of metadata files does not go back so far (`write.metadata.previous-versions-max`), that cannot be known.
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

/// Deletes the files of a commit that has certainly not landed, and returns their locations.
pub fn clean_up(storage: &Storage, commit: &UnknownCommit) -> Vec<String> {
    let files: Vec<String> = commit.files.iter().chain(&commit.location).cloned().collect();
    storage.discard(&files, "files of a commit that has not landed");
    files
}
