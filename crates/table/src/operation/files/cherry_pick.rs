//! Cherry-picks: apply the changes of a snapshot outside the history of the main branch at its head. This is how staged
//! snapshots are published (write-audit-publish).

use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{ManifestContent, Metrics, Status};
use icefield_format::metadata::{MAIN_BRANCH, MetadataUpdate, Operation, Snapshot, StringMap, TableMetadata};

use crate::commit::validate::Scope;
use crate::commit::{
    Change, Content, FileChanges, History, Partitions, SnapshotOptions, SnapshotProducer, WAP_ID, if_there,
};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::operation::replace_partitions::REPLACE_PARTITIONS;
use crate::snapshot::manifests::{of_snapshot, spec_of};
use crate::storage::Storage;

/// Summary entry of a published snapshot: the `wap.id` of the staged one.
const PUBLISHED_WAP_ID: &str = "published-wap-id";
/// Summary entry of a cherry-picked snapshot: the id of the original.
const SOURCE_SNAPSHOT_ID: &str = "source-snapshot-id";

/// A cherry-pick of one snapshot into the main branch.
///
/// If the main branch ends with the parent of the snapshot, the branch is moved to the snapshot. Otherwise a new
/// snapshot adds and removes the same files; the picked one must be an append or a replacement of partitions. In the
/// latter case the parent of the picked snapshot must be in the history of the main branch, and the partitions must not
/// have changed since.
#[derive(Debug)]
pub struct CherryPick {
    storage: Storage,
    snapshot_id: i64,
    producer: Option<SnapshotProducer<Picked>>,
    /// Whether the last attempt only moved the branch.
    moved: bool,
}

impl CherryPick {
    /// A cherry-pick of this snapshot.
    pub fn new(storage: Storage, snapshot_id: i64) -> Self {
        Self { storage, snapshot_id, producer: None, moved: false }
    }

    /// Checks everything that does not require reading files.
    ///
    /// # Errors
    /// [`Error::Validation`] if the snapshot cannot be cherry-picked into the main branch of this table.
    pub fn check(base: &TableMetadata, snapshot_id: i64) -> Result<&Snapshot> {
        let refused = |why: String| Err(Error::Validation(format!("cannot cherry-pick snapshot {snapshot_id}: {why}")));
        let Some(picked) = base.snapshot(snapshot_id) else {
            return refused("the table has no such snapshot".to_owned());
        };
        if let Some(id) = entry(picked, WAP_ID)
            && let Some(published) = published(base, id)
        {
            return refused(format!("its {WAP_ID} {id} was published already by snapshot {published}"));
        }
        if is_next(base, picked) {
            return Ok(picked);
        }
        let replaces = replaces_partitions(picked);
        if picked.operation() != Some(&Operation::Append) && !replaces {
            let operation = picked.operation().map_or("unknown", Operation::as_str);
            return refused(format!(
                "it is neither an append nor a replacement of partitions nor the next snapshot of {MAIN_BRANCH}, but its \
                 operation is {operation}"
            ));
        }
        if let Some(parent) = picked.parent_snapshot_id.filter(|_| replaces)
            && !current_ancestors(base).any(|ancestor| ancestor.snapshot_id == parent)
        {
            return refused(format!(
                "its parent {parent}, whose partitions it replaced, is no ancestor of {MAIN_BRANCH}"
            ));
        }
        for ancestor in current_ancestors(base) {
            let source = entry(ancestor, SOURCE_SNAPSHOT_ID).and_then(|id| id.parse().ok());
            if ancestor.snapshot_id == snapshot_id {
                return refused(format!("it is an ancestor of {MAIN_BRANCH} already"));
            }
            if source == Some(snapshot_id) {
                return refused(format!("it was picked already, as snapshot {}", ancestor.snapshot_id));
            }
        }
        Ok(picked)
    }

    /// The producer of the new snapshot. It is kept for all attempts, because the picked snapshot never changes.
    fn producer(&mut self, base: &TableMetadata, picked: &Snapshot) -> Result<&mut SnapshotProducer<Picked>> {
        let producer = match self.producer.take() {
            Some(producer) => producer,
            None => {
                let mut properties = StringMap::new();
                if let Some(id) = entry(picked, WAP_ID) {
                    properties.insert(PUBLISHED_WAP_ID.to_owned(), id.to_owned());
                }
                properties.insert(SOURCE_SNAPSHOT_ID.to_owned(), picked.snapshot_id.to_string());
                let content = Picked::read(&self.storage, base, picked)?;
                let options = SnapshotOptions { properties, ..SnapshotOptions::default() };
                SnapshotProducer::new(self.storage.clone(), content, options)
            }
        };
        Ok(self.producer.insert(producer))
    }
}

