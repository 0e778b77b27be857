//! Shares what several parts of files need, loading it once within a memory budget.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::plan::tasks::part::DeletePart;

/// Identifies a delete file by its part of the plan.
pub(super) type Id = usize;

pub(super) fn id(delete: &Arc<DeletePart>) -> Id {
    Arc::as_ptr(delete).addr()
}

/// The error for a delete file that was not registered.
pub(super) fn unexpected() -> Error {
    Error::Internal("deletes of a part that was not announced".to_owned())
}

/// The memory budget for values kept for later parts. A value that does not fit is loaded again by the next part that
/// needs it.
#[derive(Debug)]
pub struct Kept {
    most: usize,
    bytes: AtomicUsize,
    /// The budget that this one is a part of.
    whole: Option<Arc<Self>>,
}

impl Kept {
    /// A budget of `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { most, bytes: AtomicUsize::new(0), whole: None }
    }

    /// A budget within that of several reads together. What it holds is given back when it is dropped.
    pub fn part_of(whole: &Arc<Self>) -> Self {
        Self { most: whole.most, bytes: AtomicUsize::new(0), whole: Some(whole.clone()) }
    }

    /// The budget in bytes.
    pub fn most(&self) -> usize {
        self.most
    }

    fn keep(&self, bytes: usize) -> bool {
        if self.whole.as_ref().is_some_and(|whole| !whole.keep(bytes)) {
            return false;
        }
        // A part has the limit of the whole, which has just taken the bytes.
        let sum = |kept: usize| kept.checked_add(bytes).filter(|sum| *sum <= self.most);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.whole.iter().for_each(|whole| whole.release(bytes));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let held = *self.bytes.get_mut();
        self.whole.iter().for_each(|whole| whole.release(held));
    }
}

/// A value that is loaded on first use and dropped after the last registered use.
#[derive(Debug)]
pub(super) struct Shared<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    uses_left: usize,
    loaded: Option<(Arc<T>, usize)>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::new(State { uses_left: 0, loaded: None }))
    }
}

impl<T> Shared<T> {
    /// Registers one more use.
    pub(super) fn expect_use(&mut self) {
        self.state().uses_left += 1;
    }

    /// Returns the value; `load` returns it with its size in bytes. Concurrent callers wait for one load; after an
    /// error the next caller tries again.
    pub(super) fn get(&self, kept: &Kept, load: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        let mut state = self.state();
        state.uses_left = state.uses_left.saturating_sub(1);
        let value = match &state.loaded {
            Some((value, _)) => value.clone(),
            None => {
                let (value, bytes) = load()?;
                let value = Arc::new(value);
                if state.uses_left > 0 && kept.keep(bytes) {
                    state.loaded = Some((value.clone(), bytes));
                }
                value
            }
        };
        if state.uses_left == 0
            && let Some((_, bytes)) = state.loaded.take()
        {
            kept.release(bytes);
        }
        Ok(value)
    }

    /// A thread that panicked during a load has stored nothing, so a poisoned lock is safe to use.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::Error;

    fn shared(uses: usize) -> Shared<u32> {
        let mut shared = Shared::default();
        (0..uses).for_each(|_| shared.expect_use());
        shared
    }

    #[test]
    fn one_load_serves_all_uses_and_nothing_stays_behind() {
        let (kept, loads) = (Kept::new(10), Cell::new(0));
        let shared = shared(3);
        for _ in 0..3 {
            let value = shared.get(&kept, || {
                loads.set(loads.get() + 1);
                Ok((7, 10))
            });
            assert_eq!(*value.unwrap(), 7);
        }
        assert_eq!((loads.get(), kept.bytes.load(Ordering::Relaxed)), (1, 0));
        assert!(shared.state().loaded.is_none());
    }

    #[test]
    fn what_does_not_fit_is_loaded_again() {
        let (kept, loads) = (Kept::new(10), Cell::new(0));
        let (first, second) = (shared(2), shared(2));
        for shared in [&first, &second, &second, &first] {
            shared
                .get(&kept, || {
                    loads.set(loads.get() + 1);
                    Ok((7, 6))
                })
                .unwrap();
        }
        assert_eq!((loads.get(), kept.bytes.load(Ordering::Relaxed)), (3, 0));
    }

    #[test]
    fn parts_share_a_budget_and_give_back_what_they_hold() {
        let whole = Arc::new(Kept::new(10));
        let (one, other) = (Kept::part_of(&whole), Kept::part_of(&whole));
        assert!(one.keep(6) && !other.keep(6) && other.keep(4));
        other.release(1);
        assert_eq!(whole.bytes.load(Ordering::Relaxed), 9);
        drop(one);
        assert!(other.keep(7) && !other.keep(1));
        drop(other);
        assert_eq!(whole.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn errors_are_not_kept() {
        let kept = Kept::new(10);
        let shared = shared(3);
        assert!(shared.get(&kept, || Err(Error::invalid("meant"))).is_err());
        assert_eq!(*shared.get(&kept, || Ok((1, 1))).unwrap(), 1);
        assert_eq!(*shared.get(&kept, || Err(Error::invalid("loaded already"))).unwrap(), 1);
    }

    #[test]
    fn parts_that_ask_at_the_same_time_load_once() {
        let (kept, shared, loads) = (Kept::new(10), shared(8), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let load = || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        Ok((1, 1))
                    };
                    shared.get(&kept, load).unwrap();
                });
            }
        });
        assert_eq!(loads.into_inner(), 1);
    }
}
