//! Checks a table: its metadata against its manifests, and these against the files that they list.
//!
//! Nothing is changed. Each difference is a [`Finding`] that names the file and the field, with the expected and the
//! found value. Every manifest is read once for its entries, and once more for the files of the current snapshot, of
//! branches and of tags, whatever their number, as far as they fit into memory; of files only hashes of their paths are
//! kept.

mod columns;
mod context;
mod entries;
mod files;
mod listed;
mod lists;
mod metadata;
mod metrics;
pub mod repair;
mod rows;
mod snapshot;

use crate::commit::Committed;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::list_key;
use crate::storage::Storage;
use context::Check;
pub use context::{Finding, FsckOptions, FsckReport, Level, Severity};

/// Checks a table.
///
/// # Errors
/// Only if the check cannot go on: memory, an interruption, a store that does not answer, or no keys
/// of an encrypted table; and a level that reads files for an export,
/// which has none. A file that cannot be read is a finding.
pub fn fsck(storage: &Storage, table: &Committed, options: FsckOptions) -> Result<FsckReport> {
    let limits = limits()?;
    let check = Check::new(storage, table, &limits, options);
    if options.level >= Level::Files && check.exported.is_some() {
        return Err(Error::invalid("level: the table is an export without data files: expected metadata or manifests"));
    }
    metadata::check(&check);
    if options.level >= Level::Manifests {
        // Files that cannot be decrypted for want of keys are not damaged.
        if let Some(encrypted) = table.metadata.snapshots().iter().find(|one| one.key_id.is_some())
            && storage.keyring().is_none()
        {
            list_key(storage, &table.metadata, encrypted)?;
        }
        lists::check(&check)?;
        snapshot::check(&check)?;
    }
    if options.level >= Level::Files {
        files::check_of_table(&check);
    }
    check.finish()
}
