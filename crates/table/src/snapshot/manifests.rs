//! Reads the manifests of a snapshot ("Manifest Lists"; a snapshot of version 1 may list its manifests itself).

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::Limits;
use icefield_format::manifest::ManifestContent;
use icefield_format::manifest::entries::ManifestHeader;
use icefield_format::manifest::list::{self, ManifestFile};
use icefield_format::metadata::{Snapshot, SnapshotManifests, TableMetadata};
use icefield_format::spec::PartitionSpec;

use crate::error::{Error, Result};
use crate::storage::{FileRef, Storage};

/// Reads the list of a snapshot's manifests.
pub fn of_snapshot(
    storage: &Storage,
    metadata: &TableMetadata,
    snapshot: &Snapshot,
    limits: &Limits,
) -> Result<Vec<ManifestFile>> {
    match &snapshot.manifests {
        SnapshotManifests::List(path) => {
            let key = list_key(storage, metadata, snapshot)?;
            let (storage, _) = storage.decrypting(&FileRef { path, size: 0, key: key.as_deref() })?;
            let read = list::read(&storage.read_at_most(path, limits.avro_bytes)?, limits)
                .map_err(|error| error.in_file(path))?;
            check(&read.manifests, metadata).map_err(|message| Error::corrupt_file(path, message))?;
            Ok(read.manifests)
        }
        SnapshotManifests::Inline(paths) => {
            let manifests = paths.iter().map(|path| inline(storage, metadata, snapshot, path, limits));
            let manifests = manifests.collect::<Result<Vec<_>>>()?;
            check(&manifests, metadata).map_err(|message| {
                icefield_format::Error::corrupt(format!("snapshot {}", snapshot.snapshot_id), message)
            })?;
            Ok(manifests)
        }
    }
}

/// The key metadata of a snapshot's manifest list; `None` if that is not encrypted.
///
/// # Errors
/// A storage without keys, and a key that cannot be had.
pub fn list_key(storage: &Storage, metadata: &TableMetadata, snapshot: &Snapshot) -> Result<Option<Vec<u8>>> {
    let Some(key_id) = &snapshot.key_id else { return Ok(None) };
    let Some(keyring) = storage.keyring() else {
        return Err(Error::unsupported(format!(
            "reading snapshot {}: its manifest list is encrypted (by the key {key_id}); load the table by a catalog with \
             the property encryption.kms-type or encryption.kms-impl",
            snapshot.snapshot_id
        )));
    };
    let found = keyring.of_snapshot(metadata.encryption_keys(), key_id);
    let found = found.map_err(|error| match snapshot.manifest_list() {
        Some(path) => error.in_file(path),
        None => error,
    });
    Ok(Some(found?.to_bytes()))
}

/// Rejects a data manifest that is listed twice, since its rows would be read twice, and a manifest newer than the
/// table.
fn check(manifests: &[ManifestFile], metadata: &TableMetadata) -> Result<(), String> {
    let mut known = HashSet::with_capacity(manifests.len());
    let last = metadata.last_sequence_number();
    for manifest in manifests {
        let path = &manifest.manifest_path;
        if manifest.content == ManifestContent::Data && !known.insert(path.as_str()) {
            return Err(format!("it names the manifest {path} twice"));
        }
        if manifest.sequence_number > last {
            let number = manifest.sequence_number;
            return Err(format!(
                "the manifest {path} has the sequence number {number}, the last one of the table is {last}"
            ));
        }
    }
    Ok(())
}

/// The snapshots of a table; of several with the same manifest list, only the first.
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

/// Describes a manifest that is in no manifest list, from its header; other values are unknown.
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
