//! Manifests of a new snapshot: those of its own files, and older ones merged (`commit.manifest.*`).

use std::collections::BTreeMap;

use icefield_format::avro::{Codec, Compression};
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, ManifestContent, Metrics, Status};
use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{
    MANIFEST_COMPRESSION, MANIFEST_COMPRESSION_LEVEL, MANIFEST_MERGE_ENABLED, MANIFEST_MIN_MERGE_COUNT,
    MANIFEST_TARGET_SIZE_BYTES,
};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::{PrimitiveType, Type};
use uuid::Uuid;

use super::metadata_file::metadata_folder;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::spec_of;
use crate::storage::{Existing, Storage};

/// Writes the manifests of one snapshot, and remembers all files that it wrote.
#[derive(Debug)]
pub struct Manifests {
    storage: Storage,
    snapshot_id: i64,
    /// One for all files of the commit, so that they are found together.
    uuid: Uuid,
    count: u32,
    /// Every file that was written, used or not.
    written: Vec<String>,
    /// What merging gave, by the paths of what was merged: the same again in the next attempt.
    merged: BTreeMap<Vec<String>, ManifestFile>,
}

impl Manifests {
    pub(super) fn new(storage: Storage, snapshot_id: i64) -> Self {
        let uuid = Uuid::new_v4();
        Self { storage, snapshot_id, uuid, count: 0, written: Vec::new(), merged: BTreeMap::new() }
    }

    /// Id of the snapshot.
    pub fn snapshot_id(&self) -> i64 {
        self.snapshot_id
    }

    /// The id in the names of all files of the commit.
    pub(super) fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Writes a file of the commit into the metadata folder.
    pub(super) fn put(&mut self, base: &TableMetadata, name: &str, bytes: Vec<u8>) -> Result<String> {
        let location = format!("{}/{name}", metadata_folder(base)?);
        // Remembered first: a write that reports a failure may have taken effect.
        self.written.push(location.clone());
        self.storage.put(&location, bytes, Existing::Refuse)?;
        Ok(location)
    }

    /// Manifests of added data files, one or more for each partition spec.
    pub fn of_added(&mut self, base: &TableMetadata, files: &[DataFile]) -> Result<Vec<ManifestFile>> {
        let mut by_spec: BTreeMap<i32, Vec<&DataFile>> = BTreeMap::new();
        for file in files {
            by_spec.entry(file.partition_spec_id).or_default().push(file);
        }
        let target = target_bytes(base)?;
        let mut made = Vec::new();
        for (spec_id, files) in by_spec {
            let spec = base.partition_spec(spec_id);
            let spec = spec.ok_or_else(|| Error::invalid(format!("the table has no partition spec {spec_id}")))?;
            let mut writer = self.writer(base, spec, ManifestContent::Data)?;
            for (place, file) in files.into_iter().enumerate() {
                // A header may be longer than the target: no manifest is without a file.
                if place > 0 && writer.length() >= target {
                    made.push(self.finish(base, writer)?);
                    writer = self.writer(base, spec, ManifestContent::Data)?;
                }
                writer.add_file(file.clone())?;
            }
            made.push(self.finish(base, writer)?);
        }
        Ok(made)
    }

    fn writer(&self, base: &TableMetadata, spec: &PartitionSpec, content: ManifestContent) -> Result<ManifestWriter> {
        Ok(ManifestWriter::new(ManifestOptions {
            format_version: base.format_version().number(),
            content,
            schema: base.current_schema(),
            spec,
            snapshot_id: self.snapshot_id,
            first_row_id: None,
            compression: compression(base)?,
            sync: *Uuid::new_v4().as_bytes(),
        })?)
    }

