//! What is deleted of a part of a file, as its reader needs it.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::puffin::DeletionVector;
use roaring::RoaringTreemap;

use super::equality::Applied;
use crate::error::Result;
use crate::file::Filter;
use crate::read::columns::Rules;

/// So many times as many keys as a file has rows may leave few of them. Where rows are left all over a file, it takes less time
/// to decode all of them than to decode some.
const MANY: usize = 2;

/// Ranges of rows that room is made for before they are counted, at the most.
const MOST_RANGES: usize = 1 << 16;

/// What is deleted of a part.
#[derive(Default)]
pub struct PartDeletes {
    /// By position in the file.
    pub positions: Option<Arc<DeletionVector>>,
    /// By values.
    pub equality: Vec<Applied>,
    /// What deletes the rows that are read; without it all that are left are.
    pub deleted_by: Option<Box<PartDeletes>>,
}

impl PartDeletes {
    /// The rows that are left by positions; `None` where that is all of them.
    pub fn rows_left(&self) -> Option<Vec<Range<u64>>> {
        if let Some(only) = self.only_positions() {
            let mut rows = only.as_bitmap().clone();
            if let Some(deleted) = &self.positions {
                rows -= deleted.as_bitmap();
            }
            return Some(runs(&rows).map(|(start, end)| start..end).collect());
        }
        self.positions.as_ref().map(|deleted| rows_without(deleted))
    }

    /// Of rows that must have been deleted, their positions, if positions alone tell.
    fn only_positions(&self) -> Option<&DeletionVector> {
        self.deleted_by.as_ref().filter(|by| by.equality.is_empty()).and_then(|by| by.positions.as_deref())
    }

    /// Whether rows must have been deleted by what deletes none.
    pub fn is_nothing_left(&self) -> bool {
        self.deleted_by.as_ref().is_some_and(|by| by.equality.is_empty() && by.positions.is_none())
    }

    /// Tests for the rows that are left by values.
    pub(super) fn tests(&self, rules: &Rules<'_>, fields: &Fields) -> Result<Vec<Filter>> {
        self.equality.iter().map(|applied| applied.test(rules, fields)).collect()
    }

    /// The same, in two: what pays before other columns are decoded, since it may leave few rows of a file that has so many,
    /// and what does not.
    pub fn early_and_late(
        &self,
        rules: &Rules<'_>,
        fields: &Fields,
        rows: i64,
    ) -> Result<(Vec<Filter>, Option<Filter>)> {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for applied in &self.equality {
            let is_late = usize::try_from(rows).is_ok_and(|rows| applied.keys() / MANY < rows);
            if is_late { &mut late } else { &mut early }.push(applied.test(rules, fields)?);
        }
        Ok((early, Filter::all(late)))
    }
}

/// The rows between deleted ones. A file's number of rows is the reader's to know.
fn rows_without(deleted: &DeletionVector) -> Vec<Range<u64>> {
    // No more than these, and room that is made once leaves none behind.
    let most = usize::try_from(deleted.cardinality()).unwrap_or(MOST_RANGES).min(MOST_RANGES);
    let mut left = Vec::with_capacity(most + 1);
    let mut next = 0u64;
    let mut without = |start: u64, end: u64| {
        if start > next {
            left.push(next..start);
        }
        next = end;
    };
    let positions = deleted.as_bitmap();
    // Where positions are no runs, to look for runs takes ten times as long as to look at each.
    if positions.bitmaps().any(|(_, bitmap)| bitmap.statistics().n_run_containers > 0) {
        runs(positions).for_each(|(start, end)| without(start, end));
    } else {
        let mut some = [0; 256];
        for (key, bitmap) in positions.bitmaps() {
            let base = u64::from(key) << 32;
            let mut positions = bitmap.iter();
            while let found @ [_, ..] = positions.next_many(&mut some) {
                found.iter().for_each(|position| without(base + u64::from(*position), base + u64::from(*position) + 1));
            }
        }
    }
    left.push(next..i64::MAX.unsigned_abs());
    left
}

/// Runs of positions, each with its first and the one behind its last; those that meet at a multiple of 2^32 are two.
fn runs(positions: &RoaringTreemap) -> impl Iterator<Item = (u64, u64)> {
    positions.bitmaps().flat_map(|(key, bitmap)| {
        let base = u64::from(key) << 32;
        let mut positions = bitmap.iter();
        std::iter::from_fn(move || {
            let run = positions.next_range()?;
            Some((base + u64::from(*run.start()), base + u64::from(*run.end()) + 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_left_are_those_between_the_deleted_ones() {
        let end = i64::MAX.unsigned_abs();
        let boundary = 1u64 << 32;
        for (deleted, left) in [
            (vec![], vec![(0, end)]),
            (vec![0, 1, 2], vec![(3, end)]),
            (vec![1, 3, 4], vec![(0, 1), (2, 3), (5, end)]),
            (
                vec![boundary - 1, boundary, boundary + 5],
                vec![(0, boundary - 1), (boundary + 1, boundary + 5), (boundary + 6, end)],
            ),
        ] {
            let found = rows_without(&DeletionVector::from_positions(deleted).unwrap());
            assert_eq!(found.into_iter().map(|range| (range.start, range.end)).collect::<Vec<_>>(), left);
        }
    }
}
