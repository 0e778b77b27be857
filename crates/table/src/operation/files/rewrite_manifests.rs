//! Manifests written anew, so that the entries of a partition, or of other files that are read together, stand together
//! ("Snapshots", operation `replace`). No file changes.

use std::collections::{HashMap, HashSet};
use std::fmt;

use icefield_format::manifest::ManifestContent;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{FormatVersion, Operation, Snapshot, TableMetadata};

use crate::commit::{
    Arranged, Clustered, Clustering, Content, FileChanges, ManifestKey, Manifests, SummaryBuilder, assigned,
};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::of_snapshot;
use crate::storage::Storage;

/// Entry of the summary: the number of entries that were written again.
const ENTRIES_PROCESSED: &str = "entries-processed";

/// Which manifests are written again.
pub type Choice = dyn Fn(&[ManifestFile]) -> Result<Vec<bool>> + Send + Sync;

/// The content of a snapshot that has the same files as its parent, in other manifests.
///
/// Manifests are written again by a clustering, or taken out and added as they are; the new ones have as many live files as
/// the old ones.
#[derive(Default)]
pub struct RewriteManifests {
    clustering: Option<Box<Clustering>>,
    choice: Option<Box<Choice>>,
    deleted: Vec<String>,
    added: Vec<ManifestFile>,
    done: Option<Done>,
    /// None: the table keeps all of its files.
    changes: FileChanges,
}

/// What the last attempt has made.
struct Done {
    basis: (FormatVersion, i32),
    /// Manifests of the parent that are replaced, and how many live files they have.
    replaced: HashMap<ManifestKey, i64>,
    clustered: Clustered,
    given: Vec<ManifestFile>,
}

impl RewriteManifests {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes all manifests of data files again, their entries grouped by the keys of `clustering`.
    pub fn cluster_by(&mut self, clustering: Box<Clustering>) {
        self.clustering = Some(clustering);
    }

    /// Writes only the manifests again that `choice` says; the others stay.
    pub fn only(&mut self, choice: Box<Choice>) {
        self.choice = Some(choice);
    }

    /// Takes out the manifest at this location, whose files are in added ones.
    pub fn delete_manifest(&mut self, location: impl Into<String>) {
        self.deleted.push(location.into());
    }

    /// Adds a manifest of existing files, without snapshot id, sequence number and row ids. The table owns it when the commit
    /// lands.
    ///
    /// # Errors
    /// A manifest of another kind.
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

    /// The manifests that are written again.
    fn chosen(&self, older: &[ManifestFile]) -> Result<Vec<ManifestFile>> {
        let wanted = |manifest: &&ManifestFile| {
            manifest.content == ManifestContent::Data && !self.deleted.contains(&manifest.manifest_path)
        };
        let data: Vec<ManifestFile> = older.iter().filter(wanted).cloned().collect();
        let Some(choice) = &self.choice else { return Ok(data) };
        let chosen = choice(&data)?;
        if chosen.len() != data.len() {
            let (wanted, found) = (data.len(), chosen.len());
            return Err(Error::invalid(format!("expected an answer for each of {wanted} manifests, got {found}")));
        }
        Ok(data.into_iter().zip(chosen).filter_map(|(manifest, chosen)| chosen.then_some(manifest)).collect())
    }

    /// Makes what the snapshot has in place of manifests of its parent.
    fn make(
        &self,
        base: &TableMetadata,
        older: &[ManifestFile],
        manifests: &Manifests,
        basis: (FormatVersion, i32),
    ) -> Result<Done> {
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
        Ok(Done { basis, replaced, clustered, given })
    }

    /// Refuses to put added manifests in the place of those of the same transaction that were made anew, since another commit
    /// was first: these hand down other sequence numbers than the added ones were written with.
    fn check_given(&self, before: &Done, there: &HashSet<ManifestKey>) -> Result<()> {
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

/// How many live files a manifest has.
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
        let basis = (base.format_version(), base.current_schema_id());
        let there: HashSet<ManifestKey> = older.iter().map(ManifestKey::of).collect();
        let before = self.done.take();
        if let Some(done) = &before {
            self.check_given(done, &there)?;
        }
        // What was written for an earlier attempt is right as long as all that it replaces is there, and hands down the same:
        // the written entries have the sequence numbers and row ids that they had then.
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
