//! Prunes what cannot match: manifests by summaries, files by partition, then by metrics.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::Fields;
use bytes::Bytes;
use icefield_format::Limits;
use icefield_format::expr::{
    BoundExpr, Expression, FieldSummary, InclusiveMetrics, Residuals, SummaryEvaluator, project_inclusive,
};
use icefield_format::manifest::entries::{self, Entries, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{FieldIds, ManifestContent, Metrics, partition_fields};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::spec::PartitionSpec;
use icefield_format::transform::Transform;
use icefield_format::types::StructType;
use icefield_format::types::arrow::field_id;
use icefield_format::value::Value;

use super::changes::Changes;
use super::changes::step::Step;
use super::deletes::DeleteIndex;
use super::deletes::links::DeleteLinks;
use super::deletes::of_key::might_match;
use super::pipeline::Work;
use super::projection::metadata_columns::{
    FileFacts, PartitionFieldIds, names_metadata_columns, of_partition, without_metadata_columns,
};
use super::projection::partition_union::stored_union;
use super::report::FileCounts;
use super::{PlannedManifest, Scan};
use crate::error::{Error, Result};
use crate::snapshot::cache::{Cached, Decoded, Key, ManifestCache};
use crate::snapshot::manifests;
use crate::storage::{FileRef, Storage};

/// The filter of a scan, prepared for manifests of any spec.
#[derive(Debug)]
pub struct Pruner {
    storage: Storage,
    metadata: Arc<TableMetadata>,
    limits: Limits,
    /// The cache, and the number of this plan in it.
    cache: Option<(&'static ManifestCache, u64)>,
    filter: BoundExpr,
    metrics: InclusiveMetrics,
    filtered: BTreeSet<i32>,
    /// The partition field of each field of `_partition`, if the filter tests metadata columns.
    partition_fields: Option<PartitionFieldIds>,
    specs: HashMap<i32, Prepared>,
    /// Whether only files added by snapshots are planned.
    is_incremental: bool,
    /// Whether to keep deletes that delete no matching row.
    all_deletes: bool,
}

/// The filter projected to one partition spec.
#[derive(Debug)]
struct Prepared {
    spec: Arc<PartitionSpec>,
    partition_type: StructType,
    projection: BoundExpr,
    summaries: SummaryEvaluator,
    residuals: Residuals,
}

/// The fetched data of a manifest.
#[derive(Debug)]
pub enum Fetched {
    /// Cached entries with all required metrics.
    Cached(Arc<Entries>),
    /// The bytes, with the metrics to decode and the cache to keep them in.
    Bytes(Bytes, Box<Decoding>),
}

/// How to decode a manifest.
#[derive(Debug)]
pub struct Decoding {
    metrics: Metrics,
    key: Option<Key>,
    /// Decode metrics of all entries, not only of partitions that may match, because an earlier plan needed other
    /// partitions.
    whole: bool,
    /// Whether to leave out deleted entries.
    live_only: bool,
}

/// A manifest of data files.
#[derive(Debug)]
pub struct DataItem {
    /// The manifest.
    pub manifest: ManifestFile,
    /// Whether to leave out deleted entries. The cache stores none.
    pub live_only: bool,
    /// In a changelog: the snapshot whose changes are planned.
    pub step: Option<Arc<Step>>,
}

impl From<ManifestFile> for DataItem {
    fn from(manifest: ManifestFile) -> Self {
        Self { manifest, live_only: true, step: None }
    }
}

/// A manifest of delete files.
#[derive(Debug)]
pub struct DeleteItem {
    /// The manifest.
    pub manifest: ManifestFile,
    /// Whether to leave out deleted entries.
    pub live_only: bool,
}

impl Pruner {
    /// Prepares a filter for every spec of the table.
    pub fn new(scan: &Scan, filter: BoundExpr, partition_fields: PartitionFieldIds) -> Result<Self> {
        // Metrics of a file say nothing about inherited metadata columns.
        let of_table = without_metadata_columns(&filter);
        let prepare = |spec: &Arc<PartitionSpec>| {
            let projection = project_inclusive(&of_table, spec);
            let of_manifests = BoundExpr::and(projection.clone(), of_partition(&filter, spec, &partition_fields));
            let prepared = Prepared {
                spec: spec.clone(),
                partition_type: partition_type(scan, spec),
                summaries: SummaryEvaluator::new(&of_manifests),
                projection,
                residuals: Residuals::new(&filter, spec),
            };
            (spec.spec_id, prepared)
        };
        let specs = scan.metadata.partition_specs().iter().map(prepare).collect();
        let metrics = InclusiveMetrics::new(&of_table);
        let filtered = metrics.field_ids();
        let cache = ManifestCache::shared()?;
        let cache = (scan.cached && cache.is_on()).then(|| (cache, cache.start_plan()));
        Ok(Self {
            storage: scan.storage.clone(),
            metadata: scan.metadata.clone(),
            limits: scan.limits,
            cache,
            metrics,
            filtered,
            partition_fields: names_metadata_columns(&filter).then_some(partition_fields),
            filter,
            specs,
            is_incremental: scan.changes.is_some(),
            all_deletes: scan.all_deletes,
        })
    }

    /// The manifests of the scan's snapshot, and whether they were cached.
    pub fn list(&self, scan: &Scan) -> Result<(Arc<Vec<ManifestFile>>, bool)> {
        match &scan.snapshot {
            Some(snapshot) => self.list_of(snapshot),
            None => Ok((Arc::default(), false)),
        }
    }

    /// The manifests of one snapshot, and whether they were cached.
    pub fn list_of(&self, snapshot: &Snapshot) -> Result<(Arc<Vec<ManifestFile>>, bool)> {
        let key = match (&snapshot.manifests, &self.cache) {
            (icefield_format::metadata::SnapshotManifests::List(path), Some(_)) => {
                let key = manifests::list_key(&self.storage, &self.metadata, snapshot)?;
                Key::of_list(&self.storage, &FileRef { path, size: 0, key: key.as_deref() })?
            }
            _ => None,
        };
        let list = |cached| if let Cached::List(list) = cached { Some(list) } else { None };
        if let (Some(key), Some((cache, plan))) = (&key, self.cache)
            && let Some(found) = cache.get(key, plan, list)
        {
            return Ok((found, true));
        }
        let read = Arc::new(manifests::of_snapshot(&self.storage, &self.metadata, snapshot, &self.limits)?);
        if let (Some(key), Some((cache, plan))) = (key, self.cache) {
            cache.insert_list(key, plan, read.clone());
        }
        Ok((read, false))
    }

    /// Fields that the filter tests.
    pub fn filtered_ids(&self) -> &BTreeSet<i32> {
        &self.filtered
    }

    /// The manifests that may have matching files.
    pub fn manifests<'m>(&self, all: impl Iterator<Item = &'m ManifestFile>) -> Result<Vec<ManifestFile>> {
        let mut kept = Vec::new();
        for manifest in all {
            let wanted = if self.is_incremental { manifest.has_added_files() } else { manifest.has_live_files() };
            if wanted && self.might_match(manifest)? {
                kept.push(manifest.clone());
            }
        }
        Ok(kept)
    }

    /// Whether a manifest may have matching files, by its summaries.
    pub fn might_match(&self, manifest: &ManifestFile) -> Result<bool> {
        let prepared = self.prepared(manifest)?;
        // Equality deletes with an unpartitioned spec apply to all partitions, so a filter on partitions must not
        // prune them.
        let is_for_all = manifest.content == ManifestContent::Deletes && prepared.spec.is_unpartitioned();
        if is_for_all && prepared.projection == Expression::True {
            return Ok(true);
        }
        let summaries: Option<Vec<FieldSummary<'_>>> =
            manifest.partitions.as_ref().map(|partitions| partitions.iter().map(summary).collect());
        Ok(prepared.summaries.might_match(summaries.as_deref()))
    }

    /// Partition fields of all specs of these manifests, by id; of two with one id the later wins.
    pub fn partition_fields<'m>(&self, manifests: impl Iterator<Item = &'m ManifestFile>) -> Fields {
        let ids: BTreeSet<i32> = manifests.map(|manifest| manifest.partition_spec_id).collect();
        let specs = ids.iter().filter_map(|id| self.specs.get(id));
        stored_union(specs.flat_map(|prepared| {
            let fields = partition_fields(&prepared.partition_type).to_vec().into_iter();
            fields.map(|field| {
                let known = prepared.spec.fields.iter().find(|part| Some(part.field_id) == field_id(&field));
                let void = known.is_some_and(|part| part.transform == Transform::Void);
                (field, void)
            })
        }))
    }

    fn prepared(&self, manifest: &ManifestFile) -> Result<&Prepared> {
        let spec = manifests::spec_of(&self.metadata, manifest)?;
        self.specs.get(&spec.spec_id).ok_or_else(|| Error::Internal("a spec was not prepared".to_owned()))
    }

    /// The spec of a manifest.
    pub fn spec(&self, manifest: &ManifestFile) -> Result<&Arc<PartitionSpec>> {
        Ok(&self.prepared(manifest)?.spec)
    }

    /// Takes a manifest from the cache, or reads its bytes.
    fn fetch(&self, manifest: &ManifestFile, live_only: bool, metrics: &Metrics) -> Result<Fetched> {
        let prepared = self.prepared(manifest)?;
        let key = match self.cache {
            Some(_) if live_only => Key::of_manifest(&self.storage, manifest)?,
            _ => None,
        };
        let mut decoding = Decoding { metrics: metrics.clone(), key: None, whole: false, live_only };
        if let (Some(key), Some((cache, plan))) = (key, self.cache) {
            if let Some(entries) = cache.get(&key, plan, |found| sufficient(prepared, found, metrics)) {
                return Ok(Fetched::Cached(entries));
            }
            if let Some(known) = cache.metrics(&key) {
                decoding.metrics = metrics.union(&known);
                decoding.whole = true;
            }
            decoding.key = Some(key);
        }
        let bytes = self.storage.read_manifest(manifest)?;
        Ok(Fetched::Bytes(bytes, Box::new(decoding)))
    }

    /// The live entries that the filter may match; with `all`, whatever the metrics say.
    fn entries(&self, manifest: &ManifestFile, fetched: Fetched, all: bool) -> Result<(Arc<Entries>, FileCounts)> {
        let prepared = self.prepared(manifest)?;
        let mut counts = FileCounts::default();
        let entries = match fetched {
            Fetched::Cached(entries) => {
                counts.cached = 1;
                entries
            }
            Fetched::Bytes(bytes, decoding) => {
                counts.bytes_read = bytes.len() as u64;
                self.decode(manifest, prepared, &bytes, *decoding)?
            }
        };
        let live = entries.tally.live();
        let kept = self.matching(prepared, entries, all)?;
        counts.skipped = live.saturating_sub(kept.len());
        Ok((kept, counts))
    }

    fn decode(
        &self,
        manifest: &ManifestFile,
        prepared: &Prepared,
        bytes: &[u8],
        decoding: Decoding,
    ) -> Result<Arc<Entries>> {
        let Decoding { metrics, key, whole, live_only } = decoding;
        let keeps = |tuple: &[Option<Value>]| Ok(prepared.projection.matches(tuple));
        let filtered = prepared.projection != Expression::True && !whole;
        let options = ReadOptions {
            partition_type: Some(&prepared.partition_type),
            metrics: metrics.clone(),
            inherit: Some(manifest),
            live_only,
            partition_filter: if filtered { Some(&keeps) } else { None },
            keep_excluded: key.is_some(),
        };
        let entries = entries::read(bytes, &options, &self.limits);
        let entries = entries.map_err(|error| error.in_file(&manifest.manifest_path))?;
        match (key, self.cache) {
            (Some(key), Some((cache, plan))) => cache.insert_manifest(key, plan, entries, metrics),
            _ => Ok(Arc::new(entries)),
        }
    }

    /// Prunes entries by partition, then by metrics.
    fn matching(&self, prepared: &Prepared, entries: Arc<Entries>, all: bool) -> Result<Arc<Entries>> {
        let entries = match partition_mask(prepared, &entries)? {
            Some(mask) => Arc::new(entries.filter(&BooleanArray::new(mask, None))?),
            None => entries,
        };
        match &self.filter {
            Expression::True => Ok(entries),
            // A filter that matches nothing has no fields left to test.
            Expression::False => Ok(Arc::new(entries.filter(&BooleanArray::from(vec![false; entries.len()]))?)),
            _ if all || self.filtered.is_empty() || entries.is_empty() => Ok(entries),
            _ => {
                let mask = might_match(&self.metrics, &self.filtered, &entries)?;
                match mask.count_set_bits() == mask.len() {
                    true => Ok(entries),
                    false => Ok(Arc::new(entries.filter(&BooleanArray::new(mask, None))?)),
                }
            }
        }
    }
}

