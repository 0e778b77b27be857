//! Manifests of a new snapshot: those of its own files, and older ones merged (`commit.manifest.*`).

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::ManifestWriter;
use icefield_format::manifest::{DataFile, ManifestContent, ManifestEntry, Metrics, Status};
use icefield_format::metadata::properties::{MANIFEST_MERGE_ENABLED, MANIFEST_MIN_MERGE_COUNT};
use icefield_format::metadata::{FormatVersion, TableMetadata};
use icefield_format::types::{PrimitiveType, Type};

use super::output::{Form, ManifestKey, Output};
use super::specs::{Spec, Specs};
use crate::commit::metadata_file::metadata_folder;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::spec_of;
use crate::storage::Storage;

/// How many files are added to a manifest before its length is looked at, as in Java.
const FILES_BETWEEN_CHECKS: usize = 250;

/// The manifests of a snapshot.
#[derive(Debug, Default)]
pub struct Arranged {
    /// All of them, in the order of the manifest list.
    pub manifests: Vec<ManifestFile>,
    /// How many of the parent's are no longer among them, since others took their place.
    pub replaced: usize,
}

/// Writes the manifests of one snapshot, and remembers all files that it wrote.
#[derive(Debug)]
pub struct Manifests {
    output: Arc<Output>,
    /// What merging gave, by what was merged: the same again in the next attempt.
    merged: BTreeMap<Vec<ManifestKey>, ManifestFile>,
}

impl Manifests {
    pub(in crate::commit) fn new(storage: Storage, snapshot_id: i64) -> Self {
        Self { output: Output::new(storage, snapshot_id), merged: BTreeMap::new() }
    }

    /// Id of the snapshot.
    pub fn snapshot_id(&self) -> i64 {
        self.output.snapshot_id()
    }

    /// Where they are written.
    pub(in crate::commit) fn output(&self) -> &Arc<Output> {
        &self.output
    }

    /// Writes a file of the commit into the metadata folder.
    pub(in crate::commit) fn put(&self, base: &TableMetadata, name: &str, bytes: Vec<u8>) -> Result<String> {
        self.output.put(format!("{}/{name}", metadata_folder(base)?), bytes)
    }

    /// Manifests of added files of one content, one or more for each partition spec. A file may have a data sequence number
    /// of its own.
    pub(in crate::commit) fn of_added<'f>(
        &self,
        form: &Form,
        specs: &Specs,
        content: ManifestContent,
        files: impl Iterator<Item = (&'f DataFile, Option<i64>)>,
    ) -> Result<Vec<ManifestFile>> {
        let mut by_spec: BTreeMap<i32, Vec<(&DataFile, Option<i64>)>> = BTreeMap::new();
        for (file, number) in files {
            by_spec.entry(file.partition_spec_id).or_default().push((file, number));
        }
        let mut made = Vec::new();
        for files in by_spec.into_values() {
            let Some((first, _)) = files.first() else { continue };
            let spec = specs.of_file(first)?;
            let mut writer = self.output.writer(form, spec, content)?;
            for (place, (file, sequence_number)) in files.into_iter().enumerate() {
                // A header may be longer than the target: no manifest has few files.
                if place > 0 && place % FILES_BETWEEN_CHECKS == 0 && writer.length() >= form.target {
                    made.push(self.output.finish(form, writer)?);
                    writer = self.output.writer(form, spec, content)?;
                }
                writer.add(&ManifestEntry {
                    status: Status::Added,
                    snapshot_id: Some(self.snapshot_id()),
                    sequence_number,
                    file_sequence_number: None,
                    file: file.clone(),
                })?;
            }
            made.push(self.output.finish(form, writer)?);
        }
        Ok(made)
    }

