//! Deletes all files of a dropped table (in Java: `CatalogUtil.dropTableData`).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::manifest::ManifestFile;
use icefield_format::metadata::properties::GC_ENABLED;
use icefield_format::metadata::{MetadataCodec, Snapshot, SnapshotManifests};

use super::seen::Seen;
use crate::commit::Committed;
use crate::error::Error;
use crate::snapshot::parallel::locked;
use crate::snapshot::reachable::{self, Reachable};
use crate::storage::{Folders, Leftover, Storage, Way};

/// Deletes the files of all snapshots of a table that is no longer in a catalog: data and delete files, manifests,
/// manifest lists, statistics, and finally the metadata files. In this order, a purge that was interrupted can be run
/// again.
///
/// Only files that the metadata references are deleted, and only in the table's location, `write.data.path` and
/// `write.metadata.path`: tables of a namespace `a.b` are in the folder of a table `a.b`, and data files may belong to
/// other tables. Unless `gc.enabled` is true, data and delete files are kept, as in Java: other tables may use them.
///
/// A file that cannot be read or deleted does not stop the purge. A missing file is not a failure. If a manifest list
/// cannot be decrypted, nothing is deleted, so that the purge can be run again with the keys.
///
/// Some folders are not exclusive to the table, whatever its metadata says: the root of a store or drive, the
/// `warehouse` of the catalog and its parents, parents of the table's location, and links. Nothing in such a folder is
/// deleted, nor anything reached only by a link below the table's folders. Each is reported as a failure with its
/// reason.
pub fn purge(storage: &Storage, table: &Committed, warehouse: Option<&str>, limits: &Limits) -> Leftover {
    let metadata = &table.metadata;
    let purge = Purge {
        storage,
        limits,
        reachable: Reachable::of(storage, metadata, limits),
        folders: Folders::of(storage, metadata, warehouse),
        seen: Seen::default(),
        leftover: Mutex::default(),
        sealed: AtomicBool::new(false),
    };
    purge.folders.refused().iter().for_each(|refused| purge.failed(refused));
    let manifests = purge.manifests();
    if purge.sealed.load(Ordering::Relaxed) {
        // Without these lists and the keys in the metadata, the table's files could not be found again.
        return purge.leftover.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    if GC_ENABLED.read(metadata.properties()) {
        purge.reachable.each(&manifests, |(path, listed)| purge.files_of(path, listed.as_ref()));
    }
    purge.delete(manifests.iter().map(|(path, _)| path.as_str()));
    purge.delete(reachable::manifest_lists(metadata));
    purge.delete(reachable::statistics(metadata));
    purge.delete(reachable::metadata_log(metadata).filter(|file| MetadataCodec::from_file_name(file).is_some()));
    purge.delete([table.location.as_str()]);
    purge.leftover.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct Purge<'a> {
    storage: &'a Storage,
    limits: &'a Limits,
    reachable: Reachable<'a>,
    folders: Folders,
    /// The deleted paths. Deleting one twice is harmless: a missing file is not an error.
    seen: Seen,
    leftover: Mutex<Leftover>,
    /// Whether a manifest list could not be decrypted.
    sealed: AtomicBool,
}

impl Purge<'_> {
    /// The manifests of all snapshots, each once, with their entries in a manifest list.
    fn manifests(&self) -> Vec<(String, Option<ManifestFile>)> {
        let found = Mutex::new((HashSet::new(), Vec::new(), self.limits.held()));
        // Returns whether there is memory for more.
        let add = |path: &str, listed: Option<ManifestFile>| {
            let (known, all, held) = &mut *locked(&found);
            if known.contains(path) {
                return true;
            }
            if let Err(error) = held.keep(2 * path.len() + listed.as_ref().map_or(0, ManifestFile::memory)) {
                self.failed(&error.in_file(path).into());
                return false;
            }
            known.insert(path.to_owned());
            all.push((path.to_owned(), listed));
            true
        };
        for snapshot in self.reachable.metadata().snapshots() {
            if let SnapshotManifests::Inline(paths) = &snapshot.manifests {
                let _ = paths.iter().all(|path| add(path, None));
            }
        }
        let has_list = |snapshot: &Snapshot| snapshot.manifest_list().is_some();
        self.reachable.manifests(has_list, |snapshot, read| match read {
            Ok(listed) => {
                let _ = listed.into_iter().all(|manifest| add(&manifest.manifest_path.clone(), Some(manifest)));
            }
            Err(error) => {
                if snapshot.key_id.is_some() && !matches!(error, Error::NotFound { .. }) {
                    self.sealed.store(true, Ordering::Relaxed);
                }
                self.failed(&error);
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Deletes the data and delete files of a manifest. This includes deleted entries, since a snapshot may have
    /// expired without its files being deleted.
    fn files_of(&self, path: &str, listed: Option<&ManifestFile>) {
        let bytes = match self.reachable.bytes(path, listed) {
            Ok(bytes) => bytes,
            Err(error) => return self.failed(&error),
        };
        let read = self.reachable.decode(path, &bytes, listed).or_else(|error| {
            self.failed(&error);
            // A manifest with fewer files than its list says still references those files.
            self.reachable.decode(path, &bytes, None)
        });
        if let Ok(entries) = read {
            self.delete(entries.file_path.iter().flatten());
        }
    }

    /// Deletes the files that are in the table's folders and were not deleted before.
    fn delete<'p>(&self, paths: impl IntoIterator<Item = &'p str>) {
        let wanted: Vec<&str> = paths.into_iter().filter(|path| self.is_own(path) && self.seen.add(path)).collect();
        for error in self.storage.delete_all(&wanted) {
            self.failed(&error);
        }
    }

    fn is_own(&self, path: &str) -> bool {
        let way = self.folders.way_to(self.storage, path);
        if let Way::ByLink(link) = &way
            && self.seen.add(&link.to_string_lossy())
        {
            self.failed(&Error::invalid(format!("{}: this is a link: what it leads to stays", link.display())));
        }
        way == Way::Within
    }

    fn failed(&self, error: &Error) {
        locked(&self.leftover).add(error);
    }
}
