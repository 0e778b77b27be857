//! The operations that a commit needs from a catalog (REST catalog: `loadTable`, `commitTable`).
//!
//! The files of this folder build on them: retries, tables created by their first commit, lookups after an unknown
//! outcome, and catalogs that store the location of a metadata file.

pub(super) mod creation;
pub(super) mod pointer;
pub(super) mod retry;
mod status;

use std::time::Duration;

use icefield_format::metadata::{MetadataUpdate, UpdateRequirement};

use super::Committed;
use crate::error::{Error, Result};

/// One table in a catalog.
///
/// A catalog checks the requirements against the current table and applies the updates, atomically. How it does so is
/// up to the catalog: [`super::PointerCatalog`] writes a metadata file and swaps a pointer; a server may write the
/// metadata itself.
pub trait Catalog: Send + Sync {
    /// Returns the current table; may return `known` if that is still current.
    ///
    /// # Errors
    /// Any error that keeps the catalog from answering. Nothing has been committed.
    fn load(&self, known: Option<&Committed>) -> Result<Committed>;

    /// Applies `updates` to the table if it meets `requirements`, all or nothing.
    ///
    /// `base` is the table, as [`Catalog::load`] returned it, from which the updates were made. A catalog may return
    /// [`Outcome::Lost`] if the current table is a different one, even if it meets the requirements.
    ///
    /// # Errors
    /// The commit has certainly not landed, and a retry would not help.
    fn commit(
        &self,
        base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> Result<Outcome>;

    /// Creates the table from `updates` if the catalog has no table of its name (requirement `assert-create`). Catalogs
    /// that serve only existing tables need not implement this.
    ///
    /// # Errors
    /// The table has certainly not been created, and a retry would not help; [`Error::Refused`] carries the catalog's
    /// own reason.
    fn create(&self, updates: &[MetadataUpdate]) -> Result<Outcome> {
        let _ = updates;
        Err(Error::unsupported("this catalog cannot create tables"))
    }

    /// Told of each commit that landed, such as for reports; it can neither fail nor undo the commit.
    fn landed(&self, committed: &Committed, done: &Landed<'_>) {
        let _ = (committed, done);
    }
}

/// How a commit landed.
#[derive(Debug, Clone, Copy)]
pub struct Landed<'a> {
    /// The updates of the last attempt.
    pub updates: &'a [MetadataUpdate],
    /// Number of attempts.
    pub attempts: u64,
    /// From the start of the first attempt, which writes manifests, to the answer to the last one.
    pub took: Duration,
}

/// How a commit ended.
#[derive(Debug)]
pub enum Outcome {
    /// The commit landed; the table after it.
    Committed(Committed),
    /// The commit has certainly not landed: another commit was first. The change can be retried on top of that one.
    Lost(String),
    /// The commit may have landed or may still land, so no file that it uses may be deleted.
    Unknown {
        /// What happened.
        message: String,
        /// The metadata file of the new table, if the commit has written one.
        location: Option<String>,
        /// The underlying error, if it comes from the caller's own code.
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}
