//! Threads of this process: one runtime for the network, one pool for the processors, both started on first use.
//!
//! A forked process does not inherit threads: the child sees another process id and starts its own. This takes no
//! lock, so a fork at any moment cannot leave one locked.

use std::future::Future;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::interrupt;

/// Environment variable that sets the number of processor threads.
pub const THREADS_VARIABLE: &str = "ICEFIELD_THREADS";

/// A value and the process that created it.
pub(crate) struct Started<T> {
    process: u32,
    value: T,
}

static IO: AtomicPtr<Started<tokio::runtime::Runtime>> = AtomicPtr::new(std::ptr::null_mut());
static POOL: AtomicPtr<Started<rayon::ThreadPool>> = AtomicPtr::new(std::ptr::null_mut());

/// The value of this process; created now if it is missing, or if the existing one belongs to the parent of a fork.
pub(crate) fn of_this_process<T>(
    slot: &'static AtomicPtr<Started<T>>,
    start: impl FnOnce() -> Result<T>,
) -> Result<&'static T> {
    let process = std::process::id();
    let found = slot.load(Ordering::Acquire);
    // SAFETY: the pointer is null or came from `Box::leak` below and is never freed.
    if let Some(started) = unsafe { found.as_ref() }
        && started.process == process
    {
        return Ok(&started.value);
    }
    let fresh = Box::into_raw(Box::new(Started { process, value: start()? }));
    let winner = match slot.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        Err(other) => {
            // SAFETY: `fresh` was made above and is not shared yet.
            drop(unsafe { Box::from_raw(fresh) });
            other
        }
    };
    // SAFETY: as above; a lost race leaves the pointer of the winner, which is not null.
    Ok(unsafe { &(*winner).value })
}

/// Number of processor threads: `ICEFIELD_THREADS`, otherwise the number that the machine allows this process, which
/// is determined once because it takes reading several files.
pub fn threads() -> usize {
    static ALLOWED: AtomicUsize = AtomicUsize::new(0);
    let asked = std::env::var(THREADS_VARIABLE).ok().and_then(|text| text.trim().parse::<usize>().ok());
    asked.filter(|&n| n > 0).unwrap_or_else(|| match ALLOWED.load(Ordering::Relaxed) {
        0 => {
            let allowed = std::thread::available_parallelism().map_or(1, usize::from);
            ALLOWED.store(allowed, Ordering::Relaxed);
            allowed
        }
        allowed => allowed,
    })
}

/// Calls `work` for each item on at most `width` threads: the calling one and new ones. Items begin in order; after an
/// error no further one begins.
///
/// # Errors
/// The first error.
///
/// # Panics
/// If `work` panics in any of the threads.
pub(crate) fn for_each<T: Sync, E: Send>(
    items: &[T],
    width: usize,
    work: impl Fn(usize, &T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return };
            if let Err(error) = work(number, item) {
                next.store(items.len(), Ordering::Relaxed);
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..width.min(items.len()) {
            // If no more threads can be started, the existing ones do the work.
            let _ = thread::Builder::new().name("icefield-work".into()).spawn_scoped(scope, run);
        }
        run();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The processor pool of this process.
pub fn pool() -> Result<&'static rayon::ThreadPool> {
    of_this_process(&POOL, || {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads())
            .thread_name(|number| format!("icefield-{number}"))
            .build()
            .map_err(|error| Error::Internal(format!("cannot start threads: {error}")))
    })
}

/// Waits for a future on the network runtime of this process, until the caller interrupts.
pub fn wait<T>(future: impl Future<Output = T>) -> Result<T> {
    let network = network()?;
    if !interrupt::is_asked() {
        return Ok(network.block_on(future));
    }
    network.block_on(async {
        let mut future = std::pin::pin!(future);
        loop {
            match tokio::time::timeout(interrupt::EVERY, &mut future).await {
                Ok(done) => return Ok(done),
                Err(_) => interrupt::check()?,
            }
        }
    })
}

/// Runs work that waits for the network, concurrently with everything else.
pub fn in_background(work: impl FnOnce() + Send + 'static) -> Result<()> {
    drop(network()?.spawn_blocking(work));
    Ok(())
}

fn network() -> Result<&'static tokio::runtime::Runtime> {
    of_this_process(&IO, || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads().clamp(2, 8))
            .thread_name("icefield-io")
            .enable_all()
            .build()
            .map_err(|error| Error::Internal(format!("cannot start the network runtime: {error}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pool_a_process() {
        let first = pool().unwrap();
        assert!(std::ptr::eq(first, pool().unwrap()));
        assert_eq!(first.install(|| 6 * 7), 42);
        assert_eq!(wait(async { 7 }).unwrap(), 7);
    }

    #[test]
    fn every_item_is_worked_on_once_and_none_begins_after_an_error() {
        for width in [0, 1, 4, 100] {
            let items: Vec<usize> = (0..50).collect();
            let done: Vec<_> = items.iter().map(|_| AtomicUsize::new(0)).collect();
            for_each(&items, width, |number, item| {
                assert_eq!(number, *item);
                done[number].fetch_add(1, Ordering::Relaxed);
                Ok::<_, Error>(())
            })
            .unwrap();
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{width}");
        }
        assert_eq!(for_each(&[0; 0], 3, |_, _| Err("not called")), Ok(()));

        let begun = AtomicUsize::new(0);
        let failed = for_each(&[0; 1000], 4, |number, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number >= 5 { Err(number) } else { Ok(()) }
        });
        assert!(failed.is_err_and(|number| number >= 5));
        assert!(begun.into_inner() <= 5 + 4, "each of four threads begins at most one item more");
    }

    #[test]
    fn a_value_of_another_process_is_not_used() {
        static SLOT: AtomicPtr<Started<u32>> = AtomicPtr::new(std::ptr::null_mut());
        let parent = Box::into_raw(Box::new(Started { process: std::process::id().wrapping_add(1), value: 1 }));
        SLOT.store(parent, Ordering::Release);
        assert_eq!(*of_this_process(&SLOT, || Ok(2)).unwrap(), 2);
        assert_eq!(*of_this_process(&SLOT, || Ok(3)).unwrap(), 2);
    }
}
