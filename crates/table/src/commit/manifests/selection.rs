//! Applies a row filter to manifests and their entries ("Scan Planning"): which files may have matching rows, and in
//! which all rows match.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::Array;
use arrow_buffer::BooleanBuffer;
use icefield_format::expr::{
    BoundExpr, Expr, Expression, FieldSummary, FileStatistics, InclusiveMetrics, Residuals, StrictMetrics,
    SummaryEvaluator, project_inclusive, project_strict,
};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{Entries, Metrics};
use icefield_format::metadata::TableMetadata;

use super::specs::{Spec, Specs};
use crate::error::{Error, Result};
use crate::plan::deletes::of_key::{OfKey, might_match, statistics};
use crate::plan::prune::summary;

/// A row filter, prepared for the files of every spec of a table.
#[derive(Debug)]
pub struct Selection {
    text: String,
    filter: BoundExpr,
    fields: BTreeSet<i32>,
    inclusive: InclusiveMetrics,
    specs: HashMap<i32, OfSpec>,
}

/// The filter projected to one spec.
#[derive(Debug)]
struct OfSpec {
    projection: BoundExpr,
    strict: BoundExpr,
    summaries: SummaryEvaluator,
    residuals: Residuals,
}

/// How many rows of a file match, as far as its partition and metrics show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowMatch {
    /// No row matches.
    None,
    /// Some rows may match.
    Some,
    /// Every row matches.
    All,
}

impl RowMatch {
    fn of(inclusive: &InclusiveMetrics, strict: &StrictMetrics, file: &impl FileStatistics) -> Self {
        match () {
            () if !inclusive.might_match(file) => Self::None,
            () if strict.must_match(file) => Self::All,
            () => Self::Some,
        }
    }
}

impl Selection {
    /// Prepares a filter on the columns of the current schema.
    ///
    /// # Errors
    /// A filter that does not fit the schema.
    pub fn new(filter: &Expr, base: &TableMetadata, specs: &Specs, case_sensitive: bool) -> Result<Self> {
        let bound = filter.bind(base.current_schema(), case_sensitive)?;
        let inclusive = InclusiveMetrics::new(&bound);
        let prepare = |spec: &Arc<Spec>| {
            let projection = project_inclusive(&bound, &spec.spec);
            let of_spec = OfSpec {
                summaries: SummaryEvaluator::new(&projection),
                strict: project_strict(&bound, &spec.spec),
                residuals: Residuals::new(&bound, &spec.spec),
                projection,
            };
            (spec.spec.spec_id, of_spec)
        };
        let specs = specs.iter().map(prepare).collect();
        Ok(Self { text: filter.to_string(), fields: inclusive.field_ids(), inclusive, specs, filter: bound })
    }

    /// The filter as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The metrics of entries that the filter needs.
    pub fn metrics(&self) -> Metrics {
        if self.fields.is_empty() { Metrics::none() } else { Metrics::for_filter(self.fields.iter().copied()) }
    }

    fn of(&self, spec: &Spec) -> Result<&OfSpec> {
        let found = self.specs.get(&spec.spec.spec_id);
        found.ok_or_else(|| Error::Internal("a spec that the filter was not prepared for".to_owned()))
    }

    /// Whether a manifest may have files with matching rows.
    pub fn may_be_in(&self, spec: &Spec, manifest: &ManifestFile) -> Result<bool> {
        let summaries: Option<Vec<FieldSummary<'_>>> =
            manifest.partitions.as_ref().map(|partitions| partitions.iter().map(summary).collect());
        Ok(self.of(spec)?.summaries.might_match(summaries.as_deref()))
    }

    /// For each entry, whether rows of its file may match.
    pub fn might_match(&self, spec: &Spec, entries: &Entries) -> Result<BooleanBuffer> {
        let of_spec = self.of(spec)?;
        let of_metrics = match &self.filter {
            Expression::False => BooleanBuffer::new_unset(entries.len()),
            _ => might_match(&self.inclusive, &self.fields, entries)?,
        };
        if of_spec.projection == Expression::True {
            return Ok(of_metrics);
        }
        let matches = |place| Ok(of_spec.projection.matches(&entries.tuple(place)?));
        let of_tuples = (0..entries.tuples.len()).map(matches).collect::<Result<Vec<bool>>>()?;
        let of_partition = |row| of_tuples.get(entries.tuple_of.value(row) as usize).copied().unwrap_or(true);
        Ok(&of_metrics & &BooleanBuffer::collect_bool(entries.len(), of_partition))
    }

    /// For each entry, how many rows of its file match. Metrics are used only for what the partition leaves undecided.
    pub fn matching(&self, spec: &Spec, entries: &Entries) -> Result<Vec<RowMatch>> {
        let (of_tuples, residuals) = self.of(spec)?.residuals.of_partitions(entries.tuples.as_ref())?;
        let residuals: Vec<(InclusiveMetrics, StrictMetrics)> =
            residuals.iter().map(|residual| (InclusiveMetrics::new(residual), StrictMetrics::new(residual))).collect();
        let statistics = statistics(entries, &self.fields)?;
        let matching = |row: usize| {
            let place = of_tuples.get(entries.tuple_of.value(row) as usize);
            let evaluators = place.and_then(|place| residuals.get(*place as usize));
            let (inclusive, strict) = evaluators.ok_or_else(|| Error::Internal("an entry without residual".into()))?;
            let file = statistics.file(row);
            Ok(match OfKey::of(entries, row, &self.fields, file) {
                None => RowMatch::of(inclusive, strict, &statistics.file(row)),
                Some(of_key) => RowMatch::of(inclusive, strict, &of_key),
            })
        };
        (0..entries.len()).map(matching).collect()
    }

    /// For each entry, whether the partition alone or the metrics alone prove that all rows of its file match.
    pub fn must_match(&self, spec: &Spec, entries: &Entries) -> Result<Vec<bool>> {
        let of_spec = self.of(spec)?;
        let strict = StrictMetrics::new(&self.filter);
        let statistics = statistics(entries, &self.fields)?;
        let must = |row: usize| {
            let tuple = entries.partition_of(row)?;
            let proved = of_spec.strict.matches(&tuple) || strict.must_match(&statistics.file(row));
            Ok(of_spec.projection.matches(&tuple) && proved)
        };
        (0..entries.len()).map(must).collect()
    }
}
