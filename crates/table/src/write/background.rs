//! Runs a writer on its own thread, so that the next rows arrive while the previous ones are encoded.
//!
//! Otherwise a Spark task would wait for rows half of its time, and Spark for the task the other half.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use icefield_format::manifest::DataFile;

use super::writer::TableWriter;
use crate::arrow::size::bytes_of;
use crate::error::{Error, Result};

/// Bytes of rows that may be buffered for the encoder; a larger batch is buffered alone.
const WAITING_BYTES: usize = 32 << 20;

/// A [`TableWriter`] on its own thread. Its errors are returned by the next call.
#[derive(Debug)]
pub struct BackgroundWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Option<TableWriter>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<(usize, RecordBatch)>,
    bytes: usize,
    /// No more batches will come.
    ended: bool,
    /// The result is no longer needed.
    given_up: bool,
    /// The error that stopped the encoder.
    failure: Option<Error>,
    /// The encoder has stopped, for any reason.
    stopped: bool,
}

impl BackgroundWriter {
    /// Starts the thread of a writer.
    pub fn new(writer: TableWriter) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let encoder = Encoder(shared.clone());
        let thread = std::thread::Builder::new().name("icefield-encode".into()).spawn(move || encoder.run(writer));
        let thread = thread.map_err(|error| Error::Internal(format!("cannot start a thread: {error}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sends a batch, and waits while too much is buffered. After an error only call [`BackgroundWriter::abort`].
    pub fn write(&self, batch: RecordBatch) -> Result<()> {
        let bytes = bytes_of(&batch);
        let full = |queue: &mut Queue| !queue.stopped && queue.bytes > 0 && queue.bytes + bytes > WAITING_BYTES;
        let queue = self.shared.lock();
        let mut queue = self.shared.changed.wait_while(queue, full).unwrap_or_else(PoisonError::into_inner);
        if queue.stopped {
            return Err(queue.failure.take().unwrap_or_else(|| Error::Internal("the encoder has stopped".into())));
        }
        queue.bytes += bytes;
        queue.batches.push_back((bytes, batch));
        drop(queue);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until all rows are written, closes all files and returns them; after an error no file is left.
    pub fn finish(mut self) -> Result<Vec<DataFile>> {
        self.shared.lock().ended = true;
        let writer = self.join()?;
        match (self.shared.lock().failure.take(), writer) {
            (None, Some(writer)) => writer.finish(),
            (failure, writer) => {
                if let Some(writer) = writer {
                    writer.abort();
                }
                Err(failure.unwrap_or_else(|| Error::Internal("the encoder has stopped".into())))
            }
        }
    }

    /// Aborts: deletes every file of this writer, as far as the store allows it.
    pub fn abort(mut self) {
        self.shared.lock().given_up = true;
        if let Ok(Some(writer)) = self.join() {
            writer.abort();
        }
    }

    fn join(&mut self) -> Result<Option<TableWriter>> {
        self.shared.changed.notify_all();
        let Some(thread) = self.thread.take() else { return Ok(None) };
        thread.join().map_err(|_| Error::Internal("the encoder panicked".into()))
    }
}

impl Drop for BackgroundWriter {
    /// Does not join the thread: the caller may hold a lock that the thread needs to free its rows.
    fn drop(&mut self) {
        self.shared.lock().given_up = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch; `None` if there are no more.
    fn next(&self) -> Option<RecordBatch> {
        let idle = |queue: &mut Queue| queue.batches.is_empty() && !queue.ended && !queue.given_up;
        let mut queue = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if queue.given_up {
            return None;
        }
        let (bytes, batch) = queue.batches.pop_front()?;
        queue.bytes -= bytes;
        drop(queue);
        self.changed.notify_all();
        Some(batch)
    }
}

/// The thread's side. It always signals its end, so that no caller waits forever.
struct Encoder(Arc<Shared>);

impl Encoder {
    fn run(self, mut writer: TableWriter) -> Option<TableWriter> {
        while let Some(batch) = self.0.next() {
            if let Err(error) = writer.write(&batch) {
                self.0.lock().failure = Some(error);
                break;
            }
        }
        Some(writer)
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.stopped = true;
        // Dropping rows may run foreign code, so drop them without the lock.
        let waiting = std::mem::take(&mut queue.batches);
        drop(queue);
        drop(waiting);
        self.0.changed.notify_all();
    }
}
