//! The files that the snapshots of a table reference: manifest lists, manifests, data and delete files; also the
//! statistics files and the metadata log.
//!
//! Everything that deletes files (expiry, purge) uses this module, so that all of it knows the same kinds of files.

use arrow_array::Array;
use bytes::Bytes;
use icefield_format::Limits;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{Entries, FileContent, ManifestFile, Status};
use icefield_format::metadata::{Snapshot, TableMetadata};

use super::manifests::{of_snapshot, with_own_lists};
use super::parallel::side_by_side;
use crate::error::{Error, Result};
use crate::storage::{FileRef, Storage};

/// Reads the files that a table references, concurrently. The caller decides what a failed read means.
pub(crate) struct Reachable<'a> {
    storage: &'a Storage,
    metadata: &'a TableMetadata,
    limits: &'a Limits,
}

/// An entry of a manifest for a data or delete file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) content: FileContent,
    pub(crate) status: Status,
    /// The snapshot that added or removed the file.
    pub(crate) snapshot_id: Option<i64>,
    /// Its size, as its entry says.
    pub(crate) bytes: u64,
}

impl<'a> Reachable<'a> {
    pub(crate) fn of(storage: &'a Storage, metadata: &'a TableMetadata, limits: &'a Limits) -> Self {
        Self { storage, metadata, limits }
    }

    pub(crate) fn metadata(&self) -> &'a TableMetadata {
        self.metadata
    }

    /// Calls `work` with the manifests of each wanted snapshot. Of several snapshots with the same manifest list, only
    /// the first is considered.
    pub(crate) fn manifests(
        &self,
        wanted: impl Fn(&Snapshot) -> bool,
        work: impl Fn(&Snapshot, Result<Vec<ManifestFile>>) + Sync,
    ) {
        let mut snapshots = with_own_lists(self.metadata);
        snapshots.retain(|snapshot| wanted(snapshot));
        self.each(&snapshots, |snapshot| {
            work(snapshot, of_snapshot(self.storage, self.metadata, snapshot, self.limits));
        });
    }

    /// Calls `work` with the entries of each manifest.
    pub(crate) fn entries(&self, manifests: &[&ManifestFile], work: impl Fn(Result<Entries>) + Sync) {
        self.each(manifests, |manifest| {
            let path = &manifest.manifest_path;
            work(self.bytes(path, Some(manifest)).and_then(|bytes| self.decode(path, &bytes, Some(manifest))));
        });
    }

    /// Reads the bytes of a manifest, decrypted by the key of its entry in a manifest list.
    pub(crate) fn bytes(&self, path: &str, listed: Option<&ManifestFile>) -> Result<Bytes> {
        let size = listed.and_then(|listed| u64::try_from(listed.manifest_length).ok()).unwrap_or(0);
        let key = listed.and_then(|listed| listed.key_metadata.as_deref());
        let (storage, _) = self.storage.decrypting(&FileRef { path, size, key })?;
        storage.read_at_most(path, self.limits.avro_bytes)
    }

    /// Decodes the entries of a manifest. Without `listed`, its entry in a manifest list, nothing is inherited or
    /// compared with it.
    pub(crate) fn decode(&self, path: &str, bytes: &[u8], listed: Option<&ManifestFile>) -> Result<Entries> {
        let options = ReadOptions { inherit: listed, ..ReadOptions::default() };
        entries::read(bytes, &options, self.limits).map_err(|error| Error::from(error.in_file(path)))
    }

    /// Calls `work` with each item, several at once.
    pub(crate) fn each<T: Sync>(&self, all: &[T], work: impl Fn(&T) + Sync) {
        side_by_side(self.storage, self.metadata.location(), all, work);
    }
}

/// The files in a manifest, including those of deleted entries.
pub(crate) fn files(entries: &Entries) -> impl Iterator<Item = Result<NamedFile<'_>>> {
    (0..entries.len()).map(|row| {
        Ok(NamedFile {
            path: entries.file_path.value(row),
            content: entries.content_of(row)?,
            status: entries.status_of(row)?,
            snapshot_id: entries.snapshot_id.is_valid(row).then(|| entries.snapshot_id.value(row)),
            bytes: u64::try_from(entries.file_size_in_bytes.value(row)).unwrap_or(0),
        })
    })
}

/// The manifest lists of all snapshots.
pub(crate) fn manifest_lists(metadata: &TableMetadata) -> impl Iterator<Item = &str> {
    metadata.snapshots().iter().filter_map(|snapshot| snapshot.manifest_list())
}

/// The statistics files and the partition statistics files.
pub(crate) fn statistics(metadata: &TableMetadata) -> impl Iterator<Item = &str> {
    let of_columns = metadata.statistics().iter().map(|file| file.statistics_path.as_str());
    of_columns.chain(metadata.partition_statistics().iter().map(|file| file.statistics_path.as_str()))
}

/// The earlier metadata files in the metadata log.
pub(crate) fn metadata_log(metadata: &TableMetadata) -> impl Iterator<Item = &str> {
    metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str())
}
