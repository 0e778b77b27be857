//! Changes of a table, made anew of the table as it is for each attempt to commit them.

use icefield_format::metadata::properties::check_set;
use icefield_format::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement};

use crate::error::Result;

/// A change of a table: of its data, its metadata or both.
pub trait Change {
    /// Returns the updates that make the change of `base`; an empty list commits nothing.
    ///
    /// Called again, with another `base`, after each lost race. What has been committed in between is checked here: an
    /// error ends the commit, and nothing of the change is in the table.
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>>;

    /// The snapshot that shows in a table's history whether the change has landed.
    fn snapshot_id(&self) -> Option<i64> {
        None
    }

    /// The snapshot that has the change in the end: the same one, unless the change was made before ([`IDEMPOTENCY_KEY`]).
    ///
    /// [`IDEMPOTENCY_KEY`]: super::IDEMPOTENCY_KEY
    fn made_snapshot_id(&self) -> Option<i64> {
        self.snapshot_id()
    }

    /// Files that it has written, which are deleted if it has certainly failed.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// The change is in the table. `last_attempt`: the last call of [`Change::updates`] is known to have made it, and not
    /// an earlier one whose outcome was unknown.
    fn landed(&mut self, _last_attempt: bool) {}

    /// The change is certainly not in the table and will not be: what it has written can be deleted.
    fn failed(&mut self) {}
}

impl<F: FnMut(&TableMetadata) -> Result<Vec<MetadataUpdate>>> Change for F {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        self(base)
    }
}

/// Updates of metadata as they are, for a table that meets the requirements.
#[derive(Debug, Clone)]
pub struct Updates {
    requirements: Vec<UpdateRequirement>,
    updates: Vec<MetadataUpdate>,
}

impl Updates {
    /// A change of these updates. Requirements that are not met at an attempt end the commit.
    ///
    /// # Errors
    /// A table property that is set to a value it cannot have.
    pub fn new(requirements: Vec<UpdateRequirement>, updates: Vec<MetadataUpdate>) -> Result<Self> {
        for update in &updates {
            if let MetadataUpdate::SetProperties { updates } = update {
                check_set(updates)?;
            }
        }
        Ok(Self { requirements, updates })
    }
}

impl Change for Updates {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        self.requirements.iter().try_for_each(|requirement| requirement.check(Some(base)))?;
        Ok(self.updates.clone())
    }
}
