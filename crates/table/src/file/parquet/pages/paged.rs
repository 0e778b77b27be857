//! Reads row groups of a local file page by page during decoding, so that memory holds only the next pages of each
//! column.

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Compression;
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::indexed::IndexedPages;
use super::loaded::InflatedPages;
use super::whole_chunk::WholeChunk;
use crate::error::Error;
use crate::storage::OpenObject;

/// Minimum bytes of a column chunk to read at once: page headers have unknown lengths and are read byte by byte.
const AHEAD: u64 = 256 << 10;

/// Carries a storage error to the reader of the batches, because the Parquet library turns errors into text.
pub(in crate::file::parquet) type Failure = Arc<Mutex<Option<Error>>>;

/// Some row groups of an open file.
pub(in crate::file::parquet) struct PagedGroups {
    metadata: Arc<ParquetMetaData>,
    groups: Vec<usize>,
    file: Arc<dyn OpenObject>,
    /// Whether rows are skipped and pages are located by the page index.
    is_sparse: bool,
    failure: Failure,
}

impl PagedGroups {
    /// Some row groups; `is_sparse` if rows of them are skipped.
    pub(in crate::file::parquet) fn new(
        metadata: Arc<ParquetMetaData>,
        groups: Vec<usize>,
        file: Arc<dyn OpenObject>,
        is_sparse: bool,
    ) -> Self {
        Self { metadata, groups, file, is_sparse, failure: Failure::default() }
    }

    /// The same row groups, whose rows are skipped.
    pub(in crate::file::parquet) fn sparse(&self) -> Self {
        let (metadata, file) = (Arc::clone(&self.metadata), Arc::clone(&self.file));
        Self { metadata, groups: self.groups.clone(), file, is_sparse: true, failure: self.failure() }
    }

    /// The slot for a storage error.
    pub(in crate::file::parquet) fn failure(&self) -> Failure {
        Arc::clone(&self.failure)
    }
}

impl RowGroups for PagedGroups {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let chunks = Chunks {
            metadata: Arc::clone(&self.metadata),
            groups: self.groups.clone().into_iter(),
            column,
            file: Arc::clone(&self.file),
            is_sparse: self.is_sparse,
            failure: self.failure(),
        };
        Ok(Box::new(chunks))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.groups.iter().filter_map(|number| self.metadata.row_groups().get(*number)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The column chunks of one column in order.
struct Chunks {
    metadata: Arc<ParquetMetaData>,
    groups: std::vec::IntoIter<usize>,
    column: usize,
    file: Arc<dyn OpenObject>,
    is_sparse: bool,
    failure: Failure,
}

impl Chunks {
    fn pages(&self, number: usize) -> Result<Box<dyn PageReader>> {
        let group = self.metadata.row_groups().get(number);
        let Some((group, about)) = group.and_then(|group| Some((group, group.columns().get(self.column)?))) else {
            return Err(ParquetError::General(format!("row group {number}, column {} is missing", self.column)));
        };
        let index = self.metadata.page_index_for_row_group(number);
        let locations = index.page_locations(self.column).filter(|pages| self.is_sparse && !pages.is_empty());
        let (start, length) = about.byte_range();
        let chunk = Chunk {
            file: Arc::clone(&self.file),
            range: start..start.saturating_add(length),
            // Pages found by the index are read one by one: what follows may be a page that is skipped.
            ahead: if locations.is_some() { 0 } else { AHEAD },
            window: Mutex::new((start, Bytes::new())),
            failure: Arc::clone(&self.failure),
        };
        let rows = usize::try_from(group.num_rows())?;
        let chunk = Arc::new(OpenChunk(Arc::new(chunk)));
        let locations = locations.map(|pages| pages.to_vec());
        // The parquet crate makes a large ZSTD context for each chunk; `loaded` has one for each thread.
        let pages: Box<dyn PageReader> = match about.compression() {
            Compression::ZSTD(_) => Box::new(InflatedPages::lazy(chunk, about, rows, locations.clone())?),
            _ => Box::new(SerializedPageReader::new(chunk, about, rows, locations.clone())?),
        };
        match locations {
            Some(places) => Ok(Box::new(IndexedPages::new(pages, about, &places, rows)?)),
            None => Ok(WholeChunk::counted(pages, about)),
        }
    }
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.groups.next().map(|number| self.pages(number))
    }
}

impl PageIterator for Chunks {}

/// A column chunk of an open file.
struct Chunk {
    file: Arc<dyn OpenObject>,
    range: Range<u64>,
    ahead: u64,
    /// The last read: its offset in the file, and the bytes.
    window: Mutex<(u64, Bytes)>,
    failure: Failure,
}

impl Chunk {
    /// At least `least` bytes from an offset of the file on.
    fn from(&self, start: u64, least: usize) -> Result<Bytes> {
        let end = start.saturating_add(least as u64);
        if start < self.range.start || end > self.range.end {
            return Err(ParquetError::EOF(format!("byte {start} of the file lies outside of its column chunk")));
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, bytes) = &*window;
        let known = start.checked_sub(*first).and_then(|skipped| usize::try_from(skipped).ok());
        let known = known.filter(|skipped| *skipped <= bytes.len()).map(|skipped| bytes.slice(skipped..));
        let known = match known {
            Some(known) if known.len() >= least && !known.is_empty() => return Ok(known),
            other => other.unwrap_or_default(),
        };
        let until = end.max(start.saturating_add(self.ahead)).min(self.range.end);
        let more = match self.file.range(start.saturating_add(known.len() as u64)..until) {
            Ok(more) => more,
            Err(error) => {
                let message = error.to_string();
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return Err(ParquetError::General(message));
            }
        };
        // Bytes that begin in the window and end after it are joined.
        let bytes = if known.is_empty() { more } else { Bytes::from([&*known, &*more].concat()) };
        *window = (start, bytes.clone());
        Ok(bytes)
    }
}

struct OpenChunk(Arc<Chunk>);

impl Length for OpenChunk {
    fn len(&self) -> u64 {
        self.0.range.end
    }
}

impl ChunkReader for OpenChunk {
    type T = ChunkBytes;

