//! Writes manifests again with corrected entries.

use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{ManifestEntry, Status};
use icefield_format::metadata::TableMetadata;

use super::merging::Manifests;
use super::output::Form;
use super::specs::Spec;
use super::summary::SummaryBuilder;
use crate::error::Result;

/// A manifest that replaces another one.
#[derive(Debug, Clone)]
pub(crate) struct CorrectedManifest {
    /// The new manifest.
    pub(crate) manifest: ManifestFile,
    /// Counts of the removed files.
    pub(crate) removed: SummaryBuilder,
}

impl Manifests {
    /// Writes the live entries of a manifest again. They keep their snapshot ids, sequence numbers and row ids, so that
    /// the same deletes apply to them; those that are `Deleted` are removed by this snapshot.
    pub(crate) fn corrected(
        &self,
        base: &TableMetadata,
        spec: &Spec,
        of: &ManifestFile,
        entries: Vec<ManifestEntry>,
    ) -> Result<CorrectedManifest> {
        let form = Form::of(base)?;
        let mut writer = self.output().writer(&form, spec, of.content)?;
        let mut removed = SummaryBuilder::default();
        for mut entry in entries {
            if entry.status == Status::Deleted {
                entry.snapshot_id = Some(self.snapshot_id());
                removed.removed(&entry.file, spec.path(&entry.file.partition)?);
            } else {
                entry.status = Status::Existing;
            }
            writer.add(&entry)?;
        }
        Ok(CorrectedManifest { manifest: self.output().finish(&form, writer)?, removed })
    }
}
