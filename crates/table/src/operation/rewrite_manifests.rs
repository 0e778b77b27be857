//! Manifests written anew, so that the entries of a partition, or of other files that are read together, stand together
//! ("Snapshots", operation `replace`). No file changes.

use std::collections::HashSet;
use std::fmt;

use icefield_format::manifest::ManifestContent;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{FormatVersion, Operation, Snapshot, TableMetadata};

use crate::commit::{Arranged, Clustered, Clustering, Content, Manifests, SummaryBuilder};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// Entry of the summary: the number of entries that were written again.
const ENTRIES_PROCESSED: &str = "entries-processed";

/// Which manifests are written again.
pub type Choice = dyn Fn(&[ManifestFile]) -> Result<Vec<bool>> + Send + Sync;

/// The content of a snapshot that has the same files as its parent, in other manifests.
pub struct RewriteManifests {
    clustering: Box<Clustering>,
    choice: Option<Box<Choice>>,
    done: Option<Done>,
}

/// What the last attempt has made.
struct Done {
    basis: (FormatVersion, i32),
    replaced: HashSet<String>,
    clustered: Clustered,
}

impl RewriteManifests {
    /// All manifests of data files, their entries grouped by the keys of `clustering`.
    pub fn new(clustering: Box<Clustering>) -> Self {
        Self { clustering, choice: None, done: None }
    }

    /// Only the manifests that `choice` says; the others stay.
    #[must_use]
    pub fn only(self, choice: Box<Choice>) -> Self {
        Self { choice: Some(choice), ..self }
    }

    /// The manifests that are written again.
    fn chosen(&self, older: &[ManifestFile]) -> Result<Vec<ManifestFile>> {
        let data: Vec<ManifestFile> =
            older.iter().filter(|manifest| manifest.content == ManifestContent::Data).cloned().collect();
        let Some(choice) = &self.choice else { return Ok(data) };
        let chosen = choice(&data)?;
        if chosen.len() != data.len() {
            let (wanted, found) = (data.len(), chosen.len());
            return Err(Error::invalid(format!("expected an answer for each of {wanted} manifests, got {found}")));
        }
        Ok(data.into_iter().zip(chosen).filter_map(|(manifest, chosen)| chosen.then_some(manifest)).collect())
    }
}

impl fmt::Debug for RewriteManifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RewriteManifests").field("chooses", &self.choice.is_some()).finish_non_exhaustive()
    }
}

impl Content for RewriteManifests {
    fn operation(&self) -> Operation {
        Operation::Replace
    }

    fn validate(&self, _storage: &Storage, _base: &TableMetadata, parent: Option<&Snapshot>) -> Result<()> {
        match parent {
            Some(_) => Ok(()),
            None => Err(Error::invalid("the table has no snapshot: there are no manifests to rewrite")),
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
        let paths: HashSet<&String> = older.iter().map(|manifest| &manifest.manifest_path).collect();
        // What was written for an earlier attempt is right as long as all that it replaces is there.
        let known = self.done.take().filter(|done| {
            done.basis == basis && !done.replaced.is_empty() && done.replaced.iter().all(|path| paths.contains(path))
        });
        let done = match known {
            Some(done) => done,
            None => {
                let chosen = self.chosen(&older)?;
                let clustered = manifests.clustered(base, &chosen, &*self.clustering)?;
                let replaced = chosen.into_iter().map(|manifest| manifest.manifest_path).collect();
                Done { basis, replaced, clustered }
            }
        };
        let done = self.done.insert(done);
        let kept = older.into_iter().filter(|manifest| !done.replaced.contains(&manifest.manifest_path));
        let all = done.clustered.manifests.iter().cloned().chain(kept).collect();
        Ok(Arranged { manifests: all, replaced: done.replaced.len() })
    }

    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        let mut builder = SummaryBuilder::default();
        builder.note(ENTRIES_PROCESSED, self.done.as_ref().map_or(0, |done| done.clustered.entries));
        Ok(builder)
    }
}
