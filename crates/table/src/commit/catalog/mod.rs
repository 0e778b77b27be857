//! What a commit asks of a catalog (REST catalog: `loadTable`, `commitTable`).
//!
//! The files of this folder commit through it: retries, tables created by their first commit, lookups after an unknown outcome,
//! and catalogs that store the location of a metadata file.

pub(super) mod creation;
pub(super) mod pointer;
pub(super) mod retry;
mod status;

use icefield_format::metadata::{MetadataUpdate, UpdateRequirement};

use super::Committed;
use crate::error::{Error, Result};

/// The entry of one table in a catalog.
///
/// A catalog checks requirements against the table as it then is and applies updates to it, both in one step. How it
/// does that is its own affair: [`super::PointerCatalog`] writes a metadata file and swaps a pointer, a server may write
/// the metadata itself.
pub trait Catalog: Send + Sync {
    /// Returns the table as the catalog now has it; may return `known` where that is still the current one.
    ///
    /// # Errors
    /// Whatever keeps the catalog from answering. Nothing has been committed.
    fn load(&self, known: Option<&Committed>) -> Result<Committed>;

    /// Applies `updates` to the table if it meets `requirements`, all or nothing.
    ///
    /// `base` is the table that the updates were made of, as [`Catalog::load`] returned it. A catalog may refuse every
    /// table but this one as [`Outcome::Lost`], whatever the requirements say.
    ///
    /// # Errors
    /// The commit has certainly not landed, and trying it again does not help.
    fn commit(
        &self,
        base: &Committed,
        requirements: &[UpdateRequirement],
        updates: &[MetadataUpdate],
    ) -> Result<Outcome>;

    /// Creates the table by `updates`, if the catalog has none of its name (requirement `assert-create`). A catalog of tables
    /// that exist need not be able to.
    ///
    /// # Errors
    /// The table has certainly not been created, and trying it again does not help; [`Error::Refused`] has the catalog's
    /// own reason.
    fn create(&self, updates: &[MetadataUpdate]) -> Result<Outcome> {
        let _ = updates;
        Err(Error::unsupported("this catalog cannot create tables"))
    }
}

/// How a commit ended.
#[derive(Debug)]
pub enum Outcome {
    /// It landed; the table as it is now.
    Committed(Committed),
    /// It has certainly not landed: another commit was first. It can be made anew on top of that one.
    Lost(String),
    /// It may have landed, or still land: nothing that it uses may be deleted.
    Unknown {
        /// What happened.
        message: String,
        /// The metadata file that the table was to have, where the commit has written one.
        location: Option<String>,
        /// The error behind it, of the caller's own code.
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}
