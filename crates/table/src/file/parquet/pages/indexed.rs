//! Reads pages of a column chunk that the page index locates ("Page Index" of Parquet), and checks their row counts.
//!
//! The parquet crate trusts the index: if a page had other rows than the index says, its values would silently go to
//! the wrong rows. So every page that is read is counted. Skipped pages are not, but when a row group is read in
//! slices, one of them reads each page, and the first mismatch is an error before rows of later pages are returned.
//! If only some rows are selected, [`Checks`](super::page_index::Checks) reads the headers of all pages first.

use std::collections::VecDeque;

use bytes::Buf;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use crate::file::parquet::flat::hybrid::varint;

/// Pages whose rows are counted as they are read.
pub(super) struct IndexedPages {
    pages: Box<dyn PageReader>,
    /// Row counts of the remaining data pages, from the index.
    rows: VecDeque<u64>,
    /// Whether a dictionary page comes first.
    has_dictionary: bool,
    /// The maximum repetition level; 0 if each row has one value.
    most: i16,
    column: String,
}

impl IndexedPages {
    /// Pages of a column chunk with this number of rows, located by `pages`.
    pub(super) fn new(
        pages: Box<dyn PageReader>,
        about: &ColumnChunkMetaData,
        places: &[PageLocation],
        rows: usize,
    ) -> Result<Self> {
        let column = about.column_path().string();
        let ends = places.iter().skip(1).map(|page| page.first_row_index).chain([i64::try_from(rows)?]);
        let count = |(page, end): (&PageLocation, i64)| {
            let count = end.checked_sub(page.first_row_index).and_then(|count| u64::try_from(count).ok());
            count.ok_or_else(|| {
                let start = page.first_row_index;
                ParquetError::General(format!(
                    "column {column}: its page index has a page of the rows {start} to {end}"
                ))
            })
        };
        let rows = places.iter().zip(ends).map(count).collect::<Result<_>>()?;
        let has_dictionary =
            places.first().is_some_and(|first| i64::try_from(about.byte_range().0) != Ok(first.offset));
        Ok(Self { pages, rows, has_dictionary, most: about.column_descr().max_rep_level(), column })
    }

    fn checked(&mut self, page: Page) -> Result<Page> {
        let error = |message: &str| ParquetError::General(format!("column {}: {message}", self.column));
        if matches!(page, Page::DictionaryPage { .. }) != std::mem::take(&mut self.has_dictionary) {
            return Err(error("its page index does not say where its dictionary is"));
        }
        if matches!(page, Page::DictionaryPage { .. }) {
            return Ok(page);
        }
        let expected = self.rows.pop_front().ok_or_else(|| error("it has more pages than its page index says"))?;
        let found = match self.most {
            0 => u64::from(page.num_values()),
            most => rows(&page, most).ok_or_else(|| error("the repetition levels of a page are invalid"))?,
        };
        match found == expected {
            true => Ok(page),
            false => Err(error(&format!("a page has {found} rows, but its page index says {expected}"))),
        }
    }
}

impl Iterator for IndexedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for IndexedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.pages.get_next_page()?.map(|page| self.checked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.has_dictionary) {
            self.rows.pop_front();
        }
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// Counts the rows of a page of a repeated column by its repetition levels; `None` if they contradict its header, or
/// if the page starts inside a row.
pub(super) fn rows(page: &Page, most: i16) -> Option<u64> {
    let width = i16::BITS - most.leading_zeros();
    let (levels, is_packed) = match page {
        Page::DataPage { buf, rep_level_encoding, .. } => match rep_level_encoding {
            Encoding::RLE => {
                let (length, levels) = buf.split_first_chunk()?;
                (levels.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?, false)
            }
            #[expect(deprecated)] // by the format, not by us: old writers have it
            Encoding::BIT_PACKED => (&**buf, true),
            _ => return None,
        },
        Page::DataPageV2 { buf, rep_levels_byte_len, .. } => {
            (buf.get(..usize::try_from(*rep_levels_byte_len).ok()?)?, false)
        }
        Page::DictionaryPage { .. } => return None,
    };
    let count = usize::try_from(page.num_values()).ok()?;
    let mut counted = Counted { left: count, ..Counted::default() };
    match is_packed {
        true => counted.packed(levels, count, width, true)?,
        false => counted.runs(levels, width)?,
    }
    (counted.left == 0 && !counted.begins_inside).then_some(counted.rows)
}