    /// Merges manifests of one content, the newest first, and says how many older ones were replaced.
    ///
    /// Manifests of one spec are packed to the target size from the oldest on, so that the under-filled pack is the
    /// newest; the pack of the new manifest waits until it has enough of them.
    pub fn merge(&mut self, base: &TableMetadata, all: Vec<ManifestFile>) -> Result<(Vec<ManifestFile>, usize)> {
        let Some(first) = all.first().map(|manifest| manifest.manifest_path.clone()) else { return Ok((all, 0)) };
        if !MANIFEST_MERGE_ENABLED.read(base.properties()) {
            return Ok((all, 0));
        }
        let least = usize::try_from(MANIFEST_MIN_MERGE_COUNT.read(base.properties())?).unwrap_or(usize::MAX);
        let (form, specs) = (Form::of(base)?, Specs::of(base));
        let mut by_spec: BTreeMap<std::cmp::Reverse<i32>, Vec<ManifestFile>> = BTreeMap::new();
        for manifest in all {
            by_spec.entry(std::cmp::Reverse(manifest.partition_spec_id)).or_default().push(manifest);
        }
        let (mut merged, mut replaced) = (Vec::new(), 0);
        for group in by_spec.into_values() {
            for pack in packs(group, form.target) {
                let waits = pack.len() < least && pack.iter().any(|manifest| manifest.manifest_path == first);
                if pack.len() == 1 || waits || !self.can_rewrite(base, &pack)? {
                    merged.extend(pack);
                    continue;
                }
                replaced += pack.iter().filter(|manifest| manifest.added_snapshot_id != self.snapshot_id()).count();
                merged.push(self.rewrite(&form, &specs, &pack)?);
            }
        }
        Ok((merged, replaced))
    }

    /// Partition values of a column that is gone have no type any more: such manifests stay as they are.
    fn can_rewrite(&self, base: &TableMetadata, pack: &[ManifestFile]) -> Result<bool> {
        let Some(manifest) = pack.first() else { return Ok(false) };
        let spec = spec_of(base, manifest)?;
        let types = spec.tuple_type(base.current_schema());
        let known = |ty: &Type| !matches!(ty, Type::Primitive(PrimitiveType::Unknown | PrimitiveType::Unrecognized(_)));
        let fields = spec.fields.iter().zip(&types.fields);
        Ok(fields.into_iter().all(|(field, column)| field.transform.is_void() || known(&column.ty)))
    }

    /// One manifest with the live entries of several, and with those that this snapshot deleted. Entries that other snapshots
    /// added are existing ones from now on.
    fn rewrite(&mut self, form: &Form, specs: &Specs, pack: &[ManifestFile]) -> Result<ManifestFile> {
        let key: Vec<ManifestKey> = pack.iter().map(ManifestKey::of).collect();
        if let Some(known) = self.merged.get(&key) {
            return Ok(known.clone());
        }
        let Some(model) = pack.first() else { return Err(Error::Internal("nothing to merge".into())) };
        let mut writer = self.output.writer(form, specs.of_manifest(model)?, model.content)?;
        for manifest in pack {
            self.copy(specs.of_manifest(manifest)?, manifest, &mut writer)?;
        }
        let made = self.output.finish(form, writer)?;
        self.merged.insert(key, made.clone());
        Ok(made)
    }

    /// Partition values are read as the types of today: their columns may have been promoted since.
    fn copy(&self, spec: &Spec, manifest: &ManifestFile, writer: &mut ManifestWriter) -> Result<()> {
        let own = manifest.added_snapshot_id == self.snapshot_id();
        // What the list hands down is not assigned yet for a manifest of this commit.
        let inherit = (!own).then_some(manifest);
        self.read_entries(spec, manifest, inherit, !own, |mut entry| {
            if !own {
                entry.status = Status::Existing;
            }
            Ok(writer.add(&entry)?)
        })
    }

    /// A manifest that a caller wrote, written again by this snapshot; all of its entries have one status, added or existing.
    pub(in crate::commit) fn copy_given(
        &self,
        form: &Form,
        specs: &Specs,
        manifest: &ManifestFile,
        status: Status,
        mut count: impl FnMut(&DataFile) -> Result<()>,
    ) -> Result<ManifestFile> {
        let spec = specs.of_manifest(manifest)?;
        let mut writer = self.output.writer(form, spec, manifest.content)?;
        let refused =
            |what: &str| Error::invalid(format!("{}: cannot add the manifest: {what}", manifest.manifest_path));
        self.read_entries(spec, manifest, None, false, |mut entry| {
            if entry.status != status {
                return Err(refused("an entry has another status than its list says"));
            }
            if status == Status::Added {
                entry.snapshot_id = Some(self.snapshot_id());
                (entry.sequence_number, entry.file_sequence_number) = (None, None);
            } else if entry.snapshot_id.is_none() {
                return Err(refused("an existing file has no snapshot id"));
            }
            count(&entry.file)?;
            Ok(writer.add(&entry)?)
        })?;
        self.output.finish(form, writer)
    }

