//! The end of a table: the files that its metadata names are deleted (in Java: `CatalogUtil.dropTableData`).

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::manifest::ManifestFile;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::metadata::properties::GC_ENABLED;
use icefield_format::metadata::{MetadataCodec, Snapshot, SnapshotManifests, TableMetadata};

use super::parallel::{locked, side_by_side};
use crate::commit::Committed;
use crate::error::Error;
use crate::snapshot::manifests;
use crate::storage::{Folders, Leftover, Storage, Way};

/// Files that are remembered; one that is met again later is deleted again, which is no error.
const MET: usize = 1 << 24;

/// Deletes the files of a table of which no catalog knows any more, of all its snapshots: data and delete files, manifests,
/// manifest lists, statistics, and last the metadata files, so that a purge that was killed can be taken up again.
///
/// Only what the metadata names, and only beneath the table's location, `write.data.path` and `write.metadata.path`: the
/// tables of a namespace `a.b` lie beneath the folder of a table `a.b`, and data files may have been taken over from
/// other tables. Data and delete files stay where `gc.enabled` is not true, as in Java: they may be those of other tables.
///
/// A file that cannot be read or deleted keeps nothing else from being deleted; one that is not there any more is no
/// failure to delete it.
///
/// A folder that other things lie in too is not the table's own, whatever its metadata says: the root of a store or drive,
/// the `warehouse` of the catalog and what is above it, what is above the table's location, and a link. Nothing in it is
/// deleted, nor anything that only a link below the table's folders leads to; each is a failure with its reason.
pub fn purge(storage: &Storage, table: &Committed, warehouse: Option<&str>, limits: &Limits) -> Leftover {
    let metadata = &table.metadata;
    let purge = Purge {
        storage,
        limits,
        metadata,
        folders: Folders::of(storage, metadata, warehouse),
        seen: Seen::default(),
        leftover: Mutex::default(),
    };
    purge.folders.refused().iter().for_each(|refused| purge.failed(refused));
    let manifests = purge.manifests();
    if GC_ENABLED.read(metadata.properties()) {
        purge.side_by_side(&manifests, |(path, listed)| purge.files_of(path, listed.as_ref()));
    }
    purge.delete(manifests.iter().map(|(path, _)| path.as_str()));
    purge.delete(metadata.snapshots().iter().filter_map(|snapshot| match &snapshot.manifests {
        SnapshotManifests::List(path) => Some(path.as_str()),
        SnapshotManifests::Inline(_) => None,
    }));
    let statistics = metadata.statistics().iter().map(|file| file.statistics_path.as_str());
    let of_partitions = metadata.partition_statistics().iter().map(|file| file.statistics_path.as_str());
    purge.delete(statistics.chain(of_partitions));
    let log = metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str());
    purge.delete(log.filter(|file| MetadataCodec::from_file_name(file).is_some()));
    purge.delete([table.location.as_str()]);
    purge.leftover.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct Purge<'a> {
    storage: &'a Storage,
    limits: &'a Limits,
    metadata: &'a TableMetadata,
    folders: Folders,
    seen: Seen,
    leftover: Mutex<Leftover>,
}

impl Purge<'_> {
    /// The manifests of all snapshots, each once, and what a manifest list says of them.
    fn manifests(&self) -> Vec<(String, Option<ManifestFile>)> {
        let found = Mutex::new((HashSet::new(), Vec::new(), self.limits.held()));
        self.side_by_side(&manifests::with_own_lists(self.metadata), |snapshot| {
            let manifests = self.of_snapshot(snapshot);
            let (known, all, held) = &mut *locked(&found);
            for (path, listed) in manifests {
                if known.contains(&path) {
                    continue;
                }
                if let Err(error) = held.keep(2 * path.len() + listed.as_ref().map_or(0, ManifestFile::memory)) {
                    return self.failed(&error.in_file(&path).into());
                }
                known.insert(path.clone());
                all.push((path, listed));
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }

    fn of_snapshot(&self, snapshot: &Snapshot) -> Vec<(String, Option<ManifestFile>)> {
        if let SnapshotManifests::Inline(paths) = &snapshot.manifests {
            return paths.iter().map(|path| (path.clone(), None)).collect();
        }
        match manifests::of_snapshot(self.storage, self.metadata, snapshot, self.limits) {
            Ok(listed) => listed.into_iter().map(|listed| (listed.manifest_path.clone(), Some(listed))).collect(),
            Err(error) => {
                self.failed(&error);
                Vec::new()
            }
        }
    }

    /// Deletes the data and delete files that a manifest names, those too that it says are deleted: a snapshot may have
    /// been expired without its files.
    fn files_of(&self, path: &str, listed: Option<&ManifestFile>) {
        let bytes = match self.storage.read_at_most(path, self.limits.avro_bytes) {
            Ok(bytes) => bytes,
            Err(error) => return self.failed(&error),
        };
        let read = |inherit| entries::read(&bytes, &ReadOptions { inherit, ..ReadOptions::default() }, self.limits);
        let read = read(listed).or_else(|error| {
            self.failed(&Error::from(error.in_file(path)));
            // One with fewer files than its list says still names those that it has.
            read(None)
        });
        if let Ok(entries) = read {
            self.delete(entries.file_path.iter().flatten());
        }
    }

    /// Deletes those files that are the table's own and were not met before.
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

    fn side_by_side<T: Sync>(&self, all: &[T], work: impl Fn(&T) + Sync) {
        side_by_side(self.storage, self.metadata.location(), all, work);
    }
}

/// Paths that were met, as two hashes of each: a table may have a hundred million files.
#[derive(Default)]
struct Seen {
    keys: (RandomState, RandomState),
    met: Mutex<HashSet<(u64, u64)>>,
}

impl Seen {
    fn add(&self, path: &str) -> bool {
        let key = (self.keys.0.hash_one(path), self.keys.1.hash_one(path));
        let mut met = locked(&self.met);
        if met.len() >= MET {
            met.clear();
        }
        met.insert(key)
    }
}
