//! Checks the page index of a file against its pages ("Page Index" of Parquet).
//!
//! The parquet crate trusts the index: if a page had other rows than the index says, its values would silently go to
//! the wrong rows. So an index that contradicts itself or the footer is not used at all ([`sound`]). An index that is
//! used is checked: rows of pages that are read are counted, and if rows are skipped, the headers of the other pages
//! are read too, because they say how many rows come before. For local files these headers cost next to nothing. In
//! an object store each would be a request; there the last page is fetched with the others and checked in place of
//! the unread pages, and so it is for pages of repeated values whose headers do not count rows. Two errors of an
//! index that cancel out within unread pages stay undetected there.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::serialized_reader::SerializedPageReader;

use super::{indexed, whole_chunk};
use crate::error::Result as TableResult;
use crate::file::parquet::guard::guarded;

/// Bytes read of a page for its header; if they are too few, the whole page is read.
const HEADER: u64 = 128;

/// A page index that hides columns with inconsistent entries.
#[derive(Debug)]
struct Sound {
    index: Arc<dyn PageIndexProvider>,
    /// Row group and column of the hidden entries.
    unsound: HashSet<(usize, usize)>,
}

impl PageIndexProvider for Sound {
    fn has_offset_indexes(&self) -> bool {
        self.index.has_offset_indexes()
    }

    fn has_column_indexes(&self) -> bool {
        self.index.has_column_indexes()
    }

    fn column_index(&self, group: usize, column: usize) -> Option<&ColumnIndexMetaData> {
        self.index.column_index(group, column).filter(|_| !self.unsound.contains(&(group, column)))
    }

