//! The contents of the files of a simulated table, and the resulting rows of its snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{DataFile, FileContent, ManifestFile, Metrics};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::value::Value;
use icefield_table::commit::Specs;
use icefield_table::snapshot::manifests::of_snapshot;
use icefield_table::storage::Storage;

use crate::change::{Row, partition_of};

/// The content of a file.
#[derive(Debug, Clone)]
pub enum Content {
    Rows(Vec<Row>),
    /// Positions in one data file.
    Positions(String, BTreeSet<usize>),
    Keys(BTreeSet<i64>),
}

/// Files by path.
pub type Contents = BTreeMap<String, Content>;

/// The live files of a snapshot, with their data sequence numbers.
#[derive(Debug, Clone, Default)]
pub struct Live {
    pub data: Vec<(DataFile, i64)>,
    pub deletes: Vec<(DataFile, i64)>,
}

/// All files that a snapshot refers to.
#[derive(Debug, Default)]
pub struct Named {
    pub live: Live,
    /// Its manifest list and its manifests.
    pub metadata: Vec<String>,
    /// The files that its manifests say were removed.
    pub removed: Vec<String>,
}

/// A cache of snapshots and manifests, which never change. Callers check that their files still exist.
#[derive(Debug, Default)]
pub struct Manifests {
    /// By manifest list.
    snapshots: Mutex<BTreeMap<String, Arc<Named>>>,
    /// By path and the values that their entries inherit.
    manifests: Mutex<BTreeMap<String, Arc<Listed>>>,
}

/// The contents of a manifest.
#[derive(Debug, Default)]
struct Listed {
    live: Live,
    /// The files that it lists as removed.
    removed: Vec<String>,
}

impl Manifests {
    fn read(&self, storage: &Storage, specs: &Specs, manifest: &ManifestFile) -> Result<Arc<Listed>, String> {
        // Entries inherit values from the manifest list. A repeated transaction lists the manifests of its added files
        // again with a new sequence number; a writer that read the table between its changes has seen them with another
        // one.
        let ManifestFile { manifest_path, sequence_number, added_snapshot_id, first_row_id, .. } = manifest;
        let key = format!("{manifest_path} {sequence_number} {added_snapshot_id} {first_row_id:?}");
        if let Some(known) = self.manifests.lock().unwrap().get(&key) {
            return Ok(known.clone());
        }
        let bytes = storage.read(&manifest.manifest_path).map_err(|error| error.to_string())?;
        let options = ReadOptions {
            metrics: Metrics::all(),
            partition_type: Some(&specs.of_manifest(manifest).unwrap().partition_type),
            inherit: Some(manifest),
            ..ReadOptions::default()
        };
        let read = entries::read(&bytes, &options, &Default::default()).map_err(|error| error.to_string())?;
        let mut listed = Listed::default();
        for row in 0..read.len() {
            let entry = read.entry(row, manifest.partition_spec_id).unwrap();
            let number = entry.sequence_number.unwrap();
            match entry.file.content {
                _ if !entry.status.is_live() => listed.removed.push(entry.file.file_path),
                FileContent::Data => listed.live.data.push((entry.file, number)),
                _ => listed.live.deletes.push((entry.file, number)),
            }
        }
        let listed = Arc::new(listed);
        self.manifests.lock().unwrap().insert(key, listed.clone());
        Ok(listed)
    }

    /// The live files of a snapshot, and all files that it refers to.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn of(
        &self,
        storage: &Storage,
        metadata: &TableMetadata,
        snapshot: Option<&Arc<Snapshot>>,
    ) -> Result<Arc<Named>, String> {
        let Some(snapshot) = snapshot else { return Ok(Arc::default()) };
        // The manifest list, not the id: an uncommitted transaction may create a snapshot again with the same id.
        let key = snapshot.manifest_list().unwrap().to_owned();
        if let Some(known) = self.snapshots.lock().unwrap().get(&key) {
            return Ok(known.clone());
        }
        let mut named = Named::default();
        let specs = Specs::of(metadata);
        let failed = |error: String| format!("snapshot {}: {error}", snapshot.snapshot_id);
        named.metadata.extend(snapshot.manifest_list().map(str::to_owned));
        let manifests = of_snapshot(storage, metadata, snapshot, &Default::default());
        for manifest in manifests.map_err(|error| failed(error.to_string()))? {
            let listed = self.read(storage, &specs, &manifest).map_err(failed)?;
            named.live.data.extend(listed.live.data.iter().cloned());
            named.live.deletes.extend(listed.live.deletes.iter().cloned());
            named.removed.extend(listed.removed.iter().cloned());
            named.metadata.push(manifest.manifest_path);
        }
        let named = Arc::new(named);
        self.snapshots.lock().unwrap().insert(key, named.clone());
        Ok(named)
    }
}

