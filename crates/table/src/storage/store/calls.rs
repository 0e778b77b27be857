//! Hooks before system calls that change local files: tests can kill the process there or simulate a full disk.
//!
//! Published builds have no such hook.

use std::io;

/// Call before a system call that extends a file or gives it a name.
pub(super) fn before_write() -> io::Result<()> {
    step(true)
}

/// Call before a system call that removes or syncs a file, which works on a full disk too.
pub(super) fn before_change() {
    let _ = step(false);
}

#[cfg(not(all(unix, debug_assertions)))]
fn step(_: bool) -> io::Result<()> {
    Ok(())
}

/// The fault requested by a test's environment, with the number of the call.
#[cfg(all(unix, debug_assertions))]
#[derive(Clone, Copy)]
enum RequestedFault {
    /// `ICEFIELD_TEST_DIE_AT_STEP`: kills the process before this call.
    Death(usize),
    /// `ICEFIELD_TEST_FULL_AT_STEP`: simulates a full disk from this call on.
    Full(usize),
}

#[cfg(all(unix, debug_assertions))]
fn step(needs_space: bool) -> io::Result<()> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static FAULT: OnceLock<Option<RequestedFault>> = OnceLock::new();
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    let at = |name| std::env::var_os(name)?.to_str()?.parse().ok();
    let planned = || {
        let full = || at("ICEFIELD_TEST_FULL_AT_STEP").map(RequestedFault::Full);
        at("ICEFIELD_TEST_DIE_AT_STEP").map(RequestedFault::Death).or_else(full)
    };
    let Some(fault) = *FAULT.get_or_init(planned) else { return Ok(()) };
    let number = STEPS.fetch_add(1, Ordering::SeqCst);
    match fault {
        RequestedFault::Death(at) if number == at => die(),
        RequestedFault::Full(at) if needs_space && number >= at => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

/// Kills the process without running destructors or handlers, or flushing buffers.
#[cfg(all(unix, debug_assertions))]
fn die() -> io::Result<()> {
    // SAFETY: a signal to the process itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    Err(io::Error::other("the process survived SIGKILL"))
}
