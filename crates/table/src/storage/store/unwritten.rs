//! A store that discards writes: for finding out what a change would write.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Existing, OpenObject, Output, Pages, Store};
use crate::error::Result;
use crate::storage::location::Location;

/// Makes a store discard all changes.
pub(in crate::storage) fn wrap(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Unwritten(store))
}

#[derive(Debug)]
struct Unwritten(Arc<dyn Store>);

impl Store for Unwritten {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        self.0.read(at, most)
    }

    fn size(&self, at: &Location) -> Result<u64> {
        self.0.size(at)
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.ranges(at, ranges)
    }

    fn open(&self, at: &Location) -> Result<Option<Arc<dyn OpenObject>>> {
        self.0.open(at)
    }

    fn put(&self, _at: &Location, _bytes: Bytes, _existing: Existing) -> Result<()> {
        Ok(())
    }

    fn output(&self, _at: &Location) -> Result<Box<dyn Output>> {
        Ok(Box::new(Nowhere))
    }

    fn delete(&self, _at: &Location) -> Result<()> {
        Ok(())
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        self.0.pages(prefix)
    }
}

/// Output to an object that is never created.
struct Nowhere;

impl Output for Nowhere {
    fn write(&mut self, _bytes: Bytes) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    fn abort(self: Box<Self>) {}
}
