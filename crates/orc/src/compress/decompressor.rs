//! Decompression of chunks, codec by codec.

use super::{ChunkHeader, DEFAULT_BLOCK, HEADER, Inflated, lzo};
use crate::error::{Error, Result};
use crate::proto::CompressionKind;

/// Decompresses chunks of one codec, whose context is reused.
pub struct Decompressor {
    codec: Codec,
}

enum Codec {
    None,
    Zlib(libdeflater::Decompressor),
    Snappy(snap::raw::Decoder),
    Lzo,
    Lz4,
    Zstd(zstd::bulk::Decompressor<'static>),
    Brotli,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decompressor")
    }
}

impl Decompressor {
    /// A decompressor for this codec; an unknown codec is an error.
    pub fn new(kind: CompressionKind) -> Result<Self> {
        let codec = match kind {
            CompressionKind::None => Codec::None,
            CompressionKind::Zlib => Codec::Zlib(libdeflater::Decompressor::new()),
            CompressionKind::Snappy => Codec::Snappy(snap::raw::Decoder::new()),
            CompressionKind::Lzo => Codec::Lzo,
            CompressionKind::Lz4 => Codec::Lz4,
            CompressionKind::Zstd => Codec::Zstd(zstd::bulk::Decompressor::new()?),
            CompressionKind::Brotli => Codec::Brotli,
            CompressionKind::Unknown(number) => {
                return Err(Error::unsupported(format!("unknown compression kind {number}")));
            }
        };
        Ok(Self { codec })
    }

    /// Decompresses the bytes of one chunk into the start of `room`.
    ///
    /// `room` is the limit: nothing is allocated for the result. [`Inflated::NoRoom`] may also mean corrupt bytes; with
    /// room for a whole block, it always does.
    pub fn inflate(&mut self, chunk: &[u8], room: &mut [u8]) -> Result<Inflated> {
        let corrupt = |reason: String| Error::corrupt("", format!("compressed chunk: {reason}"));
        match &mut self.codec {
            Codec::None => Err(Error::corrupt("", "a compressed chunk in a file without compression")),
            Codec::Zlib(context) => match context.deflate_decompress(chunk, room) {
                Ok(count) => Ok(Inflated::Bytes(count)),
                Err(libdeflater::DecompressionError::InsufficientSpace) => Ok(Inflated::NoRoom),
                Err(error) => Err(corrupt(error.to_string())),
            },
            Codec::Snappy(context) => {
                let length = snap::raw::decompress_len(chunk).map_err(|error| corrupt(error.to_string()))?;
                match room.get_mut(..length) {
                    Some(room) => Ok(Inflated::Bytes(
                        context.decompress(chunk, room).map_err(|error| corrupt(error.to_string()))?,
                    )),
                    None => Ok(Inflated::NoRoom),
                }
            }
            Codec::Lzo => lzo::decompress(chunk, room),
            Codec::Lz4 => match lz4_flex::block::decompress_into(chunk, room) {
                Ok(count) => Ok(Inflated::Bytes(count)),
                Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => Ok(Inflated::NoRoom),
                Err(error) => Err(corrupt(error.to_string())),
            },
            Codec::Zstd(context) => match zstd::zstd_safe::get_frame_content_size(chunk) {
                Ok(Some(size)) if size > room.len() as u64 => Ok(Inflated::NoRoom),
                _ => inflate_zstd(context, chunk, room),
            },
            Codec::Brotli => inflate_brotli(chunk, room),
        }
    }

    /// Decompresses a whole stream of chunks (without a codec, copies it); more than `limit` bytes are an error.
    pub fn inflate_all(&mut self, mut stream: &[u8], block: usize, limit: usize) -> Result<Vec<u8>> {
        if matches!(self.codec, Codec::None) {
            return Ok(stream.to_vec());
        }
        let mut out = Vec::new();
        while let Some((header, rest)) = stream.split_first_chunk::<HEADER>() {
            let header = ChunkHeader::read(*header);
            let Some((chunk, rest)) = rest.split_at_checked(header.length) else {
                return Err(Error::corrupt("", format!("a chunk of {} bytes extends past the end", header.length)));
            };
            if out.len().saturating_add(if header.original { chunk.len() } else { 0 }) > limit {
                return Err(Error::limit(format!("more than {limit} bytes after decompression")));
            }
            if header.original {
                out.extend_from_slice(chunk);
            } else {
                self.inflate_onto(chunk, block, &mut out)?;
            }
            stream = rest;
        }
        if stream.is_empty() { Ok(out) } else { Err(Error::corrupt("", "truncated chunk header")) }
    }

    /// Decompresses one chunk and appends it. The room starts as a guess and grows up to `block`.
    fn inflate_onto(&mut self, chunk: &[u8], block: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let mut room = first_room(chunk.len(), block);
        loop {
            out.resize(start + room, 0);
            let target = out.get_mut(start..).unwrap_or_default();
            match self.inflate(chunk, target)? {
                Inflated::Bytes(count) => {
                    out.truncate(start + count);
                    return Ok(());
                }
                Inflated::NoRoom if room >= block => return Err(chunk_too_large(block)),
                Inflated::NoRoom => room = (room * 2).min(block),
            }
        }
    }
}

/// The error for a chunk that decompresses to more than the block size.
pub(crate) fn chunk_too_large(block: usize) -> Error {
    Error::corrupt("", format!("compressed chunk: more than the block size of {block} bytes"))
}

/// The room to try first for a chunk of a codec that does not store the decompressed size: four times the chunk.
pub(crate) fn first_room(chunk: usize, block: usize) -> usize {
    block.min(DEFAULT_BLOCK.max(chunk.saturating_mul(4)))
}

fn inflate_zstd(context: &mut zstd::bulk::Decompressor<'static>, chunk: &[u8], room: &mut [u8]) -> Result<Inflated> {
    match context.decompress_to_buffer(chunk, room) {
        Ok(count) => Ok(Inflated::Bytes(count)),
        Err(error) if error.to_string().contains("too small") => Ok(Inflated::NoRoom),
        Err(error) => Err(Error::corrupt("", format!("compressed chunk: {error}"))),
    }
}

fn inflate_brotli(chunk: &[u8], room: &mut [u8]) -> Result<Inflated> {
    use std::io::Read;
    let mut reader = brotli::Decompressor::new(chunk, 4096);
    let mut filled = 0;
    let corrupt = |error: std::io::Error| Error::corrupt("", format!("compressed chunk: {error}"));
    while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest).map_err(corrupt)? {
            0 => return Ok(Inflated::Bytes(filled)),
            count => filled += count,
        }
    }
    match reader.read(&mut [0]).map_err(corrupt)? {
        0 => Ok(Inflated::Bytes(filled)),
        _ => Ok(Inflated::NoRoom),
    }
}
