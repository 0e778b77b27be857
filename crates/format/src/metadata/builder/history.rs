//! Changes of snapshots, references, the snapshot log and the metadata log ("Snapshots", "Snapshot References", "Row
//! Lineage").

use std::collections::HashSet;
use std::sync::Arc;

use super::MetadataBuilder;
use crate::metadata::{
    FormatVersion, MAIN_BRANCH, MetadataLogEntry, MetadataUpdate, Snapshot, SnapshotLogEntry, SnapshotRef, properties,
};
use crate::{Error, Result};

impl MetadataBuilder {
    pub(super) fn add_snapshot(&mut self, snapshot: Arc<Snapshot>) -> Result<()> {
        let document = &self.document;
        for (what, missing) in [
            ("schema", document.schemas.is_empty()),
            ("partition spec", document.partition_specs.is_empty()),
            ("sort order", document.sort_orders.is_empty()),
        ] {
            if missing {
                return Err(Error::invalid(format!("a snapshot cannot be added before a {what}")));
            }
        }
        if self.has_snapshot(snapshot.snapshot_id) {
            return Err(Error::invalid(format!("a snapshot with id {} already exists", snapshot.snapshot_id)));
        }
        self.check_sequence_number(&snapshot)?;
        if self.document.format_version >= FormatVersion::V3 {
            self.document.next_row_id = self.assign_rows(&snapshot)?;
        }
        self.document.last_sequence_number = snapshot.sequence_number;
        self.document.snapshots.push(Arc::clone(&snapshot));
        self.changes.push(MetadataUpdate::AddSnapshot { snapshot });
        Ok(())
    }

    /// Checks the sequence number: a snapshot based on an older state has a number that is already used, so its commit
    /// must be retried.
    fn check_sequence_number(&self, snapshot: &Snapshot) -> Result<()> {
        let (number, last) = (snapshot.sequence_number, self.document.last_sequence_number);
        if self.document.format_version == FormatVersion::V1 || number > last || snapshot.parent_snapshot_id.is_none() {
            return Ok(());
        }
        Err(Error::RequirementFailed(format!(
            "sequence number {number} of a new snapshot must be greater than the last, {last}"
        )))
    }

    /// Returns the next row id of the table after this snapshot.
    fn assign_rows(&self, snapshot: &Snapshot) -> Result<i64> {
        let (Some(first), Some(added)) = (snapshot.first_row_id, snapshot.added_rows) else {
            return Err(Error::invalid("format version 3 requires first-row-id and added-rows in a new snapshot"));
        };
        let next = self.document.next_row_id;
        if first < next {
            return Err(Error::RequirementFailed(format!(
                "first-row-id {first} of a new snapshot must not be less than the table's next-row-id {next}"
            )));
        }
        if added < 0 {
            return Err(Error::invalid(format!("added-rows of a new snapshot is negative: {added}")));
        }
        // If the snapshot's ids begin above `next`, the checks of `build` raise the result further.
        next.checked_add(added).ok_or_else(|| Error::invalid("all row ids are used up"))
    }

