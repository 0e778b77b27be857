//! Writes the manifests of a new snapshot's own files, and merges older ones (`commit.manifest.*`).

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

/// Number of files after which the length of a manifest is checked, as in Java.
const FILES_BETWEEN_CHECKS: usize = 250;

/// The manifests of a new snapshot.
#[derive(Debug, Default)]
pub struct Arranged {
    /// All manifests, in the order of the manifest list.
    pub manifests: Vec<ManifestFile>,
    /// Number of the parent's manifests that others replaced.
    pub replaced: usize,
}

/// Writes the manifests of one snapshot, and remembers all files written.
#[derive(Debug)]
pub struct Manifests {
    output: Arc<Output>,
    /// Merged manifests by what was merged, for reuse in the next attempt.
    merged: BTreeMap<Vec<ManifestKey>, ManifestFile>,
}

impl Manifests {
    /// Manifests that are made but not stored: to find out what a snapshot would have.
    #[must_use]
    pub fn unwritten(storage: &Storage) -> Self {
        Self::new(storage.unwritten(), i64::MAX)
    }

    pub(in crate::commit) fn new(storage: Storage, snapshot_id: i64) -> Self {
        Self { output: Output::new(storage, snapshot_id), merged: BTreeMap::new() }
    }

    /// Id of the snapshot.
    pub fn snapshot_id(&self) -> i64 {
        self.output.snapshot_id()
    }

    /// The destination of the files.
    pub(in crate::commit) fn output(&self) -> &Arc<Output> {
        &self.output
    }

    /// Writes a file of the commit into the metadata folder.
    pub(in crate::commit) fn put(&self, base: &TableMetadata, name: &str, bytes: Vec<u8>) -> Result<String> {
        self.output.put(format!("{}/{name}", metadata_folder(base)?), bytes)
    }

    /// Writes manifests of added files of one content, one or more for each partition spec. A file may have its own
    /// data sequence number.
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
                // The header alone may exceed the target, so the check comes only after some files.
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

    /// Merges manifests of one content, newest first, and returns how many older ones were replaced.
    ///
    /// The manifests of a spec are packed to the target size starting with the oldest, so that an under-filled pack is
    /// the newest one. The pack with the new manifest is merged only once it has enough manifests.
    pub fn merge(&mut self, base: &TableMetadata, all: Vec<ManifestFile>) -> Result<(Vec<ManifestFile>, usize)> {
        let Some(first) = all.first().map(|manifest| manifest.manifest_path.clone()) else { return Ok((all, 0)) };
        if !MANIFEST_MERGE_ENABLED.read(base.properties()) {
            return Ok((all, 0));
        }
        let least = usize::try_from(MANIFEST_MIN_MERGE_COUNT.read(base.properties())?).unwrap_or(usize::MAX);
        let (form, specs) = (Form::of(base)?, Specs::of(base));
        // Specs with higher ids come first, as in Java.
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

    /// Partition values of a dropped column have no known type, so manifests with them are kept unchanged.
    fn can_rewrite(&self, base: &TableMetadata, pack: &[ManifestFile]) -> Result<bool> {
        let Some(manifest) = pack.first() else { return Ok(false) };
        let spec = spec_of(base, manifest)?;
        let types = spec.tuple_type(base.current_schema());
        let known = |ty: &Type| !matches!(ty, Type::Primitive(PrimitiveType::Unknown | PrimitiveType::Unrecognized(_)));
        let fields = spec.fields.iter().zip(&types.fields);
        Ok(fields.into_iter().all(|(field, column)| field.transform.is_void() || known(&column.ty)))
    }

    /// Writes one manifest with the live entries of several, and with the entries that this snapshot deleted. Entries
    /// that other snapshots added become existing ones.
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

    /// Copies entries. Partition values are converted to the current types: columns may have been promoted.
    fn copy(&self, spec: &Spec, manifest: &ManifestFile, writer: &mut ManifestWriter) -> Result<()> {
        let own = manifest.added_snapshot_id == self.snapshot_id();
        // Sequence numbers of this commit's own manifests are assigned later, so there is nothing to inherit yet.
        let inherit = (!own).then_some(manifest);
        self.read_entries(spec, manifest, inherit, !own, |mut entry| {
            if !own {
                entry.status = Status::Existing;
            }
            Ok(writer.add(&entry)?)
        })
    }

    /// Rewrites a caller's manifest for this snapshot. All of its entries must have one status, added or existing.
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

    /// Takes over manifests that a caller wrote to replace others; their entries are existing files. Version 1 requires
    /// snapshot ids in entries, so there the manifests are rewritten; otherwise the table owns the caller's files once
    /// the commit lands.
    ///
    /// # Errors
    /// A manifest with a spec that the table does not have; in version 1, a manifest that cannot be read.
    pub fn replacing(&self, base: &TableMetadata, given: &[ManifestFile]) -> Result<Vec<ManifestFile>> {
        let (form, specs) = (Form::of(base)?, Specs::of(base));
        let inherits = base.format_version() > FormatVersion::V1;
        let taken = given.iter().map(|manifest| {
            form.check_manifest(manifest)?;
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
        let bytes = self.output.storage().read_manifest(manifest)?;
        let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
        let entries = entries::read(&bytes, &options, &limits()?).map_err(in_file)?;
        (0..entries.len()).try_for_each(|row| each(entries.entry(row, manifest.partition_spec_id).map_err(in_file)?))
    }

    /// Forgets merged manifests: another format version cannot use them.
    pub(in crate::commit) fn forget(&mut self) {
        self.merged.clear();
    }
}

/// Groups manifests into packs of at most `target` bytes, filled from the end. The order of manifests is kept.
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
