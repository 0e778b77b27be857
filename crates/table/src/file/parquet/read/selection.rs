//! Row selections: which rows of a Parquet file to decode, and which of the decoded rows to keep.
//!
//! Columns decoded by this crate return exactly the selected rows (see [`flat`](crate::file::parquet::flat)). The parquet
//! crate decodes rows close to each other including short gaps, and its part of a batch is then cut once for all its
//! columns, which takes half as long as its own masks.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::errors::ParquetError;

use crate::arrow::filter::rows_in;
use crate::file::parquet::flat::runs::Runs;
use crate::file::ranges::decoded_for;

/// The selected rows of some row groups, numbered through these row groups.
#[derive(Debug)]
pub(super) struct Selected {
    /// Number of rows in the row groups.
    all: usize,
    /// Ascending, non-empty.
    wanted: Vec<Range<usize>>,
}

impl Selected {
    /// Selects the ranges `rows` within the row groups, and within a slice if there is one; all numbers are file row
    /// numbers, ascending.
    pub(super) fn new(groups: &[Range<u64>], rows: &[Range<u64>], slice: Option<&Range<u64>>) -> Self {
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (mut wanted, mut all) = (Vec::new(), 0_usize);
        for group in groups {
            let window = slice.unwrap_or(group);
            let (start, end) = (group.start.max(window.start), group.end.min(window.end));
            let rows = rows.get(rows.partition_point(|range| range.end <= start)..).unwrap_or_default();
            let rows = rows.get(..rows.partition_point(|range| range.start < end)).unwrap_or_default();
            let place = |row: u64| all.saturating_add(size(row.max(start).min(end).saturating_sub(group.start)));
            wanted.extend(rows.iter().map(|range| place(range.start)..place(range.end)));
            all = all.saturating_add(size(group.end.saturating_sub(group.start)));
        }
        wanted.retain(|range| !range.is_empty());
        Self { all, wanted }
    }

    /// The selection in the parquet crate's form.
    pub(super) fn selection(&self) -> RowSelection {
        selection(self.wanted.iter(), self.all)
    }

    /// Joins ranges across short gaps for decoding, and keeps the selection among the decoded rows.
    pub(super) fn joined(self) -> Rows {
        let (decoded, wanted) = (decoded_for(&self.wanted), self.wanted);
        Rows { all: self.all, decoded: decoded.into(), wanted, next: 0 }
    }
}

fn selection<'r>(rows: impl Iterator<Item = &'r Range<usize>>, all: usize) -> RowSelection {
    let (mut selectors, mut next) = (Vec::new(), 0);
    for range in rows {
        selectors.push(RowSelector::skip(range.start.saturating_sub(next)));
        selectors.push(RowSelector::select(range.len()));
        next = range.end;
    }
    selectors.push(RowSelector::skip(all.saturating_sub(next)));
    selectors.into()
}

/// Rows to decode, in order, and the selection among them.
#[derive(Debug)]
pub(super) struct Rows {
    all: usize,
    decoded: VecDeque<Range<usize>>,
    wanted: Vec<Range<usize>>,
    /// Index of the first selected range that does not end before the remaining rows.
    next: usize,
}

/// The rows of a batch.
pub(super) struct Taken<'a> {
    /// The decoded rows, numbered through the row groups.
    decoded: Vec<Range<usize>>,
    /// The selected rows among them.
    pub wanted: Runs<'a>,
}

impl Taken<'_> {
    /// Indices of selected rows within the decoded ones; `None` if all.
    pub(super) fn places(&self) -> Option<Vec<Range<usize>>> {
        let decoded = || self.decoded.iter();
        if self.wanted.count() == decoded().map(Range::len).sum::<usize>() {
            return None;
        }
        let mut decoded = decoded();
        let (mut rows, mut before) = (decoded.next()?, 0);
        let place = |range: Range<usize>| {
            // Selected ranges lie within decoded ranges.
            while rows.end < range.end {
                before += rows.len();
                rows = decoded.next()?;
            }
            Some(before + (range.start - rows.start)..before + (range.end - rows.start))
        };
        self.wanted.numbers().map(place).collect()
    }
}

impl Rows {
    /// All rows of some row groups.
    pub(super) fn all(all: usize) -> Self {
        let rows: Vec<_> = (all > 0).then_some(0..all).into_iter().collect();
        Self { all, decoded: rows.clone().into(), wanted: rows, next: 0 }
    }

    /// The rows to decode in the parquet crate's form; `None` if all.
    pub(super) fn selection(&self) -> Option<RowSelection> {
        (self.left() < self.all).then(|| selection(self.decoded.iter(), self.all))
    }

