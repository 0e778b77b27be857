//! Generic compression ("Compression"): chunk headers and codecs.
//!
//! A compressed stream is a sequence of chunks, each with a header of three bytes, little endian:
//! `length * 2 + original`. Each chunk is compressed on its own. An "original" chunk holds uncompressed bytes.

mod compressor;
mod decompressor;
mod lzo;

pub use compressor::{Compressor, MAX_BLOCK};
pub use decompressor::Decompressor;
pub(crate) use decompressor::{chunk_too_large, first_room};

use crate::error::{Error, Result};

/// Bytes of a chunk's header.
pub const HEADER: usize = 3;
/// The block size of a file whose postscript has none.
pub(crate) const DEFAULT_BLOCK: usize = 256 << 10;

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Bytes after the header.
    pub length: usize,
    /// Whether they are uncompressed.
    pub original: bool,
}

impl ChunkHeader {
    /// Decodes a header.
    pub fn read(bytes: [u8; HEADER]) -> Self {
        let [low, middle, high] = bytes.map(usize::from);
        Self { length: low >> 1 | middle << 7 | high << 15, original: low & 1 == 1 }
    }

    /// Encodes the header; a length of more than 23 bits is an error.
    pub fn write(self) -> Result<[u8; HEADER]> {
        if self.length >= 1 << 23 {
            return Err(Error::limit(format!("a compressed chunk of {} bytes exceeds the limit", self.length)));
        }
        let word = (self.length << 1 | usize::from(self.original)) as u32;
        let [low, middle, high, _] = word.to_le_bytes();
        Ok([low, middle, high])
    }
}

/// The result of decompressing one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inflated {
    /// This many bytes were written.
    Bytes(usize),
    /// The result does not fit into the given room.
    NoRoom,
}
