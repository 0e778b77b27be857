//! Reads one stream of a stripe through a window of decompressed bytes. Chunks are decompressed one at a time, when
//! they are needed.
//!
//! Runs, varints and strings may span chunks, so the rest of the window moves to its start before the next chunk is
//! decompressed after it. A stream may be held in parts, because the bytes of skipped row groups are not fetched.

use bytes::Bytes;

use crate::compress::{ChunkHeader, Decompressor, HEADER, Inflated, chunk_too_large, first_room};
use crate::error::{Error, Result};
use crate::proto::StreamKind;
use crate::tail::FileMetadata;

/// The codec and the limits that all streams of a stripe share.
#[derive(Debug)]
pub struct Context {
    /// The decompressor, with the context of its codec.
    pub decompressor: Decompressor,
    /// Maximum values of a nested column in one batch.
    pub batch_values: usize,
    /// Maximum bytes of a dictionary.
    pub dictionary_bytes: usize,
}

impl Context {
    /// A context for the stripes of a file.
    pub fn new(file: &FileMetadata) -> Result<Self> {
        Ok(Self {
            decompressor: Decompressor::new(file.compression)?,
            batch_values: file.limits.batch_values,
            dictionary_bytes: file.limits.dictionary_bytes,
        })
    }
}

/// A fetched part of a stream.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its offset in the stream.
    pub offset: usize,
    /// Its bytes, not encrypted.
    pub bytes: Bytes,
}

/// A stream that is read sequentially, with seeks.
#[derive(Debug)]
pub struct ByteStream {
    column: u32,
    kind: StreamKind,
    parts: Vec<Part>,
    /// The chunk size of a compressed stream; 0 without compression.
    block: usize,
    /// Without compression, the offset of the next byte; otherwise, of the header of the next chunk.
    next: usize,
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// The last chunk in the window: the offset of its header in the stream, and of its bytes in the window.
    chunk: Option<(usize, usize)>,
    /// Bytes to skip before the next read (the second number of a position).
    pending: usize,
}

impl ByteStream {
    /// A stream of these parts, sorted by offset; `block` is 0 without compression.
    pub fn new(column: u32, kind: StreamKind, parts: Vec<Part>, block: usize) -> Self {
        let (window, next, pending) = (Vec::new(), 0, 0);
        Self { column, kind, parts, block, next, window, start: 0, end: 0, chunk: None, pending }
    }

    /// An error in this stream.
    #[cold]
    pub fn corrupt(&self, message: &str) -> Error {
        Error::corrupt_at(format!("column {} {}", self.column, self.kind), self.next as u64, message)
    }

    fn part(&self, offset: usize) -> Option<&[u8]> {
        let part = self.parts.iter().rev().find(|part| part.offset <= offset)?;
        part.bytes.get(offset - part.offset..)
    }

    /// The bytes that can be read without decompressing a chunk.
    #[inline]
    pub fn window(&self) -> &[u8] {
        if self.block == 0 {
            self.part(self.next).unwrap_or_default()
        } else {
            self.window.get(self.start..self.end).unwrap_or_default()
        }
    }

