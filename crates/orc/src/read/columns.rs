//! Decodes the columns of a file in parallel, into batches of all columns in the order of the file.
//!
//! The thread that asks for a batch (the consumer) decodes along with the others until the batch is complete. All
//! threads work on the same few batches, which stay in the cache: if whole row groups were decoded ahead, every value
//! would be written to memory and fetched again.
//!
//! The other threads run tasks of the caller's [`Pool`], whose threads persist: new threads would get new memory from
//! the system for every file, which took a tenth of the time. A task waits only for bytes. It ends when there is no
//! work, and another one starts when there is work again. So a consumer that also uses the pool, or runs in it, finds
//! it free, and no batch waits for a task that has not started.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{ReadOptions, Reader, StripeLoader, StripeReader};
use crate::error::{Error, Result};
use crate::pool::{Pool, guarded};
use crate::source::{Source, Step};
use crate::stream::Context;

/// Maximum decoded batches of a column that wait for the other columns.
const AHEAD: usize = 4;

/// Stripes in progress: one is decoded while the bytes of the next are fetched.
const STRIPES: usize = 2;

/// Maximum bytes of one request, so that several threads share the reading of a stripe.
const REQUEST: u64 = 4 << 20;

/// The batches of some stripes of a file, decoded by several threads; see [`Reader::by_columns`]. An error ends them.
#[derive(Debug)]
pub struct ByColumns<S: Source + Send + Sync + 'static> {
    team: Arc<ColumnTeam<S>>,
    schema: SchemaRef,
    context: Option<Context>,
    ended: bool,
}

/// The state that the threads share.
#[derive(Debug)]
struct ColumnTeam<S> {
    reader: Arc<Reader<S>>,
    options: Arc<ReadOptions>,
    pool: Arc<dyn Pool>,
    /// Maximum number of tasks in the pool.
    others: usize,
    state: Mutex<State>,
    /// Wakes the consumer, that is, the thread that asks for batches.
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<usize>,
    /// Stripes in progress, in order.
    stripes: VecDeque<Stripe>,
    /// The number of the first stripe in progress, counted over all stripes begun.
    first: usize,
    /// Tasks in the pool, whether they have started or not.
    tasks: usize,
    /// Contexts of finished tasks, for the next tasks.
    contexts: Vec<Context>,
    /// Whether the consumer is waiting.
    awaited: bool,
}

#[derive(Debug)]
enum Stripe {
    /// It is being planned (a thread that plans it has taken `loader`), or ranges that the plan needs are being
    /// fetched.
    Loading { loader: Option<Box<StripeLoader>>, wanted: Vec<Range<u64>>, fetching: usize },
    /// Its columns are being decoded.
    Decoding(Vec<TeamColumn>),
}

#[derive(Debug, Default)]
struct TeamColumn {
    /// Absent while a thread uses it, and at the end.
    reader: Option<Box<StripeReader>>,
    ended: bool,
    ready: VecDeque<Result<RecordBatch>>,
}

/// The next job, with the index of its stripe among those in progress.
enum Next {
    Fetch(usize),
    Plan(usize),
    Begin,
    Decode(usize, usize),
}

/// A job that one thread does on its own.
enum Job {
    Plan(usize, Box<StripeLoader>),
    Fetch(usize, Range<u64>),
    Decode(usize, usize, Box<StripeReader>),
}

/// The result of a job.
enum Done {
    PlannedStripe(usize, Result<PlannedStripe>),
    Fetched(usize, u64, Result<Bytes>),
    Decoded(usize, usize, Box<StripeReader>, Result<Option<RecordBatch>>),
}

enum PlannedStripe {
    Need(Box<StripeLoader>, Vec<Range<u64>>),
    Columns(Vec<StripeReader>),
}

impl<S: Source + Send + Sync + 'static> ByColumns<S> {
    /// Reads stripes with `threads` threads: the consumer, and others from `pool`.
    pub(super) fn new(
        reader: &Arc<Reader<S>>,
        options: ReadOptions,
        stripes: Vec<usize>,
        threads: usize,
        pool: &Arc<dyn Pool>,
    ) -> Result<Self> {
        let schema = reader.schema(&options)?;
        let options = Arc::new(ReadOptions { longest: REQUEST, ..options });
        let state = State {
            waiting: stripes.into(),
            stripes: VecDeque::with_capacity(STRIPES),
            first: 0,
            tasks: 0,
            contexts: Vec::new(),
            awaited: false,
        };
        let (reader, pool, others) = (Arc::clone(reader), Arc::clone(pool), threads.saturating_sub(1));
        let team = ColumnTeam { reader, options, pool, others, state: Mutex::new(state), wake: Condvar::new() };
        Ok(Self { team: Arc::new(team), schema, context: None, ended: false })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let mut context = match self.context.take() {
            Some(context) => context,
            None => Context::new(self.team.reader.metadata())?,
        };
        let columns = self.team.next_columns(&mut context);
        self.context = Some(context);
        let Some(parts) = columns? else { return Ok(None) };
        let rows = parts.first().map_or(0, RecordBatch::num_rows);
        let columns = parts.iter().flat_map(|part| part.columns().iter().cloned()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?))
    }
}

