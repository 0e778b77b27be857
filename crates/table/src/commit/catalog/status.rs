//! Finds out whether a commit with a lost response has landed, by looking for it in the table
//! (`commit.status-check.*`).

use std::time::Duration;

use icefield_format::metadata::properties::{
    COMMIT_NUM_STATUS_CHECKS, COMMIT_STATUS_CHECKS_MAX_WAIT_MS, COMMIT_STATUS_CHECKS_MIN_WAIT_MS, Property,
};
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, Snapshot, TableMetadata};
use serde_json::Value as Json;

use crate::commit::{Catalog, Committed, require_same_table};
use crate::error::{Error, Result};
use crate::interrupt;

/// What a look for a commit found.
#[derive(Debug)]
pub(super) enum Found {
    /// The table contains the commit.
    There(Committed),
    /// The table was read, and does not contain the commit.
    Absent,
    /// The table could not be read.
    Unread,
}

/// A commit to look for in a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought<'a> {
    /// The metadata file that the commit has written; `None` if the catalog writes it.
    pub(super) location: Option<&'a str>,
    /// The updates of the commit.
    pub(super) updates: &'a [MetadataUpdate],
}

impl Sought<'_> {
    /// The last snapshot that the commit adds.
    fn snapshot(&self) -> Option<&Snapshot> {
        self.updates.iter().rev().find_map(|update| match update {
            MetadataUpdate::AddSnapshot { snapshot } => Some(&**snapshot),
            _ => None,
        })
    }

    /// Whether table `now` contains the commit, which was made from `base`.
    fn is_in(&self, base: &Committed, now: &Committed) -> bool {
        let in_log = |own: &str| now.metadata.metadata_log().iter().any(|entry| entry.metadata_file == own);
        if self.location.is_some_and(|own| now.location == own || in_log(own)) {
            return true;
        }
        match self.snapshot() {
            Some(own) => now.metadata.snapshot(own.snapshot_id).is_some(),
            // Without a snapshot or a metadata file of its own, a commit cannot be distinguished from another one with
            // the same effect; then it is enough that the table has the change.
            None if self.location.is_some() => false,
            None => self.is_kept_by(&now.metadata) || self.leads_to(&base.metadata, &now.metadata),
        }
    }

    /// Whether applying the updates would change nothing.
    fn is_kept_by(&self, now: &TableMetadata) -> bool {
        self.applied_to(now).is_some_and(|made| made == *now)
    }

    /// Whether applying the updates to `base` results in `now`. `is_kept_by` misses updates that refer to what they add
    /// as the last added one: `now` has it already.
    fn leads_to(&self, base: &TableMetadata, now: &TableMetadata) -> bool {
        let known = |metadata: &TableMetadata| {
            let mut json: Json = serde_json::from_str(&metadata.to_json()).ok()?;
            let fields = json.as_object_mut()?;
            ["last-updated-ms", "metadata-log"].iter().for_each(|field| drop(fields.remove(*field)));
            Some(json)
        };
        let made = self.applied_to(base).and_then(|made| known(&made));
        made.is_some() && made == known(now)
    }

    fn applied_to(&self, metadata: &TableMetadata) -> Option<TableMetadata> {
        let builder = MetadataBuilder::from_base(metadata, metadata.last_updated_ms());
        builder.apply_all(self.updates.iter().cloned()).and_then(MetadataBuilder::build).ok()
    }

    /// Whether the table contains the snapshot of the last attempt, and not of an earlier one.
    pub(super) fn is_last_attempt(&self, now: &TableMetadata) -> bool {
        let Some(own) = self.snapshot() else { return !self.updates.is_empty() };
        now.snapshot(own.snapshot_id).is_some_and(|found| found.manifests == own.manifests)
    }
}

/// Looks for the commit in the current table, again and again while it cannot be read. `base` is the table from which
/// the commit was made.
///
/// # Errors
/// [`Error::Interrupted`] if the caller stops the checks.
pub(super) fn look_for(catalog: &dyn Catalog, base: &Committed, sought: Sought<'_>) -> Result<Found> {
    // An invalid property falls back to the default: its error would hide that the outcome is unknown.
    let properties = base.metadata.properties();
    let number = |property: &Property<i64>| property.read(properties).unwrap_or(property.default).max(0);
    let mut wait_ms = number(&COMMIT_STATUS_CHECKS_MIN_WAIT_MS).cast_unsigned();
    for check in 0..=number(&COMMIT_NUM_STATUS_CHECKS) {
        if check > 0 {
            interrupt::sleep(Duration::from_millis(wait_ms))?;
            wait_ms = wait_ms.saturating_mul(2).min(number(&COMMIT_STATUS_CHECKS_MAX_WAIT_MS).cast_unsigned());
        }
        let now = match catalog.load(Some(base)) {
            Ok(now) => now,
            Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
            Err(_) => continue,
        };
        let is_same = require_same_table(base.metadata.table_uuid(), &now.metadata, &now.location).is_ok();
        return Ok(if is_same && sought.is_in(base, &now) { Found::There(now) } else { Found::Absent });
    }
    Ok(Found::Unread)
}
