//! The files that a table references, as hashes: a table may have a hundred million.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::limits::Held;
use icefield_format::manifest::{Entries, ManifestFile, Status};
use icefield_format::metadata::{MetadataLogEntry, TableMetadata};

use super::prefix::{Prefix, Prefixes};
use crate::commit::{Committed, read_metadata};
use crate::error::{Error, Result};
use crate::snapshot::parallel::locked;
use crate::snapshot::reachable::{self, Reachable};
use crate::storage::Storage;

/// Memory of a hash in a set.
const OF_A_FILE: usize = 2 * size_of::<u64>();

/// Whether a listed file is referenced.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is.
    Known,
    /// A file of its path is, with another scheme or authority.
    Elsewhere(Vec<(String, String)>),
    /// It is not.
    Unknown,
}

/// The files that a table references.
///
/// Only hashes of paths are kept. Two paths with the same hash make an orphan look referenced, never the reverse.
pub(super) struct Known<'a> {
    storage: &'a Storage,
    prefixes: Prefixes,
    limits: Limits,
    hash: RandomState,
    found: Mutex<Found>,
    /// Metadata files that were added with everything that they reference.
    added: HashSet<String>,
    /// Hashes of manifests whose files were added.
    manifests: HashSet<u64>,
}

struct Found {
    /// Hashes of paths, by their prefixes; there are few of these.
    files: Vec<(Prefix, HashSet<u64>)>,
    held: Held,
}

impl<'a> Known<'a> {
    pub(super) fn new(storage: &'a Storage, prefixes: Prefixes, limits: Limits) -> Self {
        let found = Mutex::new(Found { files: Vec::new(), held: limits.held() });
        let (added, manifests) = (HashSet::new(), HashSet::new());
        Self { storage, prefixes, limits, hash: RandomState::new(), found, added, manifests }
    }

    /// Adds the files of a table.
    ///
    /// # Errors
    /// A manifest or its list cannot be read; memory.
    pub(super) fn add(&mut self, table: &Committed) -> Result<()> {
        // Catalogs need not store metadata in files.
        if !self.added.insert(table.location.clone()) && !table.location.is_empty() {
            return Ok(());
        }
        let metadata = &table.metadata;
        let hints = format!("{}/metadata/version-hint.text", metadata.location().trim_end_matches('/'));
        let beside = table.location.rsplit_once('/').map(|(folder, _)| format!("{folder}/version-hint.text"));
        let mut own: Vec<&str> = vec![&table.location, &hints];
        own.extend(beside.as_deref());
        own.extend(reachable::manifest_lists(metadata).chain(reachable::statistics(metadata)));
        self.insert(own.into_iter())?;
        self.add_logs(metadata)?;
        let manifests = self.new_manifests(metadata)?;
        self.insert(manifests.iter().map(|manifest| manifest.manifest_path.as_str()))?;
        self.add_files(metadata, &manifests)
    }

    /// Whether a listed file is referenced.
    pub(super) fn answer(&self, path: &str) -> Answer {
        let (prefix, rest) = self.prefixes.split(path);
        let hash = self.hash.hash_one(&rest);
        let found = locked(&self.found);
        let mut conflicts = None;
        for (known, _) in found.files.iter().filter(|(_, files)| files.contains(&hash)) {
            if known.admits(&prefix) {
                return Answer::Known;
            }
            conflicts.get_or_insert_with(Vec::new).extend(known.conflicts(&prefix));
        }
        conflicts.map_or(Answer::Unknown, Answer::Elsewhere)
    }

    /// Adds the metadata files of a table's log, and those of the log in the oldest of them that still exists, since a
    /// table keeps only some files in its log.
    fn add_logs(&self, metadata: &TableMetadata) -> Result<()> {
        let mut log: Vec<MetadataLogEntry> = metadata.metadata_log().to_vec();
        let mut seen: HashSet<String> = HashSet::new();
        loop {
            self.insert(log.iter().map(|entry| entry.metadata_file.as_str()))?;
            let oldest = log.iter().filter(|entry| seen.insert(entry.metadata_file.clone()));
            let read = |entry: &MetadataLogEntry| read_metadata(self.storage, &entry.metadata_file).ok();
            match oldest.into_iter().find_map(read) {
                Some(earlier) => log = earlier.metadata_log().to_vec(),
                None => return Ok(()),
            }
        }
    }

    /// The manifests whose files were not added before.
    fn new_manifests(&mut self, metadata: &TableMetadata) -> Result<Vec<ManifestFile>> {
        let found = Mutex::new((Vec::new(), &mut self.manifests, None));
        let (hash, prefixes, counted) = (&self.hash, &self.prefixes, &self.found);
        Reachable::of(self.storage, metadata, &self.limits).manifests(
            |_| true,
            |_, read| {
                let (new, known, failed) = &mut *locked(&found);
                let mut keep = |manifest: ManifestFile| -> Result<()> {
                    if known.insert(hash.hash_one(&prefixes.split(&manifest.manifest_path).1)) {
                        locked(counted).held.keep(manifest.memory())?;
                        new.push(manifest);
                    }
                    Ok(())
                };
                let kept = read.and_then(|manifests| manifests.into_iter().try_for_each(&mut keep));
                if let Err(error) = kept {
                    *failed = Some(error);
                }
            },
        );
        match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            (_, _, Some(error)) => Err(error),
            (new, _, None) => Ok(new),
        }
    }

    fn add_files(&self, metadata: &TableMetadata, manifests: &[ManifestFile]) -> Result<()> {
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let all: Vec<&ManifestFile> = manifests.iter().collect();
        Reachable::of(self.storage, metadata, &self.limits).entries(&all, |read| {
            if locked(&failed).is_some() {
                return;
            }
            if let Err(error) = read.and_then(|entries| self.add_entries(metadata, &entries)) {
                *locked(&failed) = Some(error);
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn add_entries(&self, metadata: &TableMetadata, entries: &Entries) -> Result<()> {
        let mut wanted = Vec::with_capacity(entries.len());
        for file in reachable::files(entries) {
            let file = file?;
            // The changes of an expired snapshot cannot be read any more, so the files that it removed are unused.
            let expired = |id: i64| metadata.snapshot(id).is_none();
            if file.status != Status::Deleted || !file.snapshot_id.is_some_and(expired) {
                wanted.push(file.path);
            }
        }
        self.insert(wanted.into_iter())
    }

    fn insert<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<()> {
        let split = paths.filter(|path| !path.is_empty()).map(|path| self.prefixes.split(path));
        let hashed: Vec<(Prefix, u64)> = split.map(|(prefix, rest)| (prefix, self.hash.hash_one(&rest))).collect();
        let Found { files, held } = &mut *locked(&self.found);
        let mut new = 0;
        for (prefix, hash) in hashed {
            match files.iter_mut().find(|(known, _)| *known == prefix) {
                Some((_, known)) => new += usize::from(known.insert(hash)),
                None => {
                    files.push((prefix, HashSet::from([hash])));
                    new += 1;
                }
            }
        }
        Ok(held.keep(OF_A_FILE * new)?)
    }
}
