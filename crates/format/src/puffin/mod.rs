//! Puffin files: statistics and deletion vectors (Puffin spec; table spec, "Deletion Vectors").
//!
//! [`Footer`] lists the blobs of a file, [`read_blob`] returns their bytes, [`PuffinWriter`] writes files, and
//! [`DeletionVector`] is the blob with the deleted rows of a data file.

pub mod deletion_vector;
mod footer;
mod theta;
mod write;

pub use deletion_vector::DeletionVector;
pub use footer::{BlobMetadata, Footer, TAIL_BYTES, read_blob};
pub use theta::ThetaSketch;
pub use write::{Blob, PuffinWriter, with_footer};

use crate::{Error, Result};

/// Blob type of theta sketches (Apache DataSketches), which estimate the number of distinct values.
pub const THETA_SKETCH: &str = "apache-datasketches-theta-v1";
/// Blob type of deletion vectors.
pub const DELETION_VECTOR: &str = "deletion-vector-v1";
/// Magic number: first and last four bytes of a file, and first four of its footer.
pub const MAGIC: [u8; 4] = *b"PFA1";

/// Compression of a blob or of the footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlobCodec {
    /// Uncompressed.
    #[default]
    None,
    /// An LZ4 frame that includes the length of its content.
    Lz4,
    /// A Zstandard frame that includes the length of its content.
    Zstd,
}

impl BlobCodec {
    /// Parses the codec name in the footer; no name means uncompressed.
    pub fn from_name(name: Option<&str>) -> Result<Self> {
        match name {
            None => Ok(Self::None),
            Some("lz4") => Ok(Self::Lz4),
            Some("zstd") => Ok(Self::Zstd),
            Some(other) => Err(Error::unsupported(format!("Puffin compression codec {other:?}"))),
        }
    }

    /// Codec name in the footer.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Lz4 => Some("lz4"),
            Self::Zstd => Some("zstd"),
        }
    }
}
