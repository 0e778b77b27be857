//! Adapts the store's output to `Write`, which file encoders need.
//!
//! Encoders may turn an error into text, so the sink keeps the original for callers ([`Sink::failure`]).

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::storage::Output;

/// Bytes passed to the store at once.
const FLUSH_BYTES: usize = 1 << 20;

/// A buffered output as a `Write` that keeps an error of the store.
#[derive(Clone)]
pub(crate) struct Sink(Arc<Mutex<SinkState>>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("bytes", &self.state().bytes).finish_non_exhaustive()
    }
}

struct SinkState {
    output: Option<Box<dyn Output>>,
    pending: Vec<u8>,
    bytes: u64,
    failure: Option<Error>,
}

impl Sink {
    pub(crate) fn new(output: Box<dyn Output>) -> Self {
        Self(Arc::new(Mutex::new(SinkState { output: Some(output), pending: Vec::new(), bytes: 0, failure: None })))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error that failed a write.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state().failure.take()
    }

    /// Closes the output and returns the number of bytes written.
    pub(crate) fn finish(&self) -> Result<u64> {
        let mut state = self.state();
        state.push()?;
        let output = state.output.take().ok_or_else(|| Error::Internal("a file closed twice".into()))?;
        output.finish()?;
        Ok(state.bytes)
    }

    /// Discards what was written.
    pub(crate) fn abort(&self) {
        if let Some(output) = self.state().output.take() {
            output.abort();
        }
    }
}

impl SinkState {
    fn push(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.pending));
        let output = self.output.as_mut().ok_or_else(|| Error::Internal("a write to a closed file".into()))?;
        output.write(bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        state.pending.extend_from_slice(buffer);
        state.bytes += buffer.len() as u64;
        if state.pending.len() >= FLUSH_BYTES
            && let Err(error) = state.push()
        {
            let shown = error.to_string();
            state.failure = Some(error);
            return Err(io::Error::other(shown));
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
