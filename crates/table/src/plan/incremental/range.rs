//! Incremental scans between snapshots, like Java's `IncrementalAppendScan` and `IncrementalChangelogScan`.
//!
//! Both walk from the last snapshot of a [`Range`] back to its first. An append scan reads the files added by
//! snapshots with the operation `append`, and skips others. A [changelog](super::changelog) reads the rows added or
//! removed by any snapshot except those with the operation `replace`, which change no rows. Column names are those of
//! the current schema.
//!
//! An append scan looks for manifests in the lists of all these snapshots: even if a later snapshot merged a
//! manifest, an earlier one still lists it.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::manifest::{ManifestContent, ManifestFile};
use icefield_format::metadata::{Operation, Snapshot, TableMetadata};

use crate::error::{Error, Result};
use crate::plan::changes::Changes;
use crate::plan::pipeline::{Ordered, Work};
use crate::plan::prune::Pruner;
use crate::plan::{At, Scan};
use crate::storage::Storage;

/// The snapshots of an incremental scan: the ancestors of its last snapshot, after its first one.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// The start; `None` for the oldest existing ancestor.
    pub from: Option<Point>,
    /// Whether the start itself is included.
    pub from_inclusive: bool,
    /// The last snapshot; `None` for the newest of the branch.
    pub to: Option<Point>,
    /// The branch that contains `to`, or that is read to its end without `to`; `None` for the main one.
    pub branch: Option<String>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// By id.
    Id(i64),
    /// By the name of a tag.
    Tag(String),
}

impl Scan {
    /// A scan of files added by `append` snapshots.
    pub fn appends(storage: Storage, metadata: Arc<TableMetadata>, range: &Range) -> Result<Self> {
        Self::incremental(storage, metadata, range, false)
    }

    /// A scan of rows that snapshots added and removed.
    pub fn changelog(storage: Storage, metadata: Arc<TableMetadata>, range: &Range) -> Result<Self> {
        Self::incremental(storage, metadata, range, true)
    }

    fn incremental(storage: Storage, metadata: Arc<TableMetadata>, range: &Range, changelog: bool) -> Result<Self> {
        let (last, snapshots) = range.snapshots(&metadata)?;
        let wanted = |snapshot: &&Arc<Snapshot>| match snapshot.summary.as_ref().map(|summary| &summary.operation) {
            Some(operation) if changelog => *operation != Operation::Replace,
            Some(operation) => *operation == Operation::Append,
            None => changelog,
        };
        let snapshots: Vec<_> = snapshots.iter().filter(wanted).cloned().collect();
        let ids = snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
        let scan = Self::new(storage, metadata, &At::default())?;
        Ok(Self { snapshot: last, changes: Some(Arc::new(Changes { snapshots, ids, changelog })), ..scan })
    }
}

/// The last snapshot of a range, and all of them, oldest first.
type Ancestry = (Option<Arc<Snapshot>>, Vec<Arc<Snapshot>>);

impl Range {
    /// The last snapshot and the whole range, oldest first; empty for an empty table.
    fn snapshots(&self, metadata: &TableMetadata) -> Result<Ancestry> {
        if self.from.is_none() && self.to.is_none() && self.branch.is_none() && metadata.current_snapshot().is_none() {
            return Ok((None, Vec::new()));
        }
        let last = self.last(metadata)?;
        let to = last.snapshot_id;
        let oldest = match &self.from {
            None => None,
            Some(Point::Tag(name)) => Some(tagged(metadata, name)?),
            Some(Point::Id(id)) => Some(*id),
        };
        let stop = match oldest {
            None => None,
            Some(from) if self.from_inclusive => {
                let first = metadata.snapshot(from);
                let first = first.ok_or_else(|| {
                    Error::invalid(format!("cannot find the starting snapshot {from}{}", gone(metadata, from)))
                })?;
                if !metadata.ancestors(to).any(|snapshot| snapshot.snapshot_id == from) {
                    let message = format!(
                        "starting snapshot (inclusive) {from} is not an ancestor of end snapshot {to}{}",
                        gone(metadata, from)
                    );
                    return Err(Error::invalid(message));
                }
                first.parent_snapshot_id
            }
            // The start may have expired; then its child is the oldest existing snapshot.
            Some(from) => {
                if !metadata.ancestors(to).any(|snapshot| snapshot.parent_snapshot_id == Some(from)) {
                    let message = format!(
                        "starting snapshot (exclusive) {from} is not a parent ancestor of end snapshot {to}{}",
                        gone(metadata, from)
                    );
                    return Err(Error::invalid(message));
                }
                Some(from)
            }
        };
        let between = metadata.ancestors(to).take_while(|snapshot| Some(snapshot.snapshot_id) != stop);
        let mut all: Vec<_> = between.cloned().collect();
        all.reverse();
        Ok((Some(last), all))
    }