impl<S: Source + Send + Sync + 'static> Iterator for ByColumns<S> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.step().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.ended = true;
            self.team.close();
        }
        next
    }
}

impl<S: Source + Send + Sync + 'static> Drop for ByColumns<S> {
    fn drop(&mut self) {
        self.team.close();
    }
}

impl<S: Source + Send + Sync + 'static> ColumnTeam<S> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the tasks, each after its current job.
    fn close(&self) {
        let mut state = self.lock();
        state.waiting.clear();
        state.stripes.clear();
    }

    /// Starts one more task if there is work for it; this task then does the same for the next one.
    fn call(self: &Arc<Self>, state: &mut State) {
        if state.tasks < self.others && state.next().is_some() {
            let team = Arc::clone(self);
            // A panic in a task could end the process. Panics of readers have already become errors.
            let task = move || {
                let _ = guarded(|| {
                    team.work();
                    Ok(())
                });
            };
            state.tasks += usize::from(self.pool.spawn(Box::new(task)));
        }
    }

    /// Runs a task: does jobs until there are none.
    fn work(self: &Arc<Self>) {
        let mut state = self.lock();
        let context = state.contexts.pop().map_or_else(|| Context::new(self.reader.metadata()), Ok);
        if let Ok(mut context) = context {
            while let Some(job) = self.job(&mut state) {
                state = self.run(job, state, &mut context);
                if state.awaited {
                    self.wake.notify_one();
                }
            }
            state.contexts.push(context);
        }
        state.tasks -= 1;
    }

    /// Returns the columns of the next batch. Until they are complete, the calling thread does jobs like the others.
    fn next_columns(self: &Arc<Self>, context: &mut Context) -> Result<Option<Vec<RecordBatch>>> {
        let mut state = self.lock();
        loop {
            if let Some(parts) = state.take()? {
                self.call(&mut state);
                return Ok(Some(parts));
            }
            if state.stripes.is_empty() && state.waiting.is_empty() {
                return Ok(None);
            }
            state = match self.job(&mut state) {
                Some(job) => self.run(job, state, context),
                // Other threads are doing all remaining jobs.
                None => {
                    state.awaited = true;
                    let mut state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.awaited = false;
                    state
                }
            };
        }
    }

    fn run<'a>(
        self: &'a Arc<Self>,
        job: Job,
        mut state: MutexGuard<'a, State>,
        context: &mut Context,
    ) -> MutexGuard<'a, State> {
        self.call(&mut state);
        drop(state);
        let done = self.perform(job, context);
        let mut state = self.lock();
        state.put(done);
        state
    }

    fn perform(&self, job: Job, context: &mut Context) -> Done {
        match job {
            Job::Plan(stripe, mut loader) => {
                let planned = guarded(|| match loader.advance()? {
                    Step::Need(ranges) => Ok(Err(ranges)),
                    Step::Done(reader) => Ok(Ok(reader.by_column())),
                });
                Done::PlannedStripe(
                    stripe,
                    planned.map(|planned| match planned {
                        Err(ranges) => PlannedStripe::Need(loader, ranges),
                        Ok(columns) => PlannedStripe::Columns(columns),
                    }),
                )
            }
            Job::Fetch(stripe, range) => {
                Done::Fetched(stripe, range.start, guarded(|| self.reader.source().read_range(range)))
            }
            Job::Decode(stripe, column, mut reader) => {
                let batch = guarded(|| reader.next_batch_with(context));
                Done::Decoded(stripe, column, reader, batch)
            }
        }
    }

    /// Takes the next job, if there is one.
    fn job(&self, state: &mut State) -> Option<Job> {
        loop {
            let next = state.next()?;
            let first = state.first;
            let (Next::Fetch(place) | Next::Plan(place) | Next::Decode(place, _)) = next else {
                let stripe = state.waiting.pop_front()?;
                let loader = StripeLoader::new(Arc::clone(self.reader.metadata()), Arc::clone(&self.options), stripe);
                state.stripes.push_back(loader.map_or_else(Stripe::failed, Stripe::begun));
                continue;
            };
            return match (next, state.stripes.get_mut(place)?) {
                (Next::Fetch(_), Stripe::Loading { wanted, fetching, .. }) => {
                    *fetching += 1;
                    Some(Job::Fetch(first + place, wanted.pop()?))
                }
                (Next::Plan(_), Stripe::Loading { loader, .. }) => Some(Job::Plan(first + place, loader.take()?)),
                (Next::Decode(_, column), Stripe::Decoding(columns)) => {
                    Some(Job::Decode(first + place, column, columns.get_mut(column)?.reader.take()?))
                }
                _ => None,
            };
        }
    }
}

