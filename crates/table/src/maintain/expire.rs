//! Expiry: snapshots that are too old leave the table, and the files that only they name are deleted ("Snapshot Retention
//! Policy").

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::Array;
use icefield_format::Limits;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{Entries, FileContent, ManifestFile, Status};
use icefield_format::metadata::retention::{ExpireSnapshots, Expiry};
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata};

use super::parallel::{locked, side_by_side};
use super::purge::Folders;
use crate::clock::now_ms;
use crate::commit::Change;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::{of_snapshot, with_own_lists};
use crate::storage::{Leftover, Storage};
use crate::table::Table;

/// Which files are deleted of those that only expired snapshots name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cleanup {
    /// All of them.
    #[default]
    All,
    /// Manifests, manifest lists and statistics files.
    Metadata,
    /// None.
    Nothing,
}

/// What an expiry has done to a table, or would do.
#[derive(Debug, Default, Clone)]
pub struct Expired {
    /// The table after it; none of a dry run, or if there was nothing to do.
    pub table: Option<Table>,
    /// Snapshots that expired, in the order of the table.
    pub snapshots: Vec<i64>,
    /// Branches and tags that expired.
    pub refs: Vec<String>,
    /// The files that were deleted.
    pub files: ExpiredFiles,
    /// Files that only expired snapshots name, and that stay, since they are not in the folders of the table.
    pub external: Vec<String>,
    /// What could not be read or deleted.
    pub leftover: Leftover,
}

/// Files that only expired snapshots name, each sorted by location.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ExpiredFiles {
    /// Data files.
    pub data_files: Vec<String>,
    /// Delete files.
    pub delete_files: Vec<String>,
    /// Manifests.
    pub manifests: Vec<String>,
    /// Manifest lists.
    pub manifest_lists: Vec<String>,
    /// Statistics files, of columns and of partitions.
    pub statistics: Vec<String>,
}

/// What becomes of files that are not in the folders of the table: they may be those of other tables (`add_files`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum External {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted as well.
    Delete,
}

impl ExpiredFiles {
    /// Takes those out that do not lie in folders of the table, and returns them.
    fn take_external(&mut self, storage: &Storage, metadata: &TableMetadata) -> Vec<String> {
        let folders = Folders::of(storage, metadata, None);
        // Looking for links asks the file system: once a folder.
        let mut known: HashMap<String, bool> = HashMap::new();
        let mut is_own = |file: &str| match file.rsplit_once('/') {
            Some((folder, name)) if !matches!(name, "" | "." | "..") => match known.get(folder) {
                Some(own) => *own,
                None => *known.entry(folder.to_owned()).or_insert(folders.have(storage, file)),
            },
            _ => folders.have(storage, file),
        };
        let mut external = Vec::new();
        let kinds = [&mut self.data_files, &mut self.delete_files, &mut self.manifests, &mut self.manifest_lists];
        for files in kinds.into_iter().chain([&mut self.statistics]) {
            let (own, others): (Vec<_>, Vec<_>) = std::mem::take(files).into_iter().partition(|file| is_own(file));
            *files = own;
            external.extend(others);
        }
        external
    }

    /// All of them, data files first: a manifest goes after the files that it names.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        let files = self.data_files.iter().chain(&self.delete_files);
        files.chain(&self.manifests).chain(&self.manifest_lists).chain(&self.statistics)
    }
}

/// Expires snapshots of a table as its catalog has it, and deletes the files that no other snapshot names.
///
/// A file stays while a snapshot that is kept has it, or is the one that removed it: its changes can be read as long as it is
/// kept. Whatever cannot be read keeps files from being deleted. Files that are not beneath the table's location,
/// `write.data.path` or `write.metadata.path` stay, unless `external` says otherwise.
///
/// # Errors
/// What keeps the table from being changed; then no file is deleted.
pub fn expire(table: &Table, request: ExpireSnapshots, cleanup: Cleanup, external: External) -> Result<Expired> {
    let mut change = Expire { storage: table.storage().clone(), request, made: None };
    let committed = table.make(&mut change)?;
    let Some(Made { before, expiry }) = change.made else { return Ok(Expired::default()) };
    // What was committed since names files as well.
    let after = committed.refresh().unwrap_or_else(|_| committed.clone());
    let mut expired = report(table.storage(), &before, after.metadata(), &expiry, cleanup, external)?;
    let all: Vec<&String> = expired.files.all().collect();
    let errors = table.storage().delete_all(&all);
    log::info!("{}: expired {} snapshots and deleted {} files", before.location(), expired.snapshots.len(), all.len());
    errors.iter().for_each(|error| expired.leftover.add(error));
    expired.table = Some(after);
    Ok(expired)
}