    /// The manifests that a caller wrote in place of others, as those of this snapshot: their entries are existing files.
    /// Version 1 requires snapshot ids in entries, so they are written again there; otherwise the table owns them when the
    /// commit lands.
    ///
    /// # Errors
    /// A manifest of a spec that the table does not have; in version 1, one that cannot be read.
    pub fn replacing(&self, base: &TableMetadata, given: &[ManifestFile]) -> Result<Vec<ManifestFile>> {
        let (form, specs) = (Form::of(base)?, Specs::of(base));
        let inherits = base.format_version() > FormatVersion::V1;
        let taken = given.iter().map(|manifest| {
            if !inherits {
                return self.copy_given(&form, &specs, manifest, Status::Existing, |_| Ok(()));
            }
            specs.of_manifest(manifest)?;
            self.output.adopt(&manifest.manifest_path);
            Ok(ManifestFile { added_snapshot_id: self.snapshot_id(), ..manifest.clone() })
        });
        taken.collect()
    }

    fn read_entries(
        &self,
        spec: &Spec,
        manifest: &ManifestFile,
        inherit: Option<&ManifestFile>,
        live_only: bool,
        mut each: impl FnMut(ManifestEntry) -> Result<()>,
    ) -> Result<()> {
        let path = &manifest.manifest_path;
        let options = ReadOptions {
            metrics: Metrics::all(),
            partition_type: Some(&spec.partition_type),
            inherit,
            live_only,
            ..ReadOptions::default()
        };
        let bytes = self.output.storage().read_listed(path, manifest.manifest_length)?;
        let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
        let entries = entries::read(&bytes, &options, &limits()?).map_err(in_file)?;
        (0..entries.len()).try_for_each(|row| each(entries.entry(row, manifest.partition_spec_id).map_err(in_file)?))
    }

    /// A manifest of another format version cannot be used in the next attempt.
    pub(in crate::commit) fn forget(&mut self) {
        self.merged.clear();
    }
}

/// Packs of at most `target` bytes, filled from the end; the order of manifests stays.
fn packs(manifests: Vec<ManifestFile>, target: usize) -> Vec<Vec<ManifestFile>> {
    let mut packs: Vec<Vec<ManifestFile>> = Vec::new();
    let mut room = 0;
    for manifest in manifests.into_iter().rev() {
        let length = usize::try_from(manifest.manifest_length).unwrap_or(0);
        match packs.last_mut() {
            Some(pack) if length <= room => {
                pack.push(manifest);
                room -= length;
            }
            _ => {
                packs.push(vec![manifest]);
                room = target.saturating_sub(length);
            }
        }
    }
    packs.iter_mut().for_each(|pack| pack.reverse());
    packs.reverse();
    packs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_are_filled_from_the_end() {
        let lengths = |lengths: &[i64]| -> Vec<Vec<i64>> {
            let manifests =
                lengths.iter().map(|&length| ManifestFile { manifest_length: length, ..ManifestFile::default() });
            let packed = packs(manifests.collect(), 10);
            packed.into_iter().map(|pack| pack.into_iter().map(|m| m.manifest_length).collect()).collect()
        };
        assert_eq!(lengths(&[3, 4, 5, 5]), [vec![3, 4], vec![5, 5]]);
        assert_eq!(lengths(&[1, 9, 9]), [vec![1, 9], vec![9]]);
        assert_eq!(lengths(&[20, 1, 20]), [vec![20], vec![1], vec![20]]);
        assert!(lengths(&[]).is_empty());
    }
}
