//! Exports the metadata of a table for a report of a fault: what planning reads, and no rows.
//!
//! Bounds, partition values and paths contain values of rows, so they are left out unless they are asked for. Without
//! them manifests are written again; with them they are copied byte for byte.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use icefield_format::Limits;
use icefield_format::avro::Compression;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{ManifestContent, ManifestEntry, ManifestFile, Metrics};
use icefield_format::metadata::{FormatVersion, Snapshot, SnapshotManifests, TableMetadata};
use serde_json::{Map, Value as Json};

use crate::commit::{Committed, Spec, Specs};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::of_snapshot;
use crate::storage::{Storage, shown};

/// Where tables are in exports without values.
const ROOT: &str = "file:///icefield-export";
/// Properties about how tables are written and read; others may be about anything.
const KEPT_PROPERTIES: &[&str] = &["write.", "read.", "commit.", "history.", "gc.", "compatibility.", "format-version"];
/// Entries of summaries that are not numbers.
const KEPT_ENTRIES: &[&str] = &["operation", "engine-name", "engine-version", "iceberg-version"];
/// The property of an exported table that names the snapshots whose manifests are in the export.
const SNAPSHOTS: &str = "icefield.export.snapshots";
/// The sync marker of written files, which need none that is unique.
const SYNC: [u8; 16] = *b"icefield-export!";

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// The folders of files as their references name them, by the folders of the export.
    pub folders: BTreeMap<String, String>,
    /// Number of snapshots whose manifests are in the export.
    pub snapshots: usize,
    /// Number of manifests.
    pub manifests: usize,
}

/// The snapshots whose manifests exist, if the table is an export; of the others it has the description only.
pub(crate) fn exported_snapshots(metadata: &TableMetadata) -> Option<HashSet<i64>> {
    let named = metadata.property(SNAPSHOTS)?.split(',').filter(|id| !id.is_empty());
    let named: HashSet<i64> = named.map(|id| id.parse().ok()).collect::<Option<_>>()?;
    let is_named = |snapshot: &Snapshot| named.contains(&snapshot.snapshot_id);
    // Snapshots may have a manifest list in common.
    let snapshots = || metadata.snapshots().iter();
    let lists: HashSet<&str> = snapshots().filter(|one| is_named(one)).filter_map(|one| one.manifest_list()).collect();
    let has_list = |snapshot: &Snapshot| snapshot.manifest_list().is_some_and(|list| lists.contains(list));
    Some(snapshots().filter(|one| is_named(one) || has_list(one)).map(|one| one.snapshot_id).collect())
}

/// Takes a file of an export: its name and its bytes.
pub type Put<'a> = dyn FnMut(&str, Vec<u8>) -> Result<()> + 'a;

/// Exports the metadata file, and the manifest lists and manifests of some snapshots, by default of the current one.
/// With `values`, bounds, partition values and paths are kept.
///
/// # Errors
/// An encrypted table, an unknown snapshot, manifests that cannot be read, and errors of `put`.
pub fn export_metadata(
    storage: &Storage,
    table: &Committed,
    snapshots: &[i64],
    values: bool,
    put: &mut Put<'_>,
) -> Result<Exported> {
    let metadata = &table.metadata;
    let mut chosen: Vec<&Snapshot> = Vec::new();
    if snapshots.is_empty() {
        chosen.extend(metadata.current_snapshot().map(|snapshot| &**snapshot));
    }
    for id in snapshots {
        let found = metadata.snapshot(*id).ok_or_else(|| Error::invalid(format!("the table has no snapshot {id}")))?;
        chosen.push(found);
    }
    if !metadata.encryption_keys().is_empty() || chosen.iter().any(|snapshot| snapshot.key_id.is_some()) {
        return Err(encrypted());
    }
    let mut export = Export {
        storage,
        metadata,
        specs: Specs::of(metadata),
        limits: limits()?,
        hash: RandomState::new(),
        put,
        names: BTreeMap::new(),
        done: Exported::default(),
    };
    for snapshot in &chosen {
        match values {
            true => export.copy(snapshot)?,
            false => export.rewrite(snapshot)?,
        }
    }
    export.done.snapshots = chosen.len();
    let document = export.document(&chosen, values)?;
    (export.put)("metadata.json", document.into_bytes())?;
    Ok(export.done)
}

