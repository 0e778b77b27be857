//! Streams the batches of many tasks in task order, read by several threads in bounded memory.
//!
//! Each running task has a thread and a short queue; at most `threads()` tasks run. When a large task is opened, it
//! can be split into several tasks that replace it. A finished task frees its slot before it is consumed, so that the
//! next one can start, as long as the finished tasks hold no more batches than the queues of the threads may.
//!
//! The threads belong to the stream and not to the processor pool: a consumer that pauses, or that uses the pool to
//! write the rows it reads, must never find the pool full of readers that wait for it. A thread continues with the
//! next task, because a new thread starts with memory that the system must zero: with one thread per task this took a
//! fifth to a third of the scan time of files with 1,000 rows.

mod budget;
mod opened;
mod task;
mod team;

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use self::budget::Budget;
pub use self::opened::{BatchChange, OpenParts, OpenTask, Opened, TaskBatches};
use self::task::{Sent, Task, WAITING, start};
use self::team::Team;
use crate::arrow::recast::Recast;
use crate::error::Result;
use crate::{interrupt, runtime};

/// Finished tasks per thread that may wait to be consumed.
const AHEAD: usize = 16;

/// A stream of batches with one schema.
pub struct BatchStream {
    schema: SchemaRef,
    /// Running tasks first, then waiting ones; split tasks are inserted in place.
    tasks: VecDeque<Task>,
    width: usize,
    team: Team,
    rows_left: Option<usize>,
    failed: bool,
    recast: Option<Recast>,
    budget: Option<Arc<Budget>>,
    /// The rest of the batches that were sent together with the last one.
    ready: VecDeque<RecordBatch>,
    /// Maximum rows per batch, and the rest of a batch that had more.
    batch_rows: Option<usize>,
    rest: Option<RecordBatch>,
    /// Number of started tasks.
    started: u64,
}

impl BatchStream {
    /// Reads `tasks` in order; every batch has `schema`. `limit` ends the stream after this many rows.
    pub fn new(schema: SchemaRef, tasks: Vec<OpenTask>, limit: Option<usize>) -> Self {
        Self::of_parts(schema, tasks.into_iter().map(whole).collect(), limit)
    }

    /// As [`BatchStream::new`], for tasks that may be split.
    pub fn of_parts(schema: SchemaRef, tasks: Vec<OpenParts>, limit: Option<usize>) -> Self {
        // Limits are usually small, so reading ahead would be wasted.
        let width = if limit.is_some() { 1 } else { runtime::threads() };
        let mut stream = Self::of_width(schema, tasks, width);
        stream.rows_left = limit;
        stream
    }

    /// Reads `tasks` in order with this many threads.
    pub fn with_threads(schema: SchemaRef, tasks: Vec<OpenTask>, threads: usize) -> Self {
        Self::of_width(schema, tasks.into_iter().map(whole).collect(), threads)
    }

    fn of_width(schema: SchemaRef, tasks: Vec<OpenParts>, threads: usize) -> Self {
        Self {
            schema,
            tasks: tasks.into_iter().map(Task::Waiting).collect(),
            width: threads.max(1),
            team: Team::default(),
            rows_left: None,
            failed: false,
            recast: None,
            budget: None,
            ready: VecDeque::new(),
            batch_rows: None,
            rest: None,
            started: 0,
        }
    }

    /// The same, with this many running tasks.
    #[must_use]
    pub fn with_width(mut self, threads: usize) -> Self {
        self.width = threads.max(1);
        self
    }

