//! A table with a history: files, manifests, manifest lists and metadata as from writers, and the expected rows.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use icefield_format::avro::Compression;
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, ManifestEntry, ManifestFile, Status};
use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef, Summary,
    TableDefinition, TableMetadata,
};
use icefield_format::puffin::DeletionVector;
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::Schema;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use icefield_table::operation::create::create;
use icefield_table::storage::{Existing, Storage};

use crate::changelog::rows::{Row, batch, schema, some};
use crate::files::{FORMATS, write_file};

/// What a commit does. Numbers select among the existing files.
#[derive(Debug, Clone)]
pub enum Step {
    /// Adds files.
    Append(Vec<Vec<Row>>),
    /// Deletes positions of files, in one delete file for several or one for each.
    Positions { targets: Vec<(usize, usize)>, apart: bool },
    /// Deletes positions of a file by a deletion vector, which replaces its previous vector; in version 2, by a
    /// position delete file.
    Vector { target: usize, positions: Vec<usize> },
    /// Deletes rows by values, and also adds rows.
    Equality { ids: Vec<i32>, rows: Vec<Row>, added: Vec<Row> },
    /// Rewrites a file without some rows, and with some others; drops the deletes of this file.
    Overwrite { target: usize, without: usize, added: Vec<Row> },
    /// Removes a data file.
    Remove(usize),
    /// Removes a delete file, so that rows come back.
    Undelete(usize),
    /// Rewrites the rows of all files to one file; no row changes.
    Compact,
    /// Rewrites manifests; no row changes.
    Manifests,
}

#[derive(Debug, Clone)]
enum Content {
    Data(Vec<Row>),
    Positions(Vec<(String, usize)>),
    Vector(String, BTreeSet<usize>),
    Equality(Vec<i32>, Vec<Row>),
}

#[derive(Debug, Clone)]
struct File {
    file: DataFile,
    sequence_number: i64,
    snapshot_id: i64,
    content: Content,
}

/// The table.
pub struct History {
    pub storage: Storage,
    pub metadata: Arc<TableMetadata>,
    /// The rows before the first snapshot, and after each.
    pub states: Vec<Vec<Row>>,
    pub snapshots: Vec<i64>,
    /// For each snapshot, whether it changed rows.
    pub changes: Vec<bool>,
    version: u8,
    location: String,
    files: Vec<File>,
    live: BTreeSet<usize>,
    manifests: Vec<(ManifestFile, Vec<usize>)>,
    next_row_id: i64,
}

impl History {
    pub fn new(version: u8) -> Self {
        static HISTORIES: AtomicU64 = AtomicU64::new(0);
        let location = format!("memory://changelog/{}", HISTORIES.fetch_add(1, Ordering::Relaxed));
        let storage = Storage::default();
        let definition = TableDefinition {
            schema: schema(),
            partition_spec: PartitionSpec::unpartitioned(),
            sort_order: SortOrder::unsorted(),
            location: location.clone(),
            properties: [("format-version".to_owned(), version.to_string())].into_iter().collect(),
        };
        let metadata = create(&storage, &definition).unwrap().metadata;
        Self {
            storage,
            metadata,
            states: vec![Vec::new()],
            snapshots: Vec::new(),
            changes: Vec::new(),
            version,
            location,
            files: Vec::new(),
            live: BTreeSet::new(),
            manifests: Vec::new(),
            next_row_id: 0,
        }
    }

