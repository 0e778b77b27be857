//! Prunes rows by the page index of a Parquet file: a page stays if its bounds may match the filter.

use std::collections::HashMap;
use std::ops::Range;

use icefield_format::expr::{BoundExpr, Expression, InclusiveMetrics};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::metadata::page_index::RowGroupPageIndex;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::index_reader::decode_column_index;
use parquet::file::statistics::Statistics;

use super::row_groups::{Group, Leaf};
use crate::error::{Error, Result};
use crate::file::parquet::guard::guarded;
use crate::file::ranges::{both, either};

/// Page bounds of columns, by row group and leaf.
pub(super) type PageBounds = HashMap<(usize, usize), ColumnIndexMetaData>;

/// Reads the page bounds of some leaves in row groups with several pages. `fetch` reads ranges of the file; `size` is
/// its length.
pub(in crate::file::parquet) fn bounds(
    path: &str,
    size: u64,
    metadata: &ParquetMetaData,
    groups: &[usize],
    leaves: &[Leaf],
    fetch: impl FnOnce(&[Range<u64>]) -> Result<Vec<bytes::Bytes>>,
) -> Result<PageBounds> {
    let (mut places, mut ranges, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        let index = metadata.page_index_for_row_group(*group);
        for place in leaves.iter().map(|leaf| leaf.place) {
            let chunk = metadata.row_groups().get(*group).and_then(|group| group.columns().get(place));
            // The bounds of an only page are those of its row group, tested before.
            let Some(chunk) = chunk.filter(|_| index.num_data_pages(place).is_some_and(|pages| pages > 1)) else {
                continue;
            };
            let start = chunk.column_index_offset().and_then(|start| u64::try_from(start).ok());
            let length = chunk.column_index_length().and_then(|length| u64::try_from(length).ok());
            let (Some(start), Some(length)) = (start, length) else { continue };
            let Some(end) = start.checked_add(length).filter(|end| *end <= size) else {
                let column = chunk.column_path().string();
                let message = format!(
                    "row group {group}, column {column}: its page index, {length} bytes from byte {start} on, is not in \
                     the file, which has {size} bytes"
                );
                return Err(Error::corrupt_file(path, message));
            };
            places.push((*group, place));
            ranges.push(start..end);
            types.push(chunk.column_type());
        }
    }
    if ranges.is_empty() {
        return Ok(PageBounds::new());
    }
    let found = fetch(&ranges)?.into_iter().zip(types).zip(places);
    let decoded = |((bytes, ty), place): ((bytes::Bytes, _), _)| -> Result<_> {
        Ok((place, guarded(path, || decode_column_index(&bytes, ty))?))
    };
    found.map(decoded).collect()
}

/// The rows that remain after page pruning, by number in the file; `None` if all remain.
///
/// `rows` are the row numbers of each row group; `filter` has no `NOT`.
pub(in crate::file::parquet) fn rows_left(
    metadata: &ParquetMetaData,
    bounds: &PageBounds,
    groups: &[usize],
    rows: &[Range<u64>],
    leaves: &[Leaf],
    filter: &BoundExpr,
) -> Option<Vec<Range<u64>>> {
    if bounds.is_empty() {
        return None;
    }
    let (mut left, mut all) = (Vec::new(), true);
    for (group, rows) in groups.iter().filter_map(|group| Some((*group, rows.get(*group)?))) {
        let index = metadata.page_index_for_row_group(group);
        let pages = Pages { group, index, bounds, leaves, rows: rows.end - rows.start };
        let found = pages.left(filter);
        all &= found.len() == 1 && found.first() == Some(&(0..pages.rows));
        left.extend(found.into_iter().map(|range| rows.start + range.start..rows.start + range.end));
    }
    (!all).then_some(left)
}

/// The pages of a row group.
struct Pages<'a> {
    group: usize,
    index: RowGroupPageIndex,
    bounds: &'a PageBounds,
    leaves: &'a [Leaf],
    rows: u64,
}

