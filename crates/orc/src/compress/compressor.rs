//! Compression of chunks: codecs with their levels and contexts, chunk headers. A chunk that would not become smaller
//! is stored uncompressed ("original").

use std::fmt::Debug;

use super::{ChunkHeader, HEADER, lzo};
use crate::error::{Error, Result};
use crate::proto::CompressionKind;

/// Maximum bytes of a chunk: its header has 23 bits for the length.
pub const MAX_BLOCK: usize = (1 << 23) - 1;
/// Minimum bytes of a chunk to compress; no codec makes shorter ones smaller.
const MIN_CHUNK: usize = 4;
/// The window bits of Brotli, at its default.
const BROTLI_WINDOW: i32 = 22;

/// Compresses chunks with one codec, whose context is reused.
pub struct Compressor {
    codec: Codec,
    kind: CompressionKind,
    level: Option<i32>,
    block: usize,
    /// Output buffer of the codec, at least as long as its worst case.
    scratch: Vec<u8>,
}

enum Codec {
    None,
    Zlib(libdeflater::Compressor),
    Snappy(Box<snap::raw::Encoder>),
    Lzo(lzo::Encoder),
    Lz4(lz4_flex::block::CompressTable),
    Zstd(zstd::bulk::Compressor<'static>),
    Brotli(i32),
}

impl Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("block", &self.block).finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor of this kind for chunks of at most `block` bytes.
    ///
    /// The level has the codec's own scale: ZLIB 0 to 12 (default 6), ZSTD -7 to 22 (3), BROTLI 0 to 11 (5). For other
    /// codecs a level is an error.
    pub fn new(kind: CompressionKind, level: Option<i32>, block: usize) -> Result<Self> {
        if kind != CompressionKind::None && !(1..=MAX_BLOCK).contains(&block) {
            return Err(Error::invalid(format!("a compression block of {block} bytes: expected 1 to {MAX_BLOCK}")));
        }
        let number = |default: i32, allowed: std::ops::RangeInclusive<i32>| match level.unwrap_or(default) {
            level if allowed.contains(&level) => Ok(level),
            level => Err(Error::invalid(format!(
                "level {level} of {}: expected {} to {}",
                kind.name(),
                allowed.start(),
                allowed.end()
            ))),
        };
        let codec = match kind {
            CompressionKind::Zlib => {
                let level = libdeflater::CompressionLvl::new(number(6, 0..=12)?)
                    .map_err(|_| Error::invalid("ZLIB does not have this level"))?;
                Codec::Zlib(libdeflater::Compressor::new(level))
            }
            CompressionKind::Zstd => Codec::Zstd(zstd::bulk::Compressor::new(number(3, -7..=22)?)?),
            CompressionKind::Brotli => Codec::Brotli(number(5, 0..=11)?),
            CompressionKind::Unknown(number) => {
                return Err(Error::unsupported(format!("unknown compression kind {number}")));
            }
            _ if level.is_some() => return Err(Error::invalid(format!("{} has no levels", kind.name()))),
            CompressionKind::None => Codec::None,
            CompressionKind::Snappy => Codec::Snappy(Box::new(snap::raw::Encoder::new())),
            CompressionKind::Lzo => Codec::Lzo(lzo::Encoder::default()),
            CompressionKind::Lz4 => Codec::Lz4(lz4_flex::block::CompressTable::large()),
        };
        let block = if kind == CompressionKind::None { 0 } else { block };
        Ok(Self { codec, kind, level, block, scratch: Vec::new() })
    }

    /// Kind, level and block size, with which an equal compressor can be created.
    pub fn options(&self) -> (CompressionKind, Option<i32>, usize) {
        (self.kind, self.level, self.block)
    }

    /// Maximum uncompressed bytes of a chunk; 0 without compression.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Appends one chunk: its header, and its bytes, compressed if that makes them shorter. Nothing is appended for an
    /// empty chunk. Without compression there are no headers.
    pub fn deflate(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if matches!(self.codec, Codec::None) {
            out.extend_from_slice(chunk);
            return Ok(());
        }
        if chunk.len() > self.block {
            return Err(Error::invalid(format!(
                "a chunk of {} bytes exceeds the block size of {}",
                chunk.len(),
                self.block
            )));
        }
        if chunk.is_empty() {
            return Ok(());
        }
        let count = if chunk.len() < MIN_CHUNK { chunk.len() } else { self.compress(chunk)? };
        let (original, bytes) = match self.scratch.get(..count) {
            Some(bytes) if count < chunk.len() => (false, bytes),
            _ => (true, chunk),
        };
        out.reserve(HEADER + bytes.len());
        out.extend_from_slice(&ChunkHeader { length: bytes.len(), original }.write()?);
        out.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends a whole section in chunks.
    pub fn deflate_all(&mut self, section: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let step = if self.block == 0 { section.len().max(1) } else { self.block };
        section.chunks(step).try_for_each(|chunk| self.deflate(chunk, out))
    }

    /// Compresses into the scratch buffer. Returns the length of the result, which may be longer than the chunk.
    fn compress(&mut self, chunk: &[u8]) -> Result<usize> {
        let failed = |reason: String| Error::invalid(format!("compression failed: {reason}"));
        let worst = match &mut self.codec {
            Codec::None | Codec::Brotli(_) | Codec::Lzo(_) => 0,
            Codec::Zlib(context) => context.deflate_compress_bound(chunk.len()),
            Codec::Snappy(_) => snap::raw::max_compress_len(chunk.len()),
            Codec::Lz4(_) => lz4_flex::block::get_maximum_output_size(chunk.len()),
            Codec::Zstd(_) => zstd::zstd_safe::compress_bound(chunk.len()),
        };
        if self.scratch.len() < worst {
            self.scratch.resize(worst, 0);
        }
        let room = self.scratch.as_mut_slice();
        match &mut self.codec {
            Codec::None => Ok(chunk.len()),
            Codec::Zlib(context) => context.deflate_compress(chunk, room).map_err(|error| failed(error.to_string())),
            Codec::Snappy(context) => context.compress(chunk, room).map_err(|error| failed(error.to_string())),
            Codec::Lzo(encoder) => {
                encoder.compress(chunk, &mut self.scratch);
                Ok(self.scratch.len())
            }
            Codec::Lz4(table) => {
                lz4_flex::block::compress_into_with_table(chunk, room, table).map_err(|error| failed(error.to_string()))
            }
            Codec::Zstd(context) => context.compress_to_buffer(chunk, room).map_err(|error| failed(error.to_string())),
            Codec::Brotli(level) => {
                let parameters = brotli::enc::BrotliEncoderParams {
                    quality: *level,
                    lgwin: BROTLI_WINDOW,
                    size_hint: chunk.len(),
                    ..Default::default()
                };
                self.scratch.clear();
                let mut chunk = chunk;
                brotli::BrotliCompress(&mut chunk, &mut self.scratch, &parameters)
                    .map_err(|error| failed(error.to_string()))
            }
        }
    }
}