    /// Commits a step; `merge` combines all manifests.
    pub fn commit(&mut self, step: &Step, format: usize, merge: bool) {
        let (mut added, mut removed) = (Vec::new(), BTreeSet::new());
        let mut operation = Operation::Overwrite;
        let data: Vec<usize> = self.of(|content| matches!(content, Content::Data(_)));
        let deletes: Vec<usize> = self.of(|content| !matches!(content, Content::Data(_)));
        let choose = |all: &[usize], number: usize| (!all.is_empty()).then(|| all[number % all.len()]);
        match step {
            Step::Append(files) => {
                operation = Operation::Append;
                added = files.iter().cloned().map(Content::Data).collect();
            }
            Step::Positions { targets, apart } => {
                let of = |(file, row): &(usize, usize)| {
                    let file = choose(&data, *file)?;
                    let rows = self.data(file).len();
                    (rows > 0).then(|| (self.files[file].file.file_path.clone(), row % rows))
                };
                let positions: Vec<(String, usize)> = targets.iter().filter_map(of).collect();
                let groups: Vec<Vec<_>> =
                    if *apart { positions.into_iter().map(|one| vec![one]).collect() } else { vec![positions] };
                added = groups.into_iter().filter(|group| !group.is_empty()).map(Content::Positions).collect();
            }
            Step::Vector { target, positions } => {
                if let Some(file) = choose(&data, *target).filter(|file| !self.data(*file).is_empty()) {
                    let (path, rows) = (self.files[file].file.file_path.clone(), self.data(file).len());
                    let mut all: BTreeSet<usize> = positions.iter().map(|position| position % rows).collect();
                    if self.version == 2 {
                        added.push(Content::Positions(all.into_iter().map(|one| (path.clone(), one)).collect()));
                    } else {
                        for place in &deletes {
                            match &self.files[*place].content {
                                Content::Vector(of, known) if *of == path => {
                                    all.extend(known);
                                    removed.insert(*place);
                                }
                                Content::Positions(known) => {
                                    all.extend(known.iter().filter(|(of, _)| *of == path).map(|(_, row)| row));
                                }
                                _ => {}
                            }
                        }
                        added.push(Content::Vector(path, all));
                    }
                }
            }
            Step::Equality { ids, rows, added: new } => {
                added.push(Content::Equality(ids.clone(), rows.clone()));
                if !new.is_empty() {
                    added.push(Content::Data(new.clone()));
                }
            }
            Step::Overwrite { target, without, added: new } => {
                if let Some(file) = choose(&data, *target) {
                    let mut rows = self.live_rows(file);
                    if !rows.is_empty() {
                        rows.remove(without % rows.len());
                    }
                    rows.extend(new.iter().cloned());
                    added.push(Content::Data(rows));
                    removed.insert(file);
                    let path = &self.files[file].file.file_path;
                    let own =
                        |place: &usize| matches!(&self.files[*place].content, Content::Vector(of, _) if of == path);
                    removed.extend(deletes.iter().copied().filter(own));
                }
            }
            Step::Remove(target) => {
                operation = Operation::Delete;
                removed.extend(choose(&data, *target));
            }
            Step::Undelete(target) => removed.extend(choose(&deletes, *target)),
            Step::Compact => {
                operation = Operation::Replace;
                let rows = data.iter().flat_map(|file| self.live_rows(*file)).collect();
                added.push(Content::Data(rows));
                removed.extend(data);
                removed.extend(deletes);
            }
            Step::Manifests => operation = Operation::Replace,
        }
        self.changes.push(operation != Operation::Replace);
        self.write(operation, added, &removed, format, merge || matches!(step, Step::Manifests));
    }

    fn of(&self, wanted: impl Fn(&Content) -> bool) -> Vec<usize> {
        self.live.iter().copied().filter(|place| wanted(&self.files[*place].content)).collect()
    }

    fn data(&self, place: usize) -> &[Row] {
        if let Content::Data(rows) = &self.files[place].content { rows } else { &[] }
    }

    /// The rows of a data file that no delete file deletes, by checking all delete files.
    fn live_rows(&self, place: usize) -> Vec<Row> {
        let data = &self.files[place];
        let deletes: Vec<&File> = self.live.iter().map(|place| &self.files[*place]).collect();
        let path = &data.file.file_path;
        let vector = deletes.iter().find_map(|delete| match &delete.content {
            Content::Vector(of, positions) if of == path => Some(positions),
            _ => None,
        });
        let is_deleted = |at: usize, row: &Row| {
            vector.is_some_and(|vector| vector.contains(&at))
                || deletes.iter().any(|delete| match &delete.content {
                    Content::Positions(all) => {
                        vector.is_none()
                            && delete.sequence_number >= data.sequence_number
                            && all.iter().any(|(of, position)| of == path && *position == at)
                    }
                    Content::Equality(ids, rows) => {
                        delete.sequence_number > data.sequence_number
                            && rows.iter().any(|other| other.key(ids) == row.key(ids))
                    }
                    _ => false,
                })
        };
        self.data(place)
            .iter()
            .enumerate()
            .filter(|(at, row)| !is_deleted(*at, row))
            .map(|(_, row)| row.clone())
            .collect()
    }