impl Pruner {
    /// Prunes entries by metadata columns that have one value per file.
    fn by_metadata_columns(&self, prepared: &Prepared, entries: Arc<Entries>) -> Result<Arc<Entries>> {
        let Some(ids) = &self.partition_fields else { return Ok(entries) };
        let may_match = |row: usize| {
            let facts = FileFacts {
                path: entries.file_path.value(row),
                spec: &prepared.spec,
                tuple: &entries.partition_of(row)?,
                has_deleted_rows: true,
                has_row_ids: true,
                // In a changelog, the parts of files apply the change columns.
                change: None,
            };
            Ok(facts.fold(&self.filter, ids) != Expression::False)
        };
        let mask = (0..entries.len()).map(may_match).collect::<Result<Vec<bool>>>()?;
        match mask.iter().all(|kept| *kept) {
            true => Ok(entries),
            false => Ok(Arc::new(entries.filter(&BooleanArray::from(mask))?)),
        }
    }
}

/// The entries in partitions that may match; `None` if all.
fn partition_mask(prepared: &Prepared, entries: &Entries) -> Result<Option<BooleanBuffer>> {
    if prepared.projection == Expression::True || entries.is_empty() {
        return Ok(None);
    }
    let kept = (0..entries.tuples.len()).map(|place| Ok(prepared.projection.matches(&entries.tuple(place)?)));
    let kept = kept.collect::<Result<Vec<bool>>>()?;
    let of = entries.tuple_of.values();
    let keep = |row: usize| of.get(row).and_then(|place| kept.get(*place as usize)).copied().unwrap_or(true);
    let mask = BooleanBuffer::collect_bool(entries.len(), keep);
    Ok((mask.count_set_bits() < mask.len()).then_some(mask))
}

