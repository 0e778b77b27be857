//! The memory budget of buffered batches: readers of later tasks wait while it is used up.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum bytes of buffered batches of a stream. The task whose batches are next never waits, so the stream makes
/// progress with any budget.
#[derive(Debug)]
pub(super) struct Budget {
    most: usize,
    state: Mutex<BudgetState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetState {
    held: usize,
    /// The task whose batches are next.
    next: u64,
    /// The consumer is gone.
    is_closed: bool,
}

impl Budget {
    /// A budget of `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until a task may hold `bytes` more.
    pub(super) fn take(&self, task: u64, bytes: usize) {
        let mut state = self.state();
        while !state.is_closed && state.next != task && state.held.saturating_add(bytes) > self.most {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held = state.held.saturating_add(bytes);
    }

    /// Releases bytes.
    pub(super) fn give(&self, bytes: usize) {
        let mut state = self.state();
        state.held = state.held.saturating_sub(bytes);
        drop(state);
        self.changed.notify_all();
    }

    /// The batches of this task are next.
    pub(super) fn set_next(&self, task: u64) {
        let mut state = self.state();
        if state.next != task {
            state.next = task;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Ends all waits.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_later_tasks_wait() {
        let budget = Arc::new(Budget::new(10));
        budget.set_next(1);
        budget.take(1, 8);
        budget.take(1, 8);
        let (sender, receiver) = channel();
        let waiting = {
            let budget = budget.clone();
            thread::spawn(move || {
                budget.take(2, 8);
                sender.send(()).unwrap();
            })
        };
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
        budget.give(8);
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
        budget.give(8);
        receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        waiting.join().unwrap();
    }

    #[test]
    fn a_task_waits_no_longer_when_it_is_next_or_nobody_reads() {
        for end in [|budget: &Budget| budget.set_next(2), |budget: &Budget| budget.close()] {
            let budget = Arc::new(Budget::new(10));
            budget.set_next(1);
            budget.take(1, 10);
            let waiting = {
                let budget = budget.clone();
                thread::spawn(move || budget.take(2, 1))
            };
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            end(&budget);
            waiting.join().unwrap();
        }
    }
}
