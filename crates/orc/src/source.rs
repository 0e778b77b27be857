//! Where bytes come from: the trait above the core, and the set of what has been fetched.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// A file, or something like one, that is read by ranges.
pub trait Source {
    /// Its bytes.
    fn length(&self) -> Result<u64>;
    /// The bytes of a range, all of them.
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
            _ => Err(Error::io(format!("bytes {range:?} of {}", self.len()))),
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
            return Err(Error::io(format!("bytes {range:?} pass the end of the file")));
        }
        let mut file = self;
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = Vec::new();
        file.take(count).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != count {
            return Err(Error::io(format!("{} of {count} bytes from {}", bytes.len(), range.start)));
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

/// What a sans-IO part of this crate answers: the ranges it needs, or what it was made for.
#[derive(Debug)]
pub enum Step<T> {
    /// These ranges, in any order, by [`Fetched::insert`].
    Need(Vec<Range<u64>>),
    /// It is done.
    Done(T),
}

/// Ranges of a file that are there.
#[derive(Debug, Default, Clone)]
pub struct Fetched {
    parts: Vec<(u64, Bytes)>,
}

impl Fetched {
    /// Adds the bytes that begin at `offset`.
    pub fn insert(&mut self, offset: u64, bytes: Bytes) {
        let at = self.parts.partition_point(|(other, _)| *other <= offset);
        self.parts.insert(at, (offset, bytes));
    }

    /// The bytes of a range, where one part holds them all.
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

    /// Those of `wanted` that are not there, joined where less than `gap` bytes lie between them, to `longest` at the most.
    pub fn missing(&self, wanted: &[Range<u64>], gap: u64, longest: u64) -> Vec<Range<u64>> {
        let mut lacking: Vec<_> = wanted.iter().filter(|range| self.get(range).is_none()).cloned().collect();
        lacking.sort_by_key(|range| range.start);
        coalesce(lacking, gap, longest)
    }
}

/// Joins sorted ranges that overlap or lie less than `gap` apart, those apart to `longest` bytes at the most.
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
