//! The asynchronous reader, which works with any runtime.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{ReadOptions, StripeLoader, StripeReader};
use crate::encrypt::KeyProvider;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::source::Step;
use crate::tail::{FileMetadata, TailDecoder};

/// A file, or similar, whose byte ranges are read asynchronously.
pub trait AsyncSource {
    /// The length of the file in bytes.
    fn length(&self) -> impl Future<Output = Result<u64>> + Send;

    /// Returns the complete bytes of each range, in the order of the ranges. Ranges that are close together have
    /// already been joined, so a store can fetch all of them concurrently.
    fn read_ranges(&self, ranges: Vec<Range<u64>>) -> impl Future<Output = Result<Vec<Bytes>>> + Send;
}

/// An open file. [`StripeReader`]s decode its batches; they hold their bytes and do no I/O.
#[derive(Debug)]
pub struct AsyncReader<S> {
    source: S,
    file: Arc<FileMetadata>,
}

async fn fetch<S: AsyncSource>(source: &S, ranges: Vec<Range<u64>>) -> Result<Vec<(u64, Bytes)>> {
    let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let parts = source.read_ranges(ranges).await?;
    if parts.len() != starts.len() {
        return Err(Error::io(format!("expected {} ranges, got {}", starts.len(), parts.len())));
    }
    Ok(starts.into_iter().zip(parts).collect())
}

impl<S: AsyncSource> AsyncReader<S> {
    /// Opens a file, as [`Reader::open`](super::Reader::open).
    pub async fn open(source: S) -> Result<Self> {
        Self::open_with(source, Limits::default(), None).await
    }

    /// Opens a file with limits and keys, as [`Reader::open_with`](super::Reader::open_with).
    pub async fn open_with(source: S, limits: Limits, keys: Option<Arc<dyn KeyProvider>>) -> Result<Self> {
        let mut tail = TailDecoder::new(source.length().await?, limits, keys);
        loop {
            match tail.advance()? {
                Step::Need(ranges) => {
                    for (start, bytes) in fetch(&source, ranges).await? {
                        tail.fetched.insert(start, bytes);
                    }
                }
                Step::Done(file) => return Ok(Self { source, file: Arc::new(file) }),
            }
        }
    }

    /// The contents of the tail.
    pub fn metadata(&self) -> &Arc<FileMetadata> {
        &self.file
    }

    /// The stripes that may hold wanted rows, as [`Reader::stripes`](super::Reader::stripes).
    pub fn stripes(&self, options: &ReadOptions) -> Result<Vec<usize>> {
        super::wanted::stripes(&self.file, options)
    }

    /// Fetches the bytes of one stripe and returns its reader, as [`Reader::stripe`](super::Reader::stripe).
    pub async fn stripe(&self, index: usize, options: &Arc<ReadOptions>) -> Result<StripeReader> {
        let mut loader = StripeLoader::new(Arc::clone(&self.file), Arc::clone(options), index)?;
        loop {
            match loader.advance()? {
                Step::Need(ranges) => {
                    for (start, bytes) in fetch(&self.source, ranges).await? {
                        loader.fetched.insert(start, bytes);
                    }
                }
                Step::Done(reader) => return Ok(reader),
            }
        }
    }
}