/// Cached entries, if their partition values have this scan's types and they have the metrics of all partitions that
/// may match.
fn sufficient(prepared: &Prepared, found: Cached, metrics: &Metrics) -> Option<Arc<Entries>> {
    let Cached::Manifest(Decoded { entries, metrics: known }) = found else { return None };
    if entries.partition_type != prepared.partition_type || !known.covers(metrics) {
        return None;
    }
    if let Some(read) = &entries.metrics_read
        && !metrics.is_none()
    {
        let wanted = partition_mask(prepared, &entries).ok()?;
        let wanted = wanted.unwrap_or_else(|| BooleanBuffer::new_set(entries.len()));
        if (&wanted & &!read).count_set_bits() > 0 {
            return None;
        }
    }
    Some(entries)
}

/// Plans data files.
#[derive(Debug)]
pub struct DataWork {
    /// The filter.
    pub pruner: Arc<Pruner>,
    /// The deletes.
    pub index: Arc<DeleteIndex>,
    /// Metrics that the plan needs and keeps.
    pub metrics: Metrics,
    /// In an append scan: the snapshots whose files are planned.
    pub changes: Option<Arc<Changes>>,
}

impl Work for DataWork {
    type Item = DataItem;
    type Fetched = Fetched;
    type Done = (PlannedManifest, FileCounts);