/// Says what [`expire`] would do to a table as it is known, and does nothing.
///
/// # Errors
/// As [`expire`].
pub fn expirable(table: &Table, request: ExpireSnapshots, cleanup: Cleanup, external: External) -> Result<Expired> {
    let mut change = Expire { storage: table.storage().clone(), request, made: None };
    let updates = change.updates(table.metadata())?;
    let Some(Made { before, expiry }) = change.made else { return Ok(Expired::default()) };
    let after = MetadataBuilder::from_base(&before, now_ms()).apply_all(updates)?.build()?;
    report(table.storage(), &before, &after, &expiry, cleanup, external)
}

/// The change of metadata.
struct Expire {
    storage: Storage,
    request: ExpireSnapshots,
    /// What the last attempt made of the table; none where nothing expires.
    made: Option<Made>,
}

struct Made {
    before: Arc<TableMetadata>,
    expiry: Expiry,
}

impl Change for Expire {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        let expiry = self.request.plan(base, now_ms())?;
        let mut updates = expiry.updates();
        if self.request.clean_expired_metadata {
            let spec_ids = self.unused_specs(base, &expiry)?;
            if !spec_ids.is_empty() {
                updates.push(MetadataUpdate::RemovePartitionSpecs { spec_ids });
            }
        }
        self.made = (!updates.is_empty()).then(|| Made { before: Arc::new(base.clone()), expiry });
        Ok(updates)
    }
}

impl Expire {
    fn unused_specs(&self, base: &TableMetadata, expiry: &Expiry) -> Result<Vec<i32>> {
        if base.partition_specs().len() < 2 {
            return Ok(Vec::new());
        }
        let kept: HashSet<i64> = expiry.kept_snapshots.iter().copied().collect();
        let limits = limits()?;
        let found = Mutex::new((BTreeSet::new(), None));
        let lists: Vec<_> =
            with_own_lists(base).into_iter().filter(|snapshot| kept.contains(&snapshot.snapshot_id)).collect();
        side_by_side(&self.storage, base.location(), &lists, |snapshot| {
            let read = of_snapshot(&self.storage, base, snapshot, &limits);
            let (used, failed) = &mut *locked(&found);
            match read {
                Ok(manifests) => used.extend(manifests.iter().map(|manifest| manifest.partition_spec_id)),
                Err(error) => *failed = Some(error),
            }
        });
        match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            (_, Some(error)) => Err(error),
            (used, None) => Ok(Expiry::unused_specs(base, &used)),
        }
    }
}

fn report(
    storage: &Storage,
    before: &TableMetadata,
    after: &TableMetadata,
    expiry: &Expiry,
    cleanup: Cleanup,
    external: External,
) -> Result<Expired> {
    let removed = |id: &i64| after.snapshot(*id).is_none();
    let mut expired = Expired {
        snapshots: expiry.removed_snapshots.iter().copied().filter(removed).collect(),
        refs: expiry.removed_refs.clone(),
        ..Expired::default()
    };
    if cleanup != Cleanup::Nothing && !expired.snapshots.is_empty() {
        let search = Search { storage, limits: limits()?, before, after, leftover: Mutex::default() };
        if let Some(files) = search.files(cleanup) {
            expired.files = files;
        }
        if external == External::Keep {
            expired.external = expired.files.take_external(storage, after);
        }
        expired.leftover = search.leftover.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    Ok(expired)
}

/// The search for files that only expired snapshots name.
struct Search<'a> {
    storage: &'a Storage,
    limits: Limits,
    before: &'a TableMetadata,
    after: &'a TableMetadata,
    leftover: Mutex<Leftover>,
}

/// Manifests by location.
type ByPath = BTreeMap<String, ManifestFile>;

