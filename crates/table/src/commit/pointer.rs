//! Catalogs that hold one pointer a table: the location of its metadata file ("Metastore Tables").
//!
//! A commit writes a metadata file of its own name and swaps the pointer from the file that it was made of.

use std::sync::Arc;

use icefield_format::metadata::properties::METADATA_DELETE_AFTER_COMMIT_ENABLED;
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};

use super::creation::created_by;
use super::metadata_file::next_version;
use super::status::{Sought, look_for};
use super::{Catalog, Committed, Outcome, read_metadata, write_metadata};
use crate::clock::now_ms;
use crate::error::{Error, Result};
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
        let sought = Sought { location: Some(&location), updates };
        let is_there = || look_for(self, base, sought).is_ok_and(|found| found.is_some());
        let error = match self.pointer.swap(&base.location, &location) {
            Ok(()) => {
                delete_old_metadata(&self.storage, &base.metadata, &metadata);
                return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }));
            }
            // A request that is delivered twice is refused the second time, for the sake of the first.
            Err(Error::CommitFailed(_)) if is_there() => {
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
        Ok(Outcome::Unknown { message: error.to_string(), location: Some(location), cause: cause_of(error) })
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
        Ok(Outcome::Unknown { message: error.to_string(), location: Some(location), cause: cause_of(error) })
    }
}

/// The caller's own error within one of ours.
pub(super) fn cause_of(error: Error) -> Option<Box<dyn std::error::Error + Send + Sync>> {
    match error {
        Error::Callback(raised) | Error::Interrupted(raised) => Some(raised),
        Error::CommitStateUnknown { cause, .. } => cause,
        _ => None,
    }
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
