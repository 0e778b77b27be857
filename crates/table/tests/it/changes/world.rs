//! A table in memory without data files, and commits of others between the attempts of a commit.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use icefield_format::expr::Expr;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, ManifestFile, Metrics, Status};
use icefield_format::metadata::{Snapshot, TableDefinition, TableMetadata};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_format::value::Value;
use icefield_table::commit::{Committed, Content, Pointer, PointerCatalog, SnapshotOptions, Specs, read_metadata};
use icefield_table::operation::append::Append;
use icefield_table::operation::create::create;
use icefield_table::snapshot::manifests::of_snapshot;
use icefield_table::storage::Storage;
use icefield_table::{Changed, Error, Result, Table};

/// An action before a swap of the pointer; if it returns true, the swap fails with a conflict.
type Before = Box<dyn FnMut() -> bool + Send>;

/// The pointer of one table.
pub struct Catalog {
    location: Mutex<String>,
    /// The actions before the next swaps, in reverse order.
    pub before: Mutex<Vec<Before>>,
    /// Whether the next swap takes effect but its reply is lost; later reads of the pointer fail then.
    pub unknown: Mutex<bool>,
}

impl Pointer for Catalog {
    fn load(&self) -> Result<String> {
        if *self.unknown.lock().unwrap() {
            return Err(Error::Callback("no reply".into()));
        }
        Ok(self.location.lock().unwrap().clone())
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        let before = self.before.lock().unwrap().pop();
        if before.is_some_and(|mut before| before()) {
            return Err(Error::CommitFailed("another commit was first".into()));
        }
        let mut location = self.location.lock().unwrap();
        if *location != base {
            return Err(Error::CommitFailed("the table has changed".into()));
        }
        new.clone_into(&mut location);
        Ok(())
    }
}

#[derive(Clone)]
pub struct World {
    pub storage: Storage,
    pub catalog: Arc<Catalog>,
    opened: Committed,
    root: String,
}

/// A manifest entry, with snapshots by their number in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub status: Status,
    pub name: String,
    pub snapshot: usize,
    pub sequence_number: i64,
}

pub fn schema() -> Schema {
    let fields = vec![Field::required(1, "id", PrimitiveType::Long), Field::optional(2, "cat", PrimitiveType::String)];
    Schema::new(0, fields).unwrap()
}

impl World {
    /// A table that is partitioned by `cat`.
    pub fn new(version: u8, properties: &[(&str, &str)]) -> Self {
        Self::partitioned(version, &["cat"], properties)
    }