    fn bytes(item: &DataItem) -> i64 {
        item.manifest.manifest_length
    }

    fn fetch(&self, item: &DataItem) -> Result<Fetched> {
        self.pruner.fetch(&item.manifest, item.live_only, &self.metrics)
    }

    /// The live data files of a manifest that may match, or in a changelog those with changed rows, with residuals
    /// and deletes.
    fn run(&self, item: &DataItem, fetched: Fetched) -> Result<(PlannedManifest, FileCounts)> {
        let manifest = &item.manifest;
        let prepared = self.pruner.prepared(manifest)?;
        let (mut entries, mut counts) = self.pruner.entries(manifest, fetched, false)?;
        if let Some(changes) = &self.changes {
            entries = changes.added(entries)?;
        }
        let before = entries.len();
        entries = self.pruner.by_metadata_columns(prepared, entries)?;
        counts.skipped += before - entries.len();
        let (entries, changes, deletes) = match &item.step {
            Some(step) => {
                let (entries, changes, deletes) = step.files(&prepared.spec, &entries)?;
                (entries, Some(changes), deletes)
            }
            None => {
                let deletes = self.index.links(&prepared.spec, &entries)?;
                counts.deletes_size = deletes.as_ref().map_or(0, |links| self.index.size(links));
                (entries, None, deletes)
            }
        };
        check_sizes(&entries).map_err(|message| Error::corrupt_file(&manifest.manifest_path, message))?;
        let (residual_places, residuals) = residuals(prepared, &entries)?;
        counts.kept = entries.len();
        counts.links = deletes.as_ref().map_or(0, DeleteLinks::len);
        let sizes = entries.file_size_in_bytes.values();
        counts.size = sizes.iter().fold(0, |sum: i64, size| sum.saturating_add(*size));
        let spec = prepared.spec.clone();
        Ok((PlannedManifest { spec, entries, residual_places, residuals, deletes, changes }, counts))
    }

    fn memory((manifest, _): &Self::Done) -> usize {
        manifest.memory()
    }
}

