//! Reads row groups whose column chunks are in memory, and decompresses their pages with one ZSTD context per thread.
//!
//! The parquet crate creates a 100 KB context per column chunk, which the system must zero: this cost a quarter of a
//! scan of files with 1,000 rows. To keep its checks, the crate gets metadata that declares the chunks uncompressed,
//! and the pages are decompressed here.

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
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use super::whole_chunk::WholeChunk;

/// Initial buffer for a page that does not state its decompressed size, and the maximum size of a buffer that is kept
/// for reuse.
const SCRATCH: (usize, usize) = (1 << 20, 8 << 20);

/// A decompression context, and a buffer for pages that do not state their size.
#[derive(Default)]
struct Inflater {
    context: Option<Decompressor<'static>>,
    scratch: Vec<u8>,
}

thread_local! {
    static ZSTD: RefCell<Inflater> = RefCell::default();
}

/// Some row groups of a file, with the bytes of some column chunks.
pub(in crate::file::parquet) struct LoadedGroups {
    metadata: Arc<ParquetMetaData>,
    groups: Vec<usize>,
    /// By row group and column.
    chunks: HashMap<(usize, usize), Arc<ChunkBytes>>,
}

impl LoadedGroups {
    /// Row groups without bytes.
    pub(in crate::file::parquet) fn new(metadata: Arc<ParquetMetaData>, groups: Vec<usize>) -> Self {
        Self { metadata, groups, chunks: HashMap::new() }
    }

    /// Adds the bytes of a column chunk that starts at offset `start` of the file.
    pub(in crate::file::parquet) fn add(&mut self, group: usize, column: usize, start: u64, bytes: Bytes) {
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
            return Ok(WholeChunk::counted(Box::new(pages), about));
        }
        let pages = SerializedPageReader::new(Arc::clone(bytes), about, rows, None)?;
        Ok(WholeChunk::counted(Box::new(pages), about))
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

/// The column chunks of one column in order.
struct Chunks(std::vec::IntoIter<Box<dyn PageReader>>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

impl PageIterator for Chunks {}

/// A part of a file in memory.
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

/// The decompressed pages of a column chunk.
pub(super) struct InflatedPages<R: ChunkReader> {
    /// The pages as stored.
    packed: SerializedPageReader<R>,
    /// The first page, until it is read.
    first: Option<Page>,
    /// Maximum bytes of a page.
    most: usize,
}

impl<R: ChunkReader> InflatedPages<R> {
    /// `None` if the first page cannot be decompressed here; the parquet crate then reads it and reports any error.
    fn new(bytes: Arc<R>, about: &ColumnChunkMetaData, rows: usize) -> Option<Self> {
        let mut own = Self::lazy(bytes, about, rows, None).ok()?;
        own.first = own.get_next_page().ok()?;
        Some(own)
    }

    /// Pages that are read on demand; `places` locates them, if known.
    pub(super) fn lazy(
        bytes: Arc<R>,
        about: &ColumnChunkMetaData,
        rows: usize,
        places: Option<Vec<PageLocation>>,
    ) -> Result<Self> {
        // Page headers store sizes in 32 bits.
        let most = usize::try_from(about.uncompressed_size().min(i64::from(i32::MAX)))?;
        let as_plain = about.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let packed = SerializedPageReader::new(bytes, &as_plain, rows, places)?;
        Ok(Self { packed, first: None, most })
    }
}

impl<R: ChunkReader> Iterator for InflatedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for InflatedPages<R> {
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

/// Decompresses a page of a column chunk that claims to be uncompressed; in version 2 pages only the values are
/// compressed.
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

/// Copies the first `levels` bytes and decompresses the rest, up to `most` bytes in total.
fn inflate(bytes: &Bytes, levels: usize, most: usize) -> Result<Bytes> {
    let invalid = || ParquetError::General("a page is longer than its column chunk says".to_owned());
    let (levels, packed) = bytes.split_at_checked(levels).ok_or_else(invalid)?;
    if packed.is_empty() {
        return Ok(Bytes::copy_from_slice(levels));
    }
    // Not every writer stores the length of a frame; Java's does not.
    let noted = get_frame_content_size(packed).ok().flatten().and_then(|size| usize::try_from(size).ok());
    ZSTD.with_borrow_mut(|inflater| match noted {
        Some(size) if size > most => Err(invalid()),
        Some(size) => {
            let mut out = Vec::new();
            out.try_reserve_exact(levels.len().saturating_add(size)).map_err(|_| invalid())?;
            out.extend_from_slice(levels);
            let mut behind = Cursor::new(&mut out);
            behind.set_position(levels.len() as u64);
            inflater.context()?.decompress_to_buffer(packed, &mut behind)?;
            Ok(out.into())
        }
        None => inflater.unnoted(levels, packed, most),
    })
}

impl Inflater {
    fn context(&mut self) -> std::io::Result<&mut Decompressor<'static>> {
        match &mut self.context {
            Some(context) => Ok(context),
            none => Ok(none.insert(Decompressor::new()?)),
        }
    }

    /// Decompresses a frame without a stored length, with a growing buffer of at most `most` bytes.
    fn unnoted(&mut self, levels: &[u8], packed: &[u8], most: usize) -> Result<Bytes> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut room = scratch.capacity().max(SCRATCH.0).min(most);
        loop {
            scratch.clear();
            scratch.try_reserve_exact(room).map_err(|error| ParquetError::General(error.to_string()))?;
            match self.context()?.decompress_to_buffer(packed, &mut scratch) {
                Ok(_) if scratch.len() <= most => break,
                Ok(_) => return Err(ParquetError::General("a page is longer than its column chunk says".to_owned())),
                Err(_) if room < most => room = room.saturating_mul(2).min(most),
                Err(error) => return Err(error.into()),
            }
        }
        let out = match levels {
            [] => Bytes::copy_from_slice(&scratch),
            levels => [levels, &scratch].concat().into(),
        };
        if scratch.capacity() <= SCRATCH.1 {
            self.scratch = scratch;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A frame with a stored length, as ours, and one without, as Java's.
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