    /// The same, with at most this many rows per batch.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = Some(rows.max(1));
        self
    }

    /// The same, with a memory budget for buffered batches; only the first task may exceed it.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.budget = Some(Arc::new(Budget::new(bytes)));
        self
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same rows in the types of an engine with fewer types: strings for uuids, microseconds for nanoseconds, …
    pub fn as_schema(mut self, target: SchemaRef) -> Result<Self> {
        let recast = Recast::new(&self.schema, target.clone())?;
        self.schema = target;
        self.recast = Some(recast);
        Ok(self)
    }

    /// Starts tasks in order until enough are running.
    fn start_tasks(&mut self) -> Result<()> {
        let (mut place, mut running, mut waiting) = (0, 0, 0);
        // Limits are usually small, so reading ahead would be wasted.
        let most = if self.rows_left.is_some() { self.width } else { self.width * (1 + AHEAD) };
        while running < self.width
            && running + waiting < self.width * (1 + WAITING)
            && place < most
            && let Some(task) = self.tasks.get_mut(place)
        {
            match task {
                Task::UnderWay(task) => match task.parts() {
                    Some(parts) => self.replace(place, parts),
                    None => {
                        place += 1;
                        match task.made.waiting() {
                            Some(batches) => waiting += batches,
                            None => running += 1,
                        }
                    }
                },
                Task::Waiting(open) => {
                    let open = std::mem::replace(open, Box::new(|| Ok(Opened::Parts(Vec::new()))));
                    self.started += 1;
                    *task = Task::UnderWay(start(&self.team, open, self.started, self.budget.clone())?);
                    (place, running) = (place + 1, running + 1);
                }
            }
        }
        Ok(())
    }

    /// Replaces a task by its parts.
    fn replace(&mut self, place: usize, parts: Vec<OpenParts>) {
        let mut behind = self.tasks.split_off(place);
        behind.pop_front();
        self.tasks.extend(parts.into_iter().map(Task::Waiting));
        self.tasks.append(&mut behind);
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows_left == Some(0) {
            return Ok(None);
        }
        loop {
            if let Some(batch) = self.ready.pop_front() {
                let batch = self.limited(batch);
                return self.recast.as_ref().map_or(Ok(batch.clone()), |recast| recast.apply(&batch)).map(Some);
            }
            self.start_tasks()?;
            let Some(Task::UnderWay(first)) = self.tasks.front_mut() else { return Ok(None) };
            interrupt::check()?;
            if let Some(budget) = &self.budget {
                budget.set_next(first.number);
            }
            match first.next()? {
                Some(Sent::Batches(batches, bytes)) => {
                    if let Some(budget) = &self.budget {
                        budget.give(bytes);
                    }
                    self.ready.extend(batches.into_iter().filter(|batch| batch.num_rows() > 0));
                }
                Some(Sent::Parts(parts)) => self.replace(0, parts),
                // The thread is done; go on to the next task.
                None => {
                    self.tasks.pop_front();
                }
            }
        }
    }

    /// The first rows of an oversized batch; the rest comes next.
    fn cut(&mut self, batch: RecordBatch) -> RecordBatch {
        match self.batch_rows {
            Some(rows) if batch.num_rows() > rows => {
                self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
                batch.slice(0, rows)
            }
            _ => batch,
        }
    }

    fn limited(&mut self, batch: RecordBatch) -> RecordBatch {
        let Some(left) = &mut self.rows_left else { return batch };
        let taken = batch.num_rows().min(*left);
        *left -= taken;
        if taken == batch.num_rows() { batch } else { batch.slice(0, taken) }
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.rest.take() {
            return Some(Ok(self.cut(batch)));
        }
        if self.failed {
            return None;
        }
        let next = self.step().map(|batch| batch.map(|batch| self.cut(batch))).transpose();
        if matches!(next, None | Some(Err(_))) {
            // Dropping the queues ends their threads at the next batch.
            self.failed = true;
            self.tasks.clear();
            self.team = Team::default();
            if let Some(budget) = &self.budget {
                budget.close();
            }
        }
        next
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        // Threads that wait for memory find their queues closed.
        self.tasks.clear();
        if let Some(budget) = &self.budget {
            budget.close();
        }
    }
}

impl std::fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchStream")
            .field("schema", &self.schema)
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

