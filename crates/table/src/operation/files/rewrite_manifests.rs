//! Rewrites manifests so that the entries of a partition, or of other files that are read together, are in the same
//! manifest ("Snapshots", operation `replace`). No data or delete file changes.

use std::collections::{HashMap, HashSet};
use std::fmt;

use icefield_format::manifest::ManifestContent;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{Operation, Snapshot, TableMetadata};

use crate::commit::{
    Arranged, Basis, Clustered, Clustering, Content, FileChanges, ManifestKey, Manifests, SummaryBuilder, assigned,
    basis,
};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::of_snapshot;
use crate::storage::Storage;

/// Summary entry: the number of rewritten entries.
const ENTRIES_PROCESSED: &str = "entries-processed";

/// Chooses the manifests to rewrite.
pub type Choice = dyn Fn(&[ManifestFile]) -> Result<Vec<bool>> + Send + Sync;

/// The content of a snapshot with the same files as its parent, in other manifests.
///
/// Manifests are either rewritten by a clustering, or removed and added as the caller says. The new ones must have as
/// many live files as the old ones.
#[derive(Default)]
pub struct RewriteManifests {
    clustering: Option<Box<Clustering>>,
    choice: Option<Box<Choice>>,
    /// Whether manifests of delete files are clustered as well.
    of_deletes: bool,
    deleted: Vec<String>,
    added: Vec<ManifestFile>,
    done: Option<LastAttempt>,
    /// Always empty: the table keeps all of its files.
    changes: FileChanges,
}

/// What a rewrite of manifests would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManifestsPreview {
    /// Manifests that would be replaced.
    pub replaced: usize,
    /// Bytes of the replaced manifests.
    pub replaced_bytes: i64,
    /// Manifests that would replace them.
    pub added: usize,
    /// Bytes of the new manifests.
    pub added_bytes: i64,
    /// Manifests that would stay as they are.
    pub kept: usize,
    /// Entries of the rewritten manifests.
    pub entries: usize,
}

/// The result of the last attempt.
struct LastAttempt {
    basis: Basis,
    /// The replaced manifests of the parent, and the number of live files in each.
    replaced: HashMap<ManifestKey, i64>,
    clustered: Clustered,
    given: Vec<ManifestFile>,
}

impl RewriteManifests {
    /// An empty content, to which changes are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rewrites all data manifests, with entries grouped by the keys of `clustering`.
    pub fn cluster_by(&mut self, clustering: Box<Clustering>) {
        self.clustering = Some(clustering);
    }

    /// Rewrites delete manifests as well, apart from data manifests.
    pub fn with_delete_manifests(&mut self) {
        self.of_deletes = true;
    }

    /// Limits the rewrite to manifests that `choice` selects.
    pub fn only(&mut self, choice: Box<Choice>) {
        self.choice = Some(choice);
    }

    /// Removes the manifest at this location; added manifests must list its files.
    pub fn delete_manifest(&mut self, location: impl Into<String>) {
        self.deleted.push(location.into());
    }

    /// Adds a manifest of existing files, without snapshot id, sequence number and row ids. The table owns it once the
    /// commit lands.
    ///
    /// # Errors
    /// A manifest that does not meet these conditions.
    pub fn add_manifest(&mut self, manifest: ManifestFile) -> Result<()> {
        let refused = match () {
            () if manifest.has_added_files() => Some("it has added files"),
            () if manifest.has_deleted_files() => Some("it has deleted files"),
            () => assigned(&manifest),
        };
        if let Some(why) = refused {
            return Err(Error::invalid(format!("{}: cannot add the manifest: {why}", manifest.manifest_path)));
        }
        self.added.push(manifest);
        Ok(())
    }

    /// What the rewrite would do to a branch of a table; nothing is written.
    ///
    /// # Errors
    /// As the rewrite itself, but for conflicts with other commits.
    pub fn preview(&mut self, storage: &Storage, base: &TableMetadata, branch: &str) -> Result<ManifestsPreview> {
        let head = base.reference(branch).map(|reference| base.snapshot(reference.snapshot_id));
        let parent = head.unwrap_or_else(|| base.current_snapshot()).map(|parent| &**parent);
        self.validate(storage, base, parent)?;
        let Some(parent) = parent else { return Ok(ManifestsPreview::default()) };
        let older = of_snapshot(storage, base, parent, &limits()?)?;
        let manifests = Manifests::unwritten(storage);
        let done = self.make(base, &older, &manifests, basis(base)?)?;
        let (replaced, kept): (Vec<_>, Vec<_>) =
            older.iter().partition(|manifest| done.replaced.contains_key(&ManifestKey::of(manifest)));
        let added: Vec<_> = done.clustered.manifests.iter().chain(&done.given).collect();
        let bytes = |manifests: &[&ManifestFile]| {
            manifests.iter().map(|manifest| manifest.manifest_length).fold(0, i64::saturating_add)
        };
        Ok(ManifestsPreview {
            replaced: replaced.len(),
            replaced_bytes: bytes(&replaced),
            added: added.len(),
            added_bytes: bytes(&added),
            kept: kept.len(),
            entries: done.clustered.entries,
        })
    }