    /// Number of rows still to decode.
    pub(super) fn left(&self) -> usize {
        self.decoded.iter().fold(0, |sum: usize, rows| sum.saturating_add(rows.len()))
    }

    /// Takes the next `count` rows to decode.
    pub(super) fn take(&mut self, count: usize) -> Result<Taken<'_>, ParquetError> {
        let (mut decoded, mut seen) = (Vec::new(), 0);
        while seen < count {
            let Some(rows) = self.decoded.front_mut() else {
                return Err(ParquetError::General("it has more rows than its footer says".to_owned()));
            };
            let end = rows.end.min(rows.start.saturating_add(count - seen));
            let taken = std::mem::replace(&mut rows.start, end)..end;
            if rows.start >= rows.end {
                self.decoded.pop_front();
            }
            seen += taken.len();
            decoded.push(taken);
        }
        let start = decoded.first().map_or(0, |rows| rows.start);
        let end = decoded.last().map_or(0, |rows| rows.end);
        let left = self.wanted.get(self.next..).unwrap_or_default();
        let ranges = left.get(..left.partition_point(|range| range.start < end)).unwrap_or_default();
        // A range that extends past this batch also belongs to the next one.
        self.next += ranges.len() - usize::from(ranges.last().is_some_and(|last| last.end > end));
        Ok(Taken { decoded, wanted: Runs::new(ranges, start..end) })
    }

    /// Cuts a decoded batch to its selected rows.
    pub(super) fn cut(&mut self, batch: RecordBatch) -> Result<RecordBatch, ParquetError> {
        match self.take(batch.num_rows())?.places() {
            Some(places) => Ok(rows_in(batch, &places)?),
            None => Ok(batch),
        }
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

        /// Three row groups with runs of skipped and selected rows, decoded in batches of one size.
        #[test]
        fn what_is_decoded_and_cut_are_the_rows_wanted(
            sizes in prop::collection::vec(1..4000u64, 3),
            runs in prop::collection::vec((prop_oneof![0..4u64, 500..530u64, 0..3000u64], 1..40u64), 0..60),
            batch_rows in 1..700usize,
            read in any::<[bool; 3]>(),
            slice in prop::option::of((0..9000u64, 0..9000u64).prop_map(|(one, other)| one.min(other)..one.max(other))),
        ) {
            let mut end = 0;
            let groups: Vec<Range<u64>> = sizes.iter().map(|size| { let start = end; end += size; start..end }).collect();
            let mut next = 0;
            let mut ranges = Vec::new();
            for (skipped, wanted) in runs {
                ranges.push(next + skipped..next + skipped + wanted);
                next += skipped + wanted;
            }
            let groups: Vec<_> = groups.into_iter().zip(read).filter_map(|(group, read)| read.then_some(group)).collect();
            let numbers: Vec<u64> = groups.iter().cloned().flatten().collect();
            let is_there = |row: &u64| {
                numbers.binary_search(row).is_ok() && slice.as_ref().is_none_or(|slice| slice.contains(row))
            };
            let expected: Vec<u64> = ranges.iter().cloned().flatten().filter(is_there).collect();
            let selected = |selection: Option<RowSelection>| {
                let Some(selection) = selection else { return numbers.clone() };
                let (mut selected, mut at) = (Vec::new(), 0);
                for selector in selection.iter() {
                    if !selector.skip {
                        selected.extend_from_slice(&numbers[at..at + selector.row_count]);
                    }
                    at += selector.row_count;
                }
                selected
            };
            prop_assert_eq!(selected(Some(Selected::new(&groups, &ranges, slice.as_ref()).selection())), expected.clone());
            let mut rows = Selected::new(&groups, &ranges, slice.as_ref()).joined();
            let decoded = selected(rows.selection());
            prop_assert_eq!(decoded.len(), rows.left());
            let mut taking = Selected::new(&groups, &ranges, slice.as_ref()).joined();
            let (mut found, mut taken) = (Vec::new(), Vec::new());
            for decoded in decoded.chunks(batch_rows) {
                let cut = rows.cut(batch(decoded.iter().copied())).unwrap();
                found.extend(cut.column(0).as_primitive::<Int64Type>().values().iter().map(|row| row.cast_unsigned()));
                let next = taking.take(decoded.len()).unwrap();
                prop_assert_eq!(next.wanted.count(), cut.num_rows());
                taken.extend(next.wanted.numbers().flatten().map(|place| numbers[place]));
            }
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(taken, expected);
            prop_assert!(rows.cut(batch([0])).is_err() && taking.take(1).is_err() && rows.left() == 0);
        }
    }
}
