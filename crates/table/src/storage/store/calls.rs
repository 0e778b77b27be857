//! System calls that change local files, before each of which a test may end the process or find the disk full.
//!
//! Builds that are published have no such hook.

use std::io;

/// Called before a system call that makes a file longer, or gives it a name.
pub(super) fn before_write() -> io::Result<()> {
    step(true)
}

/// Called before a system call that takes a file away, or brings one to the disk: a full disk does not hinder it.
pub(super) fn before_change() {
    let _ = step(false);
}

#[cfg(not(all(unix, debug_assertions)))]
fn step(_: bool) -> io::Result<()> {
    Ok(())
}

/// What the environment of a test asks for, by the number of the call.
#[cfg(all(unix, debug_assertions))]
#[derive(Clone, Copy)]
enum Fault {
    /// `ICEFIELD_TEST_DIE_AT_STEP`: the process is killed before this call.
    Death(usize),
    /// `ICEFIELD_TEST_FULL_AT_STEP`: from this call on there is no space.
    Full(usize),
}

#[cfg(all(unix, debug_assertions))]
fn step(needs_space: bool) -> io::Result<()> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    let at = |name| std::env::var_os(name)?.to_str()?.parse().ok();
    let planned = || {
        let full = || at("ICEFIELD_TEST_FULL_AT_STEP").map(Fault::Full);
        at("ICEFIELD_TEST_DIE_AT_STEP").map(Fault::Death).or_else(full)
    };
    let Some(fault) = *FAULT.get_or_init(planned) else { return Ok(()) };
    let number = STEPS.fetch_add(1, Ordering::SeqCst);
    match fault {
        Fault::Death(at) if number == at => die(),
        Fault::Full(at) if needs_space && number >= at => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

/// Nothing of this process runs any more: no destructor, no handler, no buffer that is flushed.
#[cfg(all(unix, debug_assertions))]
fn die() -> io::Result<()> {
    // SAFETY: a signal to the process itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    Err(io::Error::other("the process survived SIGKILL"))
}
