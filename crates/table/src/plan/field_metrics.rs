//! The metrics of one field in the files of a manifest, in columns with one item per file.

use arrow_array::{Array, BinaryArray, Int64Array};
use icefield_format::manifest::{Entries, MetricMap};

/// The counts and bounds of a field; a column is `None` if the metric was not read.
#[derive(Debug)]
pub(super) struct FieldMetrics {
    pub(super) values: Option<Int64Array>,
    pub(super) nulls: Option<Int64Array>,
    pub(super) nans: Option<Int64Array>,
    pub(super) bounds: FieldBounds,
}

/// The bounds of a field; a column is `None` if the metric was not read.
#[derive(Debug)]
pub(super) struct FieldBounds {
    pub(super) lower: Option<BinaryArray>,
    pub(super) upper: Option<BinaryArray>,
}

impl FieldMetrics {
    pub(super) fn new(entries: &Entries, id: i32) -> Self {
        let counts = |map: &Option<MetricMap>| map.as_ref().map(|map| map.counts(id));
        Self {
            values: counts(&entries.value_counts),
            nulls: counts(&entries.null_value_counts),
            nans: counts(&entries.nan_value_counts),
            bounds: FieldBounds::new(entries, id),
        }
    }

    /// The number of values of a file, nulls included.
    pub(super) fn value_count(&self, row: usize) -> Option<i64> {
        count(self.values.as_ref(), row)
    }

    /// The number of nulls of a file.
    pub(super) fn null_count(&self, row: usize) -> Option<i64> {
        count(self.nulls.as_ref(), row)
    }

    /// The number of NaN of a file.
    pub(super) fn nan_count(&self, row: usize) -> Option<i64> {
        count(self.nans.as_ref(), row)
    }
}

impl FieldBounds {
    pub(super) fn new(entries: &Entries, id: i32) -> Self {
        let bounds = |map: &Option<MetricMap>| map.as_ref().map(|map| map.bounds(id));
        Self { lower: bounds(&entries.lower_bounds), upper: bounds(&entries.upper_bounds) }
    }

    /// The lower bound in a file, in binary form.
    pub(super) fn lower(&self, row: usize) -> Option<&[u8]> {
        bytes(self.lower.as_ref(), row)
    }

    /// The upper bound in a file, in binary form.
    pub(super) fn upper(&self, row: usize) -> Option<&[u8]> {
        bytes(self.upper.as_ref(), row)
    }
}

fn count(counts: Option<&Int64Array>, row: usize) -> Option<i64> {
    counts.filter(|counts| counts.is_valid(row)).map(|counts| counts.value(row))
}

fn bytes(bounds: Option<&BinaryArray>, row: usize) -> Option<&[u8]> {
    bounds.filter(|bounds| bounds.is_valid(row)).map(|bounds| bounds.value(row))
}