impl Pages<'_> {
    /// The rows that a filter may match, numbered through the row group.
    fn left(&self, filter: &BoundExpr) -> Vec<Range<u64>> {
        match filter {
            Expression::False => Vec::new(),
            Expression::And(left, right) => both(&self.left(left), &self.left(right)),
            Expression::Or(left, right) => either(&self.left(left), &self.left(right)),
            Expression::Predicate(predicate) => {
                let id = predicate.term.reference.id;
                let leaf = self.leaves.iter().find(|leaf| leaf.id == id);
                leaf.and_then(|leaf| self.pages_left(leaf, &InclusiveMetrics::new(filter)))
                    .unwrap_or_else(|| self.all())
            }
            Expression::True | Expression::Not(_) => self.all(),
        }
    }

    fn all(&self) -> Vec<Range<u64>> {
        std::iter::once(0..self.rows).collect()
    }

    /// The rows of a column's pages that a test may match; `None` if the page index is unusable.
    fn pages_left(&self, leaf: &Leaf, test: &InclusiveMetrics) -> Option<Vec<Range<u64>>> {
        let values = self.bounds.get(&(self.group, leaf.place))?;
        let starts = self.index.page_locations(leaf.place)?;
        let starts: Option<Vec<u64>> = starts.iter().map(|page| u64::try_from(page.first_row_index).ok()).collect();
        let starts = starts.filter(|starts| starts.len() as u64 == values.num_pages())?;
        // An index that does not cover the row group from its first to its last row is ignored.
        let ends: Vec<u64> = starts.iter().skip(1).copied().chain([self.rows]).collect();
        if starts.first() != Some(&0) || starts.iter().zip(&ends).any(|(start, end)| start >= end) {
            return None;
        }
        let mut left: Vec<Range<u64>> = Vec::new();
        for (page, (start, end)) in starts.into_iter().zip(ends).enumerate() {
            let rows = i64::try_from(end - start).ok()?;
            let statistics = match values.is_null_page(page) {
                true => no_values(rows),
                false => statistics(values, page)?,
            };
            if !test.might_match(&Group::of(rows, leaf, &statistics)) {
                continue;
            }
            match left.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => left.push(start..end),
            }
        }
        Some(left)
    }
}

/// Statistics of a page that contains only nulls. Without bounds their type does not matter.
fn no_values(rows: i64) -> Statistics {
    Statistics::boolean(None, None, None, u64::try_from(rows).ok(), false)
}

/// Statistics of a page.
fn statistics(values: &ColumnIndexMetaData, page: usize) -> Option<Statistics> {
    let nulls = values.null_count(page).and_then(|count| u64::try_from(count).ok());
    Some(match values {
        // Parquet defines no order for INT96.
        ColumnIndexMetaData::INT96(_) => return None,
        ColumnIndexMetaData::BOOLEAN(found) => {
            Statistics::boolean(found.min_value(page).copied(), found.max_value(page).copied(), None, nulls, false)
        }
        ColumnIndexMetaData::INT32(found) => {
            Statistics::int32(found.min_value(page).copied(), found.max_value(page).copied(), None, nulls, false)
        }
        ColumnIndexMetaData::INT64(found) => {
            Statistics::int64(found.min_value(page).copied(), found.max_value(page).copied(), None, nulls, false)
        }
        ColumnIndexMetaData::FLOAT(found) => {
            Statistics::float(found.min_value(page).copied(), found.max_value(page).copied(), None, nulls, false)
        }
        ColumnIndexMetaData::DOUBLE(found) => {
            Statistics::double(found.min_value(page).copied(), found.max_value(page).copied(), None, nulls, false)
        }
        ColumnIndexMetaData::BYTE_ARRAY(found) => {
            let bytes = |value: &[u8]| ByteArray::from(value.to_vec());
            Statistics::byte_array(
                found.min_value(page).map(bytes),
                found.max_value(page).map(bytes),
                None,
                nulls,
                false,
            )
        }
        ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(found) => {
            let bytes = |value: &[u8]| FixedLenByteArray::from(value.to_vec());
            let (min, max) = (found.min_value(page).map(bytes), found.max_value(page).map(bytes));
            Statistics::fixed_len_byte_array(min, max, None, nulls, false)
        }
    })
}
