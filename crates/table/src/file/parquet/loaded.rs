//! Row groups whose column chunks are in memory: their pages are inflated with one context of ZSTD a thread.
//!
//! The library makes a context for each column chunk, of 100 KB that the system must clear: of a whole read of files of 1,000
//! rows that was a quarter of the time. What it says of pages it says of those that are not compressed, too: it is given
//! column chunks as if they were, and the pages are inflated here.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

thread_local! {
    static ZSTD: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Some row groups of a file, and the bytes of some of their column chunks.
pub(super) struct LoadedGroups {
    metadata: Arc<ParquetMetaData>,
    groups: Vec<usize>,
    /// By row group and column.
    chunks: HashMap<(usize, usize), Arc<ChunkBytes>>,
}

impl LoadedGroups {
    /// Row groups without a byte.
    pub(super) fn new(metadata: Arc<ParquetMetaData>, groups: Vec<usize>) -> Self {
        Self { metadata, groups, chunks: HashMap::new() }
    }

    /// Adds the bytes of a column chunk, which lie in the file from `start` on.
    pub(super) fn add(&mut self, group: usize, column: usize, start: u64, bytes: Bytes) {
        self.chunks.insert((group, column), Arc::new(ChunkBytes { start, bytes }));
    }

    fn pages(&self, number: usize, column: usize) -> Result<Box<dyn PageReader>> {
        let group = self.metadata.row_groups().get(number);
        let about = group.and_then(|group| group.columns().get(column)).zip(self.chunks.get(&(number, column)));
        let (Some((about, bytes)), Some(group)) = (about, group) else {
            return Err(ParquetError::General(format!("row group {number}, column {column}: its bytes are missing")));
        };
        let rows = usize::try_from(group.num_rows())?;
        if matches!(about.compression(), Compression::ZSTD(_))
            && let Some(pages) = InflatedPages::new(Arc::clone(bytes), about, rows)
        {
            return Ok(Box::new(pages));
        }
        Ok(Box::new(SerializedPageReader::new(Arc::clone(bytes), about, rows, None)?))
    }
}

impl RowGroups for LoadedGroups {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let chunks: Result<Vec<_>> = self.groups.iter().map(|group| self.pages(*group, column)).collect();
        Ok(Box::new(Chunks(chunks?.into_iter())))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.groups.iter().filter_map(|number| self.metadata.row_groups().get(*number)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The column chunks of one column, one after the other.
struct Chunks(std::vec::IntoIter<Box<dyn PageReader>>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

impl PageIterator for Chunks {}

/// A part of a file that is in memory.
struct ChunkBytes {
    start: u64,
    bytes: Bytes,
}

impl ChunkBytes {
    fn from(&self, start: u64, length: Option<usize>) -> Result<Bytes> {
        let place = start.checked_sub(self.start).and_then(|place| usize::try_from(place).ok());
        let range = place.and_then(|place| {
            let end = length.map_or(Some(self.bytes.len()), |length| place.checked_add(length))?;
            (place <= end && end <= self.bytes.len()).then_some(place..end)
        });
        let Some(range) = range else {
            return Err(ParquetError::EOF(format!("byte {start} of the file lies outside of its column chunk")));
        };
        Ok(self.bytes.slice(range))
    }
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl ChunkReader for ChunkBytes {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Reader<Bytes>> {
        Ok(self.from(start, None)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.from(start, Some(length))
    }
}

/// The pages of a column chunk, inflated.
struct InflatedPages {
    /// The pages as they lie in the file.
    packed: SerializedPageReader<ChunkBytes>,
    /// The first of them, until it is asked for.
    first: Option<Page>,
    /// Bytes of a page, at the most.
    most: usize,
}

impl InflatedPages {
    /// None where the first page cannot be inflated: whatever it is, the library says so.
    fn new(bytes: Arc<ChunkBytes>, about: &ColumnChunkMetaData, rows: usize) -> Option<Self> {
        let most = usize::try_from(about.uncompressed_size()).ok()?;
        let as_plain = about.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build().ok()?;
        let mut packed = SerializedPageReader::new(bytes, &as_plain, rows, None).ok()?;
        let first = packed.get_next_page().ok()?.map(|page| inflated(page, most)).transpose().ok()?;
        Some(Self { packed, first, most })
    }
}

impl Iterator for InflatedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for InflatedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.packed.get_next_page()?.map(|page| inflated(page, self.most)).transpose(),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let Some(first) = &self.first else { return self.packed.peek_next_page() };
        let (num_rows, is_dict) = match first {
            Page::DataPage { .. } => (None, false),
            Page::DataPageV2 { num_rows, .. } => (Some(usize::try_from(*num_rows)?), false),
            Page::DictionaryPage { .. } => (None, true),
        };
        let num_levels = if is_dict { None } else { Some(usize::try_from(first.num_values())?) };
        Ok(Some(PageMetadata { num_rows, num_levels, is_dict }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        match self.first.take() {
            Some(_) => Ok(()),
            None => self.packed.skip_next_page(),
        }
    }
}

/// A page of a column chunk that says it is not compressed, inflated; of its second version only the values are compressed.
fn inflated(mut page: Page, most: usize) -> Result<Page> {
    match &mut page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => *buf = inflate(buf, 0, most)?,
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, is_compressed: true, .. } => {
            let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len).map(usize::try_from);
            *buf = inflate(buf, levels.transpose()?.unwrap_or(usize::MAX), most)?;
        }
        Page::DataPageV2 { .. } => {}
    }
    Ok(page)
}

/// The first bytes as they are, and the others inflated, to so many bytes at the most.
fn inflate(bytes: &Bytes, levels: usize, most: usize) -> Result<Bytes> {
    let invalid = || ParquetError::General("a page is longer than its column chunk says".to_owned());
    let (levels, packed) = bytes.split_at_checked(levels).ok_or_else(invalid)?;
    // Not every writer notes how long a frame is, Java's does not.
    let noted = get_frame_content_size(packed).ok().flatten().and_then(|size| usize::try_from(size).ok());
    let room = noted.unwrap_or(most);
    if room > most {
        return Err(invalid());
    }
    let mut out = Vec::with_capacity(levels.len().saturating_add(room));
    out.extend_from_slice(levels);
    if !packed.is_empty() {
        ZSTD.with_borrow_mut(|context| {
            let context = match context {
                Some(context) => context,
                None => context.insert(Decompressor::new()?),
            };
            let mut out = Cursor::new(&mut out);
            out.set_position(levels.len() as u64);
            context.decompress_to_buffer(packed, &mut out)
        })?;
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A frame that says how long it is, as ours do, and one that does not, as Java's.
    fn frames(text: &[u8]) -> [Bytes; 2] {
        let noted = zstd::bulk::compress(text, 3).unwrap();
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.write_all(text).unwrap();
        let unnoted = encoder.finish().unwrap();
        let size = |frame: &[u8]| get_frame_content_size(frame).unwrap();
        assert_eq!((size(&noted), size(&unnoted)), (Some(text.len() as u64), None));
        [noted.into(), unnoted.into()]
    }

    #[test]
    fn pages_are_inflated_behind_their_levels() {
        let text = b"what a page holds, ".repeat(50);
        for frame in frames(&text) {
            assert_eq!(inflate(&frame, 0, text.len()).unwrap(), text);
            assert_eq!(inflate(&frame, 0, 10 * text.len()).unwrap(), text);
            let page = Bytes::from([b"levels", &*frame].concat());
            assert_eq!(inflate(&page, 6, text.len()).unwrap(), [b"levels", &*text].concat());
            assert_eq!(inflate(&page.slice(..6), 6, text.len()).unwrap(), &b"levels"[..]);
        }
    }

    #[test]
    fn what_is_longer_than_it_says_or_damaged_is_refused() {
        let text = b"what a page holds, ".repeat(50);
        for frame in frames(&text) {
            assert!(inflate(&frame, 0, text.len() - 1).is_err());
            assert!(inflate(&frame, frame.len() + 1, text.len()).is_err());
            assert!(inflate(&frame.slice(..frame.len() - 1), 0, text.len()).is_err());
        }
        assert!(inflate(&Bytes::from_static(b"no frame"), 0, 100).is_err());
    }

    #[test]
    fn bytes_outside_of_a_chunk_are_refused() {
        let chunk = ChunkBytes { start: 100, bytes: Bytes::from_static(b"0123456789") };
        assert_eq!(chunk.get_bytes(103, 2).unwrap(), &b"34"[..]);
        for (start, length) in [(99, 1), (105, 6), (111, 0), (u64::MAX, 1), (105, usize::MAX)] {
            assert!(chunk.get_bytes(start, length).is_err(), "{start} {length}");
        }
        assert!(chunk.get_read(110).is_ok() && chunk.get_read(111).is_err());
    }
}
