//! Changelogs over row-level deletes: the rows that each snapshot added and removed.
//!
//! A snapshot's own manifests list the data and delete files it added and removed, and all of its manifests together
//! the files it kept. So the states before and after it are known from its manifest list alone, even if its parent has
//! expired. The rows read of a data file depend on the delete files that apply in each state:
//!
//! | data file | deletes before | deletes after | rows |
//! | --- | --- | --- | --- |
//! | removed | B | | `DELETE`: the rows that B keeps |
//! | added | | A | `INSERT`: the rows that A keeps |
//! | kept | B | A, some not in B | `DELETE`: rows that B keeps and the new ones delete |
//! | kept | B | A, some of B are not in A | `INSERT`: rows that A keeps and the removed ones had deleted |
//!
//! Java refuses snapshots with delete files. Data manifests that a snapshot kept are read only if it changed delete
//! files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use icefield_format::limits::Held;
use icefield_format::manifest::{Entries, ManifestContent, ManifestFile, Status};
use icefield_format::metadata::Snapshot;
use icefield_format::spec::PartitionSpec;

use crate::error::Result;
use crate::plan::Scan;
use crate::plan::changes::Changes;
use crate::plan::changes::step::{StateDeletes, Step};
use crate::plan::deletes::{DeleteIndex, Deletes};
use crate::plan::pipeline::{Ordered, Work};
use crate::plan::prune::{DataItem, DeleteItem, DeleteWork, Pruner, stored};
use crate::plan::report::ScanReport;

/// The input of a changelog plan.
pub(in crate::plan) struct Steps {
    /// Data manifests, snapshot by snapshot.
    pub items: Vec<DataItem>,
    /// The delete files of all states.
    pub deletes: Arc<Deletes>,
    /// Columns of the equality deletes.
    pub equality_ids: BTreeSet<i32>,
}

/// Plans each snapshot.
pub(in crate::plan) fn steps(
    changes: &Arc<Changes>,
    pruner: &Arc<Pruner>,
    scan: &Scan,
    report: &mut ScanReport,
    held: &mut Held,
) -> Result<Steps> {
    let first = changes.snapshots.first().and_then(|snapshot| snapshot.manifest_list());
    let remote = first.is_some_and(|list| scan.storage.is_remote(list));
    let lists = Ordered::new(Arc::new(ListWork(pruner.clone())), changes.snapshots.clone(), remote);
    let mut listed = Vec::new();
    for list in lists {
        let list = list?;
        held.keep(ListWork::memory(&list))?;
        listed.push(list);
    }
    let mut states = States::read(scan, pruner, &listed, changes, report, held)?;
    let (mut items, mut total) = (Vec::new(), 0usize);
    for ((snapshot, list), ordinal) in changes.snapshots.iter().zip(listed).zip(0..) {
        let (before, after) = states.of(snapshot.snapshot_id, &list.deletes, scan, held)?;
        let keeps_changed = list.changes_deletes;
        let step = Step { ordinal, snapshot_id: snapshot.snapshot_id, before, after, keeps_changed };
        let step = Arc::new(step);
        total = total.saturating_add(list.data.len());
        for manifest in list.data {
            if step.may_have(&manifest) && pruner.might_match(&manifest)? {
                let live_only = !step.wrote(&manifest);
                items.push(DataItem { manifest, live_only, step: Some(step.clone()) });
            }
        }
    }
    report.data_manifests(total, items.len());
    let equality_ids = states.equality_ids;
    Ok(Steps { items, deletes: Arc::new(states.files), equality_ids })
}

/// What a changelog needs from the manifest list of a snapshot.
struct ListedSnapshot {
    data: Vec<ManifestFile>,
    /// Delete manifests; empty if none can apply to a changed file.
    deletes: Vec<ManifestFile>,
    /// Whether the snapshot added or removed delete files.
    changes_deletes: bool,
}