impl State {
    /// The next job, if there is one: fetching first, because it may take long, then the column that is the furthest
    /// behind.
    fn next(&self) -> Option<Next> {
        for (place, stripe) in self.stripes.iter().enumerate() {
            match stripe {
                Stripe::Loading { wanted, .. } if !wanted.is_empty() => return Some(Next::Fetch(place)),
                Stripe::Loading { loader: Some(_), fetching: 0, .. } => return Some(Next::Plan(place)),
                _ => {}
            }
        }
        if self.stripes.len() < STRIPES && !self.waiting.is_empty() {
            return Some(Next::Begin);
        }
        self.stripes.iter().enumerate().find_map(|(place, stripe)| {
            let Stripe::Decoding(columns) = stripe else { return None };
            let open = columns.iter().enumerate().filter(|(_, column)| column.reader.is_some());
            let (index, behind) = open.min_by_key(|(_, column)| column.ready.len())?;
            (behind.ready.len() < AHEAD).then_some(Next::Decode(place, index))
        })
    }

    /// Takes the columns of the next batch if all are decoded; returns an error of any of them.
    fn take(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        while let Some(Stripe::Decoding(columns)) = self.stripes.front_mut() {
            if columns.iter().all(TeamColumn::is_finished) {
                self.stripes.pop_front();
                self.first += 1;
                continue;
            }
            if columns.iter().all(|column| !column.ready.is_empty()) {
                return columns
                    .iter_mut()
                    .filter_map(|column| column.ready.pop_front())
                    .collect::<Result<_>>()
                    .map(Some);
            }
            let unequal = columns.iter().all(|column| column.ended || !column.ready.is_empty());
            return if unequal { Err(Error::Invalid("columns of unequal length".to_owned())) } else { Ok(None) };
        }
        Ok(None)
    }

    fn put(&mut self, done: Done) {
        let (Done::PlannedStripe(number, _) | Done::Fetched(number, ..) | Done::Decoded(number, ..)) = &done;
        // After the stripe has been dropped, the result is not needed.
        let Some(stripe) = number.checked_sub(self.first).and_then(|place| self.stripes.get_mut(place)) else { return };
        match (stripe, done) {
            (stripe, Done::PlannedStripe(_, planned)) => *stripe = planned.map_or_else(Stripe::failed, Stripe::planned),
            (Stripe::Loading { loader, fetching, .. }, Done::Fetched(_, start, Ok(bytes))) => {
                *fetching -= 1;
                if let Some(loader) = loader {
                    loader.fetched.insert(start, bytes);
                }
            }
            (stripe, Done::Fetched(_, _, Err(error))) => *stripe = Stripe::failed(error),
            (Stripe::Decoding(columns), Done::Decoded(_, column, reader, batch)) => {
                if let Some(column) = columns.get_mut(column) {
                    column.ended = !matches!(batch, Ok(Some(_)));
                    column.reader = (!column.ended).then_some(reader);
                    column.ready.extend(batch.transpose());
                }
            }
            _ => {}
        }
    }
}

impl Stripe {
    /// A stripe that is about to be planned.
    fn begun(loader: StripeLoader) -> Self {
        Self::Loading { loader: Some(Box::new(loader)), wanted: Vec::new(), fetching: 0 }
    }

    fn failed(error: Error) -> Self {
        Self::Decoding(vec![TeamColumn { ended: true, ready: VecDeque::from([Err(error)]), ..TeamColumn::default() }])
    }

    fn planned(planned: PlannedStripe) -> Self {
        match planned {
            PlannedStripe::Need(loader, wanted) => Self::Loading { loader: Some(loader), wanted, fetching: 0 },
            PlannedStripe::Columns(readers) => {
                let column = |reader| TeamColumn { reader: Some(Box::new(reader)), ..TeamColumn::default() };
                Self::Decoding(readers.into_iter().map(column).collect())
            }
        }
    }
}

impl TeamColumn {
    fn is_finished(&self) -> bool {
        self.ended && self.ready.is_empty()
    }
}
