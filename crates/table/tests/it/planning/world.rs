//! Tables without data files: manifests, a manifest list and metadata, written by our own writers, for planning.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::avro::Compression;
use icefield_format::expr::Expr;
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, ManifestEntry, ManifestFile, Metrics, Status};
use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef, Summary,
    TableDefinition, TableMetadata,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_format::value::Value;
use icefield_table::operation::create::create;
use icefield_table::plan::{At, Plan, Scan};
use icefield_table::storage::{Existing, Storage};

pub const ID: i32 = 1;
pub const NAME: i32 = 3;
/// Field id of `file_path` in position delete files.
pub const PATH: i32 = 2_147_483_546;
/// The snapshot of every world.
pub const SNAPSHOT: i64 = 9;

/// Partition specs by their ids: by day and bucket, unpartitioned, by the prefix of a name, by id.
pub const SPECS: [&[&str]; 4] = [&["day", "bucket(4, id)"], &[], &["truncate(2, name)"], &["id"]];

/// A manifest before it is written.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    pub spec_id: usize,
    pub sequence_number: i64,
    pub deletes: bool,
    pub entries: Vec<(bool, DataFile)>,
    /// The format version, if not that of the table.
    pub version: Option<u8>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct World {
    pub storage: Storage,
    pub metadata: Arc<TableMetadata>,
    /// The manifests as listed.
    pub listed: Vec<ManifestFile>,
}

pub fn schema() -> Schema {
    let fields = vec![
        Field::required(ID, "id", PrimitiveType::Long),
        Field::optional(2, "day", PrimitiveType::Date),
        Field::optional(NAME, "name", PrimitiveType::String),
        Field::optional(4, "price", PrimitiveType::Double),
    ];
    Schema::new(0, fields).unwrap()
}

pub fn spec(id: usize) -> PartitionSpec {
    PartitionSpec::from_text(i32::try_from(id).unwrap(), SPECS[id], &schema()).unwrap()
}

/// A partition tuple of a spec, selected by a number.
pub fn tuple(spec_id: usize, number: i32) -> Vec<Option<Value>> {
    let null = number % 5 == 4;
    match spec_id {
        0 => vec![(!null).then_some(Value::Int(18_000 + number % 3)), Some(Value::Int(number.rem_euclid(4)))],
        1 => Vec::new(),
        _ => vec![(!null).then(|| Value::String(["ab", "bc", "c", "é"][number as usize % 4].to_owned()))],
    }
}

/// A file of this path in this partition.
pub fn file(path: impl Into<String>, spec_id: usize, partition: i32) -> DataFile {
    DataFile {
        content: FileContent::Data,
        file_path: path.into(),
        file_format: "PARQUET".to_owned(),
        partition_spec_id: i32::try_from(spec_id).unwrap(),
        partition: tuple(spec_id, partition),
        record_count: 100,
        file_size_in_bytes: 1000,
        ..DataFile::default()
    }
}

/// Sets the metrics of a column with these values; `counts` says whether the writer counted nulls.
pub fn set_metrics(file: &mut DataFile, id: i32, values: &[Option<Value>], counts: bool, bounds: bool) {
    let count = |number: usize| Some(i64::try_from(number).unwrap());
    let present: Vec<&Value> = values.iter().flatten().collect();
    if counts {
        push(&mut file.value_counts, id, count(values.len()));
        push(&mut file.null_value_counts, id, count(values.len() - present.len()));
    }
    if bounds {
        let bytes = |value: &Value| match value {
            Value::Long(value) => value.to_le_bytes().to_vec(),
            Value::String(value) => value.as_bytes().to_vec(),
            other => panic!("{other:?}"),
        };
        let order = |value: &&&Value| match value {
            Value::Long(value) => (*value, String::new()),
            Value::String(value) => (0, value.clone()),
            other => panic!("{other:?}"),
        };
        push(&mut file.lower_bounds, id, present.iter().min_by_key(order).map(|value| bytes(value)));
        push(&mut file.upper_bounds, id, present.iter().max_by_key(order).map(|value| bytes(value)));
    }
}

fn push<T>(map: &mut Option<Vec<(i32, T)>>, id: i32, value: Option<T>) {
    if let Some(value) = value {
        map.get_or_insert_default().push((id, value));
    }
}

