//! File changes of the snapshots of an incremental scan, and which of them the scan reads.

pub(super) mod step;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use icefield_format::manifest::{Entries, Status};
use icefield_format::metadata::Snapshot;

use super::deletes::links::DeleteLinks;
use crate::error::{Error, Result};

/// The kind of change of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeType {
    /// Inserted.
    Insert,
    /// Deleted.
    Delete,
    /// The old version of an updated row.
    UpdateBefore,
    /// The new version of an updated row.
    UpdateAfter,
}

impl ChangeType {
    /// Its name in changelogs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Delete => "DELETE",
            Self::UpdateBefore => "UPDATE_BEFORE",
            Self::UpdateAfter => "UPDATE_AFTER",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "INSERT" => Ok(Self::Insert),
            "DELETE" => Ok(Self::Delete),
            "UPDATE_BEFORE" => Ok(Self::UpdateBefore),
            "UPDATE_AFTER" => Ok(Self::UpdateAfter),
            other => Err(Error::invalid(format!("{other:?} is not a type of change"))),
        }
    }
}

/// A change of one file, or of all of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The kind of change.
    pub change_type: ChangeType,
    /// Index of the snapshot in the changelog, oldest first.
    pub ordinal: i32,
    /// The snapshot.
    pub snapshot_id: i64,
}

/// The snapshots whose changes a scan reads, oldest first, and which of their changes.
#[derive(Debug, Clone)]
pub struct Changes {
    pub(super) snapshots: Vec<Arc<Snapshot>>,
    pub(super) ids: HashSet<i64>,
    pub(super) changelog: bool,
}

impl Changes {
    /// The snapshots, oldest first.
    pub fn snapshots(&self) -> &[Arc<Snapshot>] {
        &self.snapshots
    }

    /// Whether removed rows are read too.
    pub fn is_changelog(&self) -> bool {
        self.changelog
    }

    /// The entries of files that the snapshots added.
    pub(super) fn added(&self, entries: Arc<Entries>) -> Result<Arc<Entries>> {
        let wanted = |row: usize| Ok(entries.status_of(row)? == Status::Added && self.has(&entries, row));
        let mask = (0..entries.len()).map(wanted).collect::<Result<Vec<bool>>>()?;
        if mask.iter().all(|kept| *kept) {
            return Ok(entries);
        }
        Ok(Arc::new(entries.filter(&BooleanArray::from(mask))?))
    }

    fn has(&self, entries: &Entries, row: usize) -> bool {
        entries.snapshot_id.is_valid(row) && self.ids.contains(&entries.snapshot_id.value(row))
    }
}

/// The changes of the files of a manifest.
#[derive(Debug, Clone)]
pub struct FileChanges {
    /// One per file.
    pub(super) changes: Vec<Change>,
    /// For each file, deletes; a row is read only if one of them has deleted it, and all rows are read if
    /// there are none.
    pub(super) deleted_by: Option<DeleteLinks>,
}
