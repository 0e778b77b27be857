//! Decodes the pages of flat string, binary, boolean and numeric columns, instead of the parquet crate.
//!
//! The parquet crate appends each string with a separate call and expands each boolean to a byte before packing it.
//! This cost a sixth of a full scan of a table with two string columns, one of them dictionary-encoded, and a boolean
//! column. If scattered rows are deleted, it also decodes all rows and copies the rest once more, another sixth. This
//! decoder copies each selected value once and skips the others. Pages of other encodings, except
//! RLE for booleans, go to the parquet crate, one page at a time.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType as ParquetType;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::bits::{self, Packed};
use super::hybrid::{Hybrid, Piece};
use super::runs::Runs;
use crate::file::parquet::guard::internal;

/// Maximum number of values to reserve memory for up front, because a footer may claim more than there are.
const ROOM: usize = 1 << 16;

/// The Arrow values that a column decodes to.
pub(in crate::file::parquet) trait Values: Send {
    /// The Parquet type of the stored values.
    type Type: ParquetType;
    /// The unread values of a page.
    type Page: Send;

    /// Clears the dictionary; each column chunk has its own.
    fn clear_dictionary(&mut self);
    /// Sets the dictionary, whose values are stored as in a PLAIN page.
    fn set_dictionary(&mut self, bytes: Bytes, count: usize) -> Result<()>;
    /// Opens the values of a page; `None` if the parquet crate has to decode it.
    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Self::Page>>;
    /// Wraps values that the parquet crate decoded.
    fn decoded(values: Vec<<Self::Type as ParquetType>::T>) -> Self::Page;
    /// Reserves memory for `count` values.
    fn reserve(&mut self, count: usize);
    /// Appends the selected values among the next ones of a page and skips the others.
    fn append(&mut self, page: &mut Self::Page, runs: &Runs<'_>) -> Result<()>;
    /// Skips `count` values of a page.
    fn skip(&self, page: &mut Self::Page, count: usize) -> Result<()>;
    /// The appended values as an array with these nulls.
    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
}

/// The rows of a column in order.
pub(in crate::file::parquet) trait FlatColumn: Send {
    /// Reads the selected rows among those not read yet. Rows are numbered across row groups; `count` is the number
    /// selected.
    fn read(&mut self, rows: &Runs<'_>, count: usize) -> Result<ArrayRef>;
}

/// The pages of a column by row group, and the number of rows of each row group.
pub(in crate::file::parquet) type Chunks = (Box<dyn PageIterator>, Vec<usize>);

/// A column that decodes to `V`.
pub(in crate::file::parquet) struct Column<V: Values> {
    about: ColumnDescPtr,
    chunks: Box<dyn PageIterator>,
    /// The pages of the current column chunk.
    pages: Option<Box<dyn PageReader>>,
    /// The chunk's dictionary, for pages that the parquet crate decodes.
    dictionary: Option<Page>,
    page: Option<OpenPage<V::Page>>,
    /// Number of the next row, across row groups.
    next: usize,
    /// Row counts of the row groups that follow.
    groups: std::vec::IntoIter<usize>,
    /// The row at which the current row group ends.
    end: usize,
    values: V,
}

/// A data page with unread rows.
struct OpenPage<P> {
    rows: usize,
    /// Which rows have a value; `None` if all do.
    levels: Option<Levels>,
    values: P,
}

impl<V: Values> FlatColumn for Column<V> {
    fn read(&mut self, rows: &Runs<'_>, count: usize) -> Result<ArrayRef> {
        let found = self.read_rows(rows, count);
        found.map_err(|error| match error {
            // Not damage: the bytes came from outside the file as well.
            ParquetError::External(source) if source.is::<ArrowError>() => ParquetError::External(source),
            error => ParquetError::General(format!("column {}: {error}", self.about.path().string())),
        })
    }
}

impl<V: Values> Column<V> {
    /// The column of some chunks, with no values yet.
    pub(in crate::file::parquet) fn new((chunks, rows): Chunks, about: ColumnDescPtr, values: V) -> Self {
        let groups = rows.into_iter();
        Self { about, chunks, pages: None, dictionary: None, page: None, next: 0, groups, end: 0, values }
    }