/// Reads manifest lists.
struct ListWork(Arc<Pruner>);

impl Work for ListWork {
    type Item = Arc<Snapshot>;
    type Fetched = Arc<Vec<ManifestFile>>;
    type Done = ListedSnapshot;

    /// Snapshots do not store the length of their lists.
    fn bytes(_: &Arc<Snapshot>) -> i64 {
        0
    }

    fn fetch(&self, snapshot: &Arc<Snapshot>) -> Result<Self::Fetched> {
        Ok(self.0.list_of(snapshot)?.0)
    }

    fn run(&self, snapshot: &Arc<Snapshot>, manifests: Self::Fetched) -> Result<ListedSnapshot> {
        let mut known = HashSet::new();
        let of = |content| manifests.iter().filter(move |manifest| manifest.content == content);
        let is_own = |manifest: &ManifestFile| manifest.added_snapshot_id == snapshot.snapshot_id;
        let changes_deletes = of(ManifestContent::Deletes)
            .any(|manifest| is_own(manifest) && (manifest.has_added_files() || manifest.has_deleted_files()));
        let data = of(ManifestContent::Data).filter(|manifest| changes_deletes || is_own(manifest));
        let data: Vec<_> = data.filter(|manifest| known.insert(manifest.manifest_path.clone())).cloned().collect();
        // A delete file of an earlier snapshot applies only to data files that are older still, and an added file
        // is older only if its sequence number says so.
        let may_apply = |manifest: &ManifestFile| {
            manifest.has_deleted_files() || manifest.min_sequence_number < snapshot.sequence_number
        };
        let needs_deletes = changes_deletes || data.iter().any(may_apply);
        let deletes = of(ManifestContent::Deletes).filter(|_| needs_deletes);
        let deletes = deletes.filter(|manifest| known.insert(manifest.manifest_path.clone())).cloned().collect();
        Ok(ListedSnapshot { data, deletes, changes_deletes })
    }

    fn memory(listed: &ListedSnapshot) -> usize {
        listed.data.iter().chain(&listed.deletes).map(ManifestFile::memory).sum()
    }
}

/// The path of a delete manifest, and whether removed entries were read too.
type Key = (String, bool);

/// The delete files of the states in a changelog; each manifest is read once for all states.
struct States {
    read: HashMap<Key, (Arc<PartitionSpec>, Arc<Entries>)>,
    files: Deletes,
    /// The first index of files that were added together, by the address of their entries.
    firsts: HashMap<usize, u32>,
    /// Delete files by path, blob offset and sequence number, to count one that is in several manifests once.
    places: HashMap<(String, Option<i64>, i64), u32>,
    equality_ids: BTreeSet<i32>,
}

impl States {
    fn read(
        scan: &Scan,
        pruner: &Arc<Pruner>,
        listed: &[ListedSnapshot],
        changes: &Changes,
        report: &mut ScanReport,
        held: &mut Held,
    ) -> Result<Self> {
        let (mut keys, mut items, mut total) = (Vec::new(), Vec::new(), HashSet::new());
        let mut known = HashSet::new();
        for (snapshot, list) in changes.snapshots.iter().zip(listed) {
            for manifest in &list.deletes {
                total.insert(manifest.manifest_path.as_str());
                let is_own = manifest.added_snapshot_id == snapshot.snapshot_id;
                let wanted = manifest.has_live_files() || (is_own && manifest.has_deleted_files());
                let key = (manifest.manifest_path.clone(), is_own);
                if wanted && pruner.might_match(manifest)? && known.insert(key.clone()) {
                    keys.push(key);
                    items.push(DeleteItem { manifest: manifest.clone(), live_only: !is_own });
                }
            }
        }
        report.delete_manifests(total.len(), items.len().min(total.len()));
        let remote = items.first().is_some_and(|item| scan.storage.is_remote(&item.manifest.manifest_path));
        let stored = stored(items.iter().map(|item| &item.manifest));
        let mut read = HashMap::new();
        let found = Ordered::new(Arc::new(DeleteWork(pruner.clone())), items, remote);
        for ((key, found), stored) in keys.into_iter().zip(found).zip(stored) {
            let (spec, entries, counts) = found?;
            held.read(stored);
            held.keep(entries.memory())?;
            report.add_deletes(&counts);
            read.insert(key, (spec, entries));
        }
        Ok(Self {
            read,
            files: Deletes::default(),
            firsts: HashMap::new(),
            places: HashMap::new(),
            equality_ids: BTreeSet::new(),
        })
    }

