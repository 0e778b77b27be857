//! Writes the tables: metrics of files, summaries of manifests, as different writers produce them.

use std::cmp::Ordering;
use std::sync::Arc;

use icefield_format::avro::Compression;
use icefield_format::expr::{FieldStatistics, FileStatistics};
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FieldSummary, ManifestContent, ManifestEntry, ManifestFile, Status};
use icefield_format::metadata::{
    LAST_ADDED, MetadataBuilder, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef, Summary,
    TableDefinition, TableMetadata,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::value::Value;
use icefield_table::operation::create::create;
use icefield_table::storage::{Existing, Storage};

use crate::pruning::draw::Draw;
use crate::pruning::values::{bytes, is_nan, java_order, order};
use crate::pruning::world::{Manifest, World, schema};

const SNAPSHOT: i64 = 9;

/// How a writer computes bounds.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Whether UUIDs are in Java's order.
    java: bool,
    /// Whether a zero bound is -0.0 as a lower and 0.0 as an upper bound, as Parquet requires.
    both_zeros: bool,
    /// Maximum characters or bytes in bounds of text and binary columns.
    length: usize,
}

impl Bounds {
    pub fn draw(draw: &mut Draw) -> Self {
        Self { java: draw.chance(50), both_zeros: draw.chance(30), length: draw.pick(&[16, 1, 2]) }
    }

    /// The bounds of the values that are not NaN, without truncation.
    fn whole(self, values: &[&Value]) -> (Option<Value>, Option<Value>) {
        let by = |a: &&&Value, b: &&&Value| -> Ordering { if self.java { java_order(a, b) } else { order(a, b) } };
        let numbers = || values.iter().filter(|value| !is_nan(value));
        let (least, most) = (numbers().min_by(by), numbers().max_by(by));
        let zero = |value: &Value, negative: bool| match value {
            Value::Float(0.0) if self.both_zeros => Value::Float(if negative { -0.0 } else { 0.0 }),
            Value::Double(0.0) if self.both_zeros => Value::Double(if negative { -0.0 } else { 0.0 }),
            other => other.clone(),
        };
        (least.map(|value| zero(value, true)), most.map(|value| zero(value, false)))
    }

    fn lower(self, value: Value) -> Option<Value> {
        Some(match value {
            Value::String(text) => Value::String(text.chars().take(self.length).collect()),
            Value::Binary(bytes) => Value::Binary(bytes.into_iter().take(self.length).collect()),
            other => other,
        })
    }

    /// An upper bound. A truncated bound has its last character or byte incremented; if this is impossible, there is no
    /// bound.
    fn upper(self, value: Value) -> Option<Value> {
        match value {
            Value::String(text) if text.chars().count() > self.length => {
                let mut head: Vec<char> = text.chars().take(self.length).collect();
                let last = char::from_u32(u32::from(head.pop()?) + 1)?;
                Some(Value::String(head.into_iter().chain([last]).collect()))
            }
            Value::Binary(bytes) if bytes.len() > self.length => {
                let mut head = bytes[..self.length].to_vec();
                let last = head.pop()?.checked_add(1)?;
                Some(Value::Binary(head.into_iter().chain([last]).collect()))
            }
            other => Some(other),
        }
    }
}

fn push<T>(map: &mut Option<Vec<(i32, T)>>, id: i32, value: Option<T>) {
    if let Some(value) = value {
        map.get_or_insert_default().push((id, value));
    }
}

/// Adds the metrics of a column; a writer may omit some.
pub fn metrics(entry: &mut DataFile, id: i32, values: &[Option<&Value>], form: Bounds, draw: &mut Draw) {
    let present: Vec<&Value> = values.iter().copied().flatten().collect();
    if !draw.chance(15) {
        let floating = present.iter().any(|value| matches!(value, Value::Float(_) | Value::Double(_)));
        let nans = present.iter().filter(|value| is_nan(value)).count();
        push(&mut entry.value_counts, id, Some(values.len() as i64));
        push(&mut entry.null_value_counts, id, Some((values.len() - present.len()) as i64));
        push(&mut entry.nan_value_counts, id, Some(nans as i64).filter(|_| floating && !draw.chance(20)));
    }
    let (least, most) = form.whole(&present);
    let (lower, upper) = (least.and_then(|value| form.lower(value)), most.and_then(|value| form.upper(value)));
    // A writer may write only one of the bounds, or none.
    let known = draw.below(12);
    push(&mut entry.lower_bounds, id, lower.filter(|_| known != 10).map(|value| bytes(&value)));
    push(&mut entry.upper_bounds, id, upper.filter(|_| known != 11).map(|value| bytes(&value)));
    // Some writers write no bounds for a column.
    if known == 9 {
        for bounds in [&mut entry.lower_bounds, &mut entry.upper_bounds] {
            bounds.iter_mut().for_each(|bounds| bounds.retain(|(other, _)| *other != id));
        }
    }
}

/// The metrics of a file, as the evaluators access them.
pub struct Metrics<'a>(pub &'a DataFile);

