//! The processor pool of this process, for readers and writers of ORC.

use crate::runtime;

/// The pool of [`runtime::pool`], looked up at each use, because a forked process has another one.
#[derive(Debug, Clone, Copy)]
pub struct ProcessPool;

impl icefield_orc::Pool for ProcessPool {
    fn run(&self, work: Vec<Box<dyn FnOnce() + Send + '_>>) {
        match runtime::pool() {
            Ok(pool) => pool.scope(|scope| work.into_iter().for_each(|one| scope.spawn(move |_| one()))),
            Err(_) => work.into_iter().for_each(|one| one()),
        }
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        runtime::pool().map(|pool| pool.spawn(task)).is_ok()
    }
}