    pub fn partitioned(version: u8, spec: &[&str], properties: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let root = format!("memory://changes/{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let version = version.to_string();
        let all = [
            ("format-version", version.as_str()),
            ("commit.retry.min-wait-ms", "1"),
            ("commit.status-check.num-retries", "1"),
            ("commit.status-check.min-wait-ms", "1"),
        ];
        let properties = all.iter().chain(properties).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let definition = TableDefinition {
            schema: schema(),
            partition_spec: PartitionSpec::from_text(0, spec, &schema()).unwrap(),
            sort_order: SortOrder::unsorted(),
            location: root.clone(),
            properties: properties.collect(),
        };
        let storage = Storage::default();
        let opened = create(&storage, &definition).unwrap();
        let location = Mutex::new(opened.location.clone());
        let catalog = Catalog { location, before: Mutex::default(), unknown: Mutex::default() };
        Self { storage, catalog: Arc::new(catalog), opened, root }
    }

    pub fn metadata(&self) -> TableMetadata {
        read_metadata(&self.storage, &self.catalog.location.lock().unwrap()).unwrap()
    }

    pub fn table(&self, storage: &Storage) -> Table {
        let catalog = PointerCatalog::new(storage.clone(), self.catalog.clone());
        Table::new(storage.clone(), Arc::new(catalog), self.opened.clone())
    }

    pub fn change(&self, content: impl Content) -> Result<Changed> {
        self.table(&self.storage).change(content, SnapshotOptions::default())
    }

    pub fn append(&self, files: &[DataFile]) -> i64 {
        self.change(Append::new(files.to_vec()).unwrap()).unwrap().snapshot_id.unwrap()
    }

    /// Lets the next swap fail because of a commit that is made before it.
    pub fn lose_to(&self, commit: impl Fn(&Self) + Send + 'static) {
        let world = self.clone();
        self.catalog.before.lock().unwrap().push(Box::new(move || {
            commit(&world);
            true
        }));
    }

    pub fn head(&self) -> Option<Arc<Snapshot>> {
        self.metadata().current_snapshot().cloned()
    }

    pub fn summary(&self, name: &str) -> Option<String> {
        self.head()?.summary.as_ref()?.get(name).map(ToOwned::to_owned)
    }

    pub fn operation(&self) -> String {
        self.head().unwrap().summary.as_ref().unwrap().operation.as_str().to_owned()
    }

    /// The manifests of the current snapshot.
    pub fn manifests(&self) -> Vec<ManifestFile> {
        let Some(head) = self.head() else { return Vec::new() };
        of_snapshot(&self.storage, &self.metadata(), &head, &Default::default()).unwrap()
    }

    /// The entries of a manifest.
    pub fn entries(&self, manifest: &ManifestFile) -> Vec<Entry> {
        let metadata = self.metadata();
        let specs = Specs::of(&metadata);
        let options = ReadOptions {
            metrics: Metrics::all(),
            partition_type: Some(&specs.of_manifest(manifest).unwrap().partition_type),
            inherit: Some(manifest),
            ..ReadOptions::default()
        };
        let bytes = self.storage.read(&manifest.manifest_path).unwrap();
        let read = entries::read(&bytes, &options, &Default::default()).unwrap();
        let number = |id| metadata.snapshots().iter().position(|snapshot| snapshot.snapshot_id == id).unwrap();
        let entry = |row| {
            let entry = read.entry(row, 0).unwrap();
            Entry {
                status: entry.status,
                name: entry.file.file_path,
                snapshot: number(entry.snapshot_id.unwrap()),
                sequence_number: entry.sequence_number.unwrap_or_default(),
            }
        };
        (0..read.len()).map(entry).collect()
    }

    /// All entries of one content.
    pub fn all(&self, content: ManifestContent) -> Vec<Entry> {
        let of_content = self.manifests().into_iter().filter(|manifest| manifest.content == content);
        of_content.flat_map(|manifest| self.entries(&manifest)).collect()
    }

    /// The names of live files of one content.
    pub fn live(&self, content: ManifestContent) -> BTreeSet<String> {
        let live = self.all(content).into_iter().filter(|entry| entry.status.is_live());
        live.map(|entry| entry.name).collect()
    }

    /// Manifests and lists that no snapshot uses.
    pub fn orphans(&self) -> Vec<String> {
        let metadata = self.metadata();
        let mut used = BTreeSet::new();
        for snapshot in metadata.snapshots() {
            used.insert(snapshot.manifest_list().unwrap().to_owned());
            let manifests = of_snapshot(&self.storage, &metadata, snapshot, &Default::default()).unwrap();
            used.extend(manifests.into_iter().map(|manifest| manifest.manifest_path));
        }
        let all = self.storage.list(&format!("{}/metadata", self.root)).unwrap();
        let all = all.into_iter().map(|entry| entry.path).filter(|path| path.ends_with(".avro"));
        all.filter(|path| !used.contains(path)).collect()
    }

    /// Returns the error of a change, and checks that it leaves nothing behind.
    pub fn refusal(&self, content: impl Content) -> String {
        let (before, orphans) = (self.metadata(), self.orphans());
        let refused = self.change(content).unwrap_err();
        assert!(self.metadata() == before, "the table is as it was");
        assert_eq!(self.orphans(), orphans, "nothing is left behind");
        refused.to_string()
    }
}

/// A data file of a partition, with bounds of its ids.
pub fn file(name: &str, cat: Option<&str>, ids: (i64, i64)) -> DataFile {
    let bytes = |id: i64| vec![(1, id.to_le_bytes().to_vec())];
    DataFile {
        content: FileContent::Data,
        file_path: name.to_owned(),
        file_format: "PARQUET".to_owned(),
        partition: vec![cat.map(|cat| Value::String(cat.to_owned()))],
        record_count: 10,
        file_size_in_bytes: 100,
        value_counts: Some(vec![(1, 10)]),
        null_value_counts: Some(vec![(1, 0)]),
        lower_bounds: Some(bytes(ids.0)),
        upper_bounds: Some(bytes(ids.1)),
        ..DataFile::default()
    }
}

/// Deletes by values of `id` in a partition.
pub fn equality(name: &str, cat: &str) -> DataFile {
    DataFile {
        content: FileContent::EqualityDeletes,
        file_path: name.to_owned(),
        equality_ids: Some(vec![1]),
        record_count: 2,
        file_size_in_bytes: 20,
        value_counts: None,
        null_value_counts: None,
        lower_bounds: None,
        upper_bounds: None,
        ..file(name, Some(cat), (0, 0))
    }
}

/// Deletes of positions in a partition.
pub fn positions(name: &str, cat: &str) -> DataFile {
    DataFile { content: FileContent::PositionDeletes, equality_ids: None, ..equality(name, cat) }
}

/// A deletion vector of a data file.
pub fn vector(name: &str, of: &DataFile, offset: i64) -> DataFile {
    DataFile {
        content: FileContent::PositionDeletes,
        file_path: name.to_owned(),
        file_format: "PUFFIN".to_owned(),
        partition: of.partition.clone(),
        record_count: 1,
        file_size_in_bytes: 1000,
        referenced_data_file: Some(of.file_path.clone()),
        content_offset: Some(offset),
        content_size_in_bytes: Some(40),
        ..DataFile::default()
    }
}

pub fn filter(text: &str) -> Expr {
    Expr::parse(text).unwrap()
}

pub fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}
