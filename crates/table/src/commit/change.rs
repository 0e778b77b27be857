//! Changes of a table. Each attempt to commit one computes its updates from the current table.

use icefield_format::metadata::properties::check_set;
use icefield_format::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement, requirements_for_update};

use crate::error::Result;
use crate::write::provider;

/// A change of a table: of its data, its metadata or both.
pub trait Change {
    /// Returns the updates that apply the change to `base`. An empty list commits nothing.
    ///
    /// Called again with another `base` after each lost race. This is where a change checks for conflicts with what has
    /// been committed in between: an error ends the commit, and no part of the change is in the table.
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>>;

    /// Returns what a catalog service must check before it applies `updates`, which were computed from `base`.
    fn requirements(&self, base: &TableMetadata, updates: &[MetadataUpdate]) -> Vec<UpdateRequirement> {
        requirements_for_update(base, updates)
    }

    /// The id of the snapshot whose presence in the table shows that the change has landed.
    fn snapshot_id(&self) -> Option<i64> {
        None
    }

    /// The id of the snapshot that holds the change after the commit: the same one, unless an earlier run made the
    /// change ([`IDEMPOTENCY_KEY`]).
    ///
    /// [`IDEMPOTENCY_KEY`]: super::IDEMPOTENCY_KEY
    fn made_snapshot_id(&self) -> Option<i64> {
        self.snapshot_id()
    }

    /// The files that the change has written, which are deleted if it has certainly failed.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Called when the change is in the table. `last_attempt`: the updates that landed are known to be those of the
    /// last call of [`Change::updates`], not those of an earlier attempt with an unknown outcome.
    fn landed(&mut self, _last_attempt: bool) {}

    /// Called when the change is certainly not in the table and never will be, so its files can be deleted.
    fn failed(&mut self) {}
}

impl<F: FnMut(&TableMetadata) -> Result<Vec<MetadataUpdate>>> Change for F {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        self(base)
    }
}

/// Fixed metadata updates for a table that meets the requirements.
#[derive(Debug, Clone)]
pub struct Updates {
    requirements: Vec<UpdateRequirement>,
    updates: Vec<MetadataUpdate>,
}

impl Updates {
    /// A change with these updates. If an attempt finds a requirement unmet, the commit ends.
    ///
    /// # Errors
    /// A table property that is set to an invalid value.
    pub fn new(requirements: Vec<UpdateRequirement>, updates: Vec<MetadataUpdate>) -> Result<Self> {
        for update in &updates {
            if let MetadataUpdate::SetProperties { updates } = update {
                check_set(updates)?;
                provider::check(updates)?;
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
