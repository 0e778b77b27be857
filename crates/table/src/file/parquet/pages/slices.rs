//! Cuts row groups into slices of rows for several threads, at rows where pages of all columns begin, so that no page
//! is read twice.

use std::collections::BTreeSet;
use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;

/// Maximum share of a row group's bytes (one in this many) that rereading its dictionaries for every slice may add.
const DICTIONARIES: u64 = 8;

/// How a row group may be cut.
#[derive(Debug, Clone, Copy)]
pub(in crate::file::parquet) struct Cutting {
    /// Approximate rows of a slice.
    pub rows: u64,
    /// Minimum bytes of a slice.
    pub bytes: u64,
}

/// Slices of a row group's `rows` (by file row number); a single one if it cannot be cut, or if cutting costs more
/// than it gains. `leaves` are the columns to read.
pub(in crate::file::parquet) fn slices(
    metadata: &ParquetMetaData,
    group: usize,
    rows: Range<u64>,
    leaves: &BTreeSet<usize>,
    cutting: Cutting,
) -> Vec<Range<u64>> {
    let count = rows.end.saturating_sub(rows.start);
    let whole = || std::iter::once(rows.clone()).collect();
    if count <= cutting.rows {
        return whole();
    }
    let Some((starts, most)) = common_starts(metadata, group, count, leaves) else { return whole() };
    let most = most.min(bytes(metadata, group, leaves) / cutting.bytes.max(1));
    let wanted = (count / most.max(1)).max(cutting.rows);
    let mut ends = Vec::new();
    let (mut start, mut last) = (0, 0);
    for next in starts.into_iter().chain([count]) {
        // Take the last start that is close enough, or the first one that is not.
        if next - start > wanted && last > start {
            ends.push(last);
            start = last;
        }
        last = next;
    }
    let ends = ends.into_iter().chain([count]);
    let mut start = rows.start;
    ends.map(|end| std::mem::replace(&mut start, rows.start + end)..rows.start + end).collect()
}

/// Bytes of some columns of a row group.
fn bytes(metadata: &ParquetMetaData, group: usize, leaves: &BTreeSet<usize>) -> u64 {
    let columns = metadata.row_groups().get(group).map(|group| group.columns()).unwrap_or_default();
    let sizes = leaves.iter().filter_map(|leaf| columns.get(*leaf)).map(|chunk| chunk.compressed_size());
    sizes.fold(0, |sum: u64, size| sum.saturating_add(size.max(0).unsigned_abs()))
}

/// The rows of a row group at which pages of all columns begin, and the number of slices that its dictionaries allow.
/// `None` if the page index does not cover the row group from its first row and byte to its last.
fn common_starts(
    metadata: &ParquetMetaData,
    group: usize,
    count: u64,
    leaves: &BTreeSet<usize>,
) -> Option<(Vec<u64>, u64)> {
    let columns = metadata.row_groups().get(group)?.columns();
    let index = metadata.page_index_for_row_group(group);
    let (mut common, mut dictionaries): (Option<Vec<u64>>, u64) = (None, 0);
    for leaf in leaves {
        let chunk = columns.get(*leaf)?;
        let (start, length) = chunk.byte_range();
        let pages = index.page_locations(*leaf)?;
        let places = pages.iter().map(|page| {
            let offset = u64::try_from(page.offset).ok()?;
            Some((offset, offset.checked_add(u64::try_from(page.compressed_page_size).ok()?)?))
        });
        let places = places.collect::<Option<Vec<_>>>()?;
        let starts: Option<Vec<u64>> = pages.iter().map(|page| u64::try_from(page.first_row_index).ok()).collect();
        let starts = starts?;
        // If pages left gaps or overlapped, bytes would be read twice or not at all.
        let is_dense = places.windows(2).all(|pair| matches!(pair, [one, other] if one.1 == other.0))
            && places.last().is_some_and(|(_, end)| Some(*end) == start.checked_add(length));
        let is_ascending = starts.first() == Some(&0)
            && starts.windows(2).all(|pair| matches!(pair, [one, other] if one < other))
            && starts.last().is_some_and(|last| *last < count);
        if !is_dense || !is_ascending {
            return None;
        }
        // The dictionary is what lies before the first page; every slice reads it again.
        dictionaries = dictionaries.saturating_add(places.first()?.0.checked_sub(start)?);
        let known: BTreeSet<u64> = starts.iter().copied().collect();
        common = Some(match common {
            Some(mut common) => {
                common.retain(|start| known.contains(start));
                common
            }
            None => starts,
        });
    }
    let all = bytes(metadata, group, leaves);
    Some((common?, 1 + all / DICTIONARIES.saturating_mul(dictionaries.max(1))))
}
