//! Run-length encodings ("Run Length Encoding") of bytes, booleans, and integers (versions 1 and 2).

mod boolean;
mod byte;
mod int1;
mod int2;
mod unpack;
mod varint;
mod write;

pub use boolean::BooleanReader;
pub use byte::ByteReader;
pub use int1::{IntReader1, Run1};
pub(crate) use int2::WIDTHS;
use int2::closest_width;
pub use int2::{IntReader2, Run2};
pub(crate) use varint::read_short_varints;
pub use varint::{
    nanos_to_secondary, read_varint64, read_varint128, unzigzag, unzigzag128, write_varint64, write_varint128, zigzag,
    zigzag128,
};
pub use write::{BooleanWriter, ByteWriter, IntWriter, Packing};

use crate::error::Result;
use crate::stream::{ByteStream, Context, Positions};

/// A reader of integers in either version.
#[derive(Debug)]
pub enum IntReader {
    /// Version 1 (encodings DIRECT and DICTIONARY).
    V1(IntReader1),
    /// Version 2 (encodings DIRECT_V2 and DICTIONARY_V2).
    V2(IntReader2),
}

impl IntReader {
    /// A reader of a stream.
    pub fn new(stream: ByteStream, signed: bool, version2: bool) -> Self {
        if version2 { Self::V2(IntReader2::new(stream, signed)) } else { Self::V1(IntReader1::new(stream, signed)) }
    }

    /// Fills `out`.
    pub fn read(&mut self, out: &mut [i64], context: &mut Context) -> Result<()> {
        match self {
            Self::V1(reader) => reader.read(out, context),
            Self::V2(reader) => reader.read(out, context),
        }
    }

    /// Reads `count` values into `out`, which grows only as values are read.
    pub fn read_vec(&mut self, count: usize, out: &mut Vec<i64>, context: &mut Context) -> Result<()> {
        /// Values to allocate before they are read.
        const STEP: usize = 1 << 16;
        out.truncate(count);
        let mut filled = 0;
        while filled < count {
            // Reuse the existing length, which need not be zeroed again.
            let until = out.len().max(filled + STEP.max(filled)).min(count);
            out.resize(until, 0);
            self.read(out.get_mut(filled..).unwrap_or_default(), context)?;
            filled = until;
        }
        Ok(())
    }

    /// Skips values.
    pub fn skip(&mut self, count: usize, context: &mut Context) -> Result<()> {
        match self {
            Self::V1(reader) => reader.skip(count, context),
            Self::V2(reader) => reader.skip(count, context),
        }
    }

    /// Seeks to a position: that of the stream, then the number of values to skip.
    pub fn seek(&mut self, positions: &mut Positions<'_>, context: &mut Context) -> Result<()> {
        match self {
            Self::V1(reader) => reader.restart(positions)?,
            Self::V2(reader) => reader.restart(positions)?,
        }
        self.skip(positions.take()?, context)
    }

    /// An error in the stream.
    pub fn corrupt(&self, message: &str) -> crate::Error {
        match self {
            Self::V1(reader) => reader.stream.corrupt(message),
            Self::V2(reader) => reader.stream.corrupt(message),
        }
    }
}
