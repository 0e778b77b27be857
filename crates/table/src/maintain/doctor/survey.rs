//! What the manifests of the current snapshot say of its files, added up by partition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::limits::Held;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{
    Entries, FileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile, Metrics,
};
use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::WRITE_TARGET_FILE_SIZE_BYTES;
use icefield_format::spec::path::partition_path;
use icefield_format::transform::Transform;
use icefield_format::types::{PrimitiveType, Schema, Type};

use crate::error::{Error, Result};
use crate::snapshot::manifests::of_snapshot;
use crate::snapshot::parallel::{locked, side_by_side};
use crate::storage::{FileRef, Storage};

/// Memory of a partition besides its name.
const OF_A_PARTITION: usize = 256;

/// A file is small if it is smaller than this part of the target size, as in Java's compaction.
const SMALL: f64 = 0.75;

/// What is known of a partition.
#[derive(Debug, Default, Clone)]
pub(super) struct OfPartition {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) rows: u64,
    pub(super) small: u64,
    pub(super) small_bytes: u64,
    pub(super) position_files: u64,
    /// Position delete files that are not of a single data file, and the data files of the others.
    pub(super) unscoped_files: u64,
    pub(super) position_targets: u64,
    pub(super) equality_files: u64,
    pub(super) delete_bytes: u64,
}

/// Files without bounds of a column.
#[derive(Debug, Default, Clone)]
pub(super) struct Unbounded {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// What is known of the current snapshot.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) target: u64,
    /// By spec id and the text of the tuple.
    pub(super) partitions: BTreeMap<(i32, String), OfPartition>,
    /// Data files that are not sorted as the table is, and their bytes.
    pub(super) unsorted: (u64, u64),
    /// Columns that scans use most, with the files that have no bounds of them.
    pub(super) unbounded: BTreeMap<i32, Unbounded>,
    /// Data files with at least 3 of 10 rows deleted, and the bytes of these rows.
    pub(super) mostly_deleted: (u64, u64),
    /// Manifests of data by spec: number and bytes.
    pub(super) manifests: BTreeMap<i32, (u64, u64)>,
}

struct Building<'a> {
    metadata: &'a TableMetadata,
    columns: BTreeSet<i32>,
    survey: Survey,
    hash: RandomState,
    /// Rows and bytes of data files by hashes of their paths; only if there are deletes of single files.
    data: HashMap<u64, (u64, u64)>,
    deleted: HashMap<u64, u64>,
    has_deletes: bool,
    held: Held,
}