struct Export<'a, 'b> {
    storage: &'a Storage,
    metadata: &'a TableMetadata,
    specs: Specs,
    limits: Limits,
    hash: RandomState,
    put: &'a mut Put<'b>,
    /// The manifests of the export by their paths in the table.
    names: BTreeMap<String, ManifestFile>,
    done: Exported,
}

impl Export<'_, '_> {
    /// Copies the manifest list and the manifests of a snapshot.
    fn copy(&mut self, snapshot: &Snapshot) -> Result<()> {
        if let SnapshotManifests::List(path) = &snapshot.manifests {
            let bytes = self.storage.read_at_most(path, self.limits.avro_bytes)?;
            self.put_at(path, bytes.to_vec())?;
        }
        for manifest in of_snapshot(self.storage, self.metadata, snapshot, &self.limits)? {
            if manifest.key_metadata.is_some() {
                return Err(encrypted());
            }
            if !self.names.contains_key(&manifest.manifest_path) {
                let bytes = self.storage.read_at_most(&manifest.manifest_path, self.limits.avro_bytes)?;
                self.put_at(&manifest.manifest_path, bytes.to_vec())?;
                self.done.manifests += 1;
                self.names.insert(manifest.manifest_path.clone(), manifest);
            }
        }
        Ok(())
    }

    /// Puts a file into the folder of the export that stands for its folder.
    fn put_at(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let next = format!("files/{}", self.done.folders.len());
        let place = self.done.folders.entry(folder.to_owned()).or_insert(next);
        (self.put)(&format!("{place}/{name}"), bytes)
    }

    /// Writes the manifest list and the manifests of a snapshot again, without values.
    fn rewrite(&mut self, snapshot: &Snapshot) -> Result<()> {
        let manifests = of_snapshot(self.storage, self.metadata, snapshot, &self.limits)?;
        let mut listed = Vec::with_capacity(manifests.len());
        for manifest in manifests {
            let known = self.names.get(&manifest.manifest_path).cloned();
            listed.push(match known {
                Some(written) => written,
                None => self.rewrite_manifest(manifest)?,
            });
        }
        if matches!(snapshot.manifests, SnapshotManifests::Inline(_)) {
            return Ok(());
        }
        // The list of a snapshot that a table had before version 3 has no row ids.
        let table = self.metadata.format_version();
        let version = if snapshot.first_row_id.is_none() { table.min(FormatVersion::V2) } else { table };
        let mut list = ListWriter::new(ListOptions {
            format_version: version.number(),
            snapshot_id: snapshot.snapshot_id,
            parent_snapshot_id: snapshot.parent_snapshot_id,
            sequence_number: snapshot.sequence_number,
            first_row_id: snapshot.first_row_id,
            compression: Compression::default(),
            sync: SYNC,
        })?;
        listed.iter().try_for_each(|manifest| list.add(manifest))?;
        let bytes = list.finish()?.bytes;
        self.put_at(&list_path(snapshot.snapshot_id), bytes)
    }

    fn rewrite_manifest(&mut self, manifest: ManifestFile) -> Result<ManifestFile> {
        let path = &manifest.manifest_path;
        let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
        let spec = self.specs.of_manifest(&manifest)?.clone();
        let options = ReadOptions {
            metrics: Metrics::all(),
            partition_type: Some(&spec.partition_type),
            inherit: Some(&manifest),
            ..ReadOptions::default()
        };
        let bytes = self.storage.read_manifest(&manifest)?;
        let entries = entries::read(&bytes, &options, &self.limits).map_err(in_file)?;
        let mut writer = self.writer(&spec, &manifest)?;
        for row in 0..entries.len() {
            let mut entry = entries.entry(row, manifest.partition_spec_id).map_err(in_file)?;
            self.hide(&mut entry);
            writer.add(&entry)?;
        }
        let location = format!("{ROOT}/metadata/manifest-{:06}.avro", self.done.manifests);
        let (bytes, written) = writer.finish(&location)?;
        self.put_at(&location, bytes)?;
        self.done.manifests += 1;
        let path = path.clone();
        let (manifest_length, partitions) = (written.manifest_length, written.partitions);
        let written = ManifestFile { manifest_path: location, manifest_length, partitions, ..manifest };
        self.names.insert(path, written.clone());
        Ok(written)
    }