    fn get_read(&self, start: u64) -> Result<ChunkBytes> {
        Ok(ChunkBytes { chunk: Arc::clone(&self.0), at: start, known: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.0.from(start, length)?.slice(..length))
    }
}

/// The bytes of a column chunk from an offset on.
struct ChunkBytes {
    chunk: Arc<Chunk>,
    at: u64,
    /// Bytes from there on that were read already, because page headers are read byte by byte.
    known: Bytes,
}

impl Read for ChunkBytes {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at >= self.chunk.range.end || out.is_empty() {
            return Ok(0);
        }
        if self.known.is_empty() {
            self.known = self.chunk.from(self.at, 1).map_err(std::io::Error::other)?;
        }
        let count = self.known.len().min(out.len());
        for (to, from) in out.iter_mut().zip(&self.known) {
            *to = *from;
        }
        self.known.advance(count);
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A file of counting bytes that fails for ranges after byte 2,000,000.
    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    impl OpenObject for Counted {
        fn range(&self, range: Range<u64>) -> crate::error::Result<Bytes> {
            self.0.fetch_add(usize::try_from(range.end - range.start).unwrap(), Ordering::AcqRel);
            if range.end > 2_000_000 {
                return Err(Error::invalid("meant"));
            }
            Ok(range.map(|place| place as u8).collect::<Vec<u8>>().into())
        }
    }

    fn chunk(range: Range<u64>) -> (Arc<Counted>, OpenChunk) {
        let file = Arc::new(Counted::default());
        let window = Mutex::new((range.start, Bytes::new()));
        let chunk = Chunk { file: file.clone(), range, ahead: AHEAD, window, failure: Failure::default() };
        (file, OpenChunk(Arc::new(chunk)))
    }

    #[test]
    fn every_byte_is_read_once_in_whatever_pieces_it_is_taken() {
        let (file, chunk) = chunk(100..1_500_000);
        let (mut at, mut step) = (100_u64, 1_usize);
        while at < 1_500_000 {
            let mut header = [0; 3];
            let length = step.min(usize::try_from(1_500_000 - at).unwrap());
            if length > header.len() {
                chunk.get_read(at).unwrap().read_exact(&mut header).unwrap();
                assert_eq!(header, [at as u8, (at + 1) as u8, (at + 2) as u8]);
            }
            let found = chunk.get_bytes(at, length).unwrap();
            assert!(found.iter().zip(at..).all(|(byte, place)| *byte == place as u8) && found.len() == length);
            (at, step) = (at + length as u64, step * 3 % 700_001);
        }
        assert_eq!(file.0.load(Ordering::Acquire), 1_500_000 - 100);
    }

    #[test]
    fn bytes_outside_of_a_chunk_are_refused_and_errors_of_storage_are_kept() {
        let (_, chunk) = chunk(100..3_000_000);
        for (start, length) in [(99, 1), (2_999_999, 2), (u64::MAX, 1), (105, usize::MAX)] {
            assert!(chunk.get_bytes(start, length).is_err(), "{start} {length}");
        }
        assert!(chunk.0.failure.lock().unwrap().is_none());
        assert!(chunk.get_bytes(1_999_999, 100).is_err());
        assert!(chunk.0.failure.lock().unwrap().take().is_some_and(|error| error.to_string().contains("meant")));
    }
}
