//! Writes manifests and manifest lists in each format version ("Manifests", "Manifest Lists").

mod field;
mod list;
mod manifest;
mod schemas;
mod summary;
mod texts;

pub use list::{ListOptions, ListWriter, WrittenList};
pub use manifest::{ManifestOptions, ManifestWriter};
pub use schemas::{entry_type, file_type};
pub use summary::PartitionSummaries;

use crate::{Error, Result};

/// Refuses unknown format versions.
fn check_version(version: u8) -> Result<()> {
    if (1..=3).contains(&version) {
        return Ok(());
    }
    Err(Error::unsupported(format!("format version {version} cannot be written")))
}
