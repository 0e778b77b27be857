//! Writes streams: run-length encoder, open chunk, finished chunks, and the positions of row groups.
//!
//! All chunks of a stream except the last have exactly the block size. So a position is kept as a plain offset, and is
//! converted to chunk and offset when the stream is complete.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::compress::Compressor;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::rle::{BooleanWriter, ByteWriter, IntWriter};

/// The state that the columns of a file share while they are written.
#[derive(Debug)]
pub(super) struct Context {
    /// The compressor, with the context of its codec.
    pub compressor: Compressor,
    /// Encodes several columns in parallel; with `None` they are encoded one after the other.
    pub pool: Option<Arc<dyn Pool>>,
    /// Contexts for columns that are encoded in parallel.
    spare: Vec<Context>,
}

impl Context {
    /// A context with its own compressor.
    pub(super) fn new(compressor: Compressor) -> Self {
        Self { compressor, pool: None, spare: Vec::new() }
    }

    /// Calls a function for each item, with a context of its own, and in parallel if there is a pool. Of several
    /// errors, that of the first item is returned.
    pub(super) fn for_each<T: Send>(
        &mut self,
        things: Vec<T>,
        act: impl Fn(T, &mut Self) -> Result<()> + Sync,
    ) -> Result<()> {
        let pool = self.pool.clone().filter(|_| things.len() > 1);
        let Some(pool) = pool else { return things.into_iter().try_for_each(|thing| act(thing, self)) };
        let spare = Mutex::new(std::mem::take(&mut self.spare));
        let failed: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        let ((kind, level, block), act) = (self.compressor.options(), &act);
        let fresh = move || Compressor::new(kind, level, block).map(Self::new);
        let each = |(number, thing)| -> Box<dyn FnOnce() + Send + '_> {
            let (spare, failed) = (&spare, &failed);
            Box::new(move || {
                let own = locked(spare).pop();
                let done = own.map_or_else(fresh, Ok).and_then(|mut own| {
                    act(thing, &mut own)?;
                    locked(spare).push(own);
                    Ok(())
                });
                if let Err(error) = done {
                    let mut failed = locked(failed);
                    if failed.as_ref().is_none_or(|(first, _)| number < *first) {
                        *failed = Some((number, error));
                    }
                }
            })
        };
        pool.run(things.into_iter().enumerate().map(each).collect());
        self.spare = spare.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Encodes values to bytes. It may keep values until a run is complete.
pub(super) trait Coder: Debug + Send {
    /// How many numbers of a position belong to the coder.
    const NUMBERS: usize;
    /// Appends these numbers, which count the values that the coder keeps.
    fn pending(&self, position: &mut Vec<u64>);
    /// Appends the values that the coder keeps, and resets it.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// Writes bytes without an encoding.
#[derive(Debug, Default)]
pub(super) struct Plain;

impl Coder for Plain {
    const NUMBERS: usize = 0;
    fn pending(&self, _: &mut Vec<u64>) {}
    fn finish(&mut self, _: &mut Vec<u8>) {}
}

impl Coder for IntWriter {
    const NUMBERS: usize = 1;
    fn pending(&self, position: &mut Vec<u64>) {
        position.push(IntWriter::pending(self) as u64);
    }
    fn finish(&mut self, out: &mut Vec<u8>) {
        IntWriter::finish(self, out);
    }
}

impl Coder for ByteWriter {
    const NUMBERS: usize = 1;
    fn pending(&self, position: &mut Vec<u64>) {
        position.push(ByteWriter::pending(self) as u64);
    }
    fn finish(&mut self, out: &mut Vec<u8>) {
        ByteWriter::finish(self, out);
    }
}

impl Coder for BooleanWriter {
    const NUMBERS: usize = 2;
    fn pending(&self, position: &mut Vec<u64>) {
        let (bytes, bits) = BooleanWriter::pending(self);
        position.extend([bytes as u64, bits as u64]);
    }
    fn finish(&mut self, out: &mut Vec<u8>) {
        BooleanWriter::finish(self, out);
    }
}

/// A stream of one stripe.
#[derive(Debug)]
pub(super) struct Stream<C> {
    /// Encodes the values.
    pub coder: C,
    /// The open chunk; without compression, the whole stream.
    pub open: Vec<u8>,
    chunks: Chunks,
    /// One position per row group: the plain offset, and the numbers of the coder.
    marks: Vec<u64>,
}

/// The compressed chunks.
#[derive(Debug, Default)]
struct Chunks {
    bytes: Vec<u8>,
    /// The start of each chunk.
    starts: Vec<u64>,
}

impl<C: Coder> Stream<C> {
    /// An empty stream.
    pub(super) fn new(coder: C) -> Self {
        Self { coder, open: Vec::new(), chunks: Chunks::default(), marks: Vec::new() }
    }

