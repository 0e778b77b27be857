//! Reads the manifests that lists describe.

use bytes::Bytes;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list;
use icefield_format::manifest::{Entries, ManifestFile, Metrics};
use icefield_format::metadata::{Snapshot, SnapshotManifests};
use icefield_format::types::StructType;

use super::context::Check;
use crate::error::{Error, Result};
use crate::snapshot::manifests::of_snapshot;
use crate::storage::FileRef;

/// A manifest as its list describes it, with the location of the list.
pub(super) struct Listed {
    pub(super) file: ManifestFile,
    pub(super) list: String,
    /// Whether it is in a list: version 1 allows manifests that are not.
    pub(super) is_described: bool,
}

/// Reads the manifests of a snapshot. `None` if the list cannot be read: that is a finding, if `report` says so.
pub(super) fn listed(check: &Check<'_>, snapshot: &Snapshot, report: bool) -> Option<Vec<Listed>> {
    let (path, read) = match &snapshot.manifests {
        SnapshotManifests::List(path) if snapshot.key_id.is_none() => {
            let read = check.storage.read_at_most(path, check.limits.avro_bytes);
            let parsed = read
                .and_then(|bytes| list::read(&bytes, check.limits).map_err(|error| Error::from(error.in_file(path))));
            (path.as_str(), parsed.map(|list| list.manifests))
        }
        SnapshotManifests::List(path) => {
            (path.as_str(), of_snapshot(check.storage, check.metadata, snapshot, check.limits))
        }
        SnapshotManifests::Inline(_) => {
            (check.location, of_snapshot(check.storage, check.metadata, snapshot, check.limits))
        }
    };
    let is_described = matches!(snapshot.manifests, SnapshotManifests::List(_));
    match read {
        Ok(manifests) => {
            Some(manifests.into_iter().map(|file| Listed { file, list: path.to_owned(), is_described }).collect())
        }
        Err(error) => {
            if report {
                let at = check.at(path, check.location);
                check.unread(at, "manifest-list-missing", "manifest-list-unreadable", error);
            }
            None
        }
    }
}

/// Reads the entries of a manifest, even if they contradict the list.
pub(super) fn read(check: &Check<'_>, manifest: &Listed, metrics: Metrics) -> Result<(Bytes, Entries)> {
    read_as(check, manifest, metrics, None)
}

/// As [`read`], with partition values in the types of `partition_type`, which may be later than those of the manifest.
pub(super) fn read_as(
    check: &Check<'_>,
    manifest: &Listed,
    metrics: Metrics,
    partition_type: Option<&StructType>,
) -> Result<(Bytes, Entries)> {
    let path = &manifest.file.manifest_path;
    let (storage, _) = check.storage.decrypting(&FileRef::of_manifest(&manifest.file))?;
    let bytes = storage.read_at_most(path, check.limits.avro_bytes)?;
    let loose = ManifestFile {
        added_files_count: None,
        existing_files_count: None,
        deleted_files_count: None,
        ..manifest.file.clone()
    };
    let options = ReadOptions { inherit: Some(&loose), metrics, partition_type, ..ReadOptions::default() };
    let entries = entries::read(&bytes, &options, check.limits).map_err(|error| Error::from(error.in_file(path)))?;
    Ok((bytes, entries))
}
