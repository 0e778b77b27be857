//! The deletes of a part of a file, in the form its reader needs.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::puffin::DeletionVector;
use roaring::RoaringTreemap;

use super::equality::Applied;
use crate::error::Result;
use crate::file::Filter;
use crate::read::columns::Rules;

/// Filter early if there are this many times more keys than rows, because few rows may remain. If rows remain all
/// over a file, decoding all of them is faster than decoding some.
const MANY: usize = 2;

/// Maximum number of row ranges to reserve memory for before they are counted.
const MOST_RANGES: usize = 1 << 16;

/// The deletes of a part.
#[derive(Default)]
pub struct PartDeletes {
    /// By position in the file.
    pub positions: Option<Arc<DeletionVector>>,
    /// By value.
    pub equality: Vec<Applied>,
    /// Changelog: the deletes that must have deleted the rows to read; `None` reads all remaining rows.
    pub deleted_by: Option<Box<PartDeletes>>,
}

impl PartDeletes {
    /// The rows that position deletes keep; `None` if all.
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

    /// Changelog: deleted positions, if position deletes alone decide.
    fn only_positions(&self) -> Option<&DeletionVector> {
        self.deleted_by.as_ref().filter(|by| by.equality.is_empty()).and_then(|by| by.positions.as_deref())
    }

    /// Whether deleted rows are asked for and nothing deletes any.
    pub fn is_nothing_left(&self) -> bool {
        self.deleted_by.as_ref().is_some_and(|by| by.equality.is_empty() && by.positions.is_none())
    }

    /// Filters that keep the rows that equality deletes keep.
    pub(super) fn tests(&self, rules: &Rules<'_>, fields: &Fields) -> Result<Vec<Filter>> {
        self.equality.iter().map(|applied| applied.test(rules, fields)).collect()
    }

    /// The same in two groups: filters to run before other columns are decoded, because few of the file's rows may
    /// remain, and the others.
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

/// The ranges between deleted rows. The last range is open-ended: the reader knows the file's number of rows.
fn rows_without(deleted: &DeletionVector) -> Vec<Range<u64>> {
    // There are at most this many ranges, and reserving once avoids reallocation.
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
    // Without run containers, looking for runs takes ten times as long as visiting each position.
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

/// Runs of positions as half-open ranges; a run across a multiple of 2^32 is split in two.
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
