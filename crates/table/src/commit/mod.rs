//! Changes of a table that become visible in one step ("Commit Conflict Resolution and Retry").
//!
//! A catalog is, to this crate, one pointer a table: [`Pointer`]. Every attempt reads the table as it is, applies the
//! change to it, writes a metadata file of its own name, and swaps the pointer. What an attempt wrote is removed only
//! when the swap has certainly failed.

mod append;
mod manifests;
mod metadata_file;
mod prepared;
mod summary;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use icefield_format::metadata::properties::{
    COMMIT_MAX_RETRY_WAIT_MS, COMMIT_MIN_RETRY_WAIT_MS, COMMIT_NUM_RETRIES, COMMIT_NUM_STATUS_CHECKS,
    COMMIT_STATUS_CHECKS_MAX_WAIT_MS, COMMIT_STATUS_CHECKS_MIN_WAIT_MS, COMMIT_TOTAL_RETRY_TIME_MS,
    METADATA_DELETE_AFTER_COMMIT_ENABLED, Property, check_set,
};
use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, StringMap, TableDefinition, TableMetadata, UpdateRequirement,
};

use crate::error::{Error, Result};
use crate::interrupt;
use crate::storage::Storage;

pub use append::{Append, SnapshotOptions, append};
pub use metadata_file::{read_metadata, write_metadata};
pub use prepared::Prepared;
pub use summary::SummaryBuilder;

/// Where a catalog says that a table's metadata is.
pub trait Pointer: Send + Sync {
    /// The uuid of the table that commits are meant for, as it was when it was opened; a table of version 1 may lack one.
    fn table_uuid(&self) -> Option<&str>;

    /// The location of the current metadata file.
    fn load(&self) -> Result<String>;

    /// Points from `base` to `new`, at once and only from `base`.
    ///
    /// # Errors
    /// [`Error::CommitFailed`] if it certainly did not happen, [`Error::Interrupted`] if so and it is not to be tried
    /// again, [`Error::CommitStateUnknown`] if nobody knows; any other error is taken for unknown as well.
    fn swap(&self, base: &str, new: &str) -> Result<()>;
}

/// A table's metadata and the file it is in.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Location of the metadata file.
    pub location: String,
    /// Its content, shared by whatever is made of the table.
    pub metadata: Arc<TableMetadata>,
}

/// Writes the first metadata file of a new table; a catalog has yet to be told of it.
pub fn create_table(storage: &Storage, definition: &TableDefinition) -> Result<Committed> {
    check_set(&definition.properties)?;
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
    Ok(Committed { location, metadata: Arc::new(metadata) })
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
    for update in updates {
        if let MetadataUpdate::SetProperties { updates } = update {
            check_set(updates)?;
        }
    }
    commit(storage, pointer, |base| {
        requirements.iter().try_for_each(|requirement| requirement.check(Some(base)))?;
        Ok(updates.to_vec())
    })
}

/// A change of a table, made anew of the table as it is for each attempt.
pub trait Change {
    /// The updates that make the change of `base`; none: nothing is written.
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>>;

    /// The snapshot that shows in a table's history whether the change has landed.
    fn snapshot_id(&self) -> Option<i64> {
        None
    }

    /// The change is in the table; the argument says whether it is known to be the last attempt that made it.
    fn landed(&mut self, _last_attempt: bool) {}

    /// The change is certainly not in the table and will never be: what it wrote may go.
    fn failed(&mut self) {}
}

impl<F: FnMut(&TableMetadata) -> Result<Vec<MetadataUpdate>>> Change for F {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        self(base)
    }
}

/// Commits what `change` makes of the table as it is, anew for each attempt. No updates: nothing is written.
pub fn commit(
    storage: &Storage,
    pointer: &dyn Pointer,
    mut change: impl FnMut(&TableMetadata) -> Result<Vec<MetadataUpdate>>,
) -> Result<Committed> {
    commit_change(storage, pointer, &mut change)
}

/// Commits a change: read, apply, write, swap, until it lands, or is certainly lost, or nobody knows.
pub fn commit_change(storage: &Storage, pointer: &dyn Pointer, change: &mut dyn Change) -> Result<Committed> {
    let mut retries: Option<Retries> = None;
    loop {
        match attempt(storage, pointer, change) {
            Ok(Attempt::Landed(committed)) => {
                change.landed(true);
                return Ok(committed);
            }
            Ok(Attempt::Found(committed)) => {
                change.landed(false);
                return Ok(committed);
            }
            Ok(Attempt::Lost(reason, properties)) => {
                match retries.get_or_insert_with(|| Retries::new(&properties)).wait() {
                    Ok(true) => {}
                    Ok(false) => {
                        change.failed();
                        return Err(Error::CommitFailed(reason));
                    }
                    Err(interrupted) => {
                        change.failed();
                        return Err(interrupted);
                    }
                }
            }
            Err(unknown @ Error::CommitStateUnknown { .. }) => return Err(unknown),
            Err(error) => {
                change.failed();
                return Err(error);
            }
        }
    }
}

/// How an attempt ended, unless in an error: then it has certainly not landed, but for the one that says otherwise.
enum Attempt {
    /// It landed.
    Landed(Committed),
    /// An attempt before had landed.
    Found(Committed),
    /// Another commit was first; with the properties of the table.
    Lost(String, StringMap),
}

