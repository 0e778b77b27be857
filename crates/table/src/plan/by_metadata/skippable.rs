//! Whether a filter on a string column could skip some files of a plan.

use arrow_array::{Array, BinaryArray};

use crate::plan::Plan;
use crate::plan::field_metrics::FieldBounds;

impl Plan {
    /// Whether two files have disjoint bounds of a string column, or one lacks them.
    ///
    /// Otherwise the ranges of all files overlap, as in tables not sorted by this column: nearly every value is
    /// within nearly every range, and filters skip little. The bounds of `field_id` must be among the plan's metrics.
    pub fn skippable_by(&self, field_id: i32) -> bool {
        let mut ranges: Option<(Vec<u8>, Vec<u8>)> = None;
        for manifest in &self.manifests {
            let FieldBounds { lower, upper } = FieldBounds::new(&manifest.entries, field_id);
            let complete = |bounds: &BinaryArray| bounds.null_count() == 0;
            let Some((lower, upper)) = lower.filter(complete).zip(upper.filter(complete)) else { return true };
            let Some((from, to)) = values(&lower).max().zip(values(&upper).min()) else { continue };
            let (from, to) = match ranges {
                None => (from.to_vec(), to.to_vec()),
                Some((before, after)) => (before.max(from.to_vec()), after.min(to.to_vec())),
            };
            if from > to {
                return true;
            }
            ranges = Some((from, to));
        }
        false
    }
}

fn values(bounds: &BinaryArray) -> impl Iterator<Item = &[u8]> {
    (0..bounds.len()).map(|row| bounds.value(row))
}
