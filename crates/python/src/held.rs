//! Exclusive use of an object by one call, during which the call may call Python (generators of rows, conditions that
//! are functions).
//!
//! A second call waits for the first one, unless this would be a deadlock because the first one waits for the second.
//! This is the case if the first call has called the second, on its own thread or on one of its workers.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use icefield_table::{Error, Result, interrupt};

use crate::callback::is_called_by_worker;

/// How long to wait between two checks for signals.
const EVERY: Duration = Duration::from_millis(50);

/// A value that only one call at a time can use.
pub(crate) struct Held<T> {
    /// The kind of object, for errors, such as `transaction`.
    what: &'static str,
    holder: Mutex<Option<ThreadId>>,
    free: Condvar,
    value: Mutex<T>,
}

/// The value, used by this call.
pub(crate) struct Hold<'a, T> {
    value: MutexGuard<'a, T>,
    _turn: Turn<'a, T>,
}

/// The turn of one call; when it is dropped, the next call can use the value.
struct Turn<'a, T>(&'a Held<T>);

impl<T> Held<T> {
    pub(crate) fn new(what: &'static str, value: T) -> Self {
        Self { what, holder: Mutex::new(None), free: Condvar::new(), value: Mutex::new(value) }
    }

    /// Waits until no other call uses the value. Call it without the GIL, inside [`crate::entry::detached`].
    pub(crate) fn hold(&self) -> Result<Hold<'_, T>> {
        let own = thread::current().id();
        loop {
            let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
            match *holder {
                None => {
                    *holder = Some(own);
                    break;
                }
                Some(other) if other == own || is_called_by_worker() => return Err(self.in_use()),
                Some(_) => drop(self.free.wait_timeout(holder, EVERY)),
            }
            interrupt::check()?;
        }
        let _turn = Turn(self);
        Ok(Hold { value: self.value.lock().unwrap_or_else(PoisonError::into_inner), _turn })
    }

    fn in_use(&self) -> Error {
        let what = self.what;
        Error::invalid(format!(
            "the {what} is in use: it is waiting for the code that called it here, such as a generator of its rows; call it \
             before or after, or use another {what}"
        ))
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        *self.0.holder.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.free.notify_one();
    }
}

impl<T> Deref for Hold<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Hold<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("what", &self.what).finish_non_exhaustive()
    }
}
