//! The interface to the caller's thread pool.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;

use crate::error::{Error, Result};

/// Threads that the caller provides to a [`Writer`](crate::Writer) or a [`Reader`](crate::Reader).
///
/// This crate starts no threads of its own: only the caller knows how many threads its process may use, and whether the
/// process has forked since they were started.
pub trait Pool: Debug + Send + Sync {
    /// Runs all closures, in any order, and returns when they are done. They do not wait for each other.
    fn run(&self, work: Vec<Box<dyn FnOnce() + Send + '_>>);

    /// Starts a task on another thread, and returns whether it will run. The task does not panic, and waits only for a
    /// [`Source`](crate::Source).
    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool;
}

/// Turns a panic into an error, so that no thread waits forever for the result.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let caught = std::panic::catch_unwind(AssertUnwindSafe(work));
    caught.unwrap_or_else(|_| Err(Error::io("a reading thread failed")))
}
