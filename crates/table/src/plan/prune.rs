//! Dropping what cannot match: manifests by summaries, files by partition, then by metrics.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::BooleanArray;
use icefield_format::expr::{
    BoundExpr, Expression, FieldSummary, InclusiveMetrics, Residuals, StatisticsColumns, SummaryEvaluator,
    project_inclusive,
};
use icefield_format::manifest::entries::{self, Entries, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{MetricMap, Metrics};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::StructType;
use icefield_format::value::Value;

use super::deletes::{DeleteFile, DeleteIndex};
use super::report::FileCounts;
use super::{PlannedManifest, Scan, manifests};
use crate::error::{Error, Result};

/// The filter of a scan, prepared for manifests of any spec.
pub struct Pruner<'a> {
    scan: &'a Scan,
    filter: BoundExpr,
    metrics: InclusiveMetrics,
    filtered: BTreeSet<i32>,
    specs: HashMap<i32, Prepared>,
}

/// The filter as one partition spec sees it.
struct Prepared {
    spec: Arc<PartitionSpec>,
    partition_type: StructType,
    projection: BoundExpr,
    summaries: SummaryEvaluator,
    residuals: Residuals,
}

impl<'a> Pruner<'a> {
    /// Prepares a filter for every spec of the table.
    pub fn new(scan: &'a Scan, filter: BoundExpr) -> Self {
        let prepare = |spec: &Arc<PartitionSpec>| {
            let projection = project_inclusive(&filter, spec);
            let prepared = Prepared {
                spec: spec.clone(),
                partition_type: partition_type(scan, spec),
                summaries: SummaryEvaluator::new(&projection),
                projection,
                residuals: Residuals::new(&filter, spec),
            };
            (spec.spec_id, prepared)
        };
        let specs = scan.metadata.partition_specs().iter().map(prepare).collect();
        let metrics = InclusiveMetrics::new(&filter);
        let filtered = metrics.field_ids();
        Self { scan, filter, metrics, filtered, specs }
    }

    /// Fields that the filter tests.
    pub fn filtered_ids(&self) -> &BTreeSet<i32> {
        &self.filtered
    }

    /// The manifests that may have matching files, and how many have none.
    pub fn manifests(&self, all: Vec<ManifestFile>) -> Result<(Vec<ManifestFile>, usize)> {
        let before = all.len();
        let mut kept = Vec::new();
        for manifest in all {
            if manifest.has_live_files() && self.manifest_might_match(&manifest)? {
                kept.push(manifest);
            }
        }
        let skipped = before - kept.len();
        Ok((kept, skipped))
    }

    fn manifest_might_match(&self, manifest: &ManifestFile) -> Result<bool> {
        let prepared = self.prepared(manifest)?;
        let summaries: Option<Vec<FieldSummary<'_>>> =
            manifest.partitions.as_ref().map(|partitions| partitions.iter().map(summary).collect());
        Ok(prepared.summaries.might_match(summaries.as_deref()))
    }

    fn prepared(&self, manifest: &ManifestFile) -> Result<&Prepared> {
        let spec = manifests::spec_of(&self.scan.metadata, manifest)?;
        self.specs.get(&spec.spec_id).ok_or_else(|| Error::Internal("a spec was not prepared".to_owned()))
    }

    /// Reads the live data files of a manifest that may match, with their residuals and deletes.
    pub fn read_data(
        &self,
        manifest: &ManifestFile,
        metrics: &Metrics,
        index: &DeleteIndex,
    ) -> Result<(PlannedManifest, FileCounts)> {
        let prepared = self.prepared(manifest)?;
        let (entries, mut counts) = self.read(manifest, prepared, metrics)?;
        let (residual_places, residuals) = prepared.residuals.of_partitions(&entries.partition)?;
        let deletes = index.links(&prepared.spec, &entries)?;
        counts.data_files = entries.len();
        Ok((PlannedManifest { spec_id: prepared.spec.spec_id, entries, residual_places, residuals, deletes }, counts))
    }

