//! Flat columns of text, bytes and booleans: their pages are decoded here, and not by the library.
//!
//! The library appends each text by a call of its own and makes a byte of each boolean before it packs them: of a whole read of
//! a table with two columns of text, one of them with a dictionary, and one of booleans that was a sixth. Whatever is no plain
//! page and no page of keys of a dictionary, the library decodes, a page at a time. Types of a fixed width are its own.

use std::collections::VecDeque;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType as ParquetType;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::hybrid::{Hybrid, Piece};

/// What the values of a column become.
pub(super) trait Values: Send {
    /// The type that the library decodes.
    type Type: ParquetType;
    /// Values of a page that were not taken.
    type Page: Send;

    /// Takes a dictionary.
    fn set_dictionary(&mut self, bytes: Bytes, count: usize, encoding: Encoding) -> Result<()>;
    /// The values of a page; None where the library has to decode it.
    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Self::Page>>;
    /// Values that the library has decoded.
    fn decoded(values: Vec<<Self::Type as ParquetType>::T>) -> Self::Page;
    /// Appends so many values of a page; `keys` as in [`FlatColumn::read`].
    fn append(&mut self, page: &mut Self::Page, count: usize, keys: bool) -> Result<()>;
    /// Passes over so many values of a page.
    fn skip(&self, page: &mut Self::Page, count: usize) -> Result<()>;
    /// The values that were appended, with nulls between them; `keys` as in [`FlatColumn::read`].
    fn finish(&mut self, nulls: Option<NullBuffer>, keys: bool) -> Result<ArrayRef>;
    /// Some of the values that were finished last, without keys.
    fn settled(&mut self, array: &ArrayRef) -> Result<ArrayRef>;
}

/// The rows of a column, one after the other.
pub(super) trait FlatColumn: Send {
    /// The next rows: of each pair so many are skipped and so many read. With `keys`, keys of one dictionary stay so until
    /// [`FlatColumn::settled`].
    fn read(&mut self, rows: &[(usize, usize)], keys: bool) -> Result<ArrayRef>;
    /// Some of the rows that were read last, without keys.
    fn settled(&mut self, array: &ArrayRef) -> Result<ArrayRef>;
}

/// A column whose values become `V`.
pub(super) struct Column<V: Values> {
    about: ColumnDescPtr,
    chunks: Box<dyn PageIterator>,
    /// The pages of a column chunk.
    pages: Option<Box<dyn PageReader>>,
    /// The dictionary of that chunk, for the library.
    dictionary: Option<Page>,
    page: Option<OpenPage<V::Page>>,
    values: V,
}

/// A data page of which rows are left.
struct OpenPage<P> {
    rows: usize,
    /// Which rows have a value; all of them without it.
    levels: Option<Levels>,
    values: P,
}

impl<V: Values> FlatColumn for Column<V> {
    fn read(&mut self, rows: &[(usize, usize)], keys: bool) -> Result<ArrayRef> {
        let all = rows.iter().fold(0, |sum: usize, (_, read)| sum.saturating_add(*read));
        let mut nulls = NullBufferBuilder::new(all);
        let mut read = || {
            for (skipped, wanted) in rows {
                self.skip(*skipped)?;
                self.append(*wanted, &mut nulls, keys)?;
            }
            self.values.finish(nulls.finish().filter(|nulls| nulls.null_count() > 0), keys)
        };
        let found = read();
        found.map_err(|error| self.named(&error))
    }

    fn settled(&mut self, array: &ArrayRef) -> Result<ArrayRef> {
        self.values.settled(array).map_err(|error| self.named(&error))
    }
}

impl<V: Values> Column<V> {
    fn named(&self, error: &ParquetError) -> ParquetError {
        ParquetError::General(format!("column {}: {error}", self.about.path().string()))
    }

    /// The column of some chunks, with no values yet.
    pub(super) fn new(chunks: Box<dyn PageIterator>, about: ColumnDescPtr, values: V) -> Self {
        Self { about, chunks, pages: None, dictionary: None, page: None, values }
    }