    fn read_rows(&mut self, rows: &Runs<'_>, count: usize) -> Result<ArrayRef> {
        let mut present = Packed::default();
        present.reserve(if self.about.max_def_level() > 0 { count.min(ROOM) } else { 0 });
        self.values.reserve(count.min(ROOM));
        let (mut left, window) = rows.parts();
        while let Some(first) = left.first() {
            self.skip(first.start.max(window.start).saturating_sub(self.next))?;
            let Some(page) = &mut self.page else {
                if !self.next_page(0)?.is_open {
                    return Err(ParquetError::EOF("it has fewer rows than its row groups".to_owned()));
                }
                continue;
            };
            let most = self.next.saturating_add(page.rows).min(window.end);
            let (ranges, behind) = left.split_at(left.partition_point(|range| range.start < most));
            let last = ranges.last().map_or(most, |last| last.end);
            let end = last.min(most);
            append(&mut self.values, page, &Runs::new(ranges, self.next..end), &mut present)?;
            page.rows -= end - self.next;
            if page.rows == 0 {
                self.page = None;
            }
            self.next = end;
            left = match last > end && end < window.end {
                true => left.get(ranges.len() - 1..).ok_or_else(|| internal("rows that are wanted and lost"))?,
                false => behind,
            };
        }
        let nulls =
            (self.about.max_def_level() > 0).then(|| NullBuffer::new(bits::buffer(present.into_words(), count)));
        self.values.finish(nulls.filter(|nulls| nulls.null_count() > 0))
    }

    fn skip(&mut self, mut rows: usize) -> Result<()> {
        while rows > 0 {
            if self.page.is_none() {
                let next = self.next_page(rows)?;
                (self.next, rows) = (self.next + next.skipped, rows - next.skipped);
                if !next.is_open && next.skipped == 0 {
                    return Err(ParquetError::EOF("it has fewer rows than its row groups".to_owned()));
                }
            }
            let Some(page) = &mut self.page else { continue };
            let count = rows.min(page.rows);
            page.rows -= count;
            (self.next, rows) = (self.next + count, rows - count);
            if page.rows == 0 {
                self.page = None;
                continue;
            }
            let present = match &mut page.levels {
                Some(levels) => levels.next(count)?.count_set_bits(),
                None => count,
            };
            self.values.skip(&mut page.values, present)?;
        }
        Ok(())
    }

    /// Opens the next data page, or skips it whole if it has at most `skip` rows.
    fn next_page(&mut self, skip: usize) -> Result<Next> {
        loop {
            let Some(pages) = &mut self.pages else {
                // Otherwise pages of the next chunk would be read as rows of this one.
                if self.next < self.end {
                    return Err(ParquetError::EOF("it has fewer rows than its row group".to_owned()));
                }
                let Some(pages) = self.chunks.next().transpose()? else { return Ok(Next::default()) };
                (self.pages, self.dictionary) = (Some(pages), None);
                self.end = self.end.saturating_add(
                    self.groups.next().ok_or_else(|| internal("a column chunk without its row group"))?,
                );
                self.values.clear_dictionary();
                continue;
            };
            let Some(next) = pages.peek_next_page()? else {
                self.pages = None;
                continue;
            };
            let left = self.end - self.next;
            let rows = if next.is_dict { None } else { next.num_rows.or(next.num_levels) };
            if rows.is_some_and(|rows| rows > left) {
                return Err(too_many());
            }
            if let Some(rows) = rows.filter(|rows| (1..=skip).contains(rows)) {
                pages.skip_next_page()?;
                return Ok(Next { is_open: false, skipped: rows });
            }
            let Some(page) = pages.get_next_page()? else {
                self.pages = None;
                continue;
            };
            match page {
                Page::DictionaryPage { ref buf, num_values, encoding, .. } => {
                    if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) {
                        return Err(ParquetError::NYI(format!("a dictionary in the encoding {encoding}")));
                    }
                    self.values.set_dictionary(buf.clone(), usize::try_from(num_values)?)?;
                    self.dictionary = Some(page);
                }
                page => {
                    let page = self.open(page)?;
                    if page.rows > left {
                        return Err(too_many());
                    }
                    if page.rows > 0 {
                        self.page = Some(page);
                        return Ok(Next { is_open: true, skipped: 0 });
                    }
                }
            }
        }
    }

    fn open(&self, page: Page) -> Result<OpenPage<V::Page>> {
        let rows = usize::try_from(page.num_values())?;
        let is_optional = self.about.max_def_level() > 0;
        let short = || ParquetError::EOF("a page is shorter than its levels".to_owned());
        let cut = match &page {
            Page::DataPage { buf, def_level_encoding: Encoding::RLE, .. } if is_optional => {
                let (length, _) = buf.split_first_chunk().ok_or_else(short)?;
                Some((4, usize::try_from(u32::from_le_bytes(*length))?))
            }
            Page::DataPage { .. } if is_optional => None,
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                Some((usize::try_from(*rep_levels_byte_len)?, usize::try_from(*def_levels_byte_len)?))
            }
            _ => Some((0, 0)),
        };
        if let Some((before, length)) = cut {
            let bytes = page.buffer();
            let end = before.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(short)?;
            if let Some(values) = self.values.open(page.encoding(), bytes.slice(end..))? {
                let levels = || Hybrid::new(bytes.slice(before..end), 1).map(Levels::Runs);
                return Ok(OpenPage { rows, levels: is_optional.then(levels).transpose()?, values });
            }
        }
        self.decoded(page)
    }