    fn writer(&self, spec: &Spec, manifest: &ManifestFile) -> Result<ManifestWriter> {
        let version = self.metadata.format_version();
        let least = if manifest.content == ManifestContent::Deletes { FormatVersion::V2 } else { FormatVersion::V1 };
        Ok(ManifestWriter::new(ManifestOptions {
            format_version: version.max(least).number(),
            content: manifest.content,
            schema: &spec.schema,
            spec: &spec.spec,
            snapshot_id: manifest.added_snapshot_id,
            first_row_id: manifest.first_row_id,
            compression: Compression::default(),
            sync: SYNC,
        })?)
    }

    /// Removes what may tell values of rows from an entry.
    fn hide(&self, entry: &mut ManifestEntry) {
        let file = &mut entry.file;
        file.lower_bounds = None;
        file.upper_bounds = None;
        file.key_metadata = None;
        file.partition.iter_mut().for_each(|value| *value = None);
        file.file_path = self.hidden(&file.file_path);
        file.referenced_data_file = file.referenced_data_file.take().map(|path| self.hidden(&path));
    }

    /// The path that stands for one: the same for the same one, within this export.
    fn hidden(&self, path: &str) -> String {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let known = ["parquet", "orc", "avro", "puffin"];
        let ending = ending.as_deref().filter(|ending| known.contains(ending)).unwrap_or("data");
        format!("{ROOT}/data/{:016x}.{ending}", self.hash.hash_one(path))
    }

    /// The metadata file.
    fn document(&self, chosen: &[&Snapshot], values: bool) -> Result<String> {
        let mut document = self.metadata.to_json_value();
        let Some(object) = document.as_object_mut() else {
            return Err(Error::Internal("the metadata are not an object".to_owned()));
        };
        let properties = object.entry("properties").or_insert_with(|| Map::new().into());
        if let Some(properties) = properties.as_object_mut() {
            let is_open = |name: &str, value: &Json| value.as_str().is_some_and(|text| shown(name, text) == text);
            properties.retain(|name, value| is_open(name, value) && (values || is_about_tables(name)));
            let ids: Vec<String> = chosen.iter().map(|snapshot| snapshot.snapshot_id.to_string()).collect();
            properties.insert(SNAPSHOTS.to_owned(), ids.join(",").into());
        }
        if values {
            return Ok(document.to_string());
        }
        object.insert("location".to_owned(), ROOT.into());
        for list in ["metadata-log", "statistics", "partition-statistics"] {
            object.remove(list);
        }
        for snapshot in object.get_mut("snapshots").and_then(Json::as_array_mut).into_iter().flatten() {
            if let Some(snapshot) = snapshot.as_object_mut() {
                self.hide_snapshot(snapshot);
            }
        }
        Ok(document.to_string())
    }

    fn hide_snapshot(&self, snapshot: &mut Map<String, Json>) {
        let id = snapshot.get("snapshot-id").and_then(Json::as_i64).unwrap_or_default();
        if let Some(list) = snapshot.get_mut("manifest-list") {
            *list = list_path(id).into();
        }
        for path in snapshot.get_mut("manifests").and_then(Json::as_array_mut).into_iter().flatten() {
            let written = path.as_str().and_then(|path| self.names.get(path));
            let hidden = || path.as_str().map(|path| self.hidden(path)).unwrap_or_default();
            *path = written.map_or_else(hidden, |written| written.manifest_path.clone()).into();
        }
        if let Some(summary) = snapshot.get_mut("summary").and_then(Json::as_object_mut) {
            let is_number = |value: &Json| value.as_str().is_some_and(|text| text.parse::<i64>().is_ok());
            summary.retain(|name, value| {
                KEPT_ENTRIES.contains(&name.as_str()) || (!name.starts_with("partitions.") && is_number(value))
            });
        }
    }
}

fn encrypted() -> Error {
    Error::unsupported("export: the table is encrypted, and its metadata would be plain in the export")
}

fn list_path(snapshot_id: i64) -> String {
    format!("{ROOT}/metadata/snap-{snapshot_id}.avro")
}

/// Whether a property is about how tables are written and read; those with paths are not.
fn is_about_tables(name: &str) -> bool {
    let is_path = name.ends_with(".path") || name.ends_with("-path");
    KEPT_PROPERTIES.iter().any(|prefix| name.starts_with(prefix)) && !is_path || name == "schema.name-mapping.default"
}
