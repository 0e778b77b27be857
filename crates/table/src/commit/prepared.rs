//! A change of data that first changes the table itself, in one commit: an append whose rows have new columns.

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};

use super::{Change, now_ms};
use crate::error::Result;

/// Updates, and a change made on top of them.
#[derive(Debug)]
pub struct Prepared<C> {
    /// What must hold for the updates to mean what they meant when they were made.
    pub requirements: Vec<UpdateRequirement>,
    /// Updates that go before those of the change.
    pub updates: Vec<MetadataUpdate>,
    /// The change, which sees the table as the updates leave it.
    pub change: C,
}

impl<C: Change> Change for Prepared<C> {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        self.requirements.iter().try_for_each(|requirement| requirement.check(Some(base)))?;
        let mut updates = self.updates.clone();
        if updates.is_empty() {
            return self.change.updates(base);
        }
        let between = MetadataBuilder::from_base(base, now_ms()).apply_all(updates.clone())?.build()?;
        updates.extend(self.change.updates(&between)?);
        Ok(updates)
    }

    fn snapshot_id(&self) -> Option<i64> {
        self.change.snapshot_id()
    }

    fn landed(&mut self, last_attempt: bool) {
        self.change.landed(last_attempt);
    }

    fn failed(&mut self) {
        self.change.failed();
    }
}