impl Live {
    /// The rows of a data file that are not deleted, with their positions.
    pub fn rows(&self, contents: &Contents, file: &DataFile, number: i64) -> Vec<(usize, Row)> {
        let Some(Content::Rows(rows)) = contents.get(&file.file_path) else { panic!("{}: no data", file.file_path) };
        let deleted = |position: usize, (key, _): Row| {
            self.deletes.iter().any(|(delete, of)| match &contents[&delete.file_path] {
                Content::Positions(path, positions) => {
                    *of >= number && *path == file.file_path && positions.contains(&position)
                }
                Content::Keys(keys) => *of > number && self.is_about(delete, file) && keys.contains(&key),
                Content::Rows(_) => panic!("{}: rows in a delete file", delete.file_path),
            })
        };
        rows.iter().copied().enumerate().filter(|(position, row)| !deleted(*position, *row)).collect()
    }

    /// Whether a delete file is about the partition of a data file.
    pub fn is_about(&self, delete: &DataFile, file: &DataFile) -> bool {
        let own = (delete.partition_spec_id, &delete.partition) == (file.partition_spec_id, &file.partition);
        own || (delete.content == FileContent::EqualityDeletes && delete.partition_spec_id == WHOLE)
    }

    /// All rows, sorted.
    pub fn all(&self, contents: &Contents) -> Vec<Row> {
        let rows = self.data.iter().flat_map(|(file, number)| self.rows(contents, file, *number));
        let mut rows: Vec<Row> = rows.map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }

    /// The deletion vector of a data file.
    pub fn vector_of<'a>(&'a self, path: &'a str) -> Option<&'a DataFile> {
        self.positions_of(path).map(|(file, _)| file).find(|file| file.file_format == "PUFFIN")
    }

    /// The position delete files of a data file.
    pub fn positions_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a (DataFile, i64)> + 'a {
        self.deletes.iter().filter(move |(file, _)| file.referenced_data_file.as_deref() == Some(path))
    }
}

/// The id of the unpartitioned spec; that of the partitioned spec is 0.
pub const WHOLE: i32 = 1;

/// The partition of a key in a spec.
fn tuple_of(key: i64, spec: i32) -> Vec<Option<Value>> {
    if spec == WHOLE { Vec::new() } else { vec![Some(Value::Int(partition_of(key)))] }
}

/// The manifest entry of a data file with these rows, all in one partition of the spec.
pub fn data_file(path: String, rows: &[Row], spec: i32) -> DataFile {
    let keys = || rows.iter().map(|(key, _)| *key);
    let partitions = || keys().map(partition_of);
    let bound = |key: Option<i64>, partition: Option<i32>| {
        Some(vec![(1, key.unwrap().to_le_bytes().to_vec()), (2, partition.unwrap().to_le_bytes().to_vec())])
    };
    let count = rows.len() as i64;
    DataFile {
        content: FileContent::Data,
        file_path: path,
        file_format: "PARQUET".to_owned(),
        partition_spec_id: spec,
        partition: tuple_of(rows[0].0, spec),
        record_count: count,
        file_size_in_bytes: 100,
        value_counts: Some(vec![(1, count), (2, count)]),
        null_value_counts: Some(vec![(1, 0), (2, 0)]),
        lower_bounds: bound(keys().min(), partitions().min()),
        upper_bounds: bound(keys().max(), partitions().max()),
        ..DataFile::default()
    }
}

/// The manifest entry of position deletes for a data file: a deletion vector in version 3.
pub fn position_deletes(path: String, of: &DataFile, count: usize, version: u8) -> DataFile {
    let vector = version >= 3;
    DataFile {
        content: FileContent::PositionDeletes,
        file_path: path,
        file_format: if vector { "PUFFIN" } else { "PARQUET" }.to_owned(),
        partition_spec_id: of.partition_spec_id,
        partition: of.partition.clone(),
        record_count: count as i64,
        file_size_in_bytes: 50,
        referenced_data_file: Some(of.file_path.clone()),
        content_offset: vector.then_some(4),
        content_size_in_bytes: vector.then_some(40),
        ..DataFile::default()
    }
}

/// The manifest entry of equality deletes for keys, all in one partition of the spec.
pub fn equality_deletes(path: String, keys: &BTreeSet<i64>, spec: i32, bounds: bool) -> DataFile {
    let count = keys.len() as i64;
    let bound = |key: Option<&i64>| bounds.then(|| vec![(1, key.unwrap().to_le_bytes().to_vec())]);
    DataFile {
        content: FileContent::EqualityDeletes,
        file_path: path,
        file_format: "PARQUET".to_owned(),
        partition_spec_id: spec,
        partition: tuple_of(*keys.first().unwrap(), spec),
        record_count: count,
        file_size_in_bytes: 50,
        equality_ids: Some(vec![1]),
        value_counts: bounds.then(|| vec![(1, count)]),
        null_value_counts: bounds.then(|| vec![(1, 0)]),
        lower_bounds: bound(keys.first()),
        upper_bounds: bound(keys.last()),
        ..DataFile::default()
    }
}