fn attempt(storage: &Storage, pointer: &dyn Pointer, change: &mut dyn Change) -> Result<Attempt> {
    let base_location = pointer.load()?;
    let base = read_metadata(storage, &base_location)?;
    require_same_table(pointer.table_uuid(), &base, &base_location)?;
    if change.snapshot_id().is_some_and(|id| base.snapshot(id).is_some()) {
        return Ok(Attempt::Found(Committed { location: base_location, metadata: Arc::new(base) }));
    }
    let updates = change.updates(&base)?;
    let builder = MetadataBuilder::from_base(&base, now_ms()).with_previous_file(base_location.as_str());
    let builder = builder.apply_all(updates)?;
    if builder.changes().is_empty() {
        return Ok(Attempt::Found(Committed { location: base_location, metadata: Arc::new(base) }));
    }
    let metadata = builder.build()?;
    let version = metadata_file::next_version(&base_location);
    let location = write_metadata(storage, &metadata, version)?;
    match pointer.swap(&base_location, &location) {
        Ok(()) => {
            delete_old_metadata(storage, &base, &metadata);
            Ok(Attempt::Landed(Committed { location, metadata: Arc::new(metadata) }))
        }
        Err(Error::CommitFailed(reason)) => {
            // Certainly not in use; that it stays if it cannot be deleted does no harm.
            let _ = storage.delete(&location);
            Ok(Attempt::Lost(reason, base.properties().clone()))
        }
        Err(error @ Error::Interrupted(_)) => {
            let _ = storage.delete(&location);
            Err(error)
        }
        Err(error) => match has_landed(storage, pointer, &location, change.snapshot_id(), &metadata) {
            Ok(true) => Ok(Attempt::Landed(Committed { location, metadata: Arc::new(metadata) })),
            Ok(false) => Err(unknown(change.snapshot_id(), error.to_string(), error)),
            Err(interrupted) => Err(unknown(change.snapshot_id(), error.to_string(), interrupted)),
        },
    }
}

fn unknown(snapshot_id: Option<i64>, message: String, cause: Error) -> Error {
    let cause = match cause {
        Error::Callback(raised) | Error::Interrupted(raised) => Some(raised),
        _ => None,
    };
    Error::CommitStateUnknown { snapshot_id, message, cause }
}

/// Refuses a table that has taken the place of the one with the uuid `expected`: the name was dropped and created anew,
/// renamed, or registered over. A table without a uuid (version 1) cannot be told from another.
pub fn require_same_table(expected: Option<&str>, found: &TableMetadata, location: &str) -> Result<()> {
    match (expected, found.table_uuid()) {
        (None, _) => Ok(()),
        (Some(expected), Some(current)) if current.eq_ignore_ascii_case(expected) => Ok(()),
        (Some(expected), current) => Err(Error::TableReplaced {
            expected: expected.to_owned(),
            found: current.unwrap_or("none").to_owned(),
            location: location.to_owned(),
        }),
    }
}

/// Whether a commit whose answer was lost is in the table's history (`commit.status-check.*`). `false` means that it was
/// not found there: it may still be on its way.
///
/// # Errors
/// [`Error::Interrupted`] if the caller ends the checks.
fn has_landed(
    storage: &Storage,
    pointer: &dyn Pointer,
    location: &str,
    snapshot_id: Option<i64>,
    metadata: &TableMetadata,
) -> Result<bool> {
    let number = |property: &Property<i64>| property.read(metadata.properties()).unwrap_or(property.default).max(0);
    let mut wait_ms = number(&COMMIT_STATUS_CHECKS_MIN_WAIT_MS).cast_unsigned();
    for check in 0..=number(&COMMIT_NUM_STATUS_CHECKS) {
        if check > 0 {
            interrupt::sleep(Duration::from_millis(wait_ms))?;
            wait_ms = (wait_ms * 2).min(number(&COMMIT_STATUS_CHECKS_MAX_WAIT_MS).cast_unsigned());
        }
        let Ok(now) = pointer.load() else { continue };
        if now == location {
            return Ok(true);
        }
        let found = match read_metadata(storage, &now) {
            Ok(found) => found,
            Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
            Err(_) => continue,
        };
        let in_log = found.metadata_log().iter().any(|entry| entry.metadata_file == location);
        return Ok(in_log || snapshot_id.is_some_and(|id| found.snapshot(id).is_some()));
    }
    Ok(false)
}

/// Deletes the metadata files that have left the log, where the table wants that.
fn delete_old_metadata(storage: &Storage, base: &TableMetadata, new: &TableMetadata) {
    if !METADATA_DELETE_AFTER_COMMIT_ENABLED.read(new.properties()) {
        return;
    }
    let kept = |file: &str| new.metadata_log().iter().any(|entry| entry.metadata_file == file);
    for entry in base.metadata_log().iter().filter(|entry| !kept(&entry.metadata_file)) {
        // The commit has landed; a file that stays is only an orphan.
        let _ = storage.delete(&entry.metadata_file);
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
        let read = |property: &Property<i64>| property.read(properties).unwrap_or(property.default).max(0);
        let milliseconds = |property| u64::try_from(read(property)).unwrap_or_default();
        Self {
            left: read(&COMMIT_NUM_RETRIES),
            wait_ms: milliseconds(&COMMIT_MIN_RETRY_WAIT_MS),
            longest_ms: milliseconds(&COMMIT_MAX_RETRY_WAIT_MS),
            end: SystemTime::now() + Duration::from_millis(milliseconds(&COMMIT_TOTAL_RETRY_TIME_MS)),
        }
    }

    /// Waits for the next attempt; `false` if there is none.
    fn wait(&mut self) -> Result<bool> {
        if self.left == 0 || SystemTime::now() >= self.end {
            return Ok(false);
        }
        self.left -= 1;
        // Losers of one race must not meet again at the next: each waits a length of its own.
        let share = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        interrupt::sleep(Duration::from_millis(self.wait_ms / 2 + self.wait_ms * share / 512))?;
        self.wait_ms = (self.wait_ms * 2).min(self.longest_ms);
        Ok(true)
    }
}

/// The time, in milliseconds from the epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