impl World {
    /// Writes a table to a folder; the paths of its files start with `location`.
    pub fn write(storage: &Storage, location: &str, version: u8, manifests: &[Manifest]) -> Self {
        let definition = TableDefinition {
            schema: schema(),
            partition_spec: spec(0),
            sort_order: SortOrder::unsorted(),
            location: location.to_owned(),
            properties: [("format-version".to_owned(), version.to_string())].into_iter().collect(),
        };
        let base = create(storage, &definition).unwrap().metadata;
        let mut list = ListWriter::new(ListOptions {
            format_version: version,
            snapshot_id: SNAPSHOT,
            parent_snapshot_id: None,
            sequence_number: 99,
            first_row_id: (version >= 3).then_some(0),
            compression: Compression::default(),
            sync: [1; 16],
        })
        .unwrap();
        let mut listed = Vec::new();
        for (number, manifest) in manifests.iter().enumerate() {
            let of_manifest = manifest.version.unwrap_or(version);
            let (bytes, described) = manifest.bytes(of_manifest, &format!("{location}/metadata/{number:05}.avro"));
            storage.put(&described.manifest_path, bytes, Existing::Replace).unwrap();
            list.add(&described).unwrap();
            listed.push(described);
        }
        let path = format!("{location}/metadata/snap.avro");
        let written = list.finish().unwrap();
        storage.put(&path, written.bytes, Existing::Replace).unwrap();
        let snapshot = Snapshot {
            snapshot_id: SNAPSHOT,
            parent_snapshot_id: None,
            sequence_number: 99,
            timestamp_ms: base.last_updated_ms(),
            summary: Some(Summary { operation: Operation::Append, properties: [].into_iter().collect() }),
            manifests: SnapshotManifests::List(path),
            schema_id: Some(0),
            first_row_id: (version >= 3).then_some(0),
            added_rows: written.next_row_id,
            key_id: None,
            unknown: serde_json::Map::new(),
        };
        let unknown = serde_json::Map::new();
        let reference = SnapshotRef { snapshot_id: SNAPSHOT, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown };
        let builder = MetadataBuilder::from_base(&base, base.last_updated_ms()).apply_all([
            MetadataUpdate::AddSpec { spec: spec(1) },
            MetadataUpdate::AddSpec { spec: spec(2) },
            MetadataUpdate::AddSpec { spec: spec(3) },
            MetadataUpdate::AddSnapshot { snapshot: snapshot.into() },
            MetadataUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference },
        ]);
        Self { storage: storage.clone(), metadata: Arc::new(builder.unwrap().build().unwrap()), listed }
    }

    /// The same table, with other manifests in its manifest list.
    pub fn with_list(&self, listed: &[ManifestFile]) -> Self {
        let path = self.metadata.current_snapshot().unwrap().manifest_list().unwrap();
        let mut list = ListWriter::new(ListOptions {
            format_version: 2,
            snapshot_id: SNAPSHOT,
            parent_snapshot_id: None,
            sequence_number: 99,
            first_row_id: None,
            compression: Compression::default(),
            sync: [1; 16],
        })
        .unwrap();
        listed.iter().for_each(|manifest| list.add(manifest).unwrap());
        self.storage.put(path, list.finish().unwrap().bytes, Existing::Replace).unwrap();
        Self { listed: listed.to_vec(), ..self.clone() }
    }

    pub fn scan(&self, filter: &str) -> Scan {
        let mut scan = Scan::new(self.storage.clone(), self.metadata.clone(), &At::default()).unwrap();
        scan.filter = Expr::parse(filter).unwrap();
        scan
    }
}

impl Manifest {
    /// The bytes of the manifest, and its entry in the manifest list.
    pub fn bytes(&self, version: u8, path: &str) -> (Vec<u8>, ManifestFile) {
        let content = if self.deletes { ManifestContent::Deletes } else { ManifestContent::Data };
        let (schema, spec) = (schema(), spec(self.spec_id));
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: version,
            content,
            schema: &schema,
            spec: &spec,
            snapshot_id: SNAPSHOT,
            first_row_id: None,
            compression: Compression::default(),
            sync: [7; 16],
        })
        .unwrap();
        for (live, file) in &self.entries {
            let status = if *live { Status::Added } else { Status::Deleted };
            let number = (!*live).then_some(self.sequence_number);
            let entry = ManifestEntry {
                status,
                snapshot_id: Some(SNAPSHOT),
                sequence_number: number,
                file_sequence_number: number,
                file: file.clone(),
            };
            writer.add(&entry).unwrap();
        }
        let (bytes, mut described) = writer.finish(path).unwrap();
        (described.sequence_number, described.min_sequence_number) = (self.sequence_number, self.sequence_number);
        (bytes, described)
    }
}

/// The parts of a plan that are compared: for each file its residual, deletes, and requested metrics.
pub fn shown(plan: &Plan, metrics: &Metrics) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let file = manifest.entries.file(row, manifest.spec_id()).unwrap();
            let residual = manifest.residual(row).unwrap();
            let deletes = linked(plan, manifest, row);
            let bounds: Option<Vec<_>> = file.lower_bounds.map(|bounds| {
                let wanted = |id: i32| *metrics == Metrics::all() || metrics.covers(&Metrics::for_filter([id]));
                bounds.into_iter().filter(|(id, _)| wanted(*id)).collect()
            });
            let bounds = bounds.filter(|_| !metrics.is_none());
            let text = format!("{:?} {residual} {deletes:?} {bounds:?} {}", file.partition, file.record_count);
            assert!(files.insert(file.file_path, text).is_none(), "a file is planned twice");
        }
    }
    files
}

/// The paths of the deletes of a file, with the offsets of vectors.
pub fn linked(plan: &Plan, manifest: &icefield_table::plan::PlannedManifest, row: usize) -> Vec<String> {
    let places = manifest.deletes.as_ref().map(|links| links.of(row)).unwrap_or_default();
    let name = |place: &u32| plan.deletes.get(*place).unwrap().file.file_path;
    let mut names: Vec<String> = places.iter().map(name).collect();
    names.sort();
    names
}
