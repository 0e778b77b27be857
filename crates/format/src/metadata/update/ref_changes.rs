//! Changes of branches, tags and the current snapshot as a user states them, converted to updates ("Snapshot
//! References").

use crate::metadata::{MAIN_BRANCH, MetadataUpdate, RefKind, SnapshotRef, TableMetadata};
use crate::{Error, Result};

impl TableMetadata {
    /// Returns the update that creates a branch or tag.
    pub fn create_ref(&self, name: &str, reference: SnapshotRef) -> Result<MetadataUpdate> {
        if name.is_empty() {
            return Err(Error::invalid("the name of a branch or tag must not be empty"));
        }
        if let Some(known) = self.reference(name) {
            return Err(Error::invalid(format!("cannot create {name:?}: a {} of this name exists", known.kind)));
        }
        self.check_snapshot(reference.snapshot_id)?;
        // Nothing is corrupt: the caller passed invalid retention.
        reference.check().map_err(|error| Error::invalid(format!("cannot create {name:?}: {error}")))?;
        Ok(MetadataUpdate::SetSnapshotRef { ref_name: name.to_owned(), reference })
    }

    /// Returns the update that removes a branch or a tag.
    pub fn remove_ref(&self, name: &str, is_branch: bool) -> Result<MetadataUpdate> {
        self.ref_of_kind("remove", name, is_branch)?;
        match name {
            MAIN_BRANCH => Err(Error::invalid("the branch \"main\" cannot be removed")),
            _ => Ok(MetadataUpdate::RemoveSnapshotRef { ref_name: name.to_owned() }),
        }
    }

    /// Returns the update that moves a branch or tag to another snapshot and keeps its retention.
    pub fn replace_ref(&self, name: &str, snapshot_id: i64, is_branch: bool) -> Result<MetadataUpdate> {
        let known = self.ref_of_kind("replace", name, is_branch)?;
        self.check_snapshot(snapshot_id)?;
        Ok(set_ref(name, SnapshotRef { snapshot_id, ..known.clone() }))
    }

    /// Returns the update that moves a branch to the snapshot of another branch or tag, and creates the branch if it
    /// does not exist. With `fast_forward`, the branch must be an ancestor of that snapshot, so that it loses none.
    pub fn replace_branch(&self, name: &str, by: &str, fast_forward: bool) -> Result<MetadataUpdate> {
        let verb = if fast_forward { "fast-forward" } else { "replace" };
        let Some(to) = self.reference(by) else {
            return Err(Error::invalid(format!("cannot {verb} branch {name:?}: there is no branch or tag {by:?}")));
        };
        if self.reference(name).is_none() {
            return self.create_ref(name, SnapshotRef::branch(to.snapshot_id));
        }
        let known = self.ref_of_kind(verb, name, true)?;
        let is_ancestor = || self.ancestors(to.snapshot_id).any(|snapshot| snapshot.snapshot_id == known.snapshot_id);
        if fast_forward && !is_ancestor() {
            return Err(Error::invalid(format!(
                "cannot fast-forward branch {name:?} to {by:?}: its snapshot {} is not an ancestor of {}",
                known.snapshot_id, to.snapshot_id
            )));
        }
        Ok(set_ref(name, SnapshotRef { snapshot_id: to.snapshot_id, ..known.clone() }))
    }

    /// Returns the updates that rename a branch other than `main` and keep its retention.
    pub fn rename_branch(&self, name: &str, new_name: &str) -> Result<Vec<MetadataUpdate>> {
        let known = self.ref_of_kind("rename", name, true)?;
        if name == MAIN_BRANCH {
            return Err(Error::invalid("the branch \"main\" cannot be renamed"));
        }
        let created = self.create_ref(new_name, known.clone())?;
        Ok(vec![MetadataUpdate::RemoveSnapshotRef { ref_name: name.to_owned() }, created])
    }