impl Survey {
    pub(super) fn of(storage: &Storage, metadata: &TableMetadata, limits: &Limits) -> Result<Self> {
        let target = u64::try_from(WRITE_TARGET_FILE_SIZE_BYTES.read(metadata.properties())?).unwrap_or(0);
        let manifests = match metadata.current_snapshot() {
            Some(snapshot) => of_snapshot(storage, metadata, snapshot, limits)?,
            None => Vec::new(),
        };
        let columns = useful_columns(metadata);
        let survey = Self {
            target,
            partitions: BTreeMap::new(),
            unsorted: (0, 0),
            unbounded: columns.iter().map(|id| (*id, Unbounded::default())).collect(),
            mostly_deleted: (0, 0),
            manifests: BTreeMap::new(),
        };
        let has_deletes =
            manifests.iter().any(|manifest| manifest.content == ManifestContent::Deletes && manifest.has_live_files());
        let building = Mutex::new(Building {
            metadata,
            columns: columns.clone(),
            survey,
            hash: RandomState::new(),
            data: HashMap::new(),
            deleted: HashMap::new(),
            has_deletes,
            held: limits.held(),
        });
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        side_by_side(storage, metadata.location(), &manifests, |manifest| {
            if locked(&failed).is_some() {
                return;
            }
            let read = read(storage, manifest, &columns, limits);
            if let Err(error) = read.and_then(|entries| locked(&building).add(manifest, &entries)) {
                *locked(&failed) = Some(error);
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        Ok(building.into_inner().unwrap_or_else(PoisonError::into_inner).finish())
    }
}

fn read(storage: &Storage, manifest: &ManifestFile, columns: &BTreeSet<i32>, limits: &Limits) -> Result<Entries> {
    let path = &manifest.manifest_path;
    let (storage, _) = storage.decrypting(&FileRef::of_manifest(manifest))?;
    let bytes = storage.read_at_most(path, limits.avro_bytes)?;
    let mut metrics = Metrics::for_filter(columns.iter().copied());
    metrics.nan_value_counts = metrics.null_value_counts.clone();
    let options = ReadOptions { inherit: Some(manifest), live_only: true, metrics, ..ReadOptions::default() };
    entries::read(&bytes, &options, limits).map_err(|error| Error::from(error.in_file(path)))
}

/// The columns whose bounds matter most: those of partitions, of the sort order and of the key.
fn useful_columns(metadata: &TableMetadata) -> BTreeSet<i32> {
    let schema = metadata.current_schema();
    let partitions = metadata.default_spec().fields.iter().filter(|field| !field.transform.is_void());
    let partitions = partitions.filter_map(|field| field.source_id());
    let sorted = metadata.default_sort_order().fields.iter().filter_map(|field| field.source_ids.first().copied());
    let all = partitions.chain(sorted).chain(schema.identifier_field_ids().iter().copied());
    all.filter(|id| has_bounds(schema, *id)).collect()
}

fn has_bounds(schema: &Schema, id: i32) -> bool {
    let ty = schema.find_type(id).and_then(Type::as_primitive);
    ty.is_some_and(|ty| !matches!(ty, PrimitiveType::Unknown))
}

impl Building<'_> {
    fn add(&mut self, manifest: &ManifestFile, entries: &Entries) -> Result<()> {
        let spec_id = manifest.partition_spec_id;
        if manifest.content == ManifestContent::Data {
            let (count, bytes) = self.survey.manifests.entry(spec_id).or_default();
            *count += 1;
            *bytes += manifest.manifest_length.unsigned_abs();
        }
        let mut names: HashMap<u32, String> = HashMap::new();
        for row in 0..entries.len() {
            let entry = entries.entry(row, spec_id)?;
            let tuple = entries.tuple_of.value(row);
            let name = names.entry(tuple).or_insert_with(|| self.name(&entry)).clone();
            self.add_file((spec_id, name), &entry)?;
        }
        Ok(())
    }

    /// The text of a partition.
    fn name(&self, entry: &ManifestEntry) -> String {
        let tuple = &entry.file.partition;
        let Some(spec) = self.metadata.partition_spec(entry.file.partition_spec_id) else {
            return format!("{tuple:?}");
        };
        let source = |id: i32| {
            let mut schemas = std::iter::once(self.metadata.current_schema()).chain(self.metadata.schemas());
            schemas.find_map(|schema| schema.find_type(id).and_then(Type::as_primitive).cloned())
        };
        let sources: Option<Vec<PrimitiveType>> =
            spec.fields.iter().map(|field| field.source_id().and_then(source)).collect();
        let path = sources.and_then(|sources| partition_path(spec, &sources, tuple).ok());
        path.unwrap_or_else(|| format!("{tuple:?}"))
    }

    fn add_file(&mut self, key: (i32, String), entry: &ManifestEntry) -> Result<()> {
        let file = &entry.file;
        let (bytes, rows) = (file.file_size_in_bytes.unsigned_abs(), file.record_count.unsigned_abs());
        if !self.survey.partitions.contains_key(&key) {
            self.held.keep(OF_A_PARTITION + key.1.len())?;
        }
        let is_small = (bytes as f64) < self.survey.target as f64 * SMALL;
        let partition = self.survey.partitions.entry(key).or_default();
        match file.content {
            FileContent::Data => {
                partition.files += 1;
                partition.bytes += bytes;
                partition.rows += rows;
                if is_small {
                    partition.small += 1;
                    partition.small_bytes += bytes;
                }
            }
            FileContent::PositionDeletes => {
                partition.position_files += 1;
                let own = file.content_size_in_bytes.filter(|_| file.format() == Some(FileFormat::Puffin));
                partition.delete_bytes += own.map_or(bytes, i64::unsigned_abs);
                if let Some(target) = &file.referenced_data_file {
                    self.held.keep(size_of::<(u64, u64)>())?;
                    let deleted = self.deleted.entry(self.hash.hash_one(target)).or_insert_with(|| {
                        partition.position_targets += 1;
                        0
                    });
                    *deleted = deleted.saturating_add(rows);
                } else {
                    partition.unscoped_files += 1;
                }
            }
            FileContent::EqualityDeletes => {
                partition.equality_files += 1;
                partition.delete_bytes += bytes;
            }
        }
        if file.content == FileContent::Data {
            self.add_data(entry, bytes, rows)?;
        }
        Ok(())
    }

    fn add_data(&mut self, entry: &ManifestEntry, bytes: u64, rows: u64) -> Result<()> {
        let file = &entry.file;
        if self.has_deletes {
            self.held.keep(size_of::<(u64, u64, u64)>())?;
            self.data.insert(self.hash.hash_one(&file.file_path), (rows, bytes));
        }
        let order = self.metadata.default_sort_order_id();
        if order != 0 && file.sort_order_id != Some(order) {
            self.survey.unsorted.0 += 1;
            self.survey.unsorted.1 += bytes;
        }
        let count = |pairs: &Option<Vec<(i32, i64)>>, id: i32| {
            pairs.iter().flatten().find(|(of, _)| *of == id).map(|(_, count)| *count)
        };
        let has = |pairs: &Option<Vec<(i32, Vec<u8>)>>, id: i32| pairs.iter().flatten().any(|(of, _)| *of == id);
        if file.format() == Some(FileFormat::Avro) {
            // Writers collect no bounds for Avro, so no rewrite adds them.
            return Ok(());
        }
        let spec = self.metadata.partition_spec(file.partition_spec_id);
        // Scans prune by the partition, and migrated files lack the column.
        let is_identity = |id: i32| {
            spec.is_some_and(|spec| {
                spec.fields.iter().any(|field| field.source_id() == Some(id) && field.transform == Transform::Identity)
            })
        };
        for id in self.columns.iter().copied().filter(|id| !is_identity(*id)) {
            let without = |counts| count(counts, id).unwrap_or(0);
            let has_none = without(&file.null_value_counts).saturating_add(without(&file.nan_value_counts));
            let bounded = has(&file.lower_bounds, id) || has(&file.upper_bounds, id);
            if !bounded && has_none < file.record_count && file.record_count > 0 {
                let unbounded = self.survey.unbounded.entry(id).or_default();
                unbounded.files += 1;
                unbounded.bytes += bytes;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Survey {
        for (target, deleted) in &self.deleted {
            if let Some((rows, bytes)) = self.data.get(target)
                && *rows > 0
                && deleted.saturating_mul(10) >= rows.saturating_mul(3)
            {
                self.survey.mostly_deleted.0 += 1;
                let share = (*deleted).min(*rows) as f64 / *rows as f64;
                self.survey.mostly_deleted.1 += (*bytes as f64 * share) as u64;
            }
        }
        self.survey
    }
}