    /// Decodes a page with the parquet crate.
    fn decoded(&self, page: Page) -> Result<OpenPage<V::Page>> {
        let rows = usize::try_from(page.num_values())?;
        let pages = Given(self.dictionary.clone().into_iter().chain([page]).collect());
        let mut reader = ColumnReaderImpl::<V::Type>::new(self.about.clone(), Box::new(pages));
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let is_optional = self.about.max_def_level() > 0;
        let (found, _, _) = reader.read_records(rows, is_optional.then_some(&mut levels), None, &mut values)?;
        if found != rows {
            return Err(ParquetError::EOF(format!("a page of {rows} rows ends after {found}")));
        }
        let present = |levels: Vec<i16>| Bits { bits: levels.into_iter().map(|level| level > 0).collect(), at: 0 };
        Ok(OpenPage { rows, levels: is_optional.then(|| Levels::Bits(present(levels))), values: V::decoded(values) })
    }
}

fn too_many() -> ParquetError {
    ParquetError::General("it has more rows than its row group".to_owned())
}

/// Appends selected rows of a page; `present` has a bit for each row of an optional column.
fn append<V: Values>(
    values: &mut V,
    page: &mut OpenPage<V::Page>,
    runs: &Runs<'_>,
    present: &mut Packed,
) -> Result<()> {
    let Some(levels) = &mut page.levels else {
        // A required column has no nulls in any page.
        return values.append(&mut page.values, runs);
    };
    let of_page = levels.next(runs.passed())?;
    let count = of_page.count_set_bits();
    if count == runs.passed() {
        present.append_set(runs.count());
        return values.append(&mut page.values, runs);
    }
    // Maps selected rows to selected values: `next` numbers the next value, `row` its row.
    let (bytes, first) = (of_page.values(), of_page.offset());
    let (mut ranges, mut row, mut next): (Vec<Range<usize>>, _, _) = (Vec::new(), 0, 0);
    for run in runs.iter() {
        let start = next + bits::set(bytes, first + row..first + run.start)?;
        next = start + present.append(bytes, first + run.start..first + run.end)?;
        row = run.end;
        match ranges.last_mut() {
            // Only nulls are between them.
            Some(last) if last.end == start => last.end = next,
            _ if start < next => ranges.push(start..next),
            _ => {}
        }
    }
    values.append(&mut page.values, &Runs::new(&ranges, 0..count))
}

/// The result of looking for a page: opened, skipped, or none left.
#[derive(Default)]
struct Next {
    is_open: bool,
    skipped: usize,
}

/// A page reader over pages in memory.
struct Given(VecDeque<Page>);

impl Iterator for Given {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop_front().map(Ok)
    }
}

impl PageReader for Given {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let levels = |page: &Page| usize::try_from(page.num_values());
        let about = self.0.front().map(|page| {
            let is_dict = page.is_dictionary_page();
            Ok::<_, ParquetError>(PageMetadata { num_rows: None, num_levels: Some(levels(page)?), is_dict })
        });
        about.transpose()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.pop_front();
        Ok(())
    }
}

/// Definition levels of an optional column, one bit per row: whether the row has a value. Booleans in runs are stored
/// in the same way.
pub(in crate::file::parquet) enum Levels {
    Runs(Hybrid),
    Bits(Bits),
}

impl Levels {
    /// The next rows' bits. Writers store short runs, so the bits of a run are copied without an allocation.
    pub(super) fn next(&mut self, rows: usize) -> Result<BooleanBuffer> {
        let levels = match self {
            Self::Bits(bits) => return bits.take(rows),
            Self::Runs(levels) => levels,
        };
        let mut bits = BooleanBufferBuilder::new(rows.min(ROOM));
        while bits.len() < rows {
            match levels.next(rows - bits.len())? {
                Piece::Same(level @ (0 | 1), count) => bits.append_n(count, level == 1),
                Piece::Same(level, _) => {
                    return Err(ParquetError::General(format!("a page has a level of {level} where one is 0 or 1")));
                }
                Piece::Packed(bytes, first, count) => bits.append_packed_range(first..first + count, &bytes),
            }
        }
        Ok(bits.finish())
    }
}

/// The bits of a page and the position of the next one.
pub(in crate::file::parquet) struct Bits {
    pub(super) bits: BooleanBuffer,
    pub(super) at: usize,
}

impl Bits {
    /// Takes the next `count` bits.
    pub(super) fn take(&mut self, count: usize) -> Result<BooleanBuffer> {
        if self.bits.len() - self.at < count {
            return Err(ParquetError::EOF("a page has fewer booleans or levels than values".to_owned()));
        }
        let taken = self.bits.slice(self.at, count);
        self.at += count;
        Ok(taken)
    }
}
