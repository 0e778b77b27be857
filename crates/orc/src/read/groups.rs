//! Which rows of a stripe are read: the requested rows in the row groups that a predicate does not skip.

use std::collections::HashMap;
use std::ops::Range;

use crate::predicate::{Predicate, Trust, Truth, bloom_may_match, evaluate};
use crate::proto::{BloomFilterIndex, ColumnStatistics, RowIndex};
use crate::tail::FileMetadata;
use crate::types::TypeDescription;

/// The indexes of a stripe that have been read.
#[derive(Debug, Default)]
pub(super) struct StripeIndexes {
    /// Row indexes by column.
    pub rows: HashMap<u32, RowIndex>,
    /// Bloom filters that can be trusted, by column.
    pub blooms: HashMap<u32, BloomFilterIndex>,
}

/// Whether rows with these statistics (by column id) may match. Without statistics of a column they may.
pub(super) fn may_match(file: &FileMetadata, predicate: &Predicate, statistics: &[ColumnStatistics]) -> bool {
    let trust = Trust::of(file);
    let mut leaf = |column: u32, test: &_| match (file.schema.find(column), statistics.get(column as usize)) {
        (Some(node), Some(own)) => evaluate(test, node, own, trust, is_nested(&file.schema, column)),
        _ => Truth::ANY,
    };
    predicate.truth(&mut leaf).may_be_true()
}

/// Whether a column is neither the root nor a child of the root.
fn is_nested(schema: &TypeDescription, column: u32) -> bool {
    column != schema.column && schema.children.iter().all(|child| child.column != column)
}

/// Which row groups may match, with and without Bloom filters.
pub(super) fn surviving(
    file: &FileMetadata,
    predicate: &Predicate,
    indexes: &StripeIndexes,
    groups: usize,
    blooms: bool,
) -> Vec<bool> {
    let trust = Trust::of(file);
    let may = |group: usize| {
        let mut leaf = |column: u32, test: &_| {
            let entry = indexes.rows.get(&column).filter(|index| index.entry.len() == groups);
            let entry = entry.and_then(|index| index.entry.get(group));
            let statistics = entry.and_then(|entry| entry.statistics.as_deref());
            let (Some(node), Some(own)) = (file.schema.find(column), statistics) else { return Truth::ANY };
            let truth = evaluate(test, node, own, trust, is_nested(&file.schema, column));
            // More filters than groups: docs/orc-pitfalls.md, "Bloom filters of encrypted columns".
            let filters = indexes.blooms.get(&column).filter(|index| blooms && index.bloom_filter.len() == groups);
            match filters.and_then(|index| index.bloom_filter.get(group)) {
                Some(filter) if truth.may_be_true() && !bloom_may_match(filter, test, &node.kind, file.version) => {
                    Truth::FALSE.or_also(Truth::NULL)
                }
                _ => truth,
            }
        };
        predicate.truth(&mut leaf).may_be_true()
    };
    (0..groups).map(may).collect()
}

/// The requested rows in the kept groups; all row numbers count from the first row of the stripe.
pub(super) fn rows_to_read(
    rows: u64,
    stride: Option<u64>,
    kept: Option<&[bool]>,
    wanted: Option<&[Range<u64>]>,
) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    match (kept, stride) {
        (Some(kept), Some(stride)) => {
            for (group, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
                let start = stride.saturating_mul(group as u64);
                let range = start..start.saturating_add(stride).min(rows);
                match ranges.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => ranges.push(range),
                }
            }
        }
        _ => ranges.push(0..rows),
    }
    let Some(wanted) = wanted else {
        ranges.retain(|range| !range.is_empty());
        return ranges;
    };
    let mut cut = Vec::new();
    let mut first = 0;
    for range in ranges {
        first += wanted.get(first..).unwrap_or_default().iter().take_while(|other| other.end <= range.start).count();
        for other in wanted.iter().skip(first).take_while(|other| other.start < range.end) {
            let both = range.start.max(other.start)..range.end.min(other.end);
            if !both.is_empty() {
                cut.push(both);
            }
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_wanted_rows_are_cut() {
        let kept = [true, false, true, true];
        assert_eq!(rows_to_read(35, Some(10), Some(&kept), None), [0..10, 20..35]);
        assert_eq!(rows_to_read(35, None, None, None).first(), Some(&(0..35)));
        let wanted = [2..3, 5..25, 34..90];
        assert_eq!(rows_to_read(35, Some(10), Some(&kept), Some(&wanted)), [2..3, 5..10, 20..25, 34..35]);
        assert!(rows_to_read(0, Some(10), Some(&[]), None).is_empty());
    }
}
