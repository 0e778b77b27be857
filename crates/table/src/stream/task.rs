//! Tasks of a stream, each run by a thread into a short queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_array::RecordBatch;

use super::budget::Budget;
use super::opened::{OpenParts, Opened, TaskBatches};
use super::team::Team;
use crate::error::{Error, Result};
use crate::interrupt;

/// Batches buffered in the queue of a task.
pub(super) const WAITING: usize = 2;

/// Maximum bytes left in the queue of a finished task that counts as small.
pub(super) const SMALL: usize = 256 << 10;

/// Approximate bytes of batches sent together.
const TOGETHER: usize = 4 << 20;

/// A message from a thread.
pub(super) enum Sent {
    /// Batches, and their bytes in the memory budget.
    Batches(Vec<RecordBatch>, usize),
    Parts(Vec<OpenParts>),
}

/// Progress of a task's thread.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Number of messages with batches.
    batches: AtomicUsize,
    bytes: AtomicUsize,
    is_done: AtomicBool,
}

/// A task that is not consumed yet.
pub(super) enum Task {
    Waiting(OpenParts),
    UnderWay(UnderWay),
}

pub(super) struct UnderWay {
    pub(super) number: u64,
    queue: Receiver<Result<Sent>>,
    pub(super) made: Arc<Made>,
    /// The first message, taken early to see whether the task is split.
    first: Option<Result<Sent>>,
    is_open: bool,
}

impl Made {
    /// The batches left in the queue of a finished task, not counting small ones; `None` if the task is running.
    pub(super) fn waiting(&self) -> Option<usize> {
        let is_done = self.is_done.load(Ordering::Acquire);
        let count = || match self.bytes.load(Ordering::Acquire) <= SMALL {
            true => 0,
            false => self.batches.load(Ordering::Acquire),
        };
        is_done.then(count)
    }
}

impl UnderWay {
    /// The tasks that replace this one, if it is known to be split.
    pub(super) fn parts(&mut self) -> Option<Vec<OpenParts>> {
        if self.is_open {
            return None;
        }
        match self.queue.try_recv().ok()? {
            Ok(Sent::Parts(parts)) => Some(parts),
            other => {
                (self.first, self.is_open) = (Some(other), true);
                None
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Sent>> {
        self.is_open = true;
        match self.first.take() {
            Some(first) => first.map(Some),
            None => interrupt::receive(&self.queue)?.transpose(),
        }
    }
}

/// Starts a task on a thread of the team.
pub(super) fn start(team: &Team, open: OpenParts, number: u64, budget: Option<Arc<Budget>>) -> Result<UnderWay> {
    let (sender, queue) = sync_channel(WAITING);
    let made = Arc::<Made>::default();
    let task = UnderWay { number, queue, made: Arc::clone(&made), first: None, is_open: false };
    team.run(Box::new(move || run(open, &sender, &made, number, budget.as_deref())))?;
    Ok(task)
}

/// Runs one task into its queue. A closed queue ends it; a panic becomes an error of the stream.
fn run(open: OpenParts, sender: &SyncSender<Result<Sent>>, made: &Made, number: u64, budget: Option<&Budget>) {
    let work = std::panic::AssertUnwindSafe(|| match open() {
        Err(error) => {
            let _ = sender.send(Err(error));
        }
        Ok(Opened::Parts(parts)) => {
            let _ = sender.send(Ok(Sent::Parts(parts)));
        }
        Ok(Opened::Batches(batches)) => send(batches.map(|batch| Ok(vec![batch?])), sender, made, number, budget),
        Ok(parts @ Opened::Together(_)) => send(Together(parts.into_batches().fuse()), sender, made, number, budget),
    });
    if std::panic::catch_unwind(work).is_err() {
        let _ = sender.send(Err(Error::Internal("a reader thread ended by a panic".to_owned())));
    }
}

/// Sends batches, some at a time, until an error or until the receiver is gone.
fn send(
    batches: impl Iterator<Item = Result<Vec<RecordBatch>>>,
    sender: &SyncSender<Result<Sent>>,
    made: &Made,
    number: u64,
    budget: Option<&Budget>,
) {
    for batches in batches {
        let stop = batches.is_err();
        let sizes = |batches: &Vec<RecordBatch>| batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let size = batches.as_ref().map_or(0, sizes);
        made.batches.fetch_add(1, Ordering::AcqRel);
        made.bytes.fetch_add(size, Ordering::AcqRel);
        if let Some(budget) = budget {
            budget.take(number, size);
        }
        if sender.send(batches.map(|batches| Sent::Batches(batches, size))).is_err() || stop {
            return;
        }
    }
    made.is_done.store(true, Ordering::Release);
}

/// Groups the batches of small tasks into messages with the bytes of a large batch. An error comes after the batches
/// before it.
struct Together(std::iter::Fuse<TaskBatches>);

impl Iterator for Together {
    type Item = Result<Vec<RecordBatch>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while bytes < TOGETHER {
            match self.0.next() {
                Some(Ok(batch)) => {
                    bytes += batch.get_array_memory_size();
                    batches.push(batch);
                }
                Some(Err(error)) if batches.is_empty() => return Some(Err(error)),
                Some(Err(error)) => {
                    self.0 = (Box::new(std::iter::once(Err(error))) as TaskBatches).fuse();
                    break;
                }
                None => break,
            }
        }
        (!batches.is_empty()).then_some(Ok(batches))
    }
}
