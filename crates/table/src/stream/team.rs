//! Threads that run one job after the other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, Result};

/// A thread's work; it must not panic.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Threads that end with their team, after their current job.
#[derive(Default)]
pub(super) struct Team(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<TeamState>,
    changed: Condvar,
}

#[derive(Default)]
struct TeamState {
    jobs: VecDeque<Job>,
    /// Number of threads without a job.
    idle: usize,
    has_ended: bool,
}

impl Team {
    /// Runs a job on an idle thread, otherwise on a new one. A job never queues behind another, because jobs may wait
    /// for one another.
    pub(super) fn run(&self, job: Job) -> Result<()> {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle {
            self.0.changed.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        let started = thread::Builder::new().name("icefield-read".to_owned()).spawn(move || shared.work());
        started.map(drop).map_err(|error| Error::Internal(format!("cannot start a thread: {error}")))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, TeamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            if state.has_ended {
                return;
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread::ThreadId;

    use super::*;

    #[test]
    fn jobs_one_after_the_other_share_a_thread() {
        let (team, (sender, ids)) = (Team::default(), channel::<ThreadId>());
        let found: HashSet<ThreadId> = (0..50)
            .map(|_| {
                while team.0.lock().idle == 0 && Arc::strong_count(&team.0) > 1 {
                    thread::yield_now();
                }
                let sender = sender.clone();
                team.run(Box::new(move || sender.send(thread::current().id()).unwrap())).unwrap();
                ids.recv().unwrap()
            })
            .collect();
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn jobs_that_wait_for_one_another_all_run() {
        let (team, (sender, done)) = (Team::default(), channel());
        for _ in 0..3 {
            let barrier = Arc::new(Barrier::new(8));
            for _ in 0..8 {
                let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
                team.run(Box::new(move || {
                    barrier.wait();
                    sender.send(()).unwrap();
                }))
                .unwrap();
            }
        }
        assert_eq!(done.iter().take(24).count(), 24);
    }

    #[test]
    fn threads_end_with_their_team() {
        let (team, (sender, done)) = (Team::default(), channel());
        for _ in 0..4 {
            let sender = sender.clone();
            team.run(Box::new(move || sender.send(()).unwrap())).unwrap();
        }
        assert_eq!(done.iter().take(4).count(), 4);
        let shared = Arc::downgrade(&team.0);
        drop(team);
        while shared.strong_count() > 0 {
            thread::yield_now();
        }
    }
}
