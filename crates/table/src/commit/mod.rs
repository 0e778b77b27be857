//! Changes of a table that become visible in one step ("Commit Conflict Resolution and Retry").
//!
//! A catalog is, to this crate, one pointer a table: [`Pointer`]. Every attempt reads the table as it is, applies the
//! change to it, writes a metadata file of its own name, and swaps the pointer. What an attempt wrote is removed only
//! when the swap has certainly failed.

mod metadata_file;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use icefield_format::metadata::properties::{
    COMMIT_MAX_RETRY_WAIT_MS, COMMIT_MIN_RETRY_WAIT_MS, COMMIT_NUM_RETRIES, COMMIT_TOTAL_RETRY_TIME_MS,
};
use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, StringMap, TableDefinition, TableMetadata, UpdateRequirement,
};

use crate::error::{Error, Result};
use crate::storage::Storage;

pub use metadata_file::{read_metadata, write_metadata};

/// Where a catalog says that a table's metadata is.
pub trait Pointer: Send + Sync {
    /// The location of the current metadata file.
    fn load(&self) -> Result<String>;

    /// Points from `base` to `new`, at once and only from `base`.
    ///
    /// # Errors
    /// [`Error::CommitFailed`] if it certainly did not happen, [`Error::CommitStateUnknown`] if nobody knows; any other
    /// error is taken for unknown as well.
    fn swap(&self, base: &str, new: &str) -> Result<()>;
}

/// A table's metadata and the file it is in.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Location of the metadata file.
    pub location: String,
    /// Its content.
    pub metadata: TableMetadata,
}

/// Writes the first metadata file of a new table; a catalog has yet to be told of it.
pub fn create_table(storage: &Storage, definition: &TableDefinition) -> Result<Committed> {
    let updates = definition.create_updates(uuid::Uuid::new_v4().to_string())?;
    let version = updates.iter().find_map(|update| match update {
        MetadataUpdate::UpgradeFormatVersion { format_version } => Some(*format_version),
        _ => None,
    });
    let mut builder = MetadataBuilder::new_table(now_ms());
    if let Some(version) = version {
        builder = builder.with_format_version(version.try_into()?);
    }
    let metadata = builder.apply_all(updates)?.build()?;
    let location = write_metadata(storage, &metadata, 0)?;
    Ok(Committed { location, metadata })
}

/// Applies updates to the table as it is when they are applied, if it meets the requirements then.
///
/// A lost race is run again (`commit.retry.*`); requirements that are not met end it.
pub fn commit_updates(
    storage: &Storage,
    pointer: &dyn Pointer,
    requirements: &[UpdateRequirement],
    updates: &[MetadataUpdate],
) -> Result<Committed> {
    commit(storage, pointer, |base| {
        requirements.iter().try_for_each(|requirement| requirement.check(Some(base)))?;
        Ok(updates.to_vec())
    })
}

/// Commits what `change` makes of the table as it is, anew for each attempt. No updates: nothing is written.
pub fn commit(
    storage: &Storage,
    pointer: &dyn Pointer,
    mut change: impl FnMut(&TableMetadata) -> Result<Vec<MetadataUpdate>>,
) -> Result<Committed> {
    let mut retries: Option<Retries> = None;
    loop {
        let base_location = pointer.load()?;
        let base = read_metadata(storage, &base_location)?;
        let updates = change(&base)?;
        let builder = MetadataBuilder::from_base(&base, now_ms()).with_previous_file(base_location.as_str());
        let builder = builder.apply_all(updates)?;
        if builder.changes().is_empty() {
            return Ok(Committed { location: base_location, metadata: base });
        }
        let metadata = builder.build()?;
        let version = metadata_file::next_version(&base_location);
        let location = write_metadata(storage, &metadata, version)?;
        match pointer.swap(&base_location, &location) {
            Ok(()) => return Ok(Committed { location, metadata }),
            Err(Error::CommitFailed(reason)) => {
                // Certainly not in use; that it stays if it cannot be deleted does no harm.
                let _ = storage.delete(&location);
                let retries = retries.get_or_insert_with(|| Retries::new(base.properties()));
                if !retries.wait() {
                    return Err(Error::CommitFailed(reason));
                }
            }
            Err(error) => {
                // The answer may have been lost on its way; the pointer itself tells what happened, if it can be read.
                if pointer.load().is_ok_and(|now| now == location) {
                    return Ok(Committed { location, metadata });
                }
                return Err(match error {
                    unknown @ (Error::CommitStateUnknown { .. } | Error::Callback(_)) => unknown,
                    other => Error::CommitStateUnknown { snapshot_id: None, message: other.to_string() },
                });
            }
        }
    }
}

/// How often, and how long apart, a lost commit is run again.
struct Retries {
    left: i64,
    wait_ms: u64,
    longest_ms: u64,
    end: SystemTime,
}

impl Retries {
    fn new(properties: &StringMap) -> Self {
        // A property that cannot be read is as good as none: it must not stop a commit.
        let read = |property: &icefield_format::metadata::properties::Property<i64>| {
            property.read(properties).unwrap_or(property.default).max(0)
        };
        let milliseconds = |property| u64::try_from(read(property)).unwrap_or_default();
        Self {
            left: read(&COMMIT_NUM_RETRIES),
            wait_ms: milliseconds(&COMMIT_MIN_RETRY_WAIT_MS),
            longest_ms: milliseconds(&COMMIT_MAX_RETRY_WAIT_MS),
            end: SystemTime::now() + Duration::from_millis(milliseconds(&COMMIT_TOTAL_RETRY_TIME_MS)),
        }
    }

    /// Waits for the next attempt; `false` if there is none.
    fn wait(&mut self) -> bool {
        if self.left == 0 || SystemTime::now() >= self.end {
            return false;
        }
        self.left -= 1;
        // Losers of one race must not meet again at the next: each waits a length of its own.
        let share = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        std::thread::sleep(Duration::from_millis(self.wait_ms / 2 + self.wait_ms * share / 512));
        self.wait_ms = (self.wait_ms * 2).min(self.longest_ms);
        true
    }
}

/// The time, in milliseconds from the epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
