//! Puffin files: statistics and deletion vectors (Puffin spec; table spec, "Deletion Vectors").
//!
//! [`Footer`] says which blobs a file has, [`read_blob`] returns their bytes, [`PuffinWriter`] writes files, and
//! [`DeletionVector`] is the blob that says which rows of a data file are gone.

pub mod deletion_vector;
mod footer;
mod write;

pub use deletion_vector::DeletionVector;
pub use footer::{BlobMetadata, Footer, TAIL_BYTES, read_blob};
pub use write::{Blob, PuffinWriter};

use crate::{Error, Result};

/// Blob type of theta sketches (Apache DataSketches), the statistics of distinct values.
pub const THETA_SKETCH: &str = "apache-datasketches-theta-v1";
/// Blob type of deletion vectors.
pub const DELETION_VECTOR: &str = "deletion-vector-v1";
/// First and last four bytes of a file, and the first four of its footer.
pub const MAGIC: [u8; 4] = *b"PFA1";

/// How a blob or the footer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlobCodec {
    /// Not at all.
    #[default]
    None,
    /// One LZ4 frame with the length of its content.
    Lz4,
    /// One Zstandard frame with the length of its content.
    Zstd,
}

impl BlobCodec {
    /// The codec of a name in the footer; no name means none.
    pub fn from_name(name: Option<&str>) -> Result<Self> {
        match name {
            None => Ok(Self::None),
            Some("lz4") => Ok(Self::Lz4),
            Some("zstd") => Ok(Self::Zstd),
            Some(other) => Err(Error::unsupported(format!("Puffin compression codec {other:?}"))),
        }
    }

    /// The name in the footer.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Lz4 => Some("lz4"),
            Self::Zstd => Some("zstd"),
        }
    }
}