    fn finish(&mut self, base: &TableMetadata, writer: ManifestWriter) -> Result<ManifestFile> {
        let name = format!("{}-m{}.avro", self.uuid, self.count);
        self.count += 1;
        let (bytes, manifest) = writer.finish(&format!("{}/{name}", metadata_folder(base)?))?;
        self.put(base, &name, bytes)?;
        Ok(manifest)
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
        let target = target_bytes(base)?;
        let mut by_spec: BTreeMap<std::cmp::Reverse<i32>, Vec<ManifestFile>> = BTreeMap::new();
        for manifest in all {
            by_spec.entry(std::cmp::Reverse(manifest.partition_spec_id)).or_default().push(manifest);
        }
        let (mut merged, mut replaced) = (Vec::new(), 0);
        for group in by_spec.into_values() {
            for pack in packs(group, target) {
                let waits = pack.len() < least && pack.iter().any(|manifest| manifest.manifest_path == first);
                if pack.len() == 1 || waits || !self.can_rewrite(base, &pack)? {
                    merged.extend(pack);
                    continue;
                }
                replaced += pack.iter().filter(|manifest| manifest.added_snapshot_id != self.snapshot_id).count();
                merged.push(self.rewrite(base, &pack)?);
            }
        }
        Ok((merged, replaced))
    }

    /// Partition values of a column that is gone have no type any more: such manifests stay as they are.
    fn can_rewrite(&self, base: &TableMetadata, pack: &[ManifestFile]) -> Result<bool> {
        let Some(manifest) = pack.first() else { return Ok(false) };
        let spec = spec_of(base, manifest)?;
        let types = spec.partition_type(base.current_schema());
        let known = |ty: &Type| !matches!(ty, Type::Primitive(PrimitiveType::Unknown | PrimitiveType::Unrecognized(_)));
        let fields = spec.fields.iter().zip(&types.fields);
        Ok(fields.into_iter().all(|(field, column)| field.transform.is_void() || known(&column.ty)))
    }

    /// One manifest with the live entries of several. Entries that other snapshots added are existing ones from now on.
    fn rewrite(&mut self, base: &TableMetadata, pack: &[ManifestFile]) -> Result<ManifestFile> {
        let key: Vec<String> = pack.iter().map(|manifest| manifest.manifest_path.clone()).collect();
        if let Some(known) = self.merged.get(&key) {
            return Ok(known.clone());
        }
        let Some(model) = pack.first() else { return Err(Error::Internal("nothing to merge".into())) };
        let mut writer = self.writer(base, spec_of(base, model)?, model.content)?;
        for manifest in pack {
            self.copy(base, manifest, &mut writer)?;
        }
        let made = self.finish(base, writer)?;
        self.merged.insert(key, made.clone());
        Ok(made)
    }

    /// Partition values are read as the types of today: their columns may have been promoted since.
    fn copy(&self, base: &TableMetadata, manifest: &ManifestFile, writer: &mut ManifestWriter) -> Result<()> {
        let path = &manifest.manifest_path;
        let partition_type = spec_of(base, manifest)?.partition_type(base.current_schema());
        let own = manifest.added_snapshot_id == self.snapshot_id;
        let options = ReadOptions {
            metrics: Metrics::all(),
            partition_type: Some(&partition_type),
            // What the list hands down is not assigned yet for a manifest of this commit.
            inherit: (!own).then_some(manifest),
            live_only: true,
            ..ReadOptions::default()
        };
        let bytes = self.storage.read_listed(path, manifest.manifest_length)?;
        let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
        let entries = entries::read(&bytes, &options, &limits()?).map_err(in_file)?;
        for row in 0..entries.len() {
            let mut entry = entries.entry(row, manifest.partition_spec_id).map_err(in_file)?;
            if !own {
                entry.status = Status::Existing;
            }
            writer.add(&entry)?;
        }
        Ok(())
    }

    /// Deletes every written file but those that are used.
    pub(super) fn clean(&mut self, used: &[String]) {
        let (kept, wasted) = std::mem::take(&mut self.written).into_iter().partition(|path| used.contains(path));
        self.written = kept;
        let wasted: Vec<String> = wasted;
        self.storage.discard(&wasted, "manifests and manifest lists that the commit does not use");
    }

    /// A manifest of another format version cannot be used in the next attempt.
    pub fn forget(&mut self) {
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

fn target_bytes(base: &TableMetadata) -> Result<usize> {
    let bytes = MANIFEST_TARGET_SIZE_BYTES.read(base.properties())?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX).max(1))
}

/// How manifests and manifest lists are compressed.
pub(super) fn compression(base: &TableMetadata) -> Result<Compression> {
    let codec = Codec::from_property(MANIFEST_COMPRESSION.read(base.properties()))?;
    let level = MANIFEST_COMPRESSION_LEVEL.read(base.properties())?;
    Ok(Compression { codec, level: level.and_then(|level| i32::try_from(level).ok()) })
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
