//! Counts the values in the pages of a whole column chunk.
//!
//! If a page of a flat column lacks a value, it lacks a row, and that is detected elsewhere. If a page of lists lacks
//! the last element of a list, all rows are still there; only the column chunk's value count in the footer shows it.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

/// Pages of a column chunk, read from the first one to the last unless the reader stops earlier.
pub(super) struct WholeChunk {
    pages: Box<dyn PageReader>,
    expected: i64,
    found: i64,
    column: String,
}

impl WholeChunk {
    /// Wraps the pages with a count, if no other check detects a missing value.
    pub(super) fn counted(pages: Box<dyn PageReader>, about: &ColumnChunkMetaData) -> Box<dyn PageReader> {
        match about.column_descr().max_rep_level() {
            0 => pages,
            _ => Box::new(Self { pages, expected: about.num_values(), found: 0, column: about.column_path().string() }),
        }
    }

    fn add(&mut self, values: i64) -> Result<()> {
        self.found = self.found.saturating_add(values);
        let is_over =
            self.found > self.expected || (self.found < self.expected && self.pages.peek_next_page()?.is_none());
        match is_over {
            true => Err(other_values(&self.column, self.found, self.expected)),
            false => Ok(()),
        }
    }
}

fn other_values(column: &str, found: i64, expected: i64) -> ParquetError {
    ParquetError::General(format!(
        "column {column}: its pages have {found} values, but its column chunk says {expected}"
    ))
}

impl Iterator for WholeChunk {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for WholeChunk {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        if !matches!(page, Page::DictionaryPage { .. }) {
            self.add(i64::from(page.num_values()))?;
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        let header = self.pages.peek_next_page()?;
        self.pages.skip_next_page()?;
        match header.and_then(|header| header.num_levels) {
            Some(values) => self.add(i64::try_from(values)?),
            None => Ok(()),
        }
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// Counts the values of a column chunk by its page headers, if no other check detects a missing value.
pub(super) fn check(bytes: &Bytes, about: &ColumnChunkMetaData) -> Result<()> {
    if about.column_descr().max_rep_level() == 0 {
        return Ok(());
    }
    // Reading a header decompresses nothing.
    let alone = ColumnChunkMetaData::builder(about.column_descr_ptr())
        .set_compression(Compression::UNCOMPRESSED)
        .set_data_page_offset(0)
        .set_total_compressed_size(i64::try_from(bytes.len())?)
        .set_total_uncompressed_size(about.uncompressed_size())
        .build()?;
    let mut pages = SerializedPageReader::new(Arc::new(bytes.clone()), &alone, 0, None)?;
    let mut found = 0_i64;
    while let Some(header) = pages.peek_next_page()? {
        pages.skip_next_page()?;
        if !header.is_dict {
            found = found.saturating_add(i64::try_from(header.num_levels.unwrap_or(0))?);
        }
    }
    match found == about.num_values() {
        true => Ok(()),
        false => Err(other_values(&about.column_path().string(), found, about.num_values())),
    }
}
