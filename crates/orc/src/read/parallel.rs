//! Reads one file with several threads of a [`Pool`], which share its columns, or its stripes and row groups.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;

use super::columns::ByColumns;
use super::{Piece, ReadOptions, Reader};
use crate::error::{Error, Result};
use crate::pool::{Pool, guarded};
use crate::source::Source;

/// Minimum columns per thread, so that no thread waits long for the last column.
const COLUMNS: usize = 2;

/// How long the calling thread waits for the others before it asks `check` whether to go on.
const WAIT: Duration = Duration::from_millis(50);

impl<S: Source + Send + Sync + 'static> Reader<S> {
    /// The batches of some stripes, whose columns are decoded by up to `threads` threads: the one that asks for
    /// batches, and others of `pool`. `None` if the columns cannot be shared evenly.
    ///
    /// # Errors
    ///
    /// Columns that the file lacks, a stripe footer that cannot be read.
    pub fn by_columns(
        self: &Arc<Self>,
        options: &ReadOptions,
        stripes: Vec<usize>,
        threads: usize,
        pool: &Arc<dyn Pool>,
    ) -> Result<Option<ByColumns<S>>> {
        if !self.has_columns_for(options, &stripes, threads)? {
            return Ok(None);
        }
        ByColumns::new(self, options.clone(), stripes, threads, pool).map(Some)
    }

    /// Whether the threads can share the columns evenly. They cannot with a filter, which needs columns to be decoded
    /// together, or if one column has most of the bytes.
    fn has_columns_for(&self, options: &ReadOptions, stripes: &[usize], threads: usize) -> Result<bool> {
        let schema = options.projection.apply(&self.metadata().schema)?;
        let Some(first) = stripes.first().filter(|_| options.filter.is_none()) else { return Ok(false) };
        if schema.children.len() < COLUMNS.saturating_mul(threads) {
            return Ok(false);
        }
        let mut bytes = vec![0_u64; schema.children.len()];
        let columns = schema.walk();
        for stream in self.directory(*first)?.streams {
            let top = schema.children.iter().position(|child| (child.column..child.end).contains(&stream.column));
            let read = stream.kind.is_data() && columns.iter().any(|node| node.column == stream.column);
            if let Some(bytes) = top.filter(|_| read).and_then(|top| bytes.get_mut(top)) {
                *bytes = bytes.saturating_add(stream.range.end - stream.range.start);
            }
        }
        let all = bytes.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        Ok(bytes.iter().all(|bytes| bytes.saturating_mul(threads as u64) <= all))
    }

    /// All batches, in the order of the file, read by up to `threads` threads: the calling one, and others of `pool`.
    /// They share the columns if those allow it; otherwise each takes the next stripe, or part of a stripe if there are
    /// few.
    ///
    /// The calling thread asks `check` between batches whether to go on; its error ends the call.
    ///
    /// # Errors
    ///
    /// Columns that the file lacks, anything that is wrong with the file or its source, and errors of `check`.
    pub fn read_all(
        self: &Arc<Self>,
        options: ReadOptions,
        threads: usize,
        pool: &Arc<dyn Pool>,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<Vec<RecordBatch>> {
        if threads > 1 {
            let stripes = self.stripes(&options)?;
            if let Some(columns) = self.by_columns(&options, stripes, threads, pool)? {
                return columns.map(|batch| check().and(batch)).collect();
            }
        }
        let pieces = self.pieces(&options, threads)?;
        let others = threads.min(pieces.len()).saturating_sub(1);
        let read = pieces.iter().map(|_| None).collect();
        let state = Mutex::new(Progress { next: 0, reading: 0, read });
        let team =
            StripeTeam { reader: Arc::clone(self), options: Arc::new(options), pieces, state, done: Condvar::new() };
        let team = Arc::new(team);
        for _ in 0..others {
            let team = Arc::clone(&team);
            let task = move || drop(guarded(|| team.work(&mut || Ok(()), false)));
            if !pool.spawn(Box::new(task)) {
                break;
            }
        }
        team.work(&mut check, true).and_then(|()| team.finish(&mut check))
    }
}

/// The pieces of a file, and the state of the threads that read them.
struct StripeTeam<S> {
    reader: Arc<Reader<S>>,
    options: Arc<ReadOptions>,
    pieces: Vec<Piece>,
    state: Mutex<Progress>,
    /// Notified when a piece is done.
    done: Condvar,
}

struct Progress {
    /// The next piece that no thread has taken.
    next: usize,
    /// Pieces that threads are reading.
    reading: usize,
    /// The result of each piece.
    read: Vec<Option<Result<Vec<RecordBatch>>>>,
}

impl<S: Source> StripeTeam<S> {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads pieces until none is left. After an error no thread takes another piece. The calling thread returns its
    /// own error, which may be that of `check`, without waiting; the other threads leave theirs to it.
    fn work(&self, check: &mut dyn FnMut() -> Result<()>, is_caller: bool) -> Result<()> {
        let mut state = self.lock();
        while let Some(piece) = self.pieces.get(state.next) {
            let number = state.next;
            state.next += 1;
            state.reading += 1;
            drop(state);
            let read = guarded(|| self.read(piece, check));
            state = self.lock();
            state.reading -= 1;
            if read.is_err() {
                state.next = self.pieces.len();
                if is_caller {
                    return read.map(drop);
                }
            }
            if let Some(slot) = state.read.get_mut(number) {
                *slot = Some(read);
            }
            self.done.notify_all();
        }
        Ok(())
    }

    fn read(&self, piece: &Piece, check: &mut dyn FnMut() -> Result<()>) -> Result<Vec<RecordBatch>> {
        let mut reader = self.reader.piece(piece, &self.options)?;
        std::iter::from_fn(|| check().and_then(|()| reader.next_batch()).transpose()).collect()
    }

    /// Waits for the pieces that other threads are reading, and returns the batches of all pieces, or the first error.
    /// Pieces are taken in order, so all those before the first error are complete.
    fn finish(&self, check: &mut dyn FnMut() -> Result<()>) -> Result<Vec<RecordBatch>> {
        let mut state = self.lock();
        while state.reading > 0 {
            drop(self.done.wait_timeout(state, WAIT));
            check()?;
            state = self.lock();
        }
        let mut all = Vec::new();
        for read in std::mem::take(&mut state.read) {
            all.extend(read.ok_or_else(|| Error::io("a reading thread failed"))??);
        }
        Ok(all)
    }
}
