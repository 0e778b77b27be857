//! The clock of commits, new tables and expiry: the system's, unless a test or a simulation has set another time.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Means the system clock.
const SYSTEM: i64 = i64::MIN;

static TIME_MS: AtomicI64 = AtomicI64::new(SYSTEM);

thread_local! {
    static OF_THREAD_MS: Cell<i64> = const { Cell::new(SYSTEM) };
}

/// The time, in milliseconds from the epoch.
pub fn now_ms() -> i64 {
    let set = [OF_THREAD_MS.get(), TIME_MS.load(Ordering::Relaxed)].into_iter().find(|time_ms| *time_ms != SYSTEM);
    match set {
        None => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        }
        Some(set) => set,
    }
}

/// Stops the clock of this process at a time, which may be before the current one; `None` returns to the system
/// clock. For tests and simulations.
pub fn set(time_ms: Option<i64>) {
    TIME_MS.store(time_ms.unwrap_or(SYSTEM), Ordering::Relaxed);
}

/// Stops the clock for commits on this thread; `None` returns to the process's clock. For simulations, several of
/// which run concurrently.
pub fn set_for_thread(time_ms: Option<i64>) {
    OF_THREAD_MS.set(time_ms.unwrap_or(SYSTEM));
}
