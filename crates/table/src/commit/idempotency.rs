//! Changes that are made once, however often they are run: each has a key, which the summary of its snapshot keeps.
//!
//! A change whose key a snapshot in the history of its branch has was made before. The key is forgotten with that snapshot:
//! when it expires, or the branch is rolled back behind it.

use std::sync::Arc;

use icefield_format::metadata::{MetadataUpdate, Snapshot, TableMetadata};

use crate::error::{Error, Result};

/// Entry of the summary: the key of the change that made the snapshot.
pub const IDEMPOTENCY_KEY: &str = "icefield.idempotency-key";

/// The snapshot that a change with this key has made, in the history of a branch; of the main branch, where that does not
/// exist yet.
///
/// # Errors
/// An empty key.
pub fn made_by_key(base: &TableMetadata, branch: &str, key: &str) -> Result<Option<i64>> {
    check(key)?;
    let head = base.reference(branch).map(|reference| reference.snapshot_id).or(base.current_snapshot_id());
    let mut history = head.into_iter().flat_map(|id| base.ancestors(id));
    Ok(history.find(|snapshot| has(snapshot, key)).map(|snapshot| snapshot.snapshot_id))
}

/// The snapshot that a change with this key has made, staged or on any branch.
pub(super) fn made_anywhere(base: &TableMetadata, key: &str) -> Result<Option<i64>> {
    check(key)?;
    Ok(base.snapshots().iter().find(|snapshot| has(snapshot, key)).map(|snapshot| snapshot.snapshot_id))
}

/// The snapshot that a transaction with this key has made on any branch.
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

/// Puts the key of a transaction into the first snapshot that it adds; whether there is one.
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
