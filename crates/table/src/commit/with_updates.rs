//! Combines a change of data with the metadata updates it needs.

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};

use super::{Change, Updates};
use crate::clock::now_ms;
use crate::error::Result;

/// A change applied after some metadata updates.
#[derive(Debug)]
pub struct WithUpdates<C> {
    updates: Option<Updates>,
    change: C,
}

impl<C: Change> WithUpdates<C> {
    /// The change, preceded by the updates if there are any.
    pub fn new(updates: Option<Updates>, change: C) -> Self {
        Self { updates, change }
    }
}

impl<C: Change> Change for WithUpdates<C> {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        let Some(updates) = &mut self.updates else { return self.change.updates(base) };
        let mut all = updates.updates(base)?;
        let between = MetadataBuilder::from_base(base, now_ms()).apply_all(all.iter().cloned())?.build()?;
        all.extend(self.change.updates(&between)?);
        Ok(all)
    }

    fn requirements(&self, base: &TableMetadata, updates: &[MetadataUpdate]) -> Vec<UpdateRequirement> {
        self.change.requirements(base, updates)
    }

    fn snapshot_id(&self) -> Option<i64> {
        self.change.snapshot_id()
    }

    fn made_snapshot_id(&self) -> Option<i64> {
        self.change.made_snapshot_id()
    }

    fn files(&self) -> Vec<String> {
        self.change.files()
    }

    fn landed(&mut self, last_attempt: bool) {
        self.change.landed(last_attempt);
    }

    fn failed(&mut self) {
        self.change.failed();
    }
}