    fn write(
        &mut self,
        operation: Operation,
        added: Vec<Content>,
        removed: &BTreeSet<usize>,
        format: usize,
        merge: bool,
    ) {
        let number = i64::try_from(self.snapshots.len()).unwrap() + 1;
        let snapshot_id = 1000 + number;
        let mut new = Vec::new();
        for content in added {
            let path = format!("{}/data/{}", self.location, self.files.len());
            let file = self.write_file(path, &content, format);
            new.push(self.files.len());
            self.files.push(File { file, sequence_number: number, snapshot_id, content });
        }
        let mut list = ListWriter::new(ListOptions {
            format_version: self.version,
            snapshot_id,
            parent_snapshot_id: self.snapshots.last().copied(),
            sequence_number: number,
            first_row_id: (self.version >= 3).then_some(self.next_row_id),
            compression: Compression::default(),
            sync: [1; 16],
        })
        .unwrap();
        let mut listed: Vec<Vec<usize>> = Vec::new();
        for content in [ManifestContent::Data, ManifestContent::Deletes] {
            let old: Vec<_> =
                self.manifests.iter().filter(|(manifest, _)| manifest.content == content).cloned().collect();
            let (kept, again): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|(_, files)| !merge && files.iter().all(|file| !removed.contains(file)));
            for (manifest, files) in kept {
                list.add(&manifest).unwrap();
                listed.push(files);
            }
            let is_own = |place: &usize| {
                (self.files[*place].file.content == FileContent::Data) == (content == ManifestContent::Data)
            };
            let own: Vec<usize> = new.iter().copied().filter(is_own).collect();
            let mut groups: Vec<Vec<usize>> = again.into_iter().map(|(_, files)| files).collect();
            groups.push(own);
            if merge {
                groups = vec![groups.concat()];
            }
            for files in groups.into_iter().filter(|files| !files.is_empty()) {
                let manifest = self.write_manifest(content, &files, removed, snapshot_id, listed.len());
                list.add(&manifest).unwrap();
                listed.push(files.into_iter().filter(|file| !removed.contains(file)).collect());
            }
        }
        let written = list.finish().unwrap();
        let path = format!("{}/metadata/snap-{snapshot_id}.avro", self.location);
        self.storage.put(&path, written.bytes, Existing::Replace).unwrap();
        let first_row_id = (self.version >= 3).then_some(self.next_row_id);
        let next_row_id = written.next_row_id.unwrap_or(0);
        let summary = Summary { operation, properties: [].into_iter().collect() };
        let snapshot = Snapshot {
            snapshot_id,
            parent_snapshot_id: self.snapshots.last().copied(),
            sequence_number: number,
            timestamp_ms: self.metadata.last_updated_ms() + 1,
            summary: Some(summary),
            manifests: SnapshotManifests::List(path),
            schema_id: Some(0),
            first_row_id,
            added_rows: first_row_id.map(|first| next_row_id - first),
            key_id: None,
            unknown: serde_json::Map::new(),
        };
        self.next_row_id = next_row_id;
        let unknown = serde_json::Map::new();
        let reference = SnapshotRef { snapshot_id, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown };
        let builder = MetadataBuilder::from_base(&self.metadata, snapshot.timestamp_ms).apply_all([
            MetadataUpdate::AddSnapshot { snapshot: snapshot.into() },
            MetadataUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference },
        ]);
        self.metadata = Arc::new(builder.unwrap().build().unwrap());
        self.manifests = written.manifests.into_iter().zip(listed).filter(|(_, files)| !files.is_empty()).collect();
        self.live = self.live.difference(removed).copied().chain(new).collect();
        self.snapshots.push(snapshot_id);
        let data = self.of(|content| matches!(content, Content::Data(_)));
        self.states.push(data.into_iter().flat_map(|file| self.live_rows(file)).collect());
    }

    fn write_manifest(
        &self,
        content: ManifestContent,
        files: &[usize],
        removed: &BTreeSet<usize>,
        snapshot_id: i64,
        number: usize,
    ) -> ManifestFile {
        let (schema, spec) = (schema(), PartitionSpec::unpartitioned());
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: self.version,
            content,
            schema: &schema,
            spec: &spec,
            snapshot_id,
            first_row_id: None,
            compression: Compression::default(),
            sync: [7; 16],
        })
        .unwrap();
        for place in files {
            let file = &self.files[*place];
            let (status, id, sequence_number) = if removed.contains(place) {
                (Status::Deleted, snapshot_id, Some(file.sequence_number))
            } else if file.snapshot_id == snapshot_id {
                (Status::Added, snapshot_id, None)
            } else {
                (Status::Existing, file.snapshot_id, Some(file.sequence_number))
            };
            let entry = ManifestEntry {
                status,
                snapshot_id: Some(id),
                sequence_number,
                file_sequence_number: sequence_number,
                file: file.file.clone(),
            };
            writer.add(&entry).unwrap();
        }
        let path = format!("{}/metadata/{snapshot_id}-{number}.avro", self.location);
        let (bytes, manifest) = writer.finish(&path).unwrap();
        self.storage.put(&path, bytes, Existing::Replace).unwrap();
        manifest
    }

    fn write_file(&self, path: String, content: &Content, format: usize) -> DataFile {
        let of_format = |content: FileContent| DataFile {
            content,
            file_path: format!("{path}.{}", FORMATS[format]),
            file_format: FORMATS[format].to_uppercase(),
            ..DataFile::default()
        };
        let write = |mut file: DataFile, schema: Schema, rows: RecordBatch| {
            file.record_count = i64::try_from(rows.num_rows()).unwrap();
            file.file_size_in_bytes =
                i64::try_from(write_file(&self.storage, &file.file_path, &Arc::new(schema), &groups(&rows), format))
                    .unwrap();
            file
        };
        match content {
            Content::Data(rows) => write(of_format(FileContent::Data), schema(), batch(&schema(), rows)),
            Content::Equality(ids, rows) => {
                let file = of_format(FileContent::EqualityDeletes);
                write(DataFile { equality_ids: Some(ids.clone()), ..file }, some(ids), batch(&some(ids), rows))
            }
            Content::Positions(all) => {
                let schema = Schema::new(0, vec![DELETE_FILE_PATH.to_field(), DELETE_FILE_POS.to_field()]).unwrap();
                let paths: ArrayRef = Arc::new(StringArray::from_iter_values(all.iter().map(|(path, _)| path)));
                let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(all.iter().map(|(_, row)| *row as i64)));
                let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
                let paths_named: HashSet<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
                let referenced_data_file =
                    (paths_named.len() == 1).then(|| paths_named.into_iter().next().unwrap().to_owned());
                let file = DataFile { referenced_data_file, ..of_format(FileContent::PositionDeletes) };
                write(file, schema, RecordBatch::try_new(arrow, vec![paths, numbers]).unwrap())
            }
            Content::Vector(of, positions) => {
                let vector = DeletionVector::from_positions(positions.iter().map(|row| *row as u64)).unwrap();
                let blob = vector.to_bytes().unwrap();
                let path = format!("{path}.puffin");
                let bytes = [b"PFA1".as_slice(), &blob, b"footer"].concat();
                let file = DataFile {
                    content: FileContent::PositionDeletes,
                    file_path: path.clone(),
                    file_format: "PUFFIN".to_owned(),
                    record_count: positions.len() as i64,
                    file_size_in_bytes: bytes.len() as i64,
                    referenced_data_file: Some(of.clone()),
                    content_offset: Some(4),
                    content_size_in_bytes: Some(blob.len() as i64),
                    ..DataFile::default()
                };
                self.storage.put(&path, bytes, Existing::Replace).unwrap();
                file
            }
        }
    }

    /// The number of occurrences of each row in a state.
    pub fn counted(&self, state: usize) -> BTreeMap<String, i64> {
        crate::changelog::rows::counted(self.states[state].iter().map(Row::text))
    }
}

/// A few rows per row group, so that files are read in parts.
fn groups(rows: &RecordBatch) -> Vec<RecordBatch> {
    let starts = (0..rows.num_rows()).step_by(3);
    starts.map(|start| rows.slice(start, 3.min(rows.num_rows() - start))).collect()
}