    fn append(&mut self, mut rows: usize, nulls: &mut NullBufferBuilder, keys: bool) -> Result<()> {
        while rows > 0 {
            if self.page.is_none() && !self.next_page(0)?.is_open {
                return Err(ParquetError::EOF("it has fewer rows than its row groups".to_owned()));
            }
            let Some(page) = &mut self.page else { continue };
            let count = rows.min(page.rows);
            let present = match &mut page.levels {
                Some(levels) => levels.append(count, nulls)?,
                None => {
                    nulls.append_n_non_nulls(count);
                    count
                }
            };
            self.values.append(&mut page.values, present, keys)?;
            page.rows -= count;
            rows -= count;
            if page.rows == 0 {
                self.page = None;
            }
        }
        Ok(())
    }

    fn skip(&mut self, mut rows: usize) -> Result<()> {
        while rows > 0 {
            if self.page.is_none() {
                let next = self.next_page(rows)?;
                rows -= next.skipped;
                if !next.is_open && next.skipped == 0 {
                    return Err(ParquetError::EOF("it has fewer rows than its row groups".to_owned()));
                }
            }
            let Some(page) = &mut self.page else { continue };
            let count = rows.min(page.rows);
            page.rows -= count;
            rows -= count;
            if page.rows == 0 {
                self.page = None;
                continue;
            }
            let present = match &mut page.levels {
                Some(levels) => levels.append(count, &mut NullBufferBuilder::new(count))?,
                None => count,
            };
            self.values.skip(&mut page.values, present)?;
        }
        Ok(())
    }

    /// Opens the next data page, unless all of it is to be skipped: at most `skip` rows are.
    fn next_page(&mut self, skip: usize) -> Result<Next> {
        loop {
            let Some(pages) = &mut self.pages else {
                let Some(pages) = self.chunks.next().transpose()? else { return Ok(Next::default()) };
                (self.pages, self.dictionary) = (Some(pages), None);
                continue;
            };
            let Some(next) = pages.peek_next_page()? else {
                self.pages = None;
                continue;
            };
            let rows = if next.is_dict { None } else { next.num_rows.or(next.num_levels) };
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
                    self.values.set_dictionary(buf.clone(), usize::try_from(num_values)?, encoding)?;
                    self.dictionary = Some(page);
                }
                page => {
                    let page = self.open(page)?;
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
                let levels = || Hybrid::new(bytes.slice(before..end), 1).map(Levels::Stored);
                return Ok(OpenPage { rows, levels: is_optional.then(levels).transpose()?, values });
            }
        }
        self.decoded(page)
    }

    /// A page as the library decodes it.
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
        Ok(OpenPage { rows, levels: is_optional.then(|| Levels::Decoded(present(levels))), values: V::decoded(values) })
    }
}

/// What was found where a page was looked for: one that is open now, one that was skipped, or none.
#[derive(Default)]
struct Next {
    is_open: bool,
    skipped: usize,
}

/// Pages that are there.
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

/// Definition levels of an optional column, one bit each: which of its rows have a value.
enum Levels {
    Stored(Hybrid),
    Decoded(Bits),
}

impl Levels {
    /// Appends which of the next rows have a value; returns how many have.
    fn append(&mut self, mut rows: usize, nulls: &mut NullBufferBuilder) -> Result<usize> {
        let mut present = 0;
        while rows > 0 {
            let bits = match self {
                Self::Decoded(bits) => bits.take(rows)?,
                Self::Stored(levels) => match levels.next(rows)? {
                    Piece::Same(0, count) => {
                        nulls.append_n_nulls(count);
                        rows -= count;
                        continue;
                    }
                    Piece::Same(1, count) => {
                        nulls.append_n_non_nulls(count);
                        (present, rows) = (present + count, rows - count);
                        continue;
                    }
                    Piece::Same(level, _) => {
                        return Err(ParquetError::General(format!("a page has a definition level of {level}")));
                    }
                    Piece::Packed(bytes, first, count) => BooleanBuffer::new(Buffer::from(bytes), first, count),
                },
            };
            let own = NullBuffer::new(bits);
            (present, rows) = (present + own.len() - own.null_count(), rows - own.len());
            nulls.append_buffer(&own);
        }
        Ok(present)
    }
}

/// Bits of a page, and which is next.
pub(super) struct Bits {
    pub(super) bits: BooleanBuffer,
    pub(super) at: usize,
}

impl Bits {
    /// The next bits, so many.
    pub(super) fn take(&mut self, count: usize) -> Result<BooleanBuffer> {
        if self.bits.len() - self.at < count {
            return Err(ParquetError::EOF("a page has fewer booleans or levels than values".to_owned()));
        }
        let taken = self.bits.slice(self.at, count);
        self.at += count;
        Ok(taken)
    }
}
