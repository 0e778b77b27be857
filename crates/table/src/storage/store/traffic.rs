//! Counts the bytes read from and written to storage.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{Existing, OpenObject, Output, Pages, Store};
use crate::error::Result;
use crate::storage::location::Location;

/// Counters of reads and writes.
#[derive(Debug, Default)]
pub struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
    files: AtomicU64,
}

impl Traffic {
    /// Number of bytes read.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Number of bytes written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Number of files written completely.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    fn add_read<'a>(&self, all: impl IntoIterator<Item = &'a Bytes>) {
        self.read.fetch_add(all.into_iter().map(|bytes| bytes.len() as u64).sum(), Ordering::Relaxed);
    }
}

/// Adds counters to a store.
pub(in crate::storage) fn wrap(store: Arc<dyn Store>, traffic: Arc<Traffic>) -> Arc<dyn Store> {
    Arc::new(Counted { store, traffic })
}

#[derive(Debug)]
struct Counted {
    store: Arc<dyn Store>,
    traffic: Arc<Traffic>,
}

impl Store for Counted {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        let bytes = self.store.read(at, most)?;
        self.traffic.add_read([&bytes]);
        Ok(bytes)
    }

    fn size(&self, at: &Location) -> Result<u64> {
        self.store.size(at)
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let found = self.store.ranges(at, ranges)?;
        self.traffic.add_read(&found);
        Ok(found)
    }

    fn open(&self, at: &Location) -> Result<Option<Arc<dyn OpenObject>>> {
        let opened = self.store.open(at)?;
        Ok(opened
            .map(|object| Arc::new(CountedObject { object, traffic: self.traffic.clone() }) as Arc<dyn OpenObject>))
    }

    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()> {
        let length = bytes.len() as u64;
        self.store.put(at, bytes, existing)?;
        self.traffic.written.fetch_add(length, Ordering::Relaxed);
        self.traffic.files.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn output(&self, at: &Location) -> Result<Box<dyn Output>> {
        Ok(Box::new(CountedOutput { output: self.store.output(at)?, traffic: self.traffic.clone() }))
    }

    fn delete(&self, at: &Location) -> Result<()> {
        self.store.delete(at)
    }

    fn delete_all(&self, all: &[Location]) -> Vec<Result<()>> {
        self.store.delete_all(all)
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        self.store.pages(prefix)
    }
}

struct CountedObject {
    object: Arc<dyn OpenObject>,
    traffic: Arc<Traffic>,
}

impl fmt::Debug for CountedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

impl OpenObject for CountedObject {
    fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = self.object.range(range)?;
        self.traffic.add_read([&bytes]);
        Ok(bytes)
    }
}

struct CountedOutput {
    output: Box<dyn Output>,
    traffic: Arc<Traffic>,
}

impl Output for CountedOutput {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        let length = bytes.len() as u64;
        self.output.write(bytes)?;
        self.traffic.written.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { output, traffic } = *self;
        output.finish()?;
        traffic.files.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn abort(self: Box<Self>) {
        self.output.abort();
    }
}