    /// Returns the update that sets the retention of a branch or tag; arguments that are `None` leave the old value.
    pub fn set_retention(
        &self,
        name: &str,
        max_ref_age: Option<i64>,
        max_snapshot_age: Option<i64>,
        min_snapshots: Option<i32>,
    ) -> Result<MetadataUpdate> {
        let Some(known) = self.reference(name) else {
            return Err(Error::invalid(format!("cannot change {name:?}: there is no branch or tag of this name")));
        };
        let mut changed = known.clone();
        changed.max_ref_age_ms = max_ref_age.or(known.max_ref_age_ms);
        match &mut changed.kind {
            RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms } => {
                *min_snapshots_to_keep = min_snapshots.or(*min_snapshots_to_keep);
                *max_snapshot_age_ms = max_snapshot_age.or(*max_snapshot_age_ms);
            }
            RefKind::Tag if max_snapshot_age.is_some() || min_snapshots.is_some() => {
                return Err(Error::invalid(format!(
                    "cannot change tag {name:?}: only branches have an age and a number of snapshots to keep"
                )));
            }
            RefKind::Tag => {}
        }
        changed.check().map_err(|error| Error::invalid(format!("cannot change {name:?}: {error}")))?;
        Ok(set_ref(name, changed))
    }

    /// Returns the branch or the tag with this name.
    fn ref_of_kind(&self, verb: &str, name: &str, is_branch: bool) -> Result<&SnapshotRef> {
        let what = if is_branch { "branch" } else { "tag" };
        match self.reference(name) {
            None => Err(Error::invalid(format!("cannot {verb} {what} {name:?}: it does not exist"))),
            Some(found) if found.is_branch() != is_branch => {
                Err(Error::invalid(format!("cannot {verb} {what} {name:?}: it is a {}", found.kind)))
            }
            Some(found) => Ok(found),
        }
    }

    /// Returns the update that makes a snapshot the current one.
    pub fn set_current(&self, snapshot_id: i64) -> Result<MetadataUpdate> {
        self.check_snapshot(snapshot_id)?;
        let reference = match self.reference(MAIN_BRANCH) {
            Some(main) => SnapshotRef { snapshot_id, ..main.clone() },
            None => SnapshotRef::branch(snapshot_id),
        };
        Ok(MetadataUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference })
    }

    /// Returns the update that rolls the table back to an ancestor of its current snapshot.
    pub fn rollback_to(&self, snapshot_id: i64) -> Result<MetadataUpdate> {
        self.check_snapshot(snapshot_id)?;
        if !self.current_ancestors().any(|(id, _)| id == snapshot_id) {
            return Err(Error::invalid(format!(
                "cannot roll back to snapshot {snapshot_id}: it is not an ancestor of the current snapshot"
            )));
        }
        self.set_current(snapshot_id)
    }

    /// Returns the update that rolls the table back to the last ancestor before a time, in milliseconds from the epoch.
    pub fn rollback_to_before(&self, timestamp_ms: i64) -> Result<MetadataUpdate> {
        let older = self.current_ancestors().filter(|(_, time)| *time < timestamp_ms);
        // Take the newest by time, as Java does: writers' clocks may disagree with the order of commits.
        match older.max_by_key(|(_, time)| *time) {
            Some((snapshot_id, _)) => self.set_current(snapshot_id),
            None => Err(Error::invalid(format!("cannot roll back: no snapshot is older than {timestamp_ms}"))),
        }
    }

    /// Ids and timestamps of the current snapshot and its ancestors.
    fn current_ancestors(&self) -> impl Iterator<Item = (i64, i64)> {
        let ancestors = self.current_snapshot_id().into_iter().flat_map(|id| self.ancestors(id));
        ancestors.map(|snapshot| (snapshot.snapshot_id, snapshot.timestamp_ms))
    }

    fn check_snapshot(&self, snapshot_id: i64) -> Result<()> {
        match self.snapshot(snapshot_id) {
            Some(_) => Ok(()),
            None => Err(Error::invalid(format!("there is no snapshot {snapshot_id} in the table"))),
        }
    }
}

fn set_ref(name: &str, reference: SnapshotRef) -> MetadataUpdate {
    MetadataUpdate::SetSnapshotRef { ref_name: name.to_owned(), reference }
}