    /// The manifests to rewrite.
    fn chosen(&self, older: &[ManifestFile]) -> Result<Vec<ManifestFile>> {
        let wanted = |manifest: &&ManifestFile| {
            (self.of_deletes || manifest.content == ManifestContent::Data)
                && !self.deleted.contains(&manifest.manifest_path)
        };
        let all: Vec<ManifestFile> = older.iter().filter(wanted).cloned().collect();
        let Some(choice) = &self.choice else { return Ok(all) };
        let chosen = choice(&all)?;
        if chosen.len() != all.len() {
            let (wanted, found) = (all.len(), chosen.len());
            return Err(Error::invalid(format!("expected an answer for each of {wanted} manifests, got {found}")));
        }
        Ok(all.into_iter().zip(chosen).filter_map(|(manifest, chosen)| chosen.then_some(manifest)).collect())
    }

    /// Writes the manifests that replace those of the parent.
    fn make(
        &self,
        base: &TableMetadata,
        older: &[ManifestFile],
        manifests: &Manifests,
        basis: Basis,
    ) -> Result<LastAttempt> {
        let mut replaced: HashMap<ManifestKey, i64> = HashMap::new();
        let deleted = older.iter().filter(|manifest| self.deleted.contains(&manifest.manifest_path));
        for manifest in deleted {
            replaced.insert(ManifestKey::of(manifest), live_files(manifest)?);
        }
        let clustered = match &self.clustering {
            None => Clustered::default(),
            Some(clustering) => {
                let chosen = self.chosen(older)?;
                let clustered = manifests.clustered(base, &chosen, clustering)?;
                for manifest in chosen {
                    replaced.insert(ManifestKey::of(&manifest), live_files(&manifest)?);
                }
                clustered
            }
        };
        let given = manifests.replacing(base, &self.added)?;
        let new = clustered.manifests.iter().chain(&given).map(live_files).sum::<Result<i64>>()?;
        let old: i64 = replaced.values().sum();
        if new != old {
            return Err(Error::Validation(format!(
                "rewrite of manifests: the new manifests have {new} live files, and those that they replace have {old}"
            )));
        }
        Ok(LastAttempt { basis, replaced, clustered, given })
    }

    /// Rejects added manifests if they replace ones that the same transaction wrote again after a lost race: the added
    /// ones were written with the sequence numbers of the earlier attempt.
    fn check_given(&self, before: &LastAttempt, there: &HashSet<ManifestKey>) -> Result<()> {
        let taken_out = |key: &&ManifestKey| self.deleted.iter().any(|path| path == key.path());
        match before.replaced.keys().filter(taken_out).find(|key| !there.contains(*key)) {
            None => Ok(()),
            Some(key) => Err(Error::Validation(format!(
                "rewrite of manifests: another commit came before this transaction, whose manifest {} is to be taken out: run \
                 the transaction again",
                key.path()
            ))),
        }
    }
}

/// Number of live files in a manifest.
fn live_files(manifest: &ManifestFile) -> Result<i64> {
    let counts = manifest.added_files_count.zip(manifest.existing_files_count);
    let (added, existing) = counts.ok_or_else(|| {
        Error::invalid(format!("{}: its manifest list does not say how many files it has", manifest.manifest_path))
    })?;
    Ok(i64::from(added) + i64::from(existing))
}

impl fmt::Debug for RewriteManifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RewriteManifests")
            .field("clusters", &self.clustering.is_some())
            .field("chooses", &self.choice.is_some())
            .field("of_deletes", &self.of_deletes)
            .field("deleted", &self.deleted)
            .field("added", &self.added.len())
            .finish_non_exhaustive()
    }
}

impl Content for RewriteManifests {
    fn operation(&self) -> Operation {
        Operation::Replace
    }

    fn changes(&self) -> &FileChanges {
        &self.changes
    }

    fn changes_mut(&mut self) -> &mut FileChanges {
        &mut self.changes
    }

    fn validate(&self, storage: &Storage, base: &TableMetadata, parent: Option<&Snapshot>) -> Result<()> {
        let Some(parent) = parent else {
            return Err(Error::invalid("the table has no snapshot: there are no manifests to rewrite"));
        };
        if self.deleted.is_empty() {
            return Ok(());
        }
        let older = of_snapshot(storage, base, parent, &limits()?)?;
        let paths: HashSet<&str> = older.iter().map(|manifest| manifest.manifest_path.as_str()).collect();
        match self.deleted.iter().find(|path| !paths.contains(path.as_str())) {
            None => Ok(()),
            Some(path) => Err(Error::Validation(format!(
                "rewrite of manifests: {path}, which is to be taken out, is no manifest of snapshot {}",
                parent.snapshot_id
            ))),
        }
    }

    fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        _merge: bool,
    ) -> Result<Arranged> {
        let basis = basis(base)?;
        let there: HashSet<ManifestKey> = older.iter().map(ManifestKey::of).collect();
        let before = self.done.take();
        if let Some(done) = &before {
            self.check_given(done, &there)?;
        }
        // The result of an earlier attempt can be reused if the parent still has all replaced manifests, with the same
        // inherited values: the written entries contain their sequence numbers and row ids.
        let known = before.filter(|done| {
            done.basis == basis && !done.replaced.is_empty() && done.replaced.keys().all(|key| there.contains(key))
        });
        let done = match known {
            Some(done) => done,
            None => self.make(base, &older, manifests, basis)?,
        };
        let done = self.done.insert(done);
        let kept = older.into_iter().filter(|manifest| !done.replaced.contains_key(&ManifestKey::of(manifest)));
        let all = done.clustered.manifests.iter().chain(&done.given).cloned().chain(kept).collect();
        Ok(Arranged { manifests: all, replaced: done.replaced.len() })
    }

    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        let mut builder = SummaryBuilder::default();
        builder.note(ENTRIES_PROCESSED, self.done.as_ref().map_or(0, |done| done.clustered.entries));
        Ok(builder)
    }
}
