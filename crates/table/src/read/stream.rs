//! Batches of many tasks, in the order of the tasks, read by several threads in bounded memory.
//!
//! Each task that is under way has a thread of its own and a short queue; at most `threads()` are under way. The
//! threads belong to the stream and not to the processor pool: a consumer that stops half-way, or that itself uses the
//! pool to write what it reads, must never find the pool full of readers that wait for it.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::engine::Engine;
use crate::error::{Error, Result};
use crate::{interrupt, runtime};

/// Batches that wait in the queue of a task.
const WAITING: usize = 2;

/// The batches of one task.
pub type TaskBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Opens one task, on the thread that will read it.
pub type OpenTask = Box<dyn FnOnce() -> Result<TaskBatches> + Send>;

/// A stream of batches of one schema.
pub struct BatchStream {
    schema: SchemaRef,
    tasks: VecDeque<OpenTask>,
    under_way: VecDeque<Receiver<Result<RecordBatch>>>,
    width: usize,
    rows_left: Option<usize>,
    failed: bool,
    engine: Option<Engine>,
}

impl BatchStream {
    /// Reads `tasks` in order; every batch has `schema`. `limit` ends the stream after so many rows.
    pub fn new(schema: SchemaRef, tasks: Vec<OpenTask>, limit: Option<usize>) -> Self {
        // A limit is mostly small: reading ahead would be wasted.
        let width = if limit.is_some() { 1 } else { runtime::threads() };
        Self { rows_left: limit, ..Self::with_threads(schema, tasks, width) }
    }

    /// Reads `tasks` in order, so many at a time.
    pub fn with_threads(schema: SchemaRef, tasks: Vec<OpenTask>, threads: usize) -> Self {
        Self {
            schema,
            tasks: tasks.into(),
            under_way: VecDeque::new(),
            width: threads.max(1),
            rows_left: None,
            failed: false,
            engine: None,
        }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same rows in the types of an engine that has no others: strings for uuids, microseconds for nanoseconds, …
    pub fn as_schema(mut self, target: SchemaRef) -> Result<Self> {
        let engine = Engine::new(&self.schema, target.clone())?;
        self.schema = target;
        self.engine = Some(engine);
        Ok(self)
    }

    fn start_tasks(&mut self) -> Result<()> {
        while self.under_way.len() < self.width {
            let Some(open) = self.tasks.pop_front() else { break };
            let (sender, receiver) = sync_channel(WAITING);
            thread::Builder::new()
                .name("icefield-read".to_owned())
                .spawn(move || run(open, &sender))
                .map_err(|error| Error::Internal(format!("cannot start a thread: {error}")))?;
            self.under_way.push_back(receiver);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows_left == Some(0) {
            return Ok(None);
        }
        loop {
            self.start_tasks()?;
            let Some(first) = self.under_way.front() else { return Ok(None) };
            interrupt::check()?;
            match interrupt::receive(first)? {
                Some(batch) => {
                    let batch = batch?;
                    if batch.num_rows() > 0 {
                        let batch = self.limited(batch);
                        return self.engine.as_ref().map_or(Ok(batch.clone()), |engine| engine.apply(&batch)).map(Some);
                    }
                }
                // The thread is done: on to the next task.
                None => {
                    self.under_way.pop_front();
                }
            }
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
        if self.failed {
            return None;
        }
        let next = self.step().transpose();
        if matches!(next, None | Some(Err(_))) {
            // Dropping the queues makes their threads end at the next batch.
            self.failed = true;
            self.tasks.clear();
            self.under_way.clear();
        }
        next
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

/// Runs one task into its queue; a queue that nobody listens to ends it, and a panic becomes an error of the stream.
fn run(open: OpenTask, sender: &SyncSender<Result<RecordBatch>>) {
    let work = std::panic::AssertUnwindSafe(|| match open() {
        Err(error) => {
            let _ = sender.send(Err(error));
        }
        Ok(batches) => {
            for batch in batches {
                let stop = batch.is_err();
                if sender.send(batch).is_err() || stop {
                    break;
                }
            }
        }
    });
    if std::panic::catch_unwind(work).is_err() {
        let _ = sender.send(Err(Error::Internal("a reader thread ended by a panic".to_owned())));
    }
}
