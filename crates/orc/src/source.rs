//! The [`Source`] of a reader's bytes, and the ranges fetched from it.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// A file, or similar, whose byte ranges are read.
pub trait Source {
    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    ///
    /// Any error of the source; [`Error::external`] passes it through the reader.
    fn length(&self) -> Result<u64>;
    /// Returns the complete bytes of a range.
    ///
    /// # Errors
    ///
    /// A range past the end of the file, or any other error of the source; [`Error::external`] passes it through the
    /// reader.
    fn read_range(&self, range: Range<u64>) -> Result<Bytes>;
}

impl Source for Bytes {
    fn length(&self) -> Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
        match (start, end) {
            (Ok(start), Ok(end)) if start <= end && end <= self.len() => Ok(self.slice(start..end)),
            _ => Err(Error::io(format!("bytes {range:?} are past the end of {} bytes", self.len()))),
        }
    }
}

impl Source for std::fs::File {
    fn length(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        use std::io::{Read, Seek, SeekFrom};
        let count = range.end.saturating_sub(range.start);
        if range.end > self.length()? {
            return Err(Error::io(format!("bytes {range:?} are past the end of the file")));
        }
        let mut file = self;
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = Vec::new();
        file.take(count).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != count {
            return Err(Error::io(format!("expected {count} bytes from byte {}, got {}", range.start, bytes.len())));
        }
        Ok(bytes.into())
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn length(&self) -> Result<u64> {
        (**self).length()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        (**self).read_range(range)
    }
}

impl<S: Source + ?Sized> Source for std::sync::Arc<S> {
    fn length(&self) -> Result<u64> {
        (**self).length()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        (**self).read_range(range)
    }
}

/// The answer of a decoder that does no I/O: the ranges that it needs, or its result.
#[derive(Debug)]
pub enum Step<T> {
    /// It needs these ranges; [`Fetched::insert`] adds them, in any order.
    Need(Vec<Range<u64>>),
    /// The result.
    Done(T),
}

/// The ranges of a file fetched so far.
#[derive(Debug, Default, Clone)]
pub struct Fetched {
    parts: Vec<(u64, Bytes)>,
}

impl Fetched {
    /// Adds the bytes that start at `offset`.
    pub fn insert(&mut self, offset: u64, bytes: Bytes) {
        let at = self.parts.partition_point(|(other, _)| *other <= offset);
        self.parts.insert(at, (offset, bytes));
    }

    /// The bytes of a range, if a single part contains them all.
    pub fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return Some(Bytes::new());
        }
        self.parts.iter().find_map(|(offset, bytes)| {
            let start = usize::try_from(range.start.checked_sub(*offset)?).ok()?;
            let end = usize::try_from(range.end.checked_sub(*offset)?).ok()?;
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        })
    }

    /// The missing ranges among `wanted`. Those with at most `gap` bytes between them are joined, up to `longest`
    /// bytes.
    pub fn missing(&self, wanted: &[Range<u64>], gap: u64, longest: u64) -> Vec<Range<u64>> {
        let mut lacking: Vec<_> = wanted.iter().filter(|range| self.get(range).is_none()).cloned().collect();
        lacking.sort_by_key(|range| range.start);
        coalesce(lacking, gap, longest)
    }
}

/// Joins sorted ranges that overlap, and those with at most `gap` bytes between them, up to `longest` bytes.
pub(crate) fn coalesce(ranges: Vec<Range<u64>>, gap: u64, longest: u64) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            Some(last) if range.start - last.end <= gap && range.end.saturating_sub(last.start) <= longest => {
                last.end = range.end;
            }
            _ => joined.push(range),
        }
    }
    joined
}
