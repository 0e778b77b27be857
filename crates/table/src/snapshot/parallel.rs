//! Processes many files of a table concurrently.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::runtime;
use crate::storage::Storage;

/// Maximum number of concurrent fetches from a remote store.
const REMOTE_READERS: usize = 16;

/// Calls `work` for files below a location, several at once, and more of them if that waits for the network. On a
/// thread of the processor pool it starts no other threads, since the pool already uses all processors.
pub(crate) fn side_by_side<T: Sync>(storage: &Storage, location: &str, all: &[T], work: impl Fn(&T) + Sync) {
    let readers = match storage.is_remote(location) {
        true => REMOTE_READERS,
        false if rayon::current_thread_index().is_some() => 1,
        false => runtime::threads(),
    };
    let Ok(()) = runtime::for_each(all, readers, |_, one| {
        work(one);
        Ok::<_, Infallible>(())
    });
}

/// As [`side_by_side`], until the first error.
pub(crate) fn try_side_by_side<T: Sync>(
    storage: &Storage,
    location: &str,
    all: &[T],
    work: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let failed = Mutex::new(None);
    side_by_side(storage, location, all, |one| {
        if locked(&failed).is_none()
            && let Err(error) = work(one)
        {
            locked(&failed).get_or_insert(error);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
