//! The time that commits, new tables and expiry take theirs from: that of the system, unless a test or a simulation has set
//! another.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Stands for the clock of the system.
const SYSTEM: i64 = i64::MIN;

static TIME_MS: AtomicI64 = AtomicI64::new(SYSTEM);

/// The time, in milliseconds from the epoch.
pub fn now_ms() -> i64 {
    match TIME_MS.load(Ordering::Relaxed) {
        SYSTEM => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        }
        set => set,
    }
}

/// Stops the clock of this process at a time, which may be before the one that it showed; `None` is the system's again. For
/// tests and simulations.
pub fn set(time_ms: Option<i64>) {
    TIME_MS.store(time_ms.unwrap_or(SYSTEM), Ordering::Relaxed);
}