    fn offset_index(&self, group: usize, column: usize) -> Option<&OffsetIndexMetaData> {
        self.index.offset_index(group, column).filter(|_| !self.unsound.contains(&(group, column)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Renumbers the row groups of a footer by their position. Rows are numbered through a file in that order: the
/// `ordinal` of a row group is optional, and files concatenated from others keep the ordinals of their parts.
pub(in crate::file::parquet) fn numbered(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let is_its_place =
        |(place, group): (usize, &RowGroupMetaData)| group.ordinal().map(usize::try_from) == Some(Ok(place));
    if metadata.row_groups().iter().enumerate().all(is_its_place) {
        return Ok(metadata);
    }
    let mut builder = metadata.into_builder();
    for (place, group) in builder.take_row_groups().into_iter().enumerate() {
        builder = builder.add_row_group(group.into_builder().set_ordinal(i32::try_from(place)?).build()?);
    }
    Ok(builder.build())
}

/// Hides the page index of each column chunk that it does not describe from its first row and byte to its last.
pub(in crate::file::parquet) fn sound(metadata: ParquetMetaData) -> ParquetMetaData {
    let Some(index) = metadata.page_index().cloned() else { return metadata };
    let mut unsound = HashSet::new();
    for (group, about) in metadata.row_groups().iter().enumerate() {
        for (column, chunk) in about.columns().iter().enumerate() {
            let places = index.page_locations(group, column);
            if places.is_some_and(|places| !is_sound(places, chunk, about.num_rows())) {
                unsound.insert((group, column));
            }
        }
    }
    if unsound.is_empty() {
        return metadata;
    }
    metadata.into_builder().set_page_index(Some(Arc::new(Sound { index, unsound }))).build()
}

/// Whether pages are contiguous up to the end of their column chunk and their first rows ascend from 0.
fn is_sound(places: &[PageLocation], chunk: &ColumnChunkMetaData, rows: i64) -> bool {
    let Some(chunk) = range(chunk) else { return false };
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return false };
    let next_to = |pair: &[PageLocation]| match pair {
        [one, other] => end(one) == u64::try_from(other.offset).ok() && one.first_row_index < other.first_row_index,
        _ => true,
    };
    first.first_row_index == 0
        && u64::try_from(first.offset).is_ok_and(|start| start >= chunk.start)
        && end(last) == Some(chunk.end)
        && last.first_row_index < rows
        && places.windows(2).all(next_to)
        && places.iter().all(|place| place.compressed_page_size > 0)
}

/// The byte range of a column chunk.
fn range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (start, length) = (u64::try_from(start).ok()?, u64::try_from(chunk.compressed_size()).ok()?);
    Some(start..start.checked_add(length)?)
}

/// The end of a page.
fn end(place: &PageLocation) -> Option<u64> {
    u64::try_from(place.offset).ok()?.checked_add(u64::try_from(place.compressed_page_size).ok()?)
}

/// A column chunk whose pages are located by the page index.
#[derive(Clone)]
struct Chunk {
    group: usize,
    column: usize,
    place: Range<u64>,
    is_checked: bool,
}

/// Tracks which pages of some columns were checked against the page index.
pub(in crate::file::parquet) struct Checks {
    metadata: Arc<ParquetMetaData>,
    chunks: Vec<Chunk>,
    /// Column chunks of lists and maps by start offset: their values are counted if they are fetched whole.
    repeated: HashMap<u64, ColumnChunkMetaData>,
    /// Whether rows are skipped by the page index; otherwise it only locates pages.
    is_sparse: bool,
    is_remote: bool,
}

impl Checks {
    /// Nothing is checked yet for some columns of some row groups. `is_sparse` if rows are skipped, or may be.
    pub(in crate::file::parquet) fn new(
        metadata: &Arc<ParquetMetaData>,
        groups: &[usize],
        columns: impl IntoIterator<Item = usize> + Clone,
        (is_sparse, is_remote): (bool, bool),
    ) -> Self {
        let (mut chunks, mut repeated) = (Vec::new(), HashMap::new());
        for group in groups {
            let index = metadata.page_index_for_row_group(*group);
            for column in columns.clone() {
                let about = metadata.row_groups().get(*group).and_then(|group| group.columns().get(column));
                if let Some(about) = about.filter(|about| about.column_descr().max_rep_level() > 0) {
                    repeated.extend(range(about).map(|place| (place.start, about.clone())));
                }
                if let (Some(place), Some(_)) = (about.and_then(range), index.page_locations(column)) {
                    chunks.push(Chunk { group: *group, column, place, is_checked: false });
                }
            }
        }
        Self { metadata: Arc::clone(metadata), chunks, repeated, is_sparse, is_remote }
    }

    /// Checks the headers of pages in a row group, except pages with `rows` that are read; rows count from the first
    /// of the group.
    pub(in crate::file::parquet) fn headers(
        &self,
        path: &str,
        is_read: impl Fn(usize, Range<u64>) -> bool,
        read: impl Fn(Range<u64>) -> TableResult<Bytes>,
    ) -> TableResult<()> {
        for chunk in &self.chunks {
            let Some(pages) = Pages::of(&self.metadata, chunk) else { continue };
            for number in 0..pages.places.len() {
                let (start, end) = pages.rows_of(number);
                let rows = start.max(0).unsigned_abs()..end.max(0).unsigned_abs();
                if !is_read(chunk.group, rows) {
                    self.unread(path, &pages, number, &read)?;
                }
            }
        }
        Ok(())
    }

    /// The ranges that [`Checks::fetched`] needs in addition to some ranges of a remote file, to be fetched together
    /// without another round trip.
    pub(in crate::file::parquet) fn beside(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let is_wanted = |chunk: &&Chunk| {
            let within = |range: &&Range<u64>| chunk.place.start <= range.start && range.end <= chunk.place.end;
            self.is_remote && !chunk.is_checked && ranges.iter().find(within).is_some_and(|first| *first != chunk.place)
        };
        let last = |chunk: &Chunk| {
            let pages = Pages::of(&self.metadata, chunk)?;
            pages.range(pages.places.len().checked_sub(1)?)
        };
        let last = self.chunks.iter().filter(is_wanted).filter_map(last);
        last.filter(|page| !ranges.iter().any(|range| range.start == page.start)).collect()
    }

    /// Checks fetched pages, and unfetched pages of the same columns; `read` reads those.
    pub(in crate::file::parquet) fn fetched(
        &mut self,
        path: &str,
        ranges: &[Range<u64>],
        bytes: &[Bytes],
        read: impl Fn(Range<u64>) -> TableResult<Bytes>,
    ) -> TableResult<()> {
        for (range, bytes) in ranges.iter().zip(bytes) {
            if let Some(about) =
                self.repeated.get(&range.start).filter(|about| self::range(about).as_ref() == Some(range))
            {
                guarded(path, || whole_chunk::check(bytes, about))?;
            }
        }
        let mut chunks = std::mem::take(&mut self.chunks);
        let starts: HashSet<u64> = ranges.iter().map(|range| range.start).collect();
        for (range, bytes) in ranges.iter().zip(bytes) {
            let holds = |chunk: &&mut Chunk| chunk.place.start <= range.start && range.end <= chunk.place.end;
            let Some(chunk) = chunks.iter_mut().find(holds) else { continue };
            let Some(pages) = Pages::of(&self.metadata, chunk) else { continue };
            let is_first = !std::mem::replace(&mut chunk.is_checked, true);
            let is_whole = *range == chunk.place;
            guarded(path, || pages.check(range, bytes, self.is_sparse))?;
            if is_first && !is_whole {
                for number in 0..pages.places.len() {
                    if !pages.range(number).is_some_and(|page| starts.contains(&page.start)) {
                        self.unread(path, &pages, number, &read)?;
                    }
                }
            }
        }
        self.chunks = chunks;
        Ok(())
    }

    /// Checks a page that is not read.
    fn unread(
        &self,
        path: &str,
        pages: &Pages<'_>,
        number: usize,
        read: impl Fn(Range<u64>) -> TableResult<Bytes>,
    ) -> TableResult<()> {
        let Some(page) = pages.range(number) else { return Ok(()) };
        let is_last = number + 1 == pages.places.len();
        if self.is_remote {
            return match is_last {
                true => {
                    let bytes = read(page)?;
                    guarded(path, || pages.check_page(number, &bytes, true))
                }
                false => Ok(()),
            };
        }
        let some = page.start..page.end.min(page.start.saturating_add(HEADER));
        let header = read(some)?;
        let rows = guarded(path, || Ok(pages.header(number, &header).ok().map(|header| pages.rows_in(&header))))?;
        match rows {
            Some(Some(rows)) if guarded(path, || pages.same(number, rows)).is_ok() => Ok(()),
            Some(None) if !is_last => Ok(()),
            // The header has no row count, or a wrong one; or it is long, as with long statistics.
            _ => {
                let bytes = read(page)?;
                let counts = is_last || rows.is_some() || pages.is_flat();
                guarded(path, || pages.check_page(number, &bytes, counts))
            }
        }
    }
}

/// The pages of a column chunk according to the page index.
struct Pages<'a> {
    group: usize,
    chunk: &'a ColumnChunkMetaData,
    place: Range<u64>,
    places: Vec<PageLocation>,
    rows: i64,
}

impl<'a> Pages<'a> {
    fn of(metadata: &'a ParquetMetaData, chunk: &Chunk) -> Option<Self> {
        let group = metadata.row_groups().get(chunk.group)?;
        let index = metadata.page_index_for_row_group(chunk.group);
        Some(Self {
            group: chunk.group,
            chunk: group.columns().get(chunk.column)?,
            place: chunk.place.clone(),
            places: index.page_locations(chunk.column)?.clone(),
            rows: group.num_rows(),
        })
    }