    /// The states before and after a snapshot with these delete manifests; `None` for a state without deletes.
    #[expect(clippy::type_complexity, reason = "a pair of states")]
    fn of(
        &mut self,
        snapshot_id: i64,
        manifests: &[ManifestFile],
        scan: &Scan,
        held: &mut Held,
    ) -> Result<(Option<Arc<StateDeletes>>, Option<Arc<StateDeletes>>)> {
        let mut before = DeleteIndex::new(scan.schema.clone(), &scan.limits);
        let mut after = DeleteIndex::new(scan.schema.clone(), &scan.limits);
        let mut is_changed = false;
        for manifest in manifests {
            let is_own = manifest.added_snapshot_id == snapshot_id;
            let Some((spec, entries)) = self.read.get(&(manifest.manifest_path.clone(), is_own)) else { continue };
            if !is_own {
                before.add(spec, entries.clone())?;
                after.add(spec, entries.clone())?;
                continue;
            }
            is_changed = true;
            before.add(
                spec,
                in_state(
                    entries,
                    |status, own| status == Status::Existing || (status == Status::Deleted) == own,
                    snapshot_id,
                )?,
            )?;
            after.add(spec, in_state(entries, |status, _| status != Status::Deleted, snapshot_id)?)?;
        }
        let before = self.state(before, held)?;
        let after = if is_changed { self.state(after, held)? } else { before.clone() };
        Ok((before, after))
    }

    fn state(&mut self, mut index: DeleteIndex, held: &mut Held) -> Result<Option<Arc<StateDeletes>>> {
        /// Approximate bytes of a delete file in an index.
        const INDEXED: usize = 200;
        if index.files().is_empty() {
            return Ok(None);
        }
        held.keep(index.files().len().saturating_mul(INDEXED))?;
        index.finish()?;
        self.equality_ids.extend(index.equality_ids());
        let mut places = Vec::with_capacity(index.files().len());
        for source in index.files().sources() {
            let entries = &source.entries;
            let address = Arc::as_ptr(entries).addr();
            let first = match self.firsts.get(&address) {
                Some(first) => *first,
                None => {
                    let first = self.files.push(source.clone())?;
                    self.firsts.insert(address, first);
                    first
                }
            };
            for (row, place) in (0..entries.len()).zip(first..) {
                let long = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
                let key = (
                    entries.file_path.value(row).to_owned(),
                    long(&entries.content_offset),
                    long(&entries.sequence_number).unwrap_or(0),
                );
                places.push(*self.places.entry(key).or_insert(place));
            }
        }
        Ok(Some(Arc::new(StateDeletes { index, places })))
    }
}

/// The entries of a snapshot's own manifest that belong to a state, by status and by whether the snapshot set it.
fn in_state(entries: &Entries, keep: impl Fn(Status, bool) -> bool, snapshot_id: i64) -> Result<Arc<Entries>> {
    let kept = (0..entries.len()).map(|row| {
        let own = entries.snapshot_id.is_valid(row) && entries.snapshot_id.value(row) == snapshot_id;
        Ok(keep(entries.status_of(row)?, own))
    });
    Ok(Arc::new(entries.filter(&BooleanArray::from(kept.collect::<Result<Vec<bool>>>()?))?))
}
