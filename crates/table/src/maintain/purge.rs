//! The end of a table: the files that its metadata names are deleted (in Java: `CatalogUtil.dropTableData`).

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::manifest::ManifestFile;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::metadata::properties::{GC_ENABLED, WRITE_DATA_LOCATION, WRITE_METADATA_LOCATION};
use icefield_format::metadata::{Snapshot, SnapshotManifests, TableMetadata};

use super::parallel::{locked, side_by_side};
use crate::commit::Committed;
use crate::error::Error;
use crate::snapshot::manifests;
use crate::storage::{Leftover, Location, Scheme, Storage};

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
    purge.folders.refused.iter().for_each(|refused| purge.failed(refused));
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
    purge.delete(metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str()));
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
        let Ok(at) = self.storage.resolve(path) else { return false };
        if !self.folders.own.iter().any(|folder| is_beneath(folder, &at)) {
            return false;
        }
        let link = self.folders.link_before(&at);
        if let Some(link) = &link
            && self.seen.add(&link.to_string_lossy())
        {
            self.failed(&Error::invalid(format!("{}: this is a link: what it leads to stays", link.display())));
        }
        link.is_none()
    }

    fn failed(&self, error: &Error) {
        locked(&self.leftover).add(error);
    }

    fn side_by_side<T: Sync>(&self, all: &[T], work: impl Fn(&T) + Sync) {
        side_by_side(self.storage, self.metadata.location(), all, work);
    }
}

/// The folders that the metadata says are the table's.
pub(super) struct Folders {
    /// The table's location; the others may lie in it.
    location: Option<Location>,
    /// Those whose files are the table's own.
    own: Vec<Location>,
    /// Why the others are not.
    refused: Vec<Error>,
}

impl Folders {
    pub(super) fn of(storage: &Storage, metadata: &TableMetadata, warehouse: Option<&str>) -> Self {
        let location = storage.resolve(metadata.location()).ok();
        let warehouse = warehouse.and_then(|folder| storage.resolve(folder).ok());
        let mut folders = Self { location, own: Vec::new(), refused: Vec::new() };
        let given = [WRITE_DATA_LOCATION, WRITE_METADATA_LOCATION].map(|property| property.read(metadata.properties()));
        for folder in given.into_iter().flatten().chain([metadata.location()]).filter(|folder| !folder.is_empty()) {
            let Ok(at) = storage.resolve(folder) else { continue };
            match folders.shared(&at, warehouse.as_ref()) {
                None => folders.own.push(at),
                Some(why) => {
                    let message = format!("the folder {folder} of the table {why}: nothing in it was deleted");
                    folders.refused.push(Error::invalid(message));
                }
            }
        }
        folders
    }

    /// Whether a file lies in one of them, and not by way of a link.
    pub(super) fn have(&self, storage: &Storage, path: &str) -> bool {
        let Ok(at) = storage.resolve(path) else { return false };
        self.own.iter().any(|folder| is_beneath(folder, &at)) && self.link_before(&at).is_none()
    }

    /// Why a folder is not the table's alone, if it is not.
    fn shared(&self, folder: &Location, warehouse: Option<&Location>) -> Option<&'static str> {
        let named = names(folder);
        let unc = folder.key.starts_with("//") || folder.key.starts_with(r"\\");
        let drive = named.first().is_some_and(|name| folder.scheme == Scheme::File && name.ends_with(':'));
        let root = if unc { 2 } else { usize::from(drive) };
        let above = |other: &Location| {
            (folder.scheme, &folder.authority) == (other.scheme, &other.authority) && names(other).starts_with(&named)
        };
        if named.contains(&"..") {
            Some("has '..' in it")
        } else if named.len() <= root {
            Some("is the root of a store or drive")
        } else if warehouse.is_some_and(above) {
            Some("is the warehouse or above it")
        } else if self.location.as_ref().is_some_and(|own| above(own) && names(own) != named) {
            Some("is above the table's location")
        } else if is_link(folder, Path::new(&folder.key)) {
            Some("is a link")
        } else {
            None
        }
    }

    /// The first link on the way from the table's location, or another folder of its own, to a file.
    fn link_before(&self, file: &Location) -> Option<PathBuf> {
        if file.scheme != Scheme::File {
            return None;
        }
        let base = self.location.iter().chain(&self.own).find(|folder| is_beneath(folder, file))?;
        let mut way: Vec<&Path> = Path::new(&file.key).ancestors().skip(1).collect();
        way.truncate(way.len().saturating_sub(Path::new(&base.key).ancestors().skip(1).count()));
        way.into_iter().rev().find(|folder| is_link(base, folder)).map(Path::to_owned)
    }
}

/// The names of the folders that lead to a location.
fn names(at: &Location) -> Vec<&str> {
    let windows = at.scheme == Scheme::File && cfg!(windows);
    let names = at.key.split(|letter| letter == '/' || (windows && letter == '\\'));
    names.filter(|name| !matches!(*name, "" | ".")).collect()
}

fn is_link(of: &Location, folder: &Path) -> bool {
    of.scheme == Scheme::File && folder.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

/// Whether a file lies in a folder or a folder of it; never by way of `..`.
fn is_beneath(folder: &Location, file: &Location) -> bool {
    let local = file.scheme == Scheme::File;
    let separator = |letter: char| letter == '/' || (local && cfg!(windows) && letter == '\\');
    let within = folder.key.trim_end_matches(separator);
    let rest = match within {
        "" if folder.key.is_empty() => Some(file.key.as_str()),
        _ => file.key.strip_prefix(within).and_then(|rest| rest.strip_prefix(separator)),
    };
    (folder.scheme, &folder.authority) == (file.scheme, &file.authority)
        && rest.is_some_and(|rest| !rest.is_empty() && (!local || rest.split(separator).all(|part| part != "..")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beneath() {
        let table = [
            ("/w/t", "/w/t/data/a", true),
            ("/w/t/", "file:///w/t/data/a", true),
            ("/w/t", "/w/t", false),
            ("/w/t", "/w/t/", false),
            ("/w/t", "/w/tt/a", false),
            ("/w/t", "/w/t/../u/a", false),
            ("/w/t", "/w/t/data/../../u/a", false),
            ("/w/t", "/w/t/..a/b", true),
            ("/w/t", "memory:///w/t/a", false),
            ("/", "/a", true),
            ("s3://b/t", "s3a://b/t/a", true),
            ("s3://b/t", "s3://c/t/a", false),
            ("s3://b/t", "gs://b/t/a", false),
            ("s3://b", "s3://b/a", true),
            ("s3://b/", "s3://b/a", true),
        ];
        for (folder, file, expected) in table {
            let at = |text| Location::parse(text).unwrap();
            assert_eq!(is_beneath(&at(folder), &at(file)), expected, "{file} in {folder}");
        }
    }
}
