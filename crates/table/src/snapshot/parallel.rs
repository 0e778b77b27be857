//! Work on many files of a table at once.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runtime;
use crate::storage::Storage;

/// Manifests that are fetched at once from a store across the network.
const REMOTE_READERS: usize = 16;

/// Does something with each of some files below a location, several at once: more where that waits for the network. A thread
/// of a pool works alone: the others have work of their own.
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

pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