/// A count of repetition levels.
#[derive(Default)]
struct Counted {
    left: usize,
    rows: u64,
    any: bool,
    begins_inside: bool,
}

impl Counted {
    fn add(&mut self, level: u64, count: usize) {
        let count = count.min(self.left);
        self.left -= count;
        self.begins_inside |= !self.any && count > 0 && level != 0;
        self.any |= count > 0;
        if level == 0 {
            self.rows += count as u64;
        }
    }

    /// Counts in runs and bit-packed groups of eight ("RLE / Bit-packed hybrid").
    fn runs(&mut self, mut bytes: &[u8], width: u32) -> Option<()> {
        while self.left > 0 {
            let header = varint(&mut bytes)?;
            let count = usize::try_from(header >> 1).ok()?;
            if header & 1 == 1 {
                let length = count.checked_mul(usize::try_from(width).ok()?)?;
                // Writers may leave out trailing bytes of the last group that no value needs.
                let (packed, rest) = bytes.split_at(length.min(bytes.len()));
                self.packed(packed, count.checked_mul(8)?.min(self.left), width, false)?;
                bytes = rest;
            } else {
                let level = match width {
                    ..=8 => u64::from(bytes.try_get_u8().ok()?),
                    _ => u64::from(bytes.try_get_u16_le().ok()?),
                };
                if count == 0 {
                    return None;
                }
                self.add(level, count);
            }
        }
        Some(())
    }

    /// Counts in bit-packed levels, stored from the lowest or the highest bit of a byte.
    fn packed(&mut self, bytes: &[u8], count: usize, width: u32, is_high_first: bool) -> Option<()> {
        let (mut bytes, mut bits, mut held) = (bytes.iter(), 0_u64, 0);
        for _ in 0..count {
            while held < width {
                let byte = u64::from(*bytes.next()?);
                bits = if is_high_first { bits << 8 | byte } else { bits | byte << held };
                held += 8;
            }
            held -= width;
            let mask = (1 << width) - 1;
            if is_high_first {
                self.add(bits >> held & mask, 1);
            } else {
                self.add(bits & mask, 1);
                bits >>= width;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn page(levels: &[u8], values: u32) -> Page {
        let mut buf = u32::try_from(levels.len()).unwrap().to_le_bytes().to_vec();
        buf.extend(levels);
        Page::DataPage {
            buf: buf.into(),
            num_values: values,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn rows_are_levels_of_zero() {
        // A run of five zeros, then eight packed levels: 0 1 1 0 1 0 0 1.
        let levels = [5 << 1, 0, 1 << 1 | 1, 0b1001_0110];
        assert_eq!(rows(&page(&levels, 13), 1), Some(5 + 4));
        assert_eq!(rows(&page(&levels, 9), 1), Some(5 + 2));
        assert_eq!(rows(&page(&levels, 14), 1), None, "too few levels");
        assert_eq!(rows(&page(&[3 << 1, 1], 3), 1), None, "it begins inside of a row");
        assert_eq!(rows(&page(&[0, 0], 3), 1), None, "a run of nothing never ends");
        assert_eq!(rows(&page(&[0xff; 12], 3), 1), None);
        // Two bits a level: 0 1 2 0 | 0 2 0 1.
        assert_eq!(rows(&page(&[1 << 1 | 1, 0b00_10_01_00, 0b01_00_10_00], 8), 2), Some(4));
    }

    #[test]
    #[expect(deprecated)]
    fn levels_of_old_writers_begin_with_the_highest_bit() {
        let old = |bytes: &'static [u8], values| Page::DataPage {
            buf: Bytes::from_static(bytes),
            num_values: values,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::BIT_PACKED,
            statistics: None,
        };
        assert_eq!(rows(&old(&[0b0110_1001, 0b0111_1111], 9), 1), Some(5));
        assert_eq!(rows(&old(&[0b1110_1001], 8), 1), None);
        assert_eq!(rows(&old(&[0b00_01_10_00], 4), 2), Some(2));
    }
}
