//! Expires snapshots: removes old ones from the table, and deletes the files that only these reference ("Snapshot
//! Retention Policy").

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::manifest::{Entries, FileContent, ManifestFile};
use icefield_format::metadata::retention::{ExpireSnapshots, Expiry};
use icefield_format::metadata::{
    MetadataBuilder, MetadataCodec, MetadataUpdate, Snapshot, TableMetadata, UpdateRequirement, requirements_for_update,
};

use crate::clock::now_ms;
use crate::commit::{Change, Committed, read_metadata};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::list_key;
use crate::snapshot::parallel::locked;
use crate::snapshot::reachable::{self, NamedFile, Reachable};
use crate::storage::{Folders, Leftover, Place, Places, Storage};
use crate::table::Table;

/// Which files to delete of those that only expired snapshots reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cleanup {
    /// All files.
    #[default]
    All,
    /// Manifests, manifest lists and statistics files.
    Metadata,
    /// No files.
    Nothing,
}

/// The effects of an expiry, made or planned.
#[derive(Debug, Default, Clone)]
pub struct Expired {
    /// The table after the expiry; `None` in a dry run or if there was nothing to do.
    pub table: Option<Table>,
    /// Expired snapshots, in the order of the table.
    pub snapshots: Vec<i64>,
    /// Expired branches and tags.
    pub refs: Vec<String>,
    /// The deleted files.
    pub files: ExpiredFiles,
    /// The size of the deleted files, as manifests and the metadata say; that of manifest lists is recorded nowhere.
    pub bytes: u64,
    /// Files that only expired snapshots reference, kept because they are outside the table's folders.
    pub external: Vec<String>,
    /// Files that could not be read or deleted.
    pub leftover: Leftover,
}

/// Files that only expired snapshots reference, each kind sorted by location.
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
    /// Statistics files and partition statistics files.
    pub statistics: Vec<String>,
}

/// What to do with files outside the table's folders: they may belong to other tables (`add_files`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum External {
    /// Keep them.
    #[default]
    Keep,
    /// Delete them, too.
    Delete,
}

impl ExpiredFiles {
    /// All files, data files first: a manifest is deleted after the files it lists, so that an interrupted deletion
    /// still has the list.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        let files = self.data_files.iter().chain(&self.delete_files);
        files.chain(&self.manifests).chain(&self.manifest_lists).chain(&self.statistics)
    }
}

/// Expires snapshots of the catalog's current table, and deletes the files that no other snapshot references.
///
/// A file is kept while a remaining snapshot has it or has removed it, because the changes of that snapshot can still
/// be read. It is also kept if the table references it by another spelling of its path ([`Places`]), or as another kind
/// of file. If a file cannot be read, nothing that it may reference is deleted. Files outside the table's location,
/// `write.data.path` and `write.metadata.path` are kept unless `external` says otherwise.
///
/// A catalog service checks that no known branch or tag has moved, but cannot check that none was created. If one was,
/// at a snapshot that expired, the service has dropped it: then no file is deleted, and `leftover` names it.
///
/// # Errors
/// Any error of the commit; no file is then deleted.
pub fn expire(table: &Table, request: ExpireSnapshots, cleanup: Cleanup, external: External) -> Result<Expired> {
    let mut change = Expire { storage: table.storage().clone(), request, cleanup, made: None };
    let committed = table.make(&mut change)?;
    let Some(Made { before, expiry }) = change.made else { return Ok(Expired::default()) };
    // Commits since then may reference more files.
    let after = committed.refresh().unwrap_or_else(|_| committed.clone());
    let dropped = check_no_ref_dropped(table.storage(), &before, committed.metadata(), &expiry).err();
    let cleanup = if dropped.is_some() { Cleanup::Nothing } else { cleanup };
    let mut expired = report(table.storage(), &before, after.committed(), &expiry, cleanup, external)?;
    if let Some(error) = dropped {
        log::warn!("{}: {error}; no file of the expired snapshots was deleted", before.location());
        expired.leftover.add(&error);
    }
    let all: Vec<&String> = expired.files.all().collect();
    let errors = table.storage().delete_all(&all);
    log::info!("{}: expired {} snapshots and deleted {} files", before.location(), expired.snapshots.len(), all.len());
    errors.iter().for_each(|error| expired.leftover.add(error));
    expired.table = Some(after);
    Ok(expired)
}