    /// Records the position of the first value of a row group.
    pub(super) fn mark(&mut self, compressor: &Compressor) {
        self.marks.push(self.chunks.starts.len() as u64 * compressor.block() as u64 + self.open.len() as u64);
        self.coder.pending(&mut self.marks);
    }

    /// Compresses all full chunks.
    pub(super) fn spill(&mut self, compressor: &mut Compressor) -> Result<()> {
        let block = compressor.block();
        if block == 0 || self.open.len() < block {
            return Ok(());
        }
        let mut rest = self.open.as_slice();
        while let Some((chunk, later)) = rest.split_at_checked(block) {
            self.chunks.add(chunk, compressor)?;
            rest = later;
        }
        let whole = self.open.len() - rest.len();
        self.open.drain(..whole);
        Ok(())
    }

    /// The number of bytes held in memory.
    pub(super) fn memory(&self) -> usize {
        self.open.len() + self.chunks.bytes.len()
    }

    /// Finishes the stream.
    pub(super) fn finish(mut self, compressor: &mut Compressor) -> Result<Finished> {
        self.coder.finish(&mut self.open);
        self.spill(compressor)?;
        if compressor.block() == 0 {
            return Ok(Finished { bytes: self.open, marks: self.marks, numbers: 1 + C::NUMBERS, chunks: None });
        }
        if !self.open.is_empty() {
            self.chunks.add(&self.open, compressor)?;
        }
        let Chunks { bytes, starts } = self.chunks;
        let chunks = Some((compressor.block() as u64, starts));
        Ok(Finished { bytes, marks: self.marks, numbers: 1 + C::NUMBERS, chunks })
    }
}

impl Chunks {
    fn add(&mut self, chunk: &[u8], compressor: &mut Compressor) -> Result<()> {
        self.starts.push(self.bytes.len() as u64);
        compressor.deflate(chunk, &mut self.bytes)
    }
}

/// A stream in its final form in the file.
#[derive(Debug)]
pub(super) struct Finished {
    /// Its bytes.
    pub bytes: Vec<u8>,
    marks: Vec<u64>,
    /// Numbers per mark.
    numbers: usize,
    /// With compression, the block size and the starts of the chunks.
    chunks: Option<(u64, Vec<u64>)>,
}

impl Finished {
    /// Appends the positions of this stream to those of each row group.
    pub(super) fn put_positions(&self, groups: &mut [Vec<u64>]) {
        for (group, mark) in groups.iter_mut().zip(self.marks.chunks(self.numbers)) {
            let Some((offset, kept)) = mark.split_first() else { continue };
            match &self.chunks {
                None => group.push(*offset),
                Some((block, starts)) => {
                    // A position at the end of the last chunk is the start of a chunk that does not exist.
                    let start = starts.get((offset / block) as usize).copied();
                    group.extend([start.unwrap_or(self.bytes.len() as u64), offset % block]);
                }
            }
            group.extend_from_slice(kept);
        }
    }
}

/// Compresses a section of the tail.
pub(super) fn compress_all(bytes: Vec<u8>, compressor: &mut Compressor) -> Result<Vec<u8>> {
    let mut stream = Stream::new(Plain);
    stream.open = bytes;
    Ok(stream.finish(compressor)?.bytes)
}