    fn error(&self, message: &str) -> ParquetError {
        let column = self.chunk.column_path().string();
        ParquetError::General(format!("row group {}, column {column}: {message}", self.group))
    }

    /// The byte range of a page.
    fn range(&self, number: usize) -> Option<Range<u64>> {
        let place = self.places.get(number)?;
        Some(u64::try_from(place.offset).ok()?..end(place)?)
    }

    /// The byte range of the dictionary, if there is one.
    fn dictionary(&self) -> Option<Range<u64>> {
        let first = self.range(0)?;
        (first.start > self.place.start).then_some(self.place.start..first.start)
    }

    /// Checks the bytes at `range`: a page, the dictionary or the whole column chunk.
    fn check(&self, range: &Range<u64>, bytes: &Bytes, counts: bool) -> Result<()> {
        let part = |part: &Range<u64>| {
            let place = |at: u64| usize::try_from(at.checked_sub(range.start)?).ok();
            let (start, end) = (place(part.start)?, place(part.end)?);
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        };
        if let Some(dictionary) = self.dictionary()
            && let Some(bytes) = part(&dictionary)
            && !self.page(&bytes, dictionary.end - dictionary.start)?.is_dict
        {
            return Err(self.error("its page index does not say where its dictionary is"));
        }
        for number in 0..self.places.len() {
            if let Some(bytes) = self.range(number).and_then(|page| part(&page)) {
                self.check_page(number, &bytes, counts)?;
            }
        }
        Ok(())
    }