/// Returns what [`expire`] would do to the table as it was loaded, without changing anything.
///
/// # Errors
/// As [`expire`].
pub fn expirable(table: &Table, request: ExpireSnapshots, cleanup: Cleanup, external: External) -> Result<Expired> {
    let mut change = Expire { storage: table.storage().clone(), request, cleanup, made: None };
    let updates = change.updates(table.metadata())?;
    let Some(Made { before, expiry }) = change.made else { return Ok(Expired::default()) };
    let metadata = MetadataBuilder::from_base(&before, now_ms()).apply_all(updates)?.build()?;
    let after = Committed { location: table.committed().location.clone(), metadata: Arc::new(metadata) };
    report(table.storage(), &before, &after, &expiry, cleanup, external)
}

/// Expires snapshots in the metadata.
struct Expire {
    storage: Storage,
    request: ExpireSnapshots,
    cleanup: Cleanup,
    /// The result of the last attempt; `None` if nothing expires.
    made: Option<Made>,
}

struct Made {
    before: Arc<TableMetadata>,
    expiry: Expiry,
}

impl Change for Expire {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        let expiry = self.request.plan(base, now_ms())?;
        self.check_keys(base, &expiry)?;
        let mut updates = expiry.updates();
        updates.extend(unused_keys(base, &expiry));
        if self.request.clean_expired_metadata {
            let spec_ids = self.unused_specs(base, &expiry)?;
            if !spec_ids.is_empty() {
                updates.push(MetadataUpdate::RemovePartitionSpecs { spec_ids });
            }
        }
        self.made = (!updates.is_empty()).then(|| Made { before: Arc::new(base.clone()), expiry });
        Ok(updates)
    }

    /// No branch or tag may have moved, since it may now be at a snapshot that expires: the service would drop it.
    fn requirements(&self, base: &TableMetadata, updates: &[MetadataUpdate]) -> Vec<UpdateRequirement> {
        let mut all = requirements_for_update(base, updates);
        for (name, reference) in base.refs() {
            let (ref_name, snapshot_id) = (name.clone(), Some(reference.snapshot_id));
            let unmoved = UpdateRequirement::AssertRefSnapshotId { ref_name, snapshot_id };
            if !all.contains(&unmoved) {
                all.push(unmoved);
            }
        }
        all
    }
}

/// The keys of the manifest lists and statistics files of expired snapshots: without their removal each commit would make
/// the metadata longer for ever. The keys that encrypt them stay, because another commit may use them meanwhile.
fn unused_keys(base: &TableMetadata, expiry: &Expiry) -> Vec<MetadataUpdate> {
    let keys_of = |ids: &[i64]| -> BTreeSet<String> {
        let ids: HashSet<i64> = ids.iter().copied().collect();
        let lists = base.snapshots().iter().filter(|snapshot| ids.contains(&snapshot.snapshot_id));
        let files = base.statistics().iter().filter(|file| ids.contains(&file.snapshot_id));
        let lists = lists.filter_map(|snapshot| snapshot.key_id.clone());
        lists.chain(files.map(|file| file.own_key_id().to_owned())).collect()
    };
    let (kept, removed) = (keys_of(&expiry.kept_snapshots), keys_of(&expiry.removed_snapshots));
    let is_there = |id: &String| base.encryption_keys().iter().any(|key| key.key_id == *id);
    let unused = removed.into_iter().filter(|id| !kept.contains(id) && is_there(id));
    unused.map(|key_id| MetadataUpdate::RemoveEncryptionKey { key_id }).collect()
}

