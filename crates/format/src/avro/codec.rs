//! Compresses and decompresses Avro blocks (Avro, "Required Codecs", "Optional Codecs").

use std::fmt;
use std::io::Read;

use bzip2::bufread::BzDecoder;
use lzma_rust2::XzReader;

use crate::limits::MEMORY_VARIABLE;
use crate::{Error, Limits, Result};

/// Compression codec of a file's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Uncompressed.
    Null,
    /// DEFLATE (RFC 1951) without a wrapper; Iceberg's properties call it `gzip`.
    Deflate,
    /// Snappy, followed by the CRC-32 of the uncompressed bytes, big endian.
    Snappy,
    /// Zstandard frames.
    Zstandard,
    /// A bzip2 stream; read only.
    Bzip2,
    /// An xz stream; read only.
    Xz,
}

/// Memory limit of an xz stream in KiB; the largest usual preset needs slightly more than 64 MiB.
const XZ_KIB: u32 = 80 << 10;

/// A codec and its compression level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// Level in the codec's own scale. `None` is our default: deflate 6 (with libdeflate about as small as Java's 9),
    /// zstd 1.
    pub level: Option<i32>,
}

impl Default for Compression {
    /// `gzip`, the default of `write.avro.compression-codec` for metadata.
    fn default() -> Self {
        Self { codec: Codec::Deflate, level: None }
    }
}

impl Codec {
    /// Parses the codec name in `avro.codec`.
    pub fn from_header(name: &[u8]) -> Result<Self> {
        match name {
            b"null" => Ok(Self::Null),
            b"deflate" => Ok(Self::Deflate),
            b"snappy" => Ok(Self::Snappy),
            b"zstandard" => Ok(Self::Zstandard),
            b"bzip2" => Ok(Self::Bzip2),
            b"xz" => Ok(Self::Xz),
            _ => {
                let name: String = String::from_utf8_lossy(name).chars().take(40).collect();
                Err(Error::corrupt("avro.codec", format!("unknown codec {name:?}")))
            }
        }
    }

    /// Parses the codec name in the property `write.avro.compression-codec`, in any case.
    pub fn from_property(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "uncompressed" | "none" | "null" => Ok(Self::Null),
            "gzip" | "deflate" => Ok(Self::Deflate),
            "snappy" => Ok(Self::Snappy),
            "zstd" | "zstandard" => Ok(Self::Zstandard),
            other => Err(Error::invalid(format!("unknown Avro compression codec {other:?}"))),
        }
    }

    /// Name of the codec in `avro.codec`.
    pub fn header(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Deflate => "deflate",
            Self::Snappy => "snappy",
            Self::Zstandard => "zstandard",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }
}

/// Decompresses blocks, one at a time, in a reused buffer.
pub struct Decompressor {
    codec: Codec,
    block_bytes: usize,
    block_ratio: usize,
    /// Decompressed size that any block may have, whatever its compressed size.
    least_bytes: usize,
    /// Remaining decompressed size of all further blocks.
    left: usize,
    buffer: Vec<u8>,
    deflate: libdeflater::Decompressor,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").field("codec", &self.codec).field("left", &self.left).finish_non_exhaustive()
    }
}

/// Why decompression into a buffer of a given size failed.
enum Failure {
    TooSmall,
    Bad(String),
}

impl Decompressor {
    /// Decompresses the blocks of one file, with a limit for the whole file.
    pub fn new(codec: Codec, limits: &Limits) -> Self {
        Self {
            codec,
            block_bytes: limits.block_bytes,
            block_ratio: limits.block_ratio,
            least_bytes: 0,
            left: limits.avro_bytes.min(i32::MAX as usize),
            buffer: Vec::new(),
            deflate: libdeflater::Decompressor::new(),
            zstd: None,
        }
    }

    /// Decompresses the blocks of a data file of any size. Each block is dropped before the next is read, so only
    /// single blocks are limited. A large value of zeros compresses to almost nothing, so a ratio alone cannot be the
    /// limit.
    pub fn of_blocks(codec: Codec, limits: &Limits) -> Self {
        Self { left: usize::MAX, least_bytes: limits.least_memory, ..Self::new(codec, limits) }
    }

    /// Decompresses one block. `offset` is the block's, for errors.
    pub fn run<'a>(&'a mut self, data: &'a [u8], offset: u64) -> Result<&'a [u8]> {
        let bad = |message: String| Error::corrupt_at("Avro block", offset, message);
        let by_size = data.len().saturating_mul(self.block_ratio).max(self.least_bytes);
        let most = self.block_bytes.min(self.left).min(by_size);
        let length = match self.codec {
            Codec::Null => {
                self.left = self.left.checked_sub(data.len()).ok_or_else(|| bad(beyond(most)))?;
                return Ok(data);
            }
            Codec::Snappy => self.snappy(data, most).map_err(bad)?,
            Codec::Deflate | Codec::Zstandard => self.growing(data, most).map_err(bad)?,
            Codec::Bzip2 => self.streamed(&mut BzDecoder::new(data), most).map_err(bad)?,
            Codec::Xz => self.streamed(&mut XzReader::new_mem_limit(data, false, XZ_KIB), most).map_err(bad)?,
        };
        self.left -= length;
        self.buffer.get(..length).ok_or_else(|| bad("has no length".to_owned()))
    }

