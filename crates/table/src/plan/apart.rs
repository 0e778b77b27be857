//! Whether a condition on a text could skip some of the files of a plan.

use arrow_array::{Array, BinaryArray};
use icefield_format::manifest::MetricMap;

use super::Plan;

impl Plan {
    /// Whether two of the files are known to have no value of a text column in common, or the bounds of one are not known.
    ///
    /// Otherwise the ranges of all files meet, as they do where rows are in no order of this column: nearly every value
    /// lies within nearly every range. The bounds of `field_id` must be among the plan's metrics.
    pub fn tells_apart(&self, field_id: i32) -> bool {
        let mut ranges: Option<(Vec<u8>, Vec<u8>)> = None;
        for manifest in &self.manifests {
            let bounds = |map: &Option<MetricMap>| {
                map.as_ref().map(|map| map.bounds(field_id)).filter(|bounds| bounds.null_count() == 0)
            };
            let found = bounds(&manifest.entries.lower_bounds).zip(bounds(&manifest.entries.upper_bounds));
            let Some((lower, upper)) = found else { return true };
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
