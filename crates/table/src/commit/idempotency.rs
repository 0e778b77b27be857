//! Idempotent changes: each has a key, stored in the summary of its snapshot, and running it again changes nothing.
//!
//! A change counts as made if a snapshot in the history of its branch has its key. The key is lost with that snapshot:
//! when it expires, or when the branch is rolled back to an earlier one.

use std::sync::Arc;

use icefield_format::metadata::{MetadataUpdate, Snapshot, TableMetadata};

use crate::error::{Error, Result};

/// Summary entry with the key of the change that made the snapshot.
pub const IDEMPOTENCY_KEY: &str = "icefield.idempotency-key";

/// The snapshot in the history of a branch that a change with this key made. If the branch does not exist yet, the main
/// branch is searched, since the new one would begin there.
///
/// # Errors
/// An empty key.
pub fn made_by_key(base: &TableMetadata, branch: &str, key: &str) -> Result<Option<i64>> {
    check(key)?;
    let head = base.reference(branch).map(|reference| reference.snapshot_id).or(base.current_snapshot_id());
    let mut history = head.into_iter().flat_map(|id| base.ancestors(id));
    Ok(history.find(|snapshot| has(snapshot, key)).map(|snapshot| snapshot.snapshot_id))
}

/// The snapshot that a change with this key made, staged or on any branch.
pub(super) fn made_anywhere(base: &TableMetadata, key: &str) -> Result<Option<i64>> {
    check(key)?;
    Ok(base.snapshots().iter().find(|snapshot| has(snapshot, key)).map(|snapshot| snapshot.snapshot_id))
}

/// The snapshot that a transaction with this key made on any branch.
pub(super) fn made_on_a_branch(base: &TableMetadata, key: &str) -> Result<Option<i64>> {
    check(key)?;
    let branches = base.refs().iter().filter(|(_, reference)| reference.is_branch());
    for (name, _) in branches {
        if let Some(found) = made_by_key(base, name, key)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Puts the key of a transaction into the summary of the first snapshot it adds; returns whether there is one.
pub(super) fn stamp(key: &str, updates: &mut [MetadataUpdate]) -> bool {
    for update in updates {
        if let MetadataUpdate::AddSnapshot { snapshot } = update
            && let Some(summary) = &mut Arc::make_mut(snapshot).summary
        {
            summary.properties.insert(IDEMPOTENCY_KEY.to_owned(), key.to_owned());
            return true;
        }
    }
    false
}

fn has(snapshot: &Snapshot, key: &str) -> bool {
    snapshot.summary.as_ref().and_then(|summary| summary.get(IDEMPOTENCY_KEY)) == Some(key)
}

fn check(key: &str) -> Result<()> {
    if key.is_empty() { Err(Error::invalid("the idempotency key is empty")) } else { Ok(()) }
}
