//! One snapshot of a changelog: the changed rows that its manifests describe, given the deletes before and after it;
//! see [`changelog`](crate::plan::incremental::changelog).

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, UInt32Array};
use icefield_format::manifest::{Entries, ManifestFile, Status};
use icefield_format::spec::PartitionSpec;

use super::{Change, ChangeType, FileChanges};
use crate::error::{Error, Result};
use crate::plan::deletes::DeleteIndex;
use crate::plan::deletes::links::DeleteLinks;

/// A snapshot of a changelog, and the delete files before and after it.
#[derive(Debug)]
pub struct Step {
    pub(in crate::plan) ordinal: i32,
    pub(in crate::plan) snapshot_id: i64,
    /// `None` if no delete file can apply to a file that the snapshot added or removed.
    pub(in crate::plan) before: Option<Arc<StateDeletes>>,
    pub(in crate::plan) after: Option<Arc<StateDeletes>>,
    /// Whether rows of kept data files may have changed.
    pub(in crate::plan) keeps_changed: bool,
}

/// The delete files of a state of the table.
#[derive(Debug)]
pub(in crate::plan) struct StateDeletes {
    pub(in crate::plan) index: DeleteIndex,
    /// For each file of the index, its index in the plan.
    pub(in crate::plan) places: Vec<u32>,
}

/// A file with changed rows.
struct Changed {
    row: u32,
    change_type: ChangeType,
    deletes: Vec<u32>,
    deleted_by: Vec<u32>,
}

impl Step {
    /// Whether the snapshot wrote a manifest.
    pub fn wrote(&self, manifest: &ManifestFile) -> bool {
        manifest.added_snapshot_id == self.snapshot_id
    }

    /// Whether a data manifest may contain a change.
    pub(in crate::plan) fn may_have(&self, manifest: &ManifestFile) -> bool {
        let own = self.wrote(manifest) && (manifest.has_added_files() || manifest.has_deleted_files());
        own || (self.keeps_changed && manifest.has_live_files())
    }

    /// The changes of a data manifest: its files with changed rows, once per change type, and their deletes.
    pub fn files(
        &self,
        spec: &PartitionSpec,
        entries: &Entries,
    ) -> Result<(Arc<Entries>, FileChanges, Option<DeleteLinks>)> {
        let (mut removed, mut added, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for (row, number) in (0..entries.len()).zip(0u32..) {
            let is_own = entries.snapshot_id.is_valid(row) && entries.snapshot_id.value(row) == self.snapshot_id;
            match entries.status_of(row)? {
                Status::Deleted if is_own => removed.push(number),
                Status::Added if is_own => added.push(number),
                Status::Deleted => {}
                Status::Added | Status::Existing if self.keeps_changed => kept.push(number),
                Status::Added | Status::Existing => {}
            }
        }
        let mut changed = Vec::new();
        for (rows, change_type, state) in
            [(removed, ChangeType::Delete, &self.before), (added, ChangeType::Insert, &self.after)]
        {
            let links = links(state.as_ref(), spec, entries, &rows)?;
            changed.extend(rows.iter().zip(links).map(|(row, deletes)| Changed {
                row: *row,
                change_type,
                deletes,
                deleted_by: Vec::new(),
            }));
        }
        let before = links(self.before.as_ref(), spec, entries, &kept)?;
        let after = links(self.after.as_ref(), spec, entries, &kept)?;
        for ((row, before), after) in kept.into_iter().zip(before).zip(after) {
            let without = |all: &[u32], others: &[u32]| -> Vec<u32> {
                let others: HashSet<u32> = others.iter().copied().collect();
                all.iter().copied().filter(|place| !others.contains(place)).collect()
            };
            let (new, gone) = (without(&after, &before), without(&before, &after));
            for (change_type, deletes, deleted_by) in
                [(ChangeType::Delete, before, new), (ChangeType::Insert, after, gone)]
            {
                if !deleted_by.is_empty() {
                    changed.push(Changed { row, change_type, deletes, deleted_by });
                }
            }
        }
        changed.sort_by_key(|one| one.row);
        let rows = UInt32Array::from_iter_values(changed.iter().map(|one| one.row));
        let entries = Arc::new(entries.take(&rows)?);
        let change = |one: &Changed| Change {
            change_type: one.change_type,
            ordinal: self.ordinal,
            snapshot_id: self.snapshot_id,
        };
        let changes = FileChanges {
            changes: changed.iter().map(change).collect(),
            deleted_by: DeleteLinks::of_files(changed.iter().map(|one| &one.deleted_by[..]))?,
        };
        Ok((entries, changes, DeleteLinks::of_files(changed.iter().map(|one| &one.deletes[..]))?))
    }
}

/// The deletes of some files of a manifest in a state, as indices into the plan.
fn links(
    state: Option<&Arc<StateDeletes>>,
    spec: &PartitionSpec,
    entries: &Entries,
    rows: &[u32],
) -> Result<Vec<Vec<u32>>> {
    let none = || vec![Vec::new(); rows.len()];
    let Some(state) = state.filter(|_| !rows.is_empty()) else { return Ok(none()) };
    let some = entries.take(&UInt32Array::from(rows.to_vec()))?;
    let Some(links) = state.index.links(spec, &some)? else { return Ok(none()) };
    let place = |local: &u32| state.places.get(*local as usize).copied().ok_or_else(lost);
    (0..rows.len()).map(|row| links.of(row).iter().map(place).collect()).collect()
}

pub(super) fn lost() -> Error {
    Error::Internal("a delete file that the plan lacks".to_owned())
}