    pub(super) fn remove_snapshots(&mut self, snapshot_ids: &[i64]) {
        let ids: HashSet<i64> = snapshot_ids.iter().copied().collect();
        let (removed, kept) = std::mem::take(&mut self.document.snapshots)
            .into_iter()
            .partition::<Vec<_>, _>(|snapshot| ids.contains(&snapshot.snapshot_id));
        self.document.snapshots = kept;
        for snapshot_id in removed.iter().map(|snapshot| snapshot.snapshot_id) {
            self.changes.push(MetadataUpdate::RemoveSnapshots { snapshot_ids: vec![snapshot_id] });
            self.remove_statistics(snapshot_id);
            self.remove_partition_statistics(snapshot_id);
        }
        let kept: HashSet<i64> = self.document.snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
        let dangling = self.document.refs.iter().filter(|(_, reference)| !kept.contains(&reference.snapshot_id));
        for name in dangling.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.remove_ref(&name);
        }
    }

    pub(super) fn set_ref(&mut self, ref_name: String, reference: SnapshotRef) -> Result<()> {
        if self.document.refs.get(&ref_name) == Some(&reference) {
            return Ok(());
        }
        reference.check().map_err(|error| Error::invalid(format!("reference {ref_name}: {error}")))?;
        let snapshot_id = reference.snapshot_id;
        let Some(snapshot) = self.document.snapshots.iter().find(|snapshot| snapshot.snapshot_id == snapshot_id) else {
            return Err(Error::invalid(format!("reference {ref_name}: there is no snapshot {snapshot_id}")));
        };
        if ref_name == MAIN_BRANCH {
            if !reference.is_branch() {
                return Err(Error::invalid("main cannot be a tag"));
            }
            // A new snapshot became current when it was created, an older one becomes current now.
            let timestamp_ms = if self.was_added(snapshot_id) { snapshot.timestamp_ms } else { self.now_ms };
            self.document.snapshot_log.push(SnapshotLogEntry { timestamp_ms, snapshot_id });
            self.document.current_snapshot_id = Some(snapshot_id);
        }
        self.document.refs.insert(ref_name.clone(), reference.clone());
        self.changes.push(MetadataUpdate::SetSnapshotRef { ref_name, reference });
        Ok(())
    }

    pub(super) fn remove_ref(&mut self, ref_name: &str) {
        if ref_name == MAIN_BRANCH {
            self.document.current_snapshot_id = None;
        }
        if self.document.refs.shift_remove(ref_name).is_some() {
            self.changes.push(MetadataUpdate::RemoveSnapshotRef { ref_name: ref_name.to_owned() });
        }
    }

    /// Appends the base's metadata file to the metadata log, and drops the oldest entries over the limit.
    pub(super) fn extend_metadata_log(&mut self) -> Result<()> {
        let (Some(base), Some(metadata_file)) = (&self.base, self.previous_file.take()) else { return Ok(()) };
        let longest = properties::METADATA_PREVIOUS_VERSIONS_MAX.read(&self.document.properties)?.max(1);
        let log = &mut self.document.metadata_log;
        log.push(MetadataLogEntry { timestamp_ms: base.document.last_updated_ms, metadata_file });
        let surplus = log.len().saturating_sub(usize::try_from(longest).unwrap_or(usize::MAX));
        log.drain(..surplus);
        Ok(())
    }

    /// Removes snapshots from the snapshot log that only this transaction made current and replaced again. A removed
    /// snapshot also removes all entries before it, since time travel across the gap would find the wrong snapshot. Not
    /// every writer keeps a log: if it does not end with the current snapshot, that snapshot is appended.
    pub(super) fn correct_snapshot_log(&mut self) {
        let current = self.document.current_snapshot_id;
        let removed = self.changes.iter().any(|change| matches!(change, MetadataUpdate::RemoveSnapshots { .. }));
        let passing = self.passing_snapshots();
        if passing.is_empty() && !removed {
            return;
        }
        let there: HashSet<i64> = self.document.snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
        let mut log = Vec::with_capacity(self.document.snapshot_log.len());
        for entry in &self.document.snapshot_log {
            match there.contains(&entry.snapshot_id) {
                true if !passing.contains(&entry.snapshot_id) => log.push(*entry),
                false if removed => log.clear(),
                _ => {}
            }
        }
        let current = self.document.snapshots.iter().find(|snapshot| Some(snapshot.snapshot_id) == current);
        let newest = log.last().copied();
        if let Some(current) =
            current.filter(|current| newest.is_none_or(|last| last.snapshot_id != current.snapshot_id))
        {
            // The log does not say when it became current: not before the previous entry, and not before it was
            // created.
            let timestamp_ms = newest.map_or(current.timestamp_ms, |last| last.timestamp_ms.max(current.timestamp_ms));
            log.push(SnapshotLogEntry { timestamp_ms, snapshot_id: current.snapshot_id });
        }
        self.document.snapshot_log = log;
    }

    /// Returns the snapshots that these changes added, made current and replaced again.
    fn passing_snapshots(&self) -> HashSet<i64> {
        let mut added = HashSet::new();
        let mut passing = HashSet::new();
        for change in &self.changes {
            match change {
                MetadataUpdate::AddSnapshot { snapshot } => {
                    added.insert(snapshot.snapshot_id);
                }
                MetadataUpdate::SetSnapshotRef { ref_name, reference }
                    if ref_name == MAIN_BRANCH
                        && added.contains(&reference.snapshot_id)
                        && self.document.current_snapshot_id != Some(reference.snapshot_id) =>
                {
                    passing.insert(reference.snapshot_id);
                }
                _ => {}
            }
        }
        passing
    }

    fn has_snapshot(&self, snapshot_id: i64) -> bool {
        self.document.snapshots.iter().any(|snapshot| snapshot.snapshot_id == snapshot_id)
    }

    fn was_added(&self, snapshot_id: i64) -> bool {
        self.changes.iter().any(
            |change| matches!(change, MetadataUpdate::AddSnapshot { snapshot } if snapshot.snapshot_id == snapshot_id),
        )
    }
}
