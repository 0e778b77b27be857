//! Reads and writes manifest lists and manifests as columns ("Manifests", "Snapshots / Manifest Lists").
//!
//! Reading: [`list::read`] returns the manifests of a snapshot, [`entries::read`] the files of a manifest as Arrow
//! columns, including what they inherit from the list ("Sequence Number Inheritance", "Row Lineage"). Writing:
//! [`write::ManifestWriter`] and [`write::ListWriter`], for each format version.

#[macro_use]
mod fields;

mod batch;
mod builders;
pub mod data_file;
pub mod entries;
mod entry_columns;
mod file_format;
pub mod list;
mod metrics;
mod partition;
mod presence;
mod read;
mod wanted;
pub mod write;

pub use data_file::{DataFile, ManifestEntry};
pub use entries::{Entries, ReadOptions, Tally};
pub use file_format::FileFormat;
pub use list::{FieldSummary, ManifestFile};
pub use metrics::MetricMap;
pub use partition::arrow_fields as partition_fields;
pub use wanted::{FieldIds, Metrics};

use std::fmt;

use crate::{Error, Result};

/// Content of a manifest ("517 content").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ManifestContent {
    /// Data files.
    #[default]
    Data,
    /// Delete files.
    Deletes,
}

/// Content of a file ("134 content").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FileContent {
    /// Rows.
    #[default]
    Data,
    /// Positions of deleted rows, in a position delete file or a deletion vector.
    PositionDeletes,
    /// Values of deleted rows, in an equality delete file.
    EqualityDeletes,
}

/// Status of a file in a manifest ("0 status").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Added by an earlier snapshot.
    Existing,
    /// Added by the snapshot that wrote the entry.
    Added,
    /// Removed by the snapshot that wrote the entry.
    Deleted,
}

impl ManifestContent {
    /// The id in manifest lists.
    pub fn id(self) -> i32 {
        self as i32
    }

    /// The content with this id.
    pub fn from_id(id: i32) -> Result<Self> {
        match id {
            0 => Ok(Self::Data),
            1 => Ok(Self::Deletes),
            _ => Err(Error::corrupt("content", format!("invalid content of a manifest: {id}"))),
        }
    }
}

impl FileContent {
    /// The id in manifests.
    pub fn id(self) -> i32 {
        self as i32
    }

    /// The content with this id.
    pub fn from_id(id: i32) -> Result<Self> {
        match id {
            0 => Ok(Self::Data),
            1 => Ok(Self::PositionDeletes),
            2 => Ok(Self::EqualityDeletes),
            _ => Err(Error::corrupt("content", format!("invalid content of a file: {id}"))),
        }
    }
}

impl Status {
    /// The id in manifests.
    pub fn id(self) -> i32 {
        self as i32
    }

    /// The status with this id.
    pub fn from_id(id: i32) -> Result<Self> {
        match id {
            0 => Ok(Self::Existing),
            1 => Ok(Self::Added),
            2 => Ok(Self::Deleted),
            _ => Err(Error::corrupt("status", format!("invalid status of an entry: {id}"))),
        }
    }

    /// Whether the file is in the snapshot.
    pub fn is_live(self) -> bool {
        self != Self::Deleted
    }
}

impl fmt::Display for ManifestContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Deletes => "deletes",
        })
    }
}