/// Checks that no branch or tag was created at an expired snapshot between `before` and the commit: in the metadata
/// files that the metadata log has in between. A catalog without a metadata log is trusted.
fn check_no_ref_dropped(
    storage: &Storage,
    before: &TableMetadata,
    after: &TableMetadata,
    expiry: &Expiry,
) -> Result<()> {
    let removed: HashSet<i64> = expiry.removed_snapshots.iter().copied().collect();
    let log: Vec<&str> = reachable::metadata_log(after).collect();
    let known = reachable::metadata_log(before).last().and_then(|last| log.iter().rposition(|entry| *entry == last));
    // After the log of `before` comes its own metadata file.
    let between = match known {
        Some(place) => log.get(place + 2..).unwrap_or_default(),
        None if before.metadata_log().is_empty() => log.get(1..).unwrap_or_default(),
        // The log was cut. It may begin with the file of `before`, whose references are known.
        None => &log,
    };
    let check = |location: &&str| {
        let metadata = read_metadata(storage, location)?;
        for (name, reference) in metadata.refs() {
            let (kind, id) = (&reference.kind, reference.snapshot_id);
            if removed.contains(&id) && before.reference(name).is_none_or(|known| known.snapshot_id != id) {
                return Err(Error::Validation(format!(
                    "{kind} {name} was created at snapshot {id} while it expired, and the catalog has dropped both"
                )));
            }
        }
        Ok(())
    };
    between.iter().try_for_each(check)
}