/// A task that is not split.
fn whole(open: OpenTask) -> OpenParts {
    Box::new(move || open().map(Opened::Batches))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use arrow_array::{Int32Array, cast::AsArray, types::Int32Type};
    use arrow_schema::{DataType, Field, Schema};

    use super::task::SMALL;
    use super::*;
    use crate::error::Error;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]))
    }

    fn batch(number: i32) -> RecordBatch {
        RecordBatch::try_new(schema(), vec![Arc::new(Int32Array::from(vec![number]))]).unwrap()
    }

    fn batches(numbers: std::ops::Range<i32>) -> OpenParts {
        Box::new(move || Ok(Opened::Batches(Box::new(numbers.map(|number| Ok(batch(number)))))))
    }

    fn cut(parts: Vec<OpenParts>) -> OpenParts {
        Box::new(move || Ok(Opened::Parts(parts)))
    }

    fn numbers(stream: BatchStream) -> Vec<i32> {
        stream.map(|batch| batch.unwrap().column(0).as_primitive::<Int32Type>().value(0)).collect()
    }

    #[test]
    fn tasks_that_are_cut_keep_their_order() {
        let tasks = || {
            let inner = cut(vec![batches(7..9), cut(Vec::new()), batches(9..20)]);
            vec![batches(0..3), cut(vec![batches(3..5), batches(5..7), inner]), batches(20..21), cut(vec![])]
        };
        for width in [1, 2, 8] {
            assert_eq!(numbers(BatchStream::of_width(schema(), tasks(), width)), (0..21).collect::<Vec<_>>());
        }
        assert_eq!(numbers(BatchStream::of_parts(schema(), tasks(), Some(6))), (0..6).collect::<Vec<_>>());
    }

    /// Both halves of one task wait for each other, so one thread alone would never finish.
    #[test]
    fn parts_of_one_task_are_read_by_several_threads() {
        let barrier = Arc::new(Barrier::new(2));
        let half = |number: i32| -> OpenParts {
            let barrier = Arc::clone(&barrier);
            Box::new(move || {
                barrier.wait();
                Ok(Opened::Batches(Box::new(std::iter::once(Ok(batch(number))))))
            })
        };
        let halves = vec![half(1), half(2)];
        assert_eq!(numbers(BatchStream::of_width(schema(), vec![batches(0..1), cut(halves)], 2)), [0, 1, 2]);
    }

    /// Small finished tasks make room for others; other tasks do not.
    #[test]
    fn small_tasks_are_read_ahead() {
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = |rows: usize| -> OpenParts {
            let opened = Arc::clone(&opened);
            Box::new(move || {
                opened.fetch_add(1, Ordering::AcqRel);
                let numbers = Int32Array::from(vec![1; rows]);
                let batch =
                    RecordBatch::try_new(schema(), vec![Arc::new(numbers)]).map_err(|e| Error::invalid(e.to_string()));
                Ok(Opened::Batches(Box::new(std::iter::once(batch))))
            })
        };
        let settled = |stream: &mut BatchStream| {
            for _ in 0..100 {
                stream.start_tasks().unwrap();
                thread::sleep(Duration::from_millis(1));
            }
            opened.swap(0, Ordering::AcqRel)
        };
        let many = |rows: usize| (0..100).map(|_| counted(rows)).collect::<Vec<_>>();
        let mut small = BatchStream::of_width(schema(), many(10), 2);
        assert_eq!(settled(&mut small), 2 * (1 + AHEAD));
        assert_eq!(numbers(small).len(), 100);
        opened.store(0, Ordering::Release);
        let mut large = BatchStream::of_width(schema(), many(SMALL), 2);
        // One message being sent by each thread, and those that fit in its queue.
        assert_eq!(settled(&mut large), 2 * (1 + WAITING));
        drop(large);
        let mut limited = BatchStream::of_width(schema(), many(10), 1);
        limited.rows_left = Some(1_000);
        assert_eq!(settled(&mut limited), 1);
    }

    #[test]
    fn tasks_that_are_read_together_keep_their_order_and_their_error_comes_last() {
        let together = |parts: Vec<OpenParts>| -> OpenParts { Box::new(move || Ok(Opened::Together(parts))) };
        let tasks = || {
            let inner = together(vec![batches(3..5), batches(5..5), cut(vec![batches(5..7), batches(7..8)])]);
            vec![batches(0..3), inner, together(Vec::new()), cut(vec![together(vec![batches(8..9), batches(9..12)])])]
        };
        for width in [1, 2, 8] {
            assert_eq!(numbers(BatchStream::of_width(schema(), tasks(), width)), (0..12).collect::<Vec<_>>());
        }
        assert_eq!(numbers(BatchStream::of_parts(schema(), tasks(), Some(5))), [0, 1, 2, 3, 4]);
        let change: BatchChange = Arc::new(|batch| Ok(batch.slice(0, 0)));
        let none: OpenParts = Box::new(move || Ok(Opened::Together(vec![batches(0..3)]).map(change)));
        assert!(numbers(BatchStream::of_width(schema(), vec![none], 2)).is_empty());
        let fails: OpenParts = Box::new(|| Err(Error::invalid("meant")));
        let tasks = vec![together(vec![batches(0..2), fails, batches(3..4)]), batches(5..6)];
        let found: Vec<_> = BatchStream::of_width(schema(), tasks, 2).map(|batch| batch.is_ok()).collect();
        assert_eq!(found, [true, true, false]);
    }

    #[test]
    fn a_limit_opens_no_further_part() {
        let (opened, count) = mpsc::channel();
        let part = |number: i32| -> OpenParts {
            let opened = opened.clone();
            Box::new(move || {
                opened.send(number).unwrap();
                Ok(Opened::Batches(Box::new(std::iter::once(Ok(batch(number))))))
            })
        };
        let stream = BatchStream::of_parts(schema(), vec![cut((0..9).map(part).collect())], Some(2));
        assert_eq!(numbers(stream), [0, 1]);
        assert_eq!(count.try_iter().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn large_batches_come_in_several() {
        let five = RecordBatch::try_new(schema(), vec![Arc::new(Int32Array::from_iter_values(0..5))]).unwrap();
        let part = |batch: RecordBatch| -> OpenParts {
            Box::new(move || Ok(Opened::Batches(Box::new(std::iter::once(Ok(batch))))))
        };
        let stream =
            || BatchStream::of_parts(schema(), vec![part(five.clone()), part(batch(9)), part(five.slice(0, 2))], None);
        for (rows, expected) in [(1, vec![1; 8]), (2, vec![2, 2, 1, 1, 2]), (4, vec![4, 1, 1, 2]), (9, vec![5, 1, 2])] {
            let found: Vec<usize> = stream().with_batch_rows(rows).map(|batch| batch.unwrap().num_rows()).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_error_of_a_part_comes_after_the_rows_before_it() {
        let fails: OpenParts = Box::new(|| Err(Error::invalid("meant")));
        let mut stream = BatchStream::of_width(schema(), vec![cut(vec![batches(0..2), fails, batches(3..4)])], 2);
        assert!(stream.next().unwrap().is_ok() && stream.next().unwrap().is_ok());
        assert!(stream.next().unwrap().is_err());
        assert!(stream.next().is_none());
    }
}