impl Change for CherryPick {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        let picked = Self::check(base, self.snapshot_id)?;
        self.moved = is_next(base, picked);
        match self.moved {
            true => Ok(vec![base.set_current(self.snapshot_id)?]),
            false => {
                let mut updates = self.producer(base, picked)?.updates(base)?;
                if !updates.is_empty() {
                    updates.splice(..0, if_there(base, "cherry-pick", self.snapshot_id));
                }
                Ok(updates)
            }
        }
    }

    fn snapshot_id(&self) -> Option<i64> {
        self.producer.as_ref().filter(|_| !self.moved).and_then(Change::snapshot_id)
    }

    fn files(&self) -> Vec<String> {
        self.producer.as_ref().map(Change::files).unwrap_or_default()
    }

    fn landed(&mut self, last_attempt: bool) {
        if let Some(producer) = &mut self.producer {
            // If the last attempt is known to have landed, earlier attempts have certainly failed.
            if self.moved && last_attempt { producer.failed() } else { producer.landed(last_attempt) }
        }
    }

    fn failed(&mut self) {
        if let Some(producer) = &mut self.producer {
            producer.failed();
        }
    }
}

/// Whether the parent of a snapshot is the head of the main branch.
fn is_next(base: &TableMetadata, picked: &Snapshot) -> bool {
    base.current_snapshot_id() == picked.parent_snapshot_id
}

fn current_ancestors(base: &TableMetadata) -> impl Iterator<Item = &Snapshot> {
    base.current_snapshot_id().into_iter().flat_map(|id| base.ancestors(id)).map(|snapshot| &**snapshot)
}

/// A summary entry, unless it is empty.
fn entry<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a str> {
    snapshot.summary.as_ref().and_then(|summary| summary.get(name)).filter(|value| !value.is_empty())
}

/// The snapshot of the main branch that published this `wap.id`.
fn published(base: &TableMetadata, wap_id: &str) -> Option<i64> {
    let has =
        |snapshot: &&Snapshot| [WAP_ID, PUBLISHED_WAP_ID].iter().any(|name| entry(snapshot, name) == Some(wap_id));
    current_ancestors(base).find(has).map(|snapshot| snapshot.snapshot_id)
}

/// Whether a snapshot replaced whole partitions.
fn replaces_partitions(snapshot: &Snapshot) -> bool {
    let flag = entry(snapshot, REPLACE_PARTITIONS).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    snapshot.operation() == Some(&Operation::Overwrite) && flag
}

/// The changes of the picked snapshot, as the content of a new one.
#[derive(Debug)]
struct Picked {
    operation: Operation,
    changes: FileChanges,
    /// The replaced partitions, and the snapshot with their previous content.
    replaced: Option<(Partitions, Option<i64>)>,
}

impl Picked {
    /// Reads the data files that a snapshot added and removed.
    fn read(storage: &Storage, base: &TableMetadata, picked: &Snapshot) -> Result<Self> {
        let limits = limits()?;
        let (mut changes, mut partitions) = (FileChanges::new(), Partitions::default());
        let replaces = replaces_partitions(picked);
        for manifest in of_snapshot(storage, base, picked, &limits)? {
            if manifest.content != ManifestContent::Data || manifest.added_snapshot_id != picked.snapshot_id {
                continue;
            }
            let path = &manifest.manifest_path;
            let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
            let partition_type = spec_of(base, &manifest)?.tuple_type(base.current_schema());
            let options = ReadOptions {
                metrics: Metrics::all(),
                partition_type: Some(&partition_type),
                inherit: Some(&manifest),
                ..ReadOptions::default()
            };
            let bytes = storage.read_manifest(&manifest)?;
            let found = entries::read(&bytes, &options, &limits).map_err(in_file)?;
            for row in 0..found.len() {
                let entry = found.entry(row, manifest.partition_spec_id).map_err(in_file)?;
                match entry.status {
                    _ if entry.snapshot_id != Some(picked.snapshot_id) => {}
                    Status::Added => {
                        partitions.insert(manifest.partition_spec_id, &entry.file.partition);
                        changes.add(entry.file)?;
                    }
                    Status::Deleted if replaces => changes.remove(entry.file)?,
                    Status::Existing | Status::Deleted => {}
                }
            }
        }
        changes.require_removed_to_exist();
        let operation = if replaces { Operation::Overwrite } else { Operation::Append };
        let replaced = replaces.then_some((partitions, picked.parent_snapshot_id));
        Ok(Self { operation, changes, replaced })
    }
}

impl Content for Picked {
    fn operation(&self) -> Operation {
        self.operation.clone()
    }

    fn changes(&self) -> &FileChanges {
        &self.changes
    }

    fn changes_mut(&mut self) -> &mut FileChanges {
        &mut self.changes
    }

    fn validate(&self, storage: &Storage, base: &TableMetadata, parent: Option<&Snapshot>) -> Result<()> {
        let Some((partitions, from)) = &self.replaced else { return Ok(()) };
        let history = History::new("cherry-pick of replaced partitions", storage, base, parent, *from)?;
        history.no_new_data_files(Scope::Partitions(partitions))?;
        // Deletes conflict too: the new rows were computed from the previous ones.
        history.no_added_deletes(Scope::Partitions(partitions))
    }
}