/// Refuses a file with rows and no bytes: no task would read any of it, and its rows would be lost.
pub(super) fn check_sizes(entries: &Entries) -> Result<(), String> {
    let sizes = entries.file_size_in_bytes.values();
    let wrong = |row: &usize| {
        sizes.get(*row).is_some_and(|size| *size <= 0) && entries.record_count.values().get(*row) != Some(&0)
    };
    match (0..sizes.len()).find(wrong) {
        None => Ok(()),
        Some(row) => {
            let (size, rows) = (entries.file_size_in_bytes.value(row), entries.record_count.value(row));
            Err(format!("says that {} has {size} bytes, and {rows} rows", entries.file_path.value(row)))
        }
    }
}

/// Reads delete files.
#[derive(Debug)]
pub struct DeleteWork(pub Arc<Pruner>);

impl Work for DeleteWork {
    type Item = DeleteItem;
    type Fetched = Fetched;
    type Done = (Arc<PartitionSpec>, Arc<Entries>, FileCounts);

    fn bytes(item: &DeleteItem) -> i64 {
        item.manifest.manifest_length
    }

    fn fetch(&self, item: &DeleteItem) -> Result<Fetched> {
        // Bounds show which data files are meant; only the entries say which fields have bounds.
        let metrics = Metrics { column_sizes: FieldIds::None, nan_value_counts: FieldIds::None, ..Metrics::all() };
        self.0.fetch(&item.manifest, item.live_only, &metrics)
    }

    /// The live delete files of a manifest that may delete matching rows.
    fn run(&self, item: &DeleteItem, fetched: Fetched) -> Result<Self::Done> {
        let prepared = self.0.prepared(&item.manifest)?;
        let (entries, mut counts) = self.0.entries(&item.manifest, fetched, self.0.all_deletes)?;
        counts.kept = entries.len();
        Ok((prepared.spec.clone(), entries, counts))
    }

    fn memory((_, entries, _): &Self::Done) -> usize {
        entries.memory()
    }
}

/// For each entry the index of its residual, and the distinct residuals.
fn residuals(prepared: &Prepared, entries: &Entries) -> Result<(Vec<u32>, Vec<BoundExpr>)> {
    let (of_tuple, all) = prepared.residuals.of_partitions(entries.tuples.as_ref())?;
    if all.len() <= 1 {
        return Ok((vec![0; entries.len()], all));
    }
    let mut places: Vec<Option<u32>> = vec![None; all.len()];
    let mut used = Vec::new();
    let of_entry = entries.tuple_of.values().iter().map(|tuple| {
        let lost = || Error::Internal("an entry without a partition tuple".to_owned());
        let residual = *of_tuple.get(*tuple as usize).ok_or_else(lost)? as usize;
        let slot = places.get_mut(residual).ok_or_else(lost)?;
        if slot.is_none() {
            *slot = u32::try_from(used.len()).ok();
            used.extend(all.get(residual).cloned());
        }
        slot.ok_or_else(lost)
    });
    let of_entry = of_entry.collect::<Result<Vec<u32>>>()?;
    Ok((of_entry, used))
}

pub(crate) fn summary(field: &icefield_format::manifest::FieldSummary) -> FieldSummary<'_> {
    FieldSummary {
        contains_null: field.contains_null,
        contains_nan: field.contains_nan,
        lower: field.lower_bound.as_deref(),
        upper: field.upper_bound.as_deref(),
    }
}

/// The partition type of a spec: sources are looked up in the scan's schema, and dropped ones in older schemas,
/// newest first.
pub(super) fn partition_type(scan: &Scan, spec: &PartitionSpec) -> StructType {
    let mut found = spec.tuple_type(&scan.schema);
    let older = scan.metadata.schemas().iter().rev();
    for (place, field) in spec.fields.iter().enumerate() {
        let lost = |id: &i32| scan.schema.find_field(*id).is_none();
        if !field.source_ids.iter().any(lost) {
            continue;
        }
        let schema = older.clone().find(|schema| field.source_ids.iter().all(|id| schema.find_field(*id).is_some()));
        let column = schema.and_then(|schema| spec.tuple_type(schema).fields.into_iter().nth(place));
        if let (Some(column), Some(slot)) = (column, found.fields.get_mut(place)) {
            *slot = column;
        }
    }
    found
}

/// Bytes of each manifest; a repeated one counts once.
pub(super) fn stored<'m>(manifests: impl Iterator<Item = &'m ManifestFile>) -> Vec<usize> {
    let mut known = HashSet::new();
    let length = |manifest: &ManifestFile| usize::try_from(manifest.manifest_length).unwrap_or_default();
    manifests.map(|one| if known.insert(one.manifest_path.as_str()) { length(one) } else { 0 }).collect()
}