    fn last(&self, metadata: &TableMetadata) -> Result<Arc<Snapshot>> {
        let head = match &self.branch {
            None => metadata.current_snapshot(),
            Some(name) => {
                let found = metadata.reference(name).filter(|found| found.is_branch());
                let found = found.ok_or_else(|| Error::invalid(format!("the table has no branch {name:?}")))?;
                metadata.snapshot(found.snapshot_id)
            }
        };
        let id = match &self.to {
            None => {
                let none = || Error::invalid("end snapshot is not set and the table has no current snapshot");
                return head.cloned().ok_or_else(none);
            }
            Some(Point::Tag(name)) => tagged(metadata, name)?,
            Some(Point::Id(id)) => *id,
        };
        let found = metadata.snapshot(id);
        let found = found.ok_or_else(|| Error::invalid(format!("cannot find the end snapshot {id}")))?;
        if let (Some(branch), Some(head)) = (&self.branch, head)
            && !metadata.ancestors(head.snapshot_id).any(|snapshot| snapshot.snapshot_id == id)
        {
            return Err(Error::invalid(format!("end snapshot {id} is not on the branch {branch:?}")));
        }
        Ok(found.clone())
    }
}

fn tagged(metadata: &TableMetadata, name: &str) -> Result<i64> {
    let found = metadata.reference(name).filter(|found| !found.is_branch());
    Ok(found.ok_or_else(|| Error::invalid(format!("the table has no tag {name:?}")))?.snapshot_id)
}

/// The data manifests written by the snapshots of an append scan, each once, oldest snapshots first.
pub(in crate::plan) fn manifests(
    changes: &Arc<Changes>,
    pruner: &Arc<Pruner>,
    scan: &Scan,
) -> Result<Vec<ManifestFile>> {
    let mut named = HashSet::new();
    // Only v1 snapshots may lack a list.
    let is_new = |snapshot: &&Arc<Snapshot>| snapshot.manifest_list().is_none_or(|list| named.insert(list.to_owned()));
    let snapshots: Vec<Arc<Snapshot>> = changes.snapshots.iter().filter(is_new).cloned().collect();
    let first = snapshots.first().and_then(|snapshot| snapshot.manifest_list());
    let remote = first.is_some_and(|list| scan.storage.is_remote(list));
    let work = ListWork { pruner: pruner.clone(), changes: changes.clone() };
    let (mut known, mut all, mut held) = (HashSet::new(), Vec::new(), scan.limits.held());
    for read in Ordered::new(Arc::new(work), snapshots, remote) {
        for manifest in read? {
            if known.insert(manifest.manifest_path.clone()) {
                held.keep(manifest.memory())?;
                all.push(manifest);
            }
        }
    }
    Ok(all)
}

/// Reads manifest lists.
struct ListWork {
    pruner: Arc<Pruner>,
    changes: Arc<Changes>,
}

impl Work for ListWork {
    type Item = Arc<Snapshot>;
    type Fetched = Arc<Vec<ManifestFile>>;
    type Done = Vec<ManifestFile>;

    /// Snapshots do not store the length of their lists.
    fn bytes(_: &Arc<Snapshot>) -> i64 {
        0
    }

    fn fetch(&self, snapshot: &Arc<Snapshot>) -> Result<Self::Fetched> {
        Ok(self.pruner.list_of(snapshot)?.0)
    }

    fn run(&self, _: &Arc<Snapshot>, manifests: Self::Fetched) -> Result<Self::Done> {
        let wrote = |manifest: &&ManifestFile| {
            manifest.content == ManifestContent::Data && self.changes.ids.contains(&manifest.added_snapshot_id)
        };
        Ok(manifests.iter().filter(wrote).cloned().collect())
    }

    fn memory(manifests: &Self::Done) -> usize {
        manifests.iter().map(ManifestFile::memory).sum()
    }
}

/// Why a snapshot may be missing, as the end of a sentence.
fn gone(metadata: &TableMetadata, snapshot: i64) -> &'static str {
    match metadata.snapshot(snapshot) {
        Some(_) => "",
        None => {
            ": the table has no such snapshot, it may have expired: read the whole table, and go on from its current snapshot"
        }
    }
}
