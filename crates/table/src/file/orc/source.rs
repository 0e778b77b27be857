//! The source of an ORC file's bytes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::Source;

use crate::error::Result;
use crate::storage::Storage;

/// The bytes of a file: in memory, or ranges read from a storage.
#[derive(Debug, Clone)]
pub enum OrcSource {
    /// All of them.
    Memory(Bytes),
    /// A file in a storage.
    Stored {
        /// The storage.
        storage: Storage,
        /// Its location.
        path: Arc<str>,
        /// Its length in bytes.
        length: u64,
    },
}

impl OrcSource {
    /// A file in a storage, with the length that the storage reports.
    pub fn of_path(storage: &Storage, path: &str) -> Result<Self> {
        Ok(Self::Stored { storage: storage.clone(), path: path.into(), length: storage.size(path)? })
    }

    /// The location of a file in a storage.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Memory(_) => None,
            Self::Stored { path, .. } => Some(path),
        }
    }
}

impl Source for OrcSource {
    fn length(&self) -> icefield_orc::Result<u64> {
        match self {
            Self::Memory(bytes) => bytes.length(),
            Self::Stored { length, .. } => Ok(*length),
        }
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        match self {
            Self::Memory(bytes) => bytes.read_range(range),
            Self::Stored { storage, path, .. } => storage.range(path, range).map_err(icefield_orc::Error::external),
        }
    }
}
