//! The manifests of a snapshot ("Manifest Lists"; v1 snapshots may name their manifests themselves).

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::Limits;
use icefield_format::manifest::entries::ManifestHeader;
use icefield_format::manifest::list::{self, ManifestFile};
use icefield_format::metadata::{Snapshot, SnapshotManifests, TableMetadata};
use icefield_format::spec::PartitionSpec;

use crate::error::{Error, Result};
use crate::storage::Storage;

/// Reads which manifests a snapshot has.
pub fn of_snapshot(
    storage: &Storage,
    metadata: &TableMetadata,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Vec<ManifestFile>> {
    if let Some(key) = &snapshot.key_id {
        return Err(Error::unsupported(format!(
            "reading snapshot {}: its manifest list is encrypted (by the key {key})",
            snapshot.snapshot_id
        )));
    }
    match &snapshot.manifests {
        SnapshotManifests::List(path) => {
            let read = list::read(&storage.read_at_most(path, limits.avro_bytes)?, limits)
                .map_err(|error| error.in_file(path))?;
            Ok(read.manifests)
        }
        SnapshotManifests::Inline(paths) => {
            paths.iter().map(|path| inline(storage, metadata, snapshot, path, limits)).collect()
        }
    }
}

/// The snapshots of a table, of those with the same manifest list the first.
pub fn with_own_lists(metadata: &TableMetadata) -> Vec<&Arc<Snapshot>> {
    let mut known = HashSet::new();
    let mut found: Vec<&Arc<Snapshot>> = Vec::new();
    for snapshot in metadata.snapshots() {
        if snapshot.manifest_list().is_none_or(|path| known.insert(path)) {
            found.push(snapshot);
        }
    }
    found
}

/// A manifest that no list describes: what a list would say is in its header, or is not known.
fn inline(
    storage: &Storage,
    metadata: &TableMetadata,
    snapshot: &Snapshot,
    path: &str,
    limits: &Limits,
) -> Result<ManifestFile> {
    let bytes = storage.read_at_most(path, limits.avro_bytes)?;
    let header = ManifestHeader::read(&bytes).map_err(|error| Error::from(error.in_file(path)))?;
    Ok(ManifestFile {
        manifest_path: path.to_owned(),
        manifest_length: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        partition_spec_id: header.partition_spec_id.unwrap_or_else(|| metadata.default_spec_id()),
        content: header.content,
        sequence_number: 0,
        min_sequence_number: 0,
        added_snapshot_id: snapshot.snapshot_id,
        added_files_count: None,
        existing_files_count: None,
        deleted_files_count: None,
        added_rows_count: None,
        existing_rows_count: None,
        deleted_rows_count: None,
        partitions: None,
        key_metadata: None,
        first_row_id: None,
    })
}

/// The partition spec of a manifest.
pub fn spec_of<'a>(metadata: &'a TableMetadata, manifest: &ManifestFile) -> Result<&'a Arc<PartitionSpec>> {
    metadata.partition_spec(manifest.partition_spec_id).ok_or_else(|| {
        Error::corrupt_file(
            &manifest.manifest_path,
            format!("its partition spec {} is not one of the table's", manifest.partition_spec_id),
        )
    })
}