    /// Skips bytes of the window.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        if self.block == 0 {
            self.next += count;
        } else {
            self.start = (self.start + count).min(self.end);
        }
    }

    /// Extends the window to at least `want` bytes, or to the end of the stream.
    #[inline]
    pub fn fill(&mut self, want: usize, context: &mut Context) -> Result<()> {
        if self.block == 0 || (self.pending == 0 && self.end - self.start >= want) {
            return Ok(());
        }
        self.fill_slowly(want, context)
    }

    #[cold]
    fn fill_slowly(&mut self, want: usize, context: &mut Context) -> Result<()> {
        while self.pending > 0 {
            if self.start == self.end && !self.next_chunk(context)? {
                return Err(self.corrupt("a position is past the end of the stream"));
            }
            let step = self.pending.min(self.end - self.start);
            self.start += step;
            self.pending -= step;
        }
        while self.end - self.start < want && self.next_chunk(context)? {}
        Ok(())
    }

    /// Returns a window of at least `want` bytes; an error if the stream has fewer.
    #[inline]
    pub fn need(&mut self, want: usize, context: &mut Context) -> Result<&[u8]> {
        self.fill(want, context)?;
        if self.window().len() < want {
            return Err(self.corrupt(&format!("expected {want} bytes, got {}", self.window().len())));
        }
        Ok(self.window())
    }

    /// Reads one byte.
    #[inline]
    pub fn byte(&mut self, context: &mut Context) -> Result<u8> {
        let byte = self.need(1, context)?.first().copied().unwrap_or_default();
        self.consume(1);
        Ok(byte)
    }

    /// Whether the stream is at its end.
    pub fn is_finished(&mut self, context: &mut Context) -> Result<bool> {
        self.fill(1, context)?;
        Ok(self.window().is_empty())
    }

    /// Appends `count` bytes to `out`.
    pub fn read_onto(&mut self, mut count: usize, out: &mut Vec<u8>, context: &mut Context) -> Result<()> {
        while count > 0 {
            self.need(1, context)?;
            let step = count.min(self.window().len());
            out.extend_from_slice(self.window().get(..step).unwrap_or_default());
            self.consume(step);
            count -= step;
        }
        Ok(())
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, mut count: usize, context: &mut Context) -> Result<()> {
        while count > 0 {
            self.need(1, context)?;
            let step = count.min(self.window().len());
            self.consume(step);
            count -= step;
        }
        Ok(())
    }

    /// Seeks to a position of the row index: without compression a byte offset, otherwise the offset of a chunk and of
    /// a byte in it.
    pub fn seek(&mut self, positions: &mut Positions<'_>) -> Result<()> {
        let offset = positions.take()?;
        if self.block == 0 {
            self.next = offset;
            return Ok(());
        }
        self.pending = positions.take()?;
        match self.chunk {
            Some((chunk, begin)) if chunk == offset && begin + self.pending <= self.end => {
                self.start = begin + self.pending;
                self.pending = 0;
            }
            _ => {
                (self.start, self.end, self.chunk) = (0, 0, None);
                self.next = offset;
            }
        }
        Ok(())
    }

    /// Decompresses the next chunk and appends it to the window; false at the end of the fetched part.
    fn next_chunk(&mut self, context: &mut Context) -> Result<bool> {
        let at = self.next;
        let Some(rest) = self.part(at).filter(|rest| !rest.is_empty()) else { return Ok(false) };
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else {
            return Err(self.corrupt("truncated chunk header"));
        };
        let header = ChunkHeader::read(*header);
        if rest.len() < header.length {
            return Err(self.corrupt(&format!("a chunk of {} bytes extends past the end", header.length)));
        }
        self.window.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let kept = self.end;
        self.inflate(at + HEADER, header, context)?;
        self.chunk = Some((at, kept));
        self.next = at + HEADER + header.length;
        Ok(true)
    }

    fn inflate(&mut self, at: usize, header: ChunkHeader, context: &mut Context) -> Result<()> {
        let mut window = std::mem::take(&mut self.window);
        let chunk = self.part(at).and_then(|rest| rest.get(..header.length)).unwrap_or_default();
        let mut room = if header.original { chunk.len() } else { first_room(chunk.len(), self.block) };
        let done = loop {
            if window.len() < self.end + room {
                window.resize(self.end + room, 0);
            }
            let target = window.get_mut(self.end..self.end + room.max(self.block.min(room))).unwrap_or_default();
            if header.original {
                target.copy_from_slice(chunk);
                break Ok(chunk.len());
            }
            match context.decompressor.inflate(chunk, target) {
                Ok(Inflated::Bytes(count)) => break Ok(count),
                Ok(Inflated::NoRoom) if room >= self.block => break Err(chunk_too_large(self.block)),
                Ok(Inflated::NoRoom) => room = (room * 2).min(self.block),
                Err(error) => break Err(error),
            }
        };
        self.window = window;
        let place = || format!("column {} {}", self.column, self.kind);
        self.end += done.map_err(|error| error.within(&place()))?;
        Ok(())
    }
}

/// The numbers of one row-index entry, taken in order.
#[derive(Debug)]
pub struct Positions<'a> {
    rest: std::slice::Iter<'a, u64>,
}

impl<'a> Positions<'a> {
    /// The numbers of an entry.
    pub fn new(numbers: &'a [u64]) -> Self {
        Self { rest: numbers.iter() }
    }

    /// Takes the next number.
    pub fn take(&mut self) -> Result<usize> {
        let number = self.rest.next().ok_or_else(|| Error::corrupt("row index", "an entry has too few positions"))?;
        usize::try_from(*number).map_err(|_| Error::corrupt("row index", "a position exceeds the address space"))
    }
}