impl Expire {
    /// Refuses to expire encrypted snapshots without their keys: which files they have could not be found afterwards,
    /// because their keys are removed from the metadata.
    fn check_keys(&self, base: &TableMetadata, expiry: &Expiry) -> Result<()> {
        if self.cleanup == Cleanup::Nothing {
            return Ok(());
        }
        let removed = expiry.removed_snapshots.iter().filter_map(|id| base.snapshot(*id));
        for snapshot in removed {
            match list_key(&self.storage, base, snapshot) {
                // A key that is damaged stays so.
                Ok(_) | Err(Error::Format(icefield_format::Error::Corrupt(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn unused_specs(&self, base: &TableMetadata, expiry: &Expiry) -> Result<Vec<i32>> {
        if base.partition_specs().len() < 2 {
            return Ok(Vec::new());
        }
        let kept: HashSet<i64> = expiry.kept_snapshots.iter().copied().collect();
        let limits = limits()?;
        let found = Mutex::new((BTreeSet::new(), None));
        let is_kept = |snapshot: &Snapshot| kept.contains(&snapshot.snapshot_id);
        Reachable::of(&self.storage, base, &limits).manifests(is_kept, |_, read| {
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
    committed: &Committed,
    expiry: &Expiry,
    cleanup: Cleanup,
    external: External,
) -> Result<Expired> {
    let after: &TableMetadata = &committed.metadata;
    let removed = |id: &i64| after.snapshot(*id).is_none();
    let mut expired = Expired {
        snapshots: expiry.removed_snapshots.iter().copied().filter(removed).collect(),
        refs: expiry.removed_refs.clone(),
        ..Expired::default()
    };
    if cleanup != Cleanup::Nothing && !expired.snapshots.is_empty() {
        let places = Places::of(storage);
        let search =
            Search { storage, places, limits: limits()?, before, committed, after, leftover: Mutex::default() };
        if let Some(mut files) = search.files(cleanup) {
            if external == External::Keep {
                let outside = take_external(&mut files, storage, after);
                expired.external = sorted(outside).all().cloned().collect();
            }
            expired.bytes = files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
            expired.files = sorted(files);
        }
        expired.leftover = search.leftover.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    Ok(expired)
}

/// Searches for files that only expired snapshots reference.
struct Search<'a> {
    storage: &'a Storage,
    places: Places,
    limits: Limits,
    before: &'a TableMetadata,
    committed: &'a Committed,
    after: &'a TableMetadata,
    leftover: Mutex<Leftover>,
}

/// Manifests by their places in storage.
type ByPlace = BTreeMap<Place, ManifestFile>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Deletes,
    Manifest,
    List,
    Statistics,
}

/// A file that expired snapshots reference.
struct File {
    kind: Kind,
    path: String,
    bytes: u64,
}

/// Files that expired snapshots reference.
type FoundFiles = Mutex<BTreeMap<Place, File>>;

/// The manifests of some snapshots, and the places of unreadable manifest lists.
struct ListedManifests {
    manifests: ByPlace,
    unread: HashSet<Place>,
}

impl Search<'_> {
    /// Returns the files; `None` if a manifest list of a remaining snapshot cannot be read, since any file may then be
    /// in use.
    fn files(&self, cleanup: Cleanup) -> Option<Vec<File>> {
        let kept = self.manifests(self.after, |_| true);
        if !kept.unread.is_empty() {
            return None;
        }
        let kept = kept.manifests;
        let is_expired = |id: i64| self.after.snapshot(id).is_none();
        let mut gone = self.manifests(self.before, is_expired);
        gone.manifests.retain(|place, _| !kept.contains_key(place));

        let found = FoundFiles::default();
        let add = |kind: Kind, path: &str, bytes: i64| {
            let file = File { kind, path: path.to_owned(), bytes: u64::try_from(bytes).unwrap_or(0) };
            locked(&found).entry(self.places.place(path)).or_insert(file);
        };
        for snapshot in self.before.snapshots().iter().filter(|snapshot| is_expired(snapshot.snapshot_id)) {
            // A file that cannot be read as a manifest list may be anything, so it is kept.
            let list = snapshot.manifest_list();
            list.filter(|list| !gone.unread.contains(&self.places.place(list)))
                .into_iter()
                .for_each(|list| add(Kind::List, list, 0));
        }
        for file in self.before.statistics() {
            add(Kind::Statistics, &file.statistics_path, file.file_size_in_bytes);
        }
        for file in self.before.partition_statistics() {
            add(Kind::Statistics, &file.statistics_path, file.file_size_in_bytes);
        }
        for manifest in gone.manifests.values() {
            add(Kind::Manifest, &manifest.manifest_path, manifest.manifest_length);
        }
        if cleanup == Cleanup::All {
            self.add_content_files(&found, &gone.manifests, &kept);
        }
        // Everything that the table still references, even if an expired snapshot lists it as another kind of file.
        let mut named: Vec<&str> = vec![self.committed.location.as_str()];
        named.extend(kept.values().map(|manifest| manifest.manifest_path.as_str()));
        named.extend(reachable::manifest_lists(self.after));
        named.extend(reachable::metadata_log(self.before).chain(reachable::metadata_log(self.after)));
        named.extend(reachable::statistics(self.after));
        for path in named {
            locked(&found).remove(&self.places.place(path));
        }
        // Manifest lists have been read as such. All other files may be data or delete files of a remaining snapshot.
        if locked(&found).values().any(|file| file.kind != Kind::List) && !self.remove_kept(&found, &kept) {
            locked(&found).retain(|_, file| file.kind == Kind::List);
        }
        Some(found.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect())
    }

    /// The manifests of the selected snapshots.
    fn manifests(&self, of: &TableMetadata, wanted: impl Fn(i64) -> bool) -> ListedManifests {
        let found = Mutex::new(ListedManifests { manifests: ByPlace::new(), unread: HashSet::new() });
        Reachable::of(self.storage, of, &self.limits).manifests(
            |one| wanted(one.snapshot_id),
            |snapshot, read| {
                let listed = &mut *locked(&found);
                match read {
                    Ok(manifests) => {
                        let placed = |manifest: ManifestFile| (self.places.place(&manifest.manifest_path), manifest);
                        listed.manifests.extend(manifests.into_iter().map(placed));
                    }
                    Err(error) => {
                        listed.unread.insert(self.places.place(snapshot.manifest_list().unwrap_or_default()));
                        self.failed(&error);
                    }
                }
            },
        );
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the data and delete files in `gone` manifests, and those that an expired snapshot removed.
    fn add_content_files(&self, found: &FoundFiles, gone: &ByPlace, kept: &ByPlace) {
        let is_expired = |id: Option<i64>| id.is_some_and(|id| self.before.snapshot(id).is_some()) && !self.is_kept(id);
        let collect = |entries: &Entries, wanted: &dyn Fn(NamedFile<'_>) -> bool| {
            for file in reachable::files(entries) {
                let file = file?;
                if wanted(file) {
                    let kind = if file.content == FileContent::Data { Kind::Data } else { Kind::Deletes };
                    let found_file = File { kind, path: file.path.to_owned(), bytes: file.bytes };
                    locked(found).entry(self.places.place(file.path)).or_insert(found_file);
                }
            }
            Ok(())
        };
        let gone: Vec<&ManifestFile> = gone.values().collect();
        self.read(&gone, |entries| collect(entries, &|_| true));
        // Remaining manifests with entries that an expired snapshot deleted.
        let with_removed = |manifest: &&ManifestFile| {
            manifest.deleted_files_count != Some(0) && is_expired(Some(manifest.added_snapshot_id))
        };
        let partly: Vec<&ManifestFile> = kept.values().filter(with_removed).collect();
        let was_removed = |file: NamedFile<'_>| !file.status.is_live() && is_expired(file.snapshot_id);
        self.read(&partly, |entries| collect(entries, &was_removed));
    }

    /// Keeps the files that a remaining snapshot has or has removed; returns whether all of its manifests could be
    /// read.
    fn remove_kept(&self, found: &FoundFiles, kept: &ByPlace) -> bool {
        let kept: Vec<&ManifestFile> = kept.values().collect();
        self.read(&kept, |entries| {
            for file in reachable::files(entries) {
                let file = file?;
                if file.status.is_live() || self.is_kept(file.snapshot_id) {
                    let place = self.places.place(file.path);
                    locked(found).remove(&place);
                }
            }
            Ok(())
        })
    }

    fn is_kept(&self, id: Option<i64>) -> bool {
        id.is_some_and(|id| self.after.snapshot(id).is_some())
    }

    /// Reads manifests; returns whether all could be read.
    fn read(&self, manifests: &[&ManifestFile], work: impl Fn(&Entries) -> Result<()> + Sync) -> bool {
        let failed = Mutex::new(false);
        Reachable::of(self.storage, self.before, &self.limits).entries(manifests, |entries| {
            if let Err(error) = entries.and_then(|entries| work(&entries)) {
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

/// Removes and returns the files outside the table's folders.
fn take_external(files: &mut Vec<File>, storage: &Storage, metadata: &TableMetadata) -> Vec<File> {
    let folders = Folders::of(storage, metadata, None);
    // Looking for links needs the file system, so the result is cached by folder.
    let mut known: HashMap<String, bool> = HashMap::new();
    let mut is_own = |file: &str| match file.rsplit_once('/') {
        // Only a commit may delete metadata files, even if a manifest lists one as another kind of file.
        Some((_, name)) if MetadataCodec::from_file_name(name).is_some() => false,
        Some((folder, name)) if !matches!(name, "" | "." | "..") => match known.get(folder) {
            Some(own) => *own,
            None => *known.entry(folder.to_owned()).or_insert(folders.have(storage, file)),
        },
        _ => folders.have(storage, file),
    };
    let (own, external) = std::mem::take(files).into_iter().partition(|file| is_own(&file.path));
    *files = own;
    external
}

fn sorted(found: Vec<File>) -> ExpiredFiles {
    let mut files = ExpiredFiles::default();
    for file in found {
        let of_kind = match file.kind {
            Kind::Data => &mut files.data_files,
            Kind::Deletes => &mut files.delete_files,
            Kind::Manifest => &mut files.manifests,
            Kind::List => &mut files.manifest_lists,
            Kind::Statistics => &mut files.statistics,
        };
        of_kind.push(file.path);
    }
    let ExpiredFiles { data_files, delete_files, manifests, manifest_lists, statistics } = &mut files;
    [data_files, delete_files, manifests, manifest_lists, statistics].into_iter().for_each(|paths| paths.sort());
    files
}
