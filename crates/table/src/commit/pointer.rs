//! Catalogs that hold one pointer a table: the location of its metadata file ("Metastore Tables").
//!
//! A commit writes a metadata file of its own name and swaps the pointer from the file that it was made of.

use std::sync::Arc;
use std::time::Duration;

use icefield_format::metadata::properties::{
    COMMIT_NUM_STATUS_CHECKS, COMMIT_STATUS_CHECKS_MAX_WAIT_MS, COMMIT_STATUS_CHECKS_MIN_WAIT_MS,
    METADATA_DELETE_AFTER_COMMIT_ENABLED, Property,
};
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};

use super::creation::created_by;
use super::metadata_file::next_version;
use super::{Catalog, Committed, Outcome, read_metadata, write_metadata};
use crate::clock::now_ms;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::storage::Storage;

/// Where a catalog says that a table's metadata is.
pub trait Pointer: Send + Sync {
    /// The location of the current metadata file.
    fn load(&self) -> Result<String>;

    /// Points from `base` to `new`, at once and only from `base`.
    ///
    /// # Errors
    /// [`Error::CommitFailed`] if it certainly did not happen, [`Error::Interrupted`] if so and it is not to be tried
    /// again; any other error means that the outcome is unknown.
    fn swap(&self, base: &str, new: &str) -> Result<()>;

    /// Adds the table with its first metadata file, if the catalog has none of its name.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::CommitFailed`] or [`Error::Interrupted`] if it certainly did not happen; any other error
    /// means that the outcome is unknown, but for [`Error::Unsupported`] of a catalog that cannot add tables.
    fn add(&self, new: &str) -> Result<()> {
        Err(Error::unsupported(format!("this catalog cannot add tables ({new})")))
    }
}

impl<P: Pointer + ?Sized> Pointer for Arc<P> {
    fn load(&self) -> Result<String> {
        (**self).load()
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        (**self).swap(base, new)
    }

    fn add(&self, new: &str) -> Result<()> {
        (**self).add(new)
    }
}

/// A catalog of pointers.
#[derive(Debug, Clone)]
pub struct PointerCatalog<P> {
    storage: Storage,
    pointer: P,
}

impl<P: Pointer> PointerCatalog<P> {
    /// The catalog of this pointer, whose files are in `storage`.
    pub fn new(storage: Storage, pointer: P) -> Self {
        Self { storage, pointer }
    }
}

impl<P: Pointer> Catalog for PointerCatalog<P> {
    fn load(&self, known: Option<&Committed>) -> Result<Committed> {
        let location = self.pointer.load()?;
        // Metadata files are never changed.
        if let Some(known) = known.filter(|known| known.location == location) {
            return Ok(known.clone());
        }
        let metadata = Arc::new(read_metadata(&self.storage, &location)?);
        Ok(Committed { location, metadata })
    }

    fn commit(
        &self,
        base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> Result<Outcome> {
        // The swap holds only from `base`: what that meets, the table meets.
        let unmet = requirements.iter().find_map(|requirement| requirement.check(Some(&base.metadata)).err());
        if let Some(unmet) = unmet {
            return Ok(Outcome::Lost(unmet.to_string()));
        }
        let builder = MetadataBuilder::from_base(&base.metadata, now_ms()).with_previous_file(base.location.as_str());
        let builder = builder.apply_all(updates.iter().cloned())?;
        if builder.changes().is_empty() {
            return Ok(Outcome::Committed(base.clone()));
        }
        let metadata = builder.build()?;
        let location = write_metadata(&self.storage, &metadata, next_version(&base.location))?;
        let snapshot_id = updates.iter().rev().find_map(|update| match update {
            MetadataUpdate::AddSnapshot { snapshot } => Some(snapshot.snapshot_id),
            _ => None,
        });
        let is_there = || has_landed(&self.storage, &self.pointer, &location, snapshot_id, &metadata);
        let error = match self.pointer.swap(&base.location, &location) {
            Ok(()) => {
                delete_old_metadata(&self.storage, &base.metadata, &metadata);
                return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }));
            }
            // A request that is delivered twice is refused the second time, for the sake of the first.
            Err(Error::CommitFailed(_)) if is_there().unwrap_or(false) => {
                return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }));
            }
            Err(certain @ (Error::CommitFailed(_) | Error::Interrupted(_))) => {
                // Certainly not in use; that it stays if it cannot be deleted does no harm.
                let _ = self.storage.delete(&location);
                return match certain {
                    Error::CommitFailed(reason) => Ok(Outcome::Lost(reason)),
                    interrupted => Err(interrupted),
                };
            }
            Err(error) => error,
        };
        let message = error.to_string();
        Ok(match is_there() {
            Ok(true) => Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }),
            Ok(false) => Outcome::Unknown { message, location: Some(location), cause: cause_of(error) },
            Err(interrupted) => Outcome::Unknown { message, location: Some(location), cause: cause_of(interrupted) },
        })
    }

    fn create(&self, updates: &[MetadataUpdate]) -> Result<Outcome> {
        let metadata = created_by(updates)?;
        let location = write_metadata(&self.storage, &metadata, 0)?;
        let error = match self.pointer.add(&location) {
            Ok(()) => return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) })),
            Err(
                certain @ (Error::Refused(_) | Error::CommitFailed(_) | Error::Interrupted(_) | Error::Unsupported(_)),
            ) => {
                // Certainly not in use; that it stays if it cannot be deleted does no harm.
                let _ = self.storage.delete(&location);
                return match certain {
                    Error::CommitFailed(reason) => Ok(Outcome::Lost(reason)),
                    refused => Err(refused),
                };
            }
            Err(error) => error,
        };
        let message = error.to_string();
        // Whoever asks may be refused for the same reason: that says nothing.
        if self.pointer.load().is_ok_and(|now| now == location) {
            return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }));
        }
        Ok(Outcome::Unknown { message, location: Some(location), cause: cause_of(error) })
    }
}

/// The caller's own error within one of ours.
fn cause_of(error: Error) -> Option<Box<dyn std::error::Error + Send + Sync>> {
    match error {
        Error::Callback(raised) | Error::Interrupted(raised) => Some(raised),
        Error::CommitStateUnknown { cause, .. } => cause,
        _ => None,
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
    // An error of a property would hide that the outcome is unknown.
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
