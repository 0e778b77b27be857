//! Changes in the terms of a user, as updates: of the schema ("Schema Evolution"), of branches and tags ("Snapshot
//! References"), and of the snapshot that is current.

use super::{MAIN_BRANCH, MetadataUpdate, SnapshotRef, StringMap, TableMetadata};
use crate::evolution::UpdateSchema;
use crate::transform::Transform;
use crate::types::Schema;
use crate::{Error, Result};

impl TableMetadata {
    /// Starts a change of the current schema.
    pub fn update_schema(&self) -> UpdateSchema {
        let version = self.format_version().number();
        let mut change = UpdateSchema::new(self.current_schema(), self.last_column_id(), version);
        change.partitioned_by(self.partition_specs().iter().map(AsRef::as_ref));
        change
    }

    /// The updates that make the result of a change the current schema, with those of the properties that name columns.
    pub fn schema_updates(&self, change: &UpdateSchema) -> Result<Vec<MetadataUpdate>> {
        let schema = change.apply()?;
        if schema.same_schema(self.current_schema()) {
            return Ok(Vec::new());
        }
        self.check_sources(&schema)?;
        let mut updates = self.current_schema_updates(&schema);
        let properties = self.properties().iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let changes = change.property_changes(&schema, properties);
        if !changes.removed.is_empty() {
            updates.push(MetadataUpdate::RemoveProperties { removals: changes.removed });
        }
        if !changes.set.is_empty() {
            updates.push(MetadataUpdate::SetProperties { updates: changes.set.into_iter().collect::<StringMap>() });
        }
        Ok(updates)
    }

    /// A column stays while new files are partitioned or sorted by it.
    fn check_sources(&self, schema: &Schema) -> Result<()> {
        let check = |source_ids: &[i32], user: &dyn Fn() -> String| match source_ids
            .iter()
            .find(|id| schema.find_field(**id).is_none())
        {
            Some(id) => {
                let name = self.current_schema().column_name(*id).unwrap_or("?");
                Err(Error::unfit(format!("cannot delete column {name}: {}", user())))
            }
            None => Ok(()),
        };
        for field in self.default_spec().fields.iter().filter(|field| field.transform != Transform::Void) {
            let (name, transform) = (&field.name, &field.transform);
            check(&field.source_ids, &|| {
                format!(
                    "partition field {name} ({transform}) has it as its source: remove the field from the spec first"
                )
            })?;
        }
        for field in &self.default_sort_order().fields {
            check(&field.source_ids, &|| format!("the sort order contains {field}: replace the order first"))?;
        }
        Ok(())
    }

    /// The updates after which columns of `other`, the schema of rows to be written, have their place in the table.
    /// Required columns stay required: the writer checks whether rows fit.
    pub fn widened_by(&self, other: &Schema) -> Result<Vec<MetadataUpdate>> {
        let mut change = self.update_schema();
        change.union_by_name(other)?.allow_incompatible();
        let schema = self.current_schema();
        let required = schema.ids().iter().filter(|id| schema.find_field(**id).is_some_and(|field| field.required));
        for name in required.filter_map(|id| schema.column_name(*id)) {
            change.require(name)?;
        }
        self.schema_updates(&change)
    }

    /// The update that creates a branch or tag.
    pub fn create_ref(&self, name: &str, reference: SnapshotRef) -> Result<MetadataUpdate> {
        if name.is_empty() {
            return Err(Error::invalid("the name of a branch or tag must not be empty"));
        }
        if let Some(known) = self.reference(name) {
            return Err(Error::invalid(format!("cannot create {name:?}: a {} of this name exists", known.kind)));
        }
        self.check_snapshot(reference.snapshot_id)?;
        // The caller's mistake: nothing is corrupt.
        reference.check().map_err(|error| Error::invalid(format!("cannot create {name:?}: {error}")))?;
        Ok(MetadataUpdate::SetSnapshotRef { ref_name: name.to_owned(), reference })
    }

    /// The update that removes a branch, or a tag.
    pub fn remove_ref(&self, name: &str, is_branch: bool) -> Result<MetadataUpdate> {
        let what = if is_branch { "branch" } else { "tag" };
        match self.reference(name) {
            None => Err(Error::invalid(format!("cannot remove {what} {name:?}: it does not exist"))),
            Some(found) if found.is_branch() != is_branch => {
                Err(Error::invalid(format!("cannot remove {what} {name:?}: it is a {}", found.kind)))
            }
            Some(_) if name == MAIN_BRANCH => Err(Error::invalid("the branch \"main\" cannot be removed")),
            Some(_) => Ok(MetadataUpdate::RemoveSnapshotRef { ref_name: name.to_owned() }),
        }
    }

    /// The update that makes a snapshot the current one.
    pub fn set_current(&self, snapshot_id: i64) -> Result<MetadataUpdate> {
        self.check_snapshot(snapshot_id)?;
        let reference = match self.reference(MAIN_BRANCH) {
            Some(main) => SnapshotRef { snapshot_id, ..main.clone() },
            None => SnapshotRef::branch(snapshot_id),
        };
        Ok(MetadataUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference })
    }

    /// The update that rolls the table back to an ancestor of its current snapshot.
    pub fn rollback_to(&self, snapshot_id: i64) -> Result<MetadataUpdate> {
        self.check_snapshot(snapshot_id)?;
        if !self.current_ancestors().any(|(id, _)| id == snapshot_id) {
            return Err(Error::invalid(format!(
                "cannot roll back to snapshot {snapshot_id}: it is not an ancestor of the current snapshot"
            )));
        }
        self.set_current(snapshot_id)
    }

    /// The update that rolls the table back to the last ancestor before a time, in milliseconds from the epoch.
    pub fn rollback_to_before(&self, timestamp_ms: i64) -> Result<MetadataUpdate> {
        let older = self.current_ancestors().filter(|(_, time)| *time < timestamp_ms);
        // The newest by time, as Java takes it: clocks of writers may disagree with the order of commits.
        match older.max_by_key(|(_, time)| *time) {
            Some((snapshot_id, _)) => self.set_current(snapshot_id),
            None => Err(Error::invalid(format!("cannot roll back: no snapshot is older than {timestamp_ms}"))),
        }
    }

    /// Ids and times of the current snapshot and its ancestors.
    fn current_ancestors(&self) -> impl Iterator<Item = (i64, i64)> {
        let ancestors = self.current_snapshot_id().into_iter().flat_map(|id| self.ancestors(id));
        ancestors.map(|snapshot| (snapshot.snapshot_id, snapshot.timestamp_ms))
    }

    fn check_snapshot(&self, snapshot_id: i64) -> Result<()> {
        match self.snapshot(snapshot_id) {
            Some(_) => Ok(()),
            None => Err(Error::invalid(format!("there is no snapshot {snapshot_id} in the table"))),
        }
    }
}