    fn snappy(&mut self, data: &[u8], most: usize) -> Result<usize, String> {
        let (data, checksum) = data.split_last_chunk::<4>().ok_or("is shorter than its checksum")?;
        let length = snap::raw::decompress_len(data).map_err(|error| error.to_string())?;
        if length > most {
            return Err(beyond(most));
        }
        self.make_room(length);
        let written =
            snap::raw::Decoder::new().decompress(data, &mut self.buffer).map_err(|error| error.to_string())?;
        let found = crc32fast::hash(self.buffer.get(..written).unwrap_or_default());
        let stored = u32::from_be_bytes(*checksum);
        if found != stored {
            return Err(format!("checksum mismatch: expected {stored:#010x}, got {found:#010x}"));
        }
        Ok(written)
    }

    /// Decompresses without a known length, which Avro does not store: if the buffer is too small it is enlarged, up to
    /// `most`.
    fn growing(&mut self, data: &[u8], most: usize) -> Result<usize, String> {
        self.make_room(data.len().saturating_mul(4).max(1 << 17).min(most));
        loop {
            let room = self.buffer.len().min(most);
            match self.attempt(data, room) {
                Ok(length) => return Ok(length),
                Err(Failure::TooSmall) if room < most => self.make_room(room.saturating_mul(2).clamp(1, most)),
                Err(Failure::TooSmall) => return Err(beyond(most)),
                Err(Failure::Bad(message)) => return Err(message),
            }
        }
    }

    /// Reads a stream to its end; an error if it has more than `most` bytes.
    fn streamed(&mut self, stream: &mut dyn Read, most: usize) -> Result<usize, String> {
        let mut length = 0;
        loop {
            if length == self.buffer.len().min(most) {
                // Only an attempt to read another byte shows whether the stream ends here.
                if length == most {
                    return match stream.read(&mut [0]).map_err(|error| error.to_string())? {
                        0 => Ok(length),
                        _ => Err(beyond(most)),
                    };
                }
                self.make_room(length.saturating_mul(2).max(1 << 17).min(most));
            }
            let room = self.buffer.len().min(most);
            let rest = self.buffer.get_mut(length..room).unwrap_or_default();
            match stream.read(rest).map_err(|error| error.to_string())? {
                0 => return Ok(length),
                read => length += read,
            }
        }
    }

    /// Decompresses to `room` bytes of the buffer.
    fn attempt(&mut self, data: &[u8], room: usize) -> Result<usize, Failure> {
        let out = self.buffer.get_mut(..room).unwrap_or_default();
        if self.codec == Codec::Deflate {
            return self.deflate.deflate_decompress(data, out).map_err(|error| match error {
                libdeflater::DecompressionError::InsufficientSpace => Failure::TooSmall,
                error => Failure::Bad(error.to_string()),
            });
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(|error| Failure::Bad(error.to_string()))?),
        };
        zstd.decompress_to_buffer(data, out).map_err(|error| {
            let message = error.to_string();
            // zstd gives the reason only as text.
            if message.contains("Destination buffer is too small") { Failure::TooSmall } else { Failure::Bad(message) }
        })
    }

    fn make_room(&mut self, length: usize) {
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
    }
}

fn beyond(most: usize) -> String {
    format!(
        "decompresses to more than the {most} bytes that its size and the limits allow; if you trust the file, raise \
         them with {MEMORY_VARIABLE}=BYTES"
    )
}

/// Compresses blocks, one at a time.
pub struct Compressor {
    codec: Codec,
    deflate: Option<libdeflater::Compressor>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("codec", &self.codec).finish_non_exhaustive()
    }
}

impl Compressor {
    /// Compresses the blocks of one file. A level that the codec does not have is refused.
    pub fn new(compression: Compression) -> Result<Self> {
        let Compression { codec, level } = compression;
        let mut made = Self { codec, deflate: None, zstd: None };
        let refused = || Error::invalid(format!("{} has no level {}", codec.header(), level.unwrap_or_default()));
        match codec {
            Codec::Null | Codec::Snappy => {}
            Codec::Bzip2 | Codec::Xz => {
                return Err(Error::unsupported(format!(
                    "Avro files are not written with the codec {}",
                    codec.header()
                )));
            }
            // zlib writes its default level as -1.
            Codec::Deflate => {
                let level = level.filter(|&level| level != -1).unwrap_or(6);
                let level = libdeflater::CompressionLvl::new(level).map_err(|_| refused())?;
                made.deflate = Some(libdeflater::Compressor::new(level));
            }
            Codec::Zstandard => {
                let level = level.unwrap_or(1);
                if !zstd::compression_level_range().contains(&level) {
                    return Err(refused());
                }
                made.zstd =
                    Some(zstd::bulk::Compressor::new(level).map_err(|error| Error::invalid(error.to_string()))?);
            }
        }
        Ok(made)
    }

    /// Compresses `data` to the stored bytes of a block.
    pub fn run(&mut self, data: &[u8]) -> Result<Vec<u8>> {
        let failed = |error: String| Error::invalid(format!("cannot compress an Avro block: {error}"));
        match (self.codec, &mut self.deflate, &mut self.zstd) {
            (Codec::Deflate, Some(deflate), _) => {
                let mut out = vec![0; deflate.deflate_compress_bound(data.len())];
                let length = deflate.deflate_compress(data, &mut out).map_err(|error| failed(error.to_string()))?;
                out.truncate(length);
                Ok(out)
            }
            (Codec::Zstandard, _, Some(zstd)) => zstd.compress(data).map_err(|error| failed(error.to_string())),
            (Codec::Snappy, ..) => {
                let mut out =
                    snap::raw::Encoder::new().compress_vec(data).map_err(|error| failed(error.to_string()))?;
                out.extend(crc32fast::hash(data).to_be_bytes());
                Ok(out)
            }
            _ => Ok(data.to_vec()),
        }
    }
}