    /// Reads the live delete files of a manifest that may delete matching rows.
    pub fn read_deletes(&self, manifest: &ManifestFile) -> Result<(Arc<PartitionSpec>, Vec<DeleteFile>, FileCounts)> {
        let prepared = self.prepared(manifest)?;
        let (entries, counts) = self.read(manifest, prepared, &Metrics::all())?;
        let files = (0..entries.len()).map(|row| {
            let entry = entries.entry(row, prepared.spec.spec_id)?;
            Ok(DeleteFile { sequence_number: entry.sequence_number.unwrap_or(0), file: entry.file })
        });
        Ok((prepared.spec.clone(), files.collect::<Result<_>>()?, counts))
    }

    fn read(&self, manifest: &ManifestFile, prepared: &Prepared, metrics: &Metrics) -> Result<(Entries, FileCounts)> {
        let path = &manifest.manifest_path;
        let bytes = self.scan.storage.read(path)?;
        let excludes = |tuple: &[Option<Value>]| Ok(prepared.projection.matches(tuple));
        let options = ReadOptions {
            partition_type: Some(&prepared.partition_type),
            metrics: metrics.clone(),
            inherit: Some(manifest),
            live_only: true,
            partition_filter: if prepared.projection == Expression::True { None } else { Some(&excludes) },
        };
        let entries = entries::read(&bytes, &options, &self.scan.limits).map_err(|error| error.in_file(path))?;
        let listed = [manifest.added_files_count, manifest.existing_files_count];
        let listed: usize = listed.iter().flatten().filter_map(|count| usize::try_from(*count).ok()).sum();
        let before = entries.len();
        let entries = if self.filter == Expression::True { entries } else { self.by_metrics(entries)? };
        let counts = FileCounts { skipped: listed.max(before) - entries.len(), ..FileCounts::default() };
        Ok((entries, counts))
    }

    fn by_metrics(&self, entries: Entries) -> Result<Entries> {
        if self.filtered.is_empty() || entries.is_empty() {
            // A filter that matches nothing has no fields left to ask for.
            let none = matches!(self.filter, Expression::False);
            return if none {
                Ok(entries.filter(&BooleanArray::from(vec![false; entries.len()]))?)
            } else {
                Ok(entries)
            };
        }
        let mask = BooleanArray::new(self.metrics.evaluate(&statistics(&entries, &self.filtered)?)?, None);
        if mask.true_count() == mask.len() { Ok(entries) } else { Ok(entries.filter(&mask)?) }
    }
}

fn summary(field: &icefield_format::manifest::FieldSummary) -> FieldSummary<'_> {
    FieldSummary {
        contains_null: field.contains_null,
        contains_nan: field.contains_nan,
        lower: field.lower_bound.as_deref(),
        upper: field.upper_bound.as_deref(),
    }
}

/// The metrics of some fields, as the evaluators take them.
fn statistics(entries: &Entries, ids: &BTreeSet<i32>) -> Result<StatisticsColumns> {
    let mut columns = StatisticsColumns::new(&entries.record_count);
    for &id in ids {
        let counts = |map: &Option<MetricMap>| map.as_ref().map(|map| map.counts(id));
        let bounds =
            |map: &Option<MetricMap>| map.as_ref().map(|map| Arc::new(map.bounds(id)) as arrow_array::ArrayRef);
        let (values, nulls, nans) =
            (counts(&entries.value_counts), counts(&entries.null_value_counts), counts(&entries.nan_value_counts));
        columns = columns.with_counts(id, values, nulls, nans)?;
        let (lower, upper) = (bounds(&entries.lower_bounds), bounds(&entries.upper_bounds));
        columns = columns.with_bounds(id, lower.as_ref(), upper.as_ref())?;
    }
    Ok(columns)
}

/// The partition type of a spec: sources are looked up in the scan's schema, and those that were dropped since in the
/// schemas of old, newest first.
fn partition_type(scan: &Scan, spec: &PartitionSpec) -> StructType {
    let mut found = spec.partition_type(&scan.schema);
    let older = scan.metadata.schemas().iter().rev();
    for (place, field) in spec.fields.iter().enumerate() {
        let lost = |id: &i32| scan.schema.find_field(*id).is_none();
        if !field.source_ids.iter().any(lost) {
            continue;
        }
        let schema = older.clone().find(|schema| field.source_ids.iter().all(|id| schema.find_field(*id).is_some()));
        let column = schema.and_then(|schema| spec.partition_type(schema).fields.into_iter().nth(place));
        if let (Some(column), Some(slot)) = (column, found.fields.get_mut(place)) {
            *slot = column;
        }
    }
    found
}
