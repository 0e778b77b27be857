//! What a kind of store can do, whatever it is: local files, memory, a cloud. A file each, and the stores that wrap others: to
//! fail on purpose, to count traffic, to refuse writes.

mod answers;
mod calls;
mod credentials;
pub(super) mod faults;
pub(super) mod local;
pub(super) mod memory;
mod read_at;
pub(super) mod remote;
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

/// Objects of a page of a listing, at the most.
pub(super) const PAGE: usize = 1000;

/// Objects below a prefix, page by page, in the order of the store. The memory that it takes does not grow with their number.
pub type Pages = Box<dyn Iterator<Item = Result<Vec<Entry>>> + Send>;

/// Whether an object may replace another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// An object at the path is replaced.
    Replace,
    /// An object at the path makes the write fail with [`Error::AlreadyExists`], also when two writers race.
    Refuse,
}

/// An object found by [`Storage::list`] or [`Storage::pages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path, beginning with the prefix that was asked for.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed, in milliseconds from the epoch, where the store says so.
    pub modified_ms: Option<i64>,
}

/// An object that is being written; it does not exist (under its name) before [`Output::finish`].
pub trait Output: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: Bytes) -> Result<()>;
    /// Makes the object appear, whole and durable.
    fn finish(self: Box<Self>) -> Result<()>;
    /// Discards what was written.
    fn abort(self: Box<Self>);
}

/// An object that is open for reading, of which small ranges cost no more than large ones.
pub trait OpenObject: fmt::Debug + Send + Sync {
    /// A range of the object; one past its end is an error.
    fn range(&self, range: Range<u64>) -> Result<Bytes>;
}

/// What a kind of store can do. Keys are absolute within the store.
pub trait Store: fmt::Debug + Send + Sync {
    /// The whole object, which is refused before it is read where it is longer than `most`.
    fn read(&self, at: &Location, most: u64) -> Result<Bytes>;
    /// Size in bytes.
    fn size(&self, at: &Location) -> Result<u64>;
    /// Some ranges of the object, in the order asked for; a range past the end is an error.
    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
    /// The object, open for reading range by range; `None` where every range is a request.
    fn open(&self, _at: &Location) -> Result<Option<Arc<dyn OpenObject>>> {
        Ok(None)
    }
    /// Writes an object in one go, durably.
    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()>;
    /// Starts an object that is written piece by piece; data files have unique names, so it may replace.
    fn output(&self, at: &Location) -> Result<Box<dyn Output>>;
    /// Deletes an object; one that is not there is no error.
    fn delete(&self, at: &Location) -> Result<()>;
    /// Deletes objects, side by side: what became of each, in the order given.
    fn delete_all(&self, all: &[Location]) -> Vec<Result<()>> {
        match runtime::pool() {
            Ok(pool) => pool.install(|| all.par_iter().map(|at| self.delete(at)).collect()),
            Err(_) => all.iter().map(|at| self.delete(at)).collect(),
        }
    }
    /// Everything below a prefix that ends at a `/`. After an error there are no more pages.
    fn pages(&self, prefix: &Location) -> Result<Pages>;
}

/// The error of an object that is longer than its reader allows.
pub(super) fn too_long(path: &str, length: u64, most: u64) -> Error {
    Error::TooLong { path: path.to_owned(), length, most }
}
