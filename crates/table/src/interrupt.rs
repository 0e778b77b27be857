//! Calls that their caller can interrupt, such as by Ctrl-C in Python.
//!
//! The calling thread regularly checks whether to continue: between batches, and while it waits for other threads,
//! for the network or for time to pass. The caller provides the check ([`interruptible`]). Other threads end when
//! their results are no longer received.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Returns the error with which to end the call, if any; [`Error::Interrupted`] if the caller asked for it.
pub type Ask = fn() -> Option<Error>;

/// The minimum time between two checks.
pub(crate) const EVERY: Duration = Duration::from_millis(50);

thread_local! {
    static ASKED: Cell<Option<(Ask, Instant)>> = const { Cell::new(None) };
}

/// Restores the previous check, even after a panic.
struct Before(Option<(Ask, Instant)>);

impl Drop for Before {
    fn drop(&mut self) {
        ASKED.set(self.0);
    }
}

/// Runs `work` on this thread with a check whether to continue.
pub fn interruptible<T>(ask: Ask, work: impl FnOnce() -> T) -> T {
    let _before = Before(ASKED.replace(Some((ask, Instant::now()))));
    work()
}

/// Whether this thread's caller can interrupt the call.
pub(crate) fn is_asked() -> bool {
    ASKED.get().is_some()
}

/// Returns the caller's error if the call is to end. Checks at most every [`EVERY`].
pub fn check() -> Result<()> {
    let Some((ask, last)) = ASKED.get() else { return Ok(()) };
    if last.elapsed() < EVERY {
        return Ok(());
    }
    let answer = ask();
    ASKED.set(Some((ask, Instant::now())));
    answer.map_or(Ok(()), Err)
}

/// Receives from another thread; `None` when all its senders are gone.
pub fn receive<T>(from: &Receiver<T>) -> Result<Option<T>> {
    if !is_asked() {
        return Ok(from.recv().ok());
    }
    loop {
        check()?;
        match from.recv_timeout(EVERY) {
            Ok(received) => return Ok(Some(received)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Sleeps, unless interrupted.
pub fn sleep(time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(if is_asked() { left.min(EVERY) } else { left });
        check()?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn no_more() -> Option<Error> {
        Some(Error::invalid("no more"))
    }

    #[test]
    fn waits_end_with_the_callers_error() {
        let (_sender, receiver) = sync_channel::<()>(1);
        let ended = |outcome: Result<()>| outcome.unwrap_err().to_string() == "no more";
        interruptible(no_more, || {
            assert!(ended(receive(&receiver).map(|_| ())));
            assert!(ended(sleep(Duration::from_secs(60))));
            assert!(ended(crate::runtime::wait(std::future::pending::<()>())));
        });
    }

    #[test]
    fn nothing_is_asked_outside_of_a_call() {
        interruptible(no_more, || assert!(is_asked()));
        assert!(!is_asked());
        sleep(Duration::from_millis(60)).unwrap();
        check().unwrap();
    }
}