impl Search<'_> {
    /// None where what the kept snapshots name cannot be read: nothing is known to be theirs alone then.
    fn files(&self, cleanup: Cleanup) -> Option<ExpiredFiles> {
        let (kept, whole) = self.manifests(self.after, |_| true);
        if !whole {
            return None;
        }
        let is_expired = |id: i64| self.after.snapshot(id).is_none();
        let (mut gone, _) = self.manifests(self.before, is_expired);
        gone.retain(|path, _| !kept.contains_key(path));
        let mut files = match cleanup {
            Cleanup::All => self.content_files(&gone, &kept),
            _ => ExpiredFiles::default(),
        };
        files.manifests = gone.into_keys().collect();
        let lists = |metadata: &TableMetadata| -> BTreeSet<String> {
            let lists = metadata.snapshots().iter().filter_map(|snapshot| snapshot.manifest_list());
            lists.map(str::to_owned).collect()
        };
        files.manifest_lists = lists(self.before).difference(&lists(self.after)).cloned().collect();
        files.statistics = statistics(self.before).difference(&statistics(self.after)).cloned().collect();
        Some(files)
    }

    /// The manifests of the snapshots with these ids, and whether all of their lists could be read.
    fn manifests(&self, of: &TableMetadata, wanted: impl Fn(i64) -> bool) -> (ByPath, bool) {
        let lists: Vec<_> = with_own_lists(of).into_iter().filter(|snapshot| wanted(snapshot.snapshot_id)).collect();
        let found = Mutex::new((ByPath::new(), true));
        side_by_side(self.storage, of.location(), &lists, |snapshot| {
            let read = of_snapshot(self.storage, of, snapshot, &self.limits);
            let (all, whole) = &mut *locked(&found);
            match read {
                Ok(manifests) => {
                    all.extend(manifests.into_iter().map(|manifest| (manifest.manifest_path.clone(), manifest)));
                }
                Err(error) => {
                    *whole = false;
                    self.failed(&error);
                }
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Data and delete files that the manifests which go name, or that an expired snapshot removed, without those that a
    /// kept snapshot has or has removed.
    fn content_files(&self, gone: &ByPath, kept: &ByPath) -> ExpiredFiles {
        let is_kept = |id: Option<i64>| id.is_some_and(|id| self.after.snapshot(id).is_some());
        let is_expired = |id: Option<i64>| id.is_some_and(|id| self.before.snapshot(id).is_some()) && !is_kept(id);
        let found: Mutex<BTreeMap<String, FileContent>> = Mutex::default();
        let collect = |entries: &Entries, wanted: &dyn Fn(Status, Option<i64>) -> bool| {
            each(entries, |path, content, status, id| {
                if wanted(status, id) {
                    locked(&found).insert(path.to_owned(), content);
                }
            })
        };
        let gone: Vec<&ManifestFile> = gone.values().collect();
        self.read(&gone, |entries| collect(entries, &|_, _| true));
        // Manifests that are still used, and say what an expired snapshot removed.
        let with_removed = |manifest: &&ManifestFile| {
            manifest.deleted_files_count != Some(0) && is_expired(Some(manifest.added_snapshot_id))
        };
        let partly: Vec<&ManifestFile> = kept.values().filter(with_removed).collect();
        self.read(&partly, |entries| collect(entries, &|status, id| status == Status::Deleted && is_expired(id)));
        if locked(&found).is_empty() {
            return ExpiredFiles::default();
        }
        let kept: Vec<&ManifestFile> = kept.values().collect();
        let whole = self.read(&kept, |entries| {
            each(entries, |path, _, status, id| {
                if status.is_live() || is_kept(id) {
                    locked(&found).remove(path);
                }
            })
        });
        if !whole {
            return ExpiredFiles::default();
        }
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (data, deletes): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, content)| *content == FileContent::Data);
        let paths = |files: Vec<(String, FileContent)>| files.into_iter().map(|(path, _)| path).collect();
        ExpiredFiles { data_files: paths(data), delete_files: paths(deletes), ..ExpiredFiles::default() }
    }

    /// Reads manifests; whether all of them could be read.
    fn read(&self, manifests: &[&ManifestFile], work: impl Fn(&Entries) -> Result<()> + Sync) -> bool {
        let failed = Mutex::new(false);
        side_by_side(self.storage, self.before.location(), manifests, |manifest| {
            let path = &manifest.manifest_path;
            let read = || {
                let bytes = self.storage.read_at_most(path, self.limits.avro_bytes)?;
                let options = ReadOptions { inherit: Some(manifest), ..ReadOptions::default() };
                let read = entries::read(&bytes, &options, &self.limits);
                work(&read.map_err(|error| Error::from(error.in_file(path)))?)
            };
            if let Err(error) = read() {
                *locked(&failed) = true;
                self.failed(&error);
            }
        });
        !failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: &Error) {
        locked(&self.leftover).add(error);
    }
}

/// Calls `work` with path, content, status and snapshot of each entry.
fn each(entries: &Entries, mut work: impl FnMut(&str, FileContent, Status, Option<i64>)) -> Result<()> {
    for row in 0..entries.len() {
        let id = entries.snapshot_id.is_valid(row).then(|| entries.snapshot_id.value(row));
        work(entries.file_path.value(row), entries.content_of(row)?, entries.status_of(row)?, id);
    }
    Ok(())
}

fn statistics(metadata: &TableMetadata) -> BTreeSet<String> {
    let of_columns = metadata.statistics().iter().map(|file| file.statistics_path.clone());
    of_columns.chain(metadata.partition_statistics().iter().map(|file| file.statistics_path.clone())).collect()
}
