//! Catalogs that store one pointer per table: the location of its metadata file ("Metastore Tables").
//!
//! A commit writes a metadata file under a unique name and swaps the pointer from the previous file to it.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::metadata::properties::METADATA_DELETE_AFTER_COMMIT_ENABLED;
use icefield_format::metadata::{MetadataBuilder, MetadataCodec, MetadataUpdate, TableMetadata, UpdateRequirement};

use super::creation::created_by;
use super::status::{Found, Sought, look_for};
use crate::clock::now_ms;
use crate::commit::metadata_file::next_version;
use crate::commit::{Catalog, Committed, Landed, Outcome, read_metadata, write_metadata};
use crate::error::{Error, Result};
use crate::storage::{Folders, Places, Storage};

/// The pointer to a table's current metadata file.
pub trait Pointer: Send + Sync {
    /// Returns the location of the current metadata file.
    fn load(&self) -> Result<String>;

    /// Atomically moves the pointer from `base` to `new`; fails if it does not point to `base`.
    ///
    /// # Errors
    /// [`Error::CommitFailed`] if the swap certainly did not happen; [`Error::Interrupted`] if it certainly did not
    /// happen and must not be retried. After any other error the outcome is unknown.
    fn swap(&self, base: &str, new: &str) -> Result<()>;

    /// Adds the table with its first metadata file if the catalog has no table of its name.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::CommitFailed`] or [`Error::Interrupted`] if the table was certainly not added;
    /// [`Error::Unsupported`] if the catalog cannot add tables. After any other error the outcome is unknown.
    fn add(&self, new: &str) -> Result<()> {
        Err(Error::unsupported(format!("this catalog cannot add tables ({new})")))
    }

    /// As [`Catalog::landed`].
    fn landed(&self, committed: &Committed, done: &Landed<'_>) {
        let _ = (committed, done);
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

    fn landed(&self, committed: &Committed, done: &Landed<'_>) {
        (**self).landed(committed, done);
    }
}

/// A catalog that commits through a [`Pointer`].
#[derive(Debug, Clone)]
pub struct PointerCatalog<P> {
    storage: Storage,
    pointer: P,
}

impl<P: Pointer> PointerCatalog<P> {
    /// A catalog for this pointer; the table's files are in `storage`.
    pub fn new(storage: Storage, pointer: P) -> Self {
        Self { storage, pointer }
    }
}

impl<P: Pointer> Catalog for PointerCatalog<P> {
    fn load(&self, known: Option<&Committed>) -> Result<Committed> {
        let location = self.pointer.load()?;
        // Metadata files never change, so the same location means the same table.
        if let Some(known) = known.filter(|known| known.location == location) {
            return Ok(known.clone());
        }
        let metadata = Arc::new(read_metadata(&self.storage, &location)?);
        Ok(Committed { location, metadata })
    }

    fn landed(&self, committed: &Committed, done: &Landed<'_>) {
        self.pointer.landed(committed, done);
    }

    fn commit(
        &self,
        base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> Result<Outcome> {
        // The swap succeeds only from `base`, so checking `base` is enough.
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
        let error = match self.pointer.swap(&base.location, &location) {
            Ok(()) => {
                let committed = Committed { location, metadata: Arc::new(metadata) };
                delete_old_metadata(&self.storage, &base.metadata, &committed);
                return Ok(Outcome::Committed(committed));
            }
            // A request delivered twice is refused the second time because the first one succeeded. Only a table that
            // was read says that it did not.
            Err(Error::CommitFailed(reason)) => match look_for(self, base, sought) {
                Ok(Found::There(_)) => {
                    return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }));
                }
                Ok(Found::Absent) => {
                    // The file is certainly not in use. If it cannot be deleted, it is a harmless orphan.
                    let _ = self.storage.delete(&location);
                    return Ok(Outcome::Lost(reason));
                }
                Ok(Found::Unread) => Error::CommitFailed(format!("{reason}; the table could not be read afterwards")),
                Err(interrupted) => interrupted,
            },
            Err(interrupted @ Error::Interrupted(_)) => {
                let _ = self.storage.delete(&location);
                return Err(interrupted);
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
                let refused = matches!(certain, Error::Refused(_) | Error::CommitFailed(_));
                match self.pointer.load() {
                    // A request delivered twice is refused the second time because the first one succeeded.
                    Ok(now) if refused && now == location => {
                        return Ok(Outcome::Committed(Committed { location, metadata: Arc::new(metadata) }));
                    }
                    // Whether the file is in use is unknown. If it is not, it is a harmless orphan.
                    Err(_) if refused => {}
                    _ => drop(self.storage.delete(&location)),
                }
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

/// Extracts the caller's own error from one of this crate's.
pub(super) fn cause_of(error: Error) -> Option<Box<dyn std::error::Error + Send + Sync>> {
    match error {
        Error::Callback(raised) | Error::Interrupted(raised) => Some(raised),
        Error::CommitStateUnknown { cause, .. } => cause,
        _ => None,
    }
}

/// Deletes the metadata files that have dropped out of the log, if the table is configured so.
///
/// Other writers may have put any path into the log. Only files in the folders of the table that are named like
/// metadata files are therefore deleted.
fn delete_old_metadata(storage: &Storage, base: &TableMetadata, new: &Committed) {
    let metadata = &new.metadata;
    if !METADATA_DELETE_AFTER_COMMIT_ENABLED.read(metadata.properties()) {
        return;
    }
    let log = base.metadata_log().iter().map(|entry| entry.metadata_file.as_str());
    let kept: HashSet<&str> = metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str()).collect();
    let left: Vec<&str> = log.filter(|file| !kept.contains(file)).collect();
    if left.is_empty() {
        return;
    }
    let places = Places::of(storage);
    let kept: HashSet<_> = kept.into_iter().chain([new.location.as_str()]).map(|file| places.place(file)).collect();
    let folders = Folders::of(storage, metadata, None);
    let is_own = |file: &str| MetadataCodec::from_file_name(file).is_some() && folders.have(storage, file);
    let (old, foreign): (Vec<&str>, Vec<&str>) = left.into_iter().partition(|file| is_own(file));
    if let Some(first) = foreign.first() {
        log::warn!(
            "{}: {} files that have left the metadata log stay, such as {first}: they are not metadata files in the folders \
             of the table",
            metadata.location(),
            foreign.len()
        );
    }
    let old: Vec<String> =
        old.into_iter().filter(|file| !kept.contains(&places.place(file))).map(str::to_owned).collect();
    // The commit has landed; a file that cannot be deleted is only an orphan.
    storage.discard(&old, "old metadata files");
}