    /// Checks the bytes of a data page, and its rows if `counts`.
    fn check_page(&self, number: usize, bytes: &Bytes, counts: bool) -> Result<()> {
        let header = self.header(number, bytes)?;
        match self.rows_in(&header).map(|rows| self.same(number, rows)) {
            _ if !counts => Ok(()),
            Some(same) if self.is_flat() || same.is_ok() => same,
            // Some writers store the number of values here instead of rows.
            _ => {
                let about = self.about(bytes.len() as u64, self.chunk.compression())?;
                let page = SerializedPageReader::new(Arc::new(bytes.clone()), &about, 0, None)?.get_next_page()?;
                let rows = page.and_then(|page| indexed::rows(&page, self.chunk.column_descr().max_rep_level()));
                self.same(number, rows.ok_or_else(|| self.error("the repetition levels of a page are invalid"))?)
            }
        }
    }

    /// First row and row count of a page according to the index.
    fn rows_of(&self, number: usize) -> (i64, i64) {
        let start = self.places.get(number).map_or(0, |place| place.first_row_index);
        (start, self.places.get(number + 1).map_or(self.rows, |place| place.first_row_index))
    }

    /// Compares the row count of a page with the index.
    fn same(&self, number: usize, found: u64) -> Result<()> {
        let (start, end) = self.rows_of(number);
        match end.checked_sub(start).is_some_and(|expected| u64::try_from(expected) == Ok(found)) {
            true => Ok(()),
            false => Err(self.error(&format!(
                "page {number} has {found} rows, but its page index has the rows {start} to {end} in it"
            ))),
        }
    }

    /// Whether each row has one value.
    fn is_flat(&self) -> bool {
        self.chunk.column_descr().max_rep_level() == 0
    }

    /// The row count of a page, if its header has one.
    fn rows_in(&self, header: &PageMetadata) -> Option<u64> {
        let rows = if self.is_flat() { header.num_levels } else { header.num_rows };
        rows.map(|rows| rows as u64)
    }

    /// The header of a data page that starts with these bytes and has the length in the index.
    fn header(&self, number: usize, bytes: &Bytes) -> Result<PageMetadata> {
        let place = self.range(number).ok_or_else(|| self.error("it has no such page"))?;
        let header = self.page(bytes, place.end - place.start)?;
        match header.is_dict {
            true => Err(self.error("its page index says that its dictionary is a page of values")),
            false => Ok(header),
        }
    }

    /// The header of a page that starts with these bytes and has this length.
    fn page(&self, bytes: &Bytes, length: u64) -> Result<PageMetadata> {
        // Reading a header decompresses nothing.
        let about = self.about(length, Compression::UNCOMPRESSED)?;
        let mut pages = SerializedPageReader::new(Arc::new(bytes.clone()), &about, 0, None)?;
        let invalid = |_| self.error("its page index names a place where no page begins");
        let header = pages.peek_next_page().map_err(invalid)?;
        pages.skip_next_page().map_err(invalid)?;
        match (header, pages.peek_next_page()) {
            (Some(header), Ok(None)) => Ok(header),
            _ => Err(self.error("a page has another length than its page index says")),
        }
    }

    /// A column chunk of one page.
    fn about(&self, length: u64, codec: Compression) -> Result<ColumnChunkMetaData> {
        ColumnChunkMetaData::builder(self.chunk.column_descr_ptr())
            .set_compression(codec)
            .set_data_page_offset(0)
            .set_total_compressed_size(i64::try_from(length)?)
            .set_total_uncompressed_size(self.chunk.uncompressed_size())
            .build()
    }
}
