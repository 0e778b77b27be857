//! Store implementations, one file each: local files, memory, and remote stores; and stores that wrap others to decrypt,
//! inject faults, count traffic or discard writes.

mod answers;
mod calls;
mod credentials;
pub(super) mod encrypted;
pub(super) mod faults;
pub(super) mod local;
pub(super) mod memory;
mod read_at;
pub(super) mod remote;
pub(super) mod signing;
pub(super) mod traffic;
pub(super) mod unwritten;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::Location;
use crate::error::{Error, Result};
use crate::runtime;

/// Maximum number of objects per page of a listing.
pub(super) const PAGE: usize = 1000;

/// Objects below a prefix in pages, in the order of the store. Memory use does not grow with their number.
pub type Pages = Box<dyn Iterator<Item = Result<Vec<Entry>>> + Send>;

/// What to do if the object to be written already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    Replace,
    /// Fail with [`Error::AlreadyExists`], also if two writers race.
    Refuse,
}

/// An object found by [`Storage::list`] or [`Storage::pages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path, beginning with the requested prefix.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// When the object was last modified, in milliseconds since the epoch, if the store reports it.
    pub modified_ms: Option<i64>,
}

/// An object being written; it does not exist under its name before [`Output::finish`].
pub trait Output: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: Bytes) -> Result<()>;
    /// Makes the object visible, complete and durable.
    fn finish(self: Box<Self>) -> Result<()>;
    /// Discards the written bytes.
    fn abort(self: Box<Self>);
}

/// An object open for reading, where small ranges are as cheap as large ones.
pub trait OpenObject: fmt::Debug + Send + Sync {
    /// Reads a range of the object; one beyond its end is an error.
    fn range(&self, range: Range<u64>) -> Result<Bytes>;
}

/// The operations of a store. Keys are absolute within the store.
pub trait Store: fmt::Debug + Send + Sync {
    /// Reads a whole object; one longer than `most` is rejected before it is read.
    fn read(&self, at: &Location, most: u64) -> Result<Bytes>;
    /// The size of an object in bytes.
    fn size(&self, at: &Location) -> Result<u64>;
    /// Reads ranges of an object, in the given order; a range beyond its end is an error.
    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
    /// Opens an object for reading by ranges; `None` if every range would be a request of its own.
    fn open(&self, _at: &Location) -> Result<Option<Arc<dyn OpenObject>>> {
        Ok(None)
    }
    /// Writes an object durably in one call.
    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()>;
    /// Starts writing an object in pieces. It may replace another one, since data files have unique names.
    fn output(&self, at: &Location) -> Result<Box<dyn Output>>;
    /// Deletes an object; a missing one is not an error.
    fn delete(&self, at: &Location) -> Result<()>;
    /// Deletes objects concurrently; returns the results in the given order.
    fn delete_all(&self, all: &[Location]) -> Vec<Result<()>> {
        match runtime::pool() {
            Ok(pool) => pool.install(|| all.par_iter().map(|at| self.delete(at)).collect()),
            Err(_) => all.iter().map(|at| self.delete(at)).collect(),
        }
    }
    /// Lists all objects below a prefix that ends with `/`. After an error there are no more pages.
    fn pages(&self, prefix: &Location) -> Result<Pages>;
}

/// The error for an object longer than its reader allows.
pub(super) fn too_long(path: &str, length: u64, most: u64) -> Error {
    Error::TooLong { path: path.to_owned(), length, most }
}