impl FileStatistics for Metrics<'_> {
    fn record_count(&self) -> i64 {
        self.0.record_count
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        fn of<T>(map: &Option<Vec<(i32, T)>>, id: i32) -> Option<&T> {
            map.as_ref()?.iter().find(|(known, _)| *known == id).map(|(_, value)| value)
        }
        FieldStatistics {
            value_count: of(&self.0.value_counts, id).copied(),
            null_count: of(&self.0.null_value_counts, id).copied(),
            nan_count: of(&self.0.nan_value_counts, id).copied(),
            lower: of(&self.0.lower_bounds, id).map(Vec::as_slice),
            upper: of(&self.0.upper_bounds, id).map(Vec::as_slice),
        }
    }
}

/// The summaries of the partition values of a manifest.
fn summaries(manifest: &Manifest, fields: usize) -> Vec<FieldSummary> {
    let summary = |position: usize| {
        let values = || manifest.files.iter().map(|file| file.entry.partition[position].as_ref());
        let present: Vec<&Value> = values().flatten().collect();
        let (lower, upper) = manifest.bounds.whole(&present);
        FieldSummary {
            contains_null: values().any(|value| value.is_none()),
            contains_nan: Some(present.iter().any(|value| is_nan(value))),
            lower_bound: lower.map(|value| bytes(&value)),
            upper_bound: upper.map(|value| bytes(&value)),
        }
    };
    (0..fields).map(summary).collect()
}

impl World {
    /// Writes the table; files are named by manifest and position.
    pub fn write(&self, storage: &Storage, location: &str) -> Arc<TableMetadata> {
        let definition = TableDefinition {
            schema: schema(&self.columns, false),
            partition_spec: self.specs[0].clone(),
            sort_order: SortOrder::unsorted(),
            location: location.to_owned(),
            properties: [("format-version".to_owned(), "3".to_owned())].into_iter().collect(),
        };
        let base = create(storage, &definition).unwrap().metadata;
        let specs = self.specs[1..].iter().map(|spec| MetadataUpdate::AddSpec { spec: spec.clone() });
        let mut updates: Vec<MetadataUpdate> = specs.collect();
        if self.columns.iter().any(|column| column.types.0 != column.types.1) {
            updates.push(MetadataUpdate::AddSchema { schema: schema(&self.columns, true) });
            updates.push(MetadataUpdate::SetCurrentSchema { schema_id: LAST_ADDED });
        }
        let mut list = ListWriter::new(ListOptions {
            format_version: 3,
            snapshot_id: SNAPSHOT,
            parent_snapshot_id: None,
            sequence_number: 99,
            first_row_id: Some(0),
            compression: Compression::default(),
            sync: [1; 16],
        })
        .unwrap();
        for (number, manifest) in self.manifests.iter().enumerate() {
            let spec = &self.specs[manifest.spec];
            let path = format!("{location}/metadata/{number:05}.avro");
            let (bytes, mut described) = self.manifest_bytes(manifest, spec, number, &path);
            (described.sequence_number, described.min_sequence_number) = (1, 1);
            described.partitions = manifest.summaries.then(|| summaries(manifest, spec.fields.len()));
            storage.put(&path, bytes, Existing::Replace).unwrap();
            list.add(&described).unwrap();
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
            schema_id: None,
            first_row_id: Some(0),
            added_rows: written.next_row_id,
            key_id: None,
            unknown: serde_json::Map::new(),
        };
        let unknown = serde_json::Map::new();
        let reference = SnapshotRef { snapshot_id: SNAPSHOT, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown };
        updates.push(MetadataUpdate::AddSnapshot { snapshot: snapshot.into() });
        updates.push(MetadataUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference });
        let builder = MetadataBuilder::from_base(&base, base.last_updated_ms()).apply_all(updates);
        Arc::new(builder.unwrap().build().unwrap())
    }

    fn manifest_bytes(
        &self,
        manifest: &Manifest,
        spec: &PartitionSpec,
        number: usize,
        path: &str,
    ) -> (Vec<u8>, ManifestFile) {
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: 3,
            content: ManifestContent::Data,
            schema: &schema(&self.columns, manifest.rewritten),
            spec,
            snapshot_id: SNAPSHOT,
            first_row_id: None,
            compression: Compression::default(),
            sync: [7; 16],
        })
        .unwrap();
        for (place, file) in manifest.files.iter().enumerate() {
            let written = Some(file.entry.file_path.clone()).filter(|path| !path.is_empty());
            let file_path = written.unwrap_or_else(|| name(number, place));
            let entry = ManifestEntry {
                status: Status::Added,
                snapshot_id: Some(SNAPSHOT),
                sequence_number: None,
                file_sequence_number: None,
                file: DataFile { file_path, ..file.entry.clone() },
            };
            writer.add(&entry).unwrap();
        }
        writer.finish(path).unwrap()
    }
}

/// The path of a file.
pub fn name(manifest: usize, place: usize) -> String {
    format!("{manifest}-{place}")
}
