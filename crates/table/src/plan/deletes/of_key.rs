//! Filters on the metrics of equality deletes: only the equality columns of a delete file describe the rows it
//! deletes; bounds of its other columns do not.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::BooleanBuffer;
use icefield_format::expr::{FieldStatistics, FileStatistics, InclusiveMetrics, StatisticsColumns, StatisticsOfFile};
use icefield_format::manifest::{Entries, FileContent};

use super::index::equality_ids;
use crate::error::Result;
use crate::plan::field_metrics::FieldMetrics;

/// The metrics of some fields, for the evaluators.
pub(crate) fn statistics(entries: &Entries, ids: &BTreeSet<i32>) -> Result<StatisticsColumns> {
    let mut columns = StatisticsColumns::new(&entries.record_count);
    for &id in ids {
        let FieldMetrics { values, nulls, nans, bounds } = FieldMetrics::new(entries, id);
        columns = columns.with_counts(id, values, nulls, nans)?;
        let array = |bounds: Option<BinaryArray>| bounds.map(|bounds| Arc::new(bounds) as ArrayRef);
        let (lower, upper) = (array(bounds.lower), array(bounds.upper));
        columns = columns.with_bounds(id, lower.as_ref(), upper.as_ref())?;
    }
    Ok(columns)
}

/// The metrics of some columns of a file.
pub(crate) struct OfKey<'a> {
    file: StatisticsOfFile<'a>,
    key: Vec<i32>,
}

impl<'a> OfKey<'a> {
    /// The metrics of an equality delete, restricted if the filter has other columns than its equality columns.
    pub(crate) fn of(
        entries: &Entries,
        row: usize,
        fields: &BTreeSet<i32>,
        file: StatisticsOfFile<'a>,
    ) -> Option<Self> {
        if !matches!(entries.content_of(row), Ok(FileContent::EqualityDeletes)) {
            return None;
        }
        let key = equality_ids(entries, row);
        (!fields.iter().all(|id| key.contains(id))).then_some(Self { file, key })
    }
}

impl FileStatistics for OfKey<'_> {
    fn record_count(&self) -> i64 {
        self.file.record_count()
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        if self.key.contains(&id) { self.file.field(id) } else { FieldStatistics::default() }
    }
}

/// For each entry, whether rows of the file, or rows that it deletes, may match a filter on these fields.
pub(crate) fn might_match(
    filter: &InclusiveMetrics,
    fields: &BTreeSet<i32>,
    entries: &Entries,
) -> Result<BooleanBuffer> {
    let statistics = statistics(entries, fields)?;
    let found = filter.evaluate(&statistics)?;
    if entries.equality_ids.null_count() == entries.len() {
        return Ok(found);
    }
    let by_key = |row: usize| {
        found.value(row)
            || OfKey::of(entries, row, fields, statistics.file(row)).is_some_and(|of_key| filter.might_match(&of_key))
    };
    Ok(BooleanBuffer::collect_bool(entries.len(), by_key))
}
