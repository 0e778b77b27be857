//! Rows wanted of a Parquet file: what the decoder skips, and what is cut out of the batches that it decoded.
//!
//! Rows that lie close are decoded together, and a batch is cut once for all its columns, which takes half as long as the masks
//! of the decoder.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::errors::ParquetError;

use crate::arrow::filter::rows_in;
use crate::file::ranges::{both, decoded_for, overlapping};

/// The rows wanted of some row groups.
#[derive(Debug)]
pub(super) struct Selected {
    /// For each row group the numbers of its rows in the file.
    groups: Vec<Range<u64>>,
    /// Rows by number in the file, within the row groups: ascending, none of them empty.
    wanted: Vec<Range<u64>>,
}

impl Selected {
    /// The rows of some ranges, ascending, that some row groups have.
    pub(super) fn new(groups: Vec<Range<u64>>, rows: &[Range<u64>]) -> Self {
        let mut wanted = Vec::new();
        for group in &groups {
            wanted.append(&mut both(std::slice::from_ref(group), rows));
        }
        Self { groups, wanted }
    }

    /// The rows as the decoder counts them: through the row groups.
    pub(super) fn selection(&self) -> RowSelection {
        self.select(&self.wanted)
    }

    /// A selection without short skips, and how its batches are cut to the rows wanted, if they must be.
    pub(super) fn with_cut(self) -> (RowSelection, Option<Cut>) {
        let decoded = decoded_for(&self.wanted);
        // Rows that two row groups have between them are there only where both are read.
        if count(&decoded) == count(&self.wanted) || self.groups.windows(2).any(|pair| pair[0].end != pair[1].start) {
            return (self.selection(), None);
        }
        (self.select(&decoded), Some(Cut { decoded: decoded.into(), wanted: self.wanted, next: 0 }))
    }

    fn select(&self, rows: &[Range<u64>]) -> RowSelection {
        let mut selectors = Vec::new();
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        for group in &self.groups {
            let mut next = group.start;
            for range in overlapping(rows, group) {
                let (start, end) = (range.start.max(group.start), range.end.min(group.end));
                selectors.push(RowSelector::skip(size(start.saturating_sub(next))));
                selectors.push(RowSelector::select(size(end.saturating_sub(start))));
                next = end;
            }
            selectors.push(RowSelector::skip(size(group.end.saturating_sub(next))));
        }
        selectors.into()
    }
}

/// How many rows some ranges have.
fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Cuts batches of decoded rows, in their order, to the rows wanted.
#[derive(Debug)]
pub(super) struct Cut {
    decoded: VecDeque<Range<u64>>,
    wanted: Vec<Range<u64>>,
    /// The first of those wanted that does not end before the next batch.
    next: usize,
}

impl Cut {
    /// The rows wanted of the next batch.
    pub(super) fn apply(&mut self, batch: RecordBatch) -> Result<RecordBatch, ParquetError> {
        let (mut kept, mut seen) = (Vec::new(), 0);
        while seen < batch.num_rows() {
            let left = (batch.num_rows() - seen) as u64;
            let Some(rows) = self.decoded.front_mut() else {
                return Err(ParquetError::General("it has more rows than its footer says".to_owned()));
            };
            let end = rows.end.min(rows.start.saturating_add(left));
            let decoded = std::mem::replace(&mut rows.start, end)..end;
            if rows.is_empty() {
                self.decoded.pop_front();
            }
            self.take(&decoded, seen, &mut kept);
            seen += (decoded.end - decoded.start) as usize;
        }
        Ok(rows_in(batch, &kept)?)
    }

    /// Appends which of some rows are wanted, the first of which has a place in the batch.
    fn take(&mut self, rows: &Range<u64>, place: usize, kept: &mut Vec<Range<usize>>) {
        let wanted = self.wanted.get(self.next..).unwrap_or_default();
        let ends_within = wanted.partition_point(|range| range.end <= rows.end);
        let overlapping = wanted.iter().take(ends_within + 1).filter(|range| range.start < rows.end);
        kept.extend(overlapping.map(|range| {
            let place_of = |row: u64| place + (row.clamp(rows.start, rows.end) - rows.start) as usize;
            place_of(range.start)..place_of(range.end)
        }));
        self.next += ends_within;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array};
    use proptest::prelude::*;

    use super::*;

    fn batch(rows: impl IntoIterator<Item = u64>) -> RecordBatch {
        let rows = Int64Array::from_iter_values(rows.into_iter().map(u64::cast_signed));
        RecordBatch::try_from_iter([("row", Arc::new(rows) as ArrayRef)]).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Rows of three row groups by runs of skipped and wanted ones, decoded in batches of some size.
        #[test]
        fn what_is_decoded_and_cut_are_the_rows_wanted(
            sizes in prop::collection::vec(1..4000u64, 3),
            runs in prop::collection::vec((prop_oneof![0..4u64, 500..530u64, 0..3000u64], 1..40u64), 0..60),
            batch_rows in 1..700usize,
        ) {
            let mut end = 0;
            let groups: Vec<_> = sizes.iter().map(|size| { let start = end; end += size; start..end }).collect();
            let mut next = 0;
            let mut ranges = Vec::new();
            for (skipped, wanted) in runs {
                ranges.push(next + skipped..next + skipped + wanted);
                next += skipped + wanted;
            }
            let expected: Vec<u64> = ranges.iter().cloned().flatten().filter(|row| *row < end).collect();
            let (selection, cut) = Selected::new(groups, &ranges).with_cut();
            let mut decoded = Vec::new();
            let mut at = 0;
            for selector in selection.iter() {
                if !selector.skip {
                    decoded.extend(at..at + selector.row_count as u64);
                }
                at += selector.row_count as u64;
            }
            let Some(mut cut) = cut else {
                prop_assert_eq!(decoded, expected);
                return Ok(());
            };
            prop_assert!(decoded.len() > expected.len());
            let mut found = Vec::new();
            for rows in decoded.chunks(batch_rows) {
                let cut = cut.apply(batch(rows.iter().copied())).unwrap();
                found.extend(cut.column(0).as_primitive::<Int64Type>().values().iter().map(|row| row.cast_unsigned()));
            }
            prop_assert_eq!(found, expected);
            prop_assert!(cut.apply(batch([0])).is_err());
        }
    }
}
