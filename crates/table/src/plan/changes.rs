//! Changes: what the snapshots of an incremental scan did to files, and which of that the scan reads.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use icefield_format::manifest::{Entries, ManifestFile, Status};
use icefield_format::metadata::Snapshot;

use super::PlannedManifest;
use crate::error::{Error, Result};

/// What became of the rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeType {
    /// They are in the table since.
    Insert,
    /// They are not any more.
    Delete,
}

impl ChangeType {
    /// Its name in changelogs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Delete => "DELETE",
        }
    }

    /// The type of a name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "INSERT" => Ok(Self::Insert),
            "DELETE" => Ok(Self::Delete),
            other => Err(Error::invalid(format!("{other:?} is no type of change"))),
        }
    }
}

/// A change to the table: one file, or all rows of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What became of the rows.
    pub change_type: ChangeType,
    /// Place of the snapshot among those of the changelog, oldest first.
    pub ordinal: i32,
    /// The snapshot.
    pub snapshot_id: i64,
}

/// The snapshots whose changes a scan reads, oldest first, and which of their changes.
#[derive(Debug, Clone)]
pub struct Changes {
    pub(super) snapshots: Vec<Arc<Snapshot>>,
    pub(super) ordinals: HashMap<i64, i32>,
    pub(super) changelog: bool,
}

impl Changes {
    /// The snapshots, oldest first.
    pub fn snapshots(&self) -> &[Arc<Snapshot>] {
        &self.snapshots
    }

    /// Whether what was removed is read too.
    pub fn is_changelog(&self) -> bool {
        self.changelog
    }

    /// Whether a manifest may tell of a change that is read.
    pub(super) fn may_have(&self, manifest: &ManifestFile) -> bool {
        manifest.has_added_files() || (self.changelog && manifest.has_deleted_files())
    }

    /// The entries that are changes.
    pub(super) fn of(&self, entries: Arc<Entries>) -> Result<Arc<Entries>> {
        let wanted = |row: usize| {
            Ok(match entries.status_of(row)? {
                Status::Added => self.ordinal_of(&entries, row).is_some(),
                Status::Deleted => self.changelog && self.ordinal_of(&entries, row).is_some(),
                Status::Existing => false,
            })
        };
        let mask = (0..entries.len()).map(wanted).collect::<Result<Vec<bool>>>()?;
        if mask.iter().all(|kept| *kept) {
            return Ok(entries);
        }
        Ok(Arc::new(entries.filter(&BooleanArray::from(mask))?))
    }

    fn ordinal_of(&self, entries: &Entries, row: usize) -> Option<(i64, i32)> {
        let id = entries.snapshot_id.is_valid(row).then(|| entries.snapshot_id.value(row))?;
        Some((id, *self.ordinals.get(&id)?))
    }

    /// The change that a planned file is.
    pub fn change(&self, manifest: &PlannedManifest, row: usize) -> Result<Change> {
        let found = self.ordinal_of(&manifest.entries, row);
        let (snapshot_id, ordinal) = found.ok_or_else(|| Error::Internal("a file that is no change".to_owned()))?;
        let change_type = match manifest.entries.status_of(row)? {
            Status::Deleted => ChangeType::Delete,
            _ => ChangeType::Insert,
        };
        Ok(Change { change_type, ordinal, snapshot_id })
    }
}
