//! Applies updates to table metadata: checks each one and assigns ids ("Table Metadata", "Commit Conflict Resolution").
//!
//! The semantics are those of the Java library's `TableMetadata.Builder`. One update adds a definition and another one
//! uses it: `add-schema`, then `set-current-schema` with [`LAST_ADDED`]. An update that changes nothing is not recorded
//! as a change; without changes, `build` returns the base as it was.

mod definitions;
mod history;

use indexmap::IndexMap;
use serde_json::Map;

use super::{Document, FormatVersion, MetadataUpdate, StringMap, TableMetadata};
use crate::spec::FIRST_PARTITION_FIELD_ID;
use crate::{Error, Result};

/// Builds table metadata from a base, or from nothing, and a list of updates.
#[derive(Debug, Clone)]
pub struct MetadataBuilder {
    base: Option<TableMetadata>,
    document: Document,
    /// Time of the change, from the caller's clock.
    now_ms: i64,
    /// Metadata file of the base, for the metadata log.
    previous_file: Option<String>,
    changes: Vec<MetadataUpdate>,
    last_added_schema: Option<i32>,
    last_added_spec: Option<i32>,
    last_added_sort_order: Option<i32>,
}

impl MetadataBuilder {
    /// Starts a change of an existing table at this time (milliseconds from the epoch). If the clock is behind the
    /// base's last change, the time of that change is used: timestamps of a table never decrease.
    pub fn from_base(base: &TableMetadata, now_ms: i64) -> Self {
        Self::new(Some(base.clone()), base.document.clone(), now_ms.max(base.document.last_updated_ms))
    }

    /// Starts a new table at this time (milliseconds from the epoch). Updates set its uuid, location, schema, partition
    /// spec and sort order; the format version is 2 unless an update before the first schema sets another.
    pub fn new_table(now_ms: i64) -> Self {
        let document = Document {
            format_version: FormatVersion::V2,
            table_uuid: None,
            location: String::new(),
            last_sequence_number: 0,
            last_updated_ms: now_ms,
            last_column_id: 0,
            schemas: Vec::new(),
            current_schema_id: 0,
            partition_specs: Vec::new(),
            default_spec_id: 0,
            last_partition_id: FIRST_PARTITION_FIELD_ID.saturating_sub(1),
            sort_orders: Vec::new(),
            default_sort_order_id: 0,
            properties: StringMap::new(),
            current_snapshot_id: None,
            snapshots: Vec::new(),
            refs: IndexMap::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
            statistics: Vec::new(),
            partition_statistics: Vec::new(),
            encryption_keys: Vec::new(),
            next_row_id: 0,
            unknown: Map::new(),
        };
        Self::new(None, document, now_ms)
    }

    fn new(base: Option<TableMetadata>, document: Document, now_ms: i64) -> Self {
        Self {
            base,
            document,
            now_ms,
            previous_file: None,
            changes: Vec::new(),
            last_added_schema: None,
            last_added_spec: None,
            last_added_sort_order: None,
        }
    }

    /// Sets the format version of a new table, which may also be 1; has no effect on an existing table.
    #[must_use]
    pub fn with_format_version(mut self, version: FormatVersion) -> Self {
        if self.base.is_none() {
            self.document.format_version = version;
        }
        self
    }

    /// Sets the location of the base's metadata file, which the change appends to the metadata log.
    #[must_use]
    pub fn with_previous_file(mut self, location: impl Into<String>) -> Self {
        self.previous_file = Some(location.into());
        self
    }

    /// Applies updates in order.
    pub fn apply_all(self, updates: impl IntoIterator<Item = MetadataUpdate>) -> Result<Self> {
        updates.into_iter().try_fold(self, Self::apply)
    }

    /// Applies an update.
    pub fn apply(mut self, update: MetadataUpdate) -> Result<Self> {
        match update {
            MetadataUpdate::AssignUuid { uuid } => self.assign_uuid(uuid),
            MetadataUpdate::UpgradeFormatVersion { format_version } => self.upgrade(format_version)?,
            MetadataUpdate::AddSchema { schema } => self.add_schema(&schema)?,
            MetadataUpdate::SetCurrentSchema { schema_id } => self.set_current_schema(schema_id)?,
            MetadataUpdate::RemoveSchemas { schema_ids } => self.remove_schemas(schema_ids)?,
            MetadataUpdate::AddSpec { spec } => self.add_spec(spec)?,
            MetadataUpdate::SetDefaultSpec { spec_id } => self.set_default_spec(spec_id)?,
            MetadataUpdate::RemovePartitionSpecs { spec_ids } => self.remove_specs(spec_ids)?,
            MetadataUpdate::AddSortOrder { sort_order } => self.add_sort_order(sort_order)?,
            MetadataUpdate::SetDefaultSortOrder { sort_order_id } => self.set_default_sort_order(sort_order_id)?,
            MetadataUpdate::AddSnapshot { snapshot } => self.add_snapshot(snapshot)?,
            MetadataUpdate::RemoveSnapshots { snapshot_ids } => self.remove_snapshots(&snapshot_ids),
            MetadataUpdate::SetSnapshotRef { ref_name, reference } => self.set_ref(ref_name, reference)?,
            MetadataUpdate::RemoveSnapshotRef { ref_name } => self.remove_ref(&ref_name),
            MetadataUpdate::SetProperties { updates } => self.set_properties(updates),
            MetadataUpdate::RemoveProperties { removals } => self.remove_properties(removals),
            MetadataUpdate::SetLocation { location } => self.set_location(location),
            MetadataUpdate::SetStatistics { statistics } => {
                self.document.statistics.retain(|file| file.snapshot_id != statistics.snapshot_id);
                self.document.statistics.push(statistics.clone());
                self.changes.push(MetadataUpdate::SetStatistics { statistics });
            }
            MetadataUpdate::RemoveStatistics { snapshot_id } => self.remove_statistics(snapshot_id),
            MetadataUpdate::SetPartitionStatistics { partition_statistics: file } => {
                self.document.partition_statistics.retain(|other| other.snapshot_id != file.snapshot_id);
                self.document.partition_statistics.push(file.clone());
                self.changes.push(MetadataUpdate::SetPartitionStatistics { partition_statistics: file });
            }
            MetadataUpdate::RemovePartitionStatistics { snapshot_id } => self.remove_partition_statistics(snapshot_id),
            MetadataUpdate::AddEncryptionKey { encryption_key: key } => {
                if !self.document.encryption_keys.iter().any(|other| other.key_id == key.key_id) {
                    self.document.encryption_keys.push(key.clone());
                    self.changes.push(MetadataUpdate::AddEncryptionKey { encryption_key: key });
                }
            }
            MetadataUpdate::RemoveEncryptionKey { key_id } => {
                if remove_where(&mut self.document.encryption_keys, |key| key.key_id == key_id) {
                    self.changes.push(MetadataUpdate::RemoveEncryptionKey { key_id });
                }
            }
        }
        Ok(self)
    }

    /// Returns the changes so far, as updates for a catalog.
    pub fn changes(&self) -> &[MetadataUpdate] {
        &self.changes
    }

    /// Returns the metadata with all changes; an error if its parts are inconsistent.
    pub fn build(self) -> Result<TableMetadata> {
        match self.base {
            Some(base) if self.changes.is_empty() => Ok(base),
            // The base was valid, so an inconsistency comes from a change, not from a corrupt file.
            _ => self.finish()?.check().map_err(|error| match error {
                Error::Corrupt(fault) => Error::invalid(fault.to_string()),
                other => other,
            }),
        }
    }

    fn finish(mut self) -> Result<Document> {
        let added = self.changes.iter().filter_map(|change| match change {
            MetadataUpdate::AddSnapshot { snapshot } => Some(snapshot.timestamp_ms),
            _ => None,
        });
        // A snapshot may have been created on a machine whose clock is ahead of this one.
        self.document.last_updated_ms = added.fold(self.now_ms, i64::max);
        self.extend_metadata_log()?;
        self.correct_snapshot_log();
        Ok(self.document)
    }

    fn assign_uuid(&mut self, uuid: String) {
        if self.document.table_uuid.as_ref() != Some(&uuid) {
            self.document.table_uuid = Some(uuid.clone());
            self.changes.push(MetadataUpdate::AssignUuid { uuid });
        }
    }

    fn upgrade(&mut self, format_version: i32) -> Result<()> {
        let version = FormatVersion::try_from(format_version)?;
        let current = self.document.format_version;
        if self.is_unversioned() {
            self.document.format_version = version;
            self.changes.push(MetadataUpdate::UpgradeFormatVersion { format_version });
            return Ok(());
        }
        if version < current {
            return Err(Error::invalid(format!(
                "a table of format version {current} cannot be downgraded to {version}"
            )));
        }
        if version > current {
            self.document.format_version = version;
            self.changes.push(MetadataUpdate::UpgradeFormatVersion { format_version });
        }
        Ok(())
    }

    /// Returns true for a new table whose updates set no format version yet; they may set one below the default.
    fn is_unversioned(&self) -> bool {
        let versioned = |change: &MetadataUpdate| matches!(change, MetadataUpdate::UpgradeFormatVersion { .. });
        self.base.is_none() && self.document.schemas.is_empty() && !self.changes.iter().any(versioned)
    }

    fn set_properties(&mut self, updates: StringMap) {
        if !updates.is_empty() {
            self.document.properties.extend(updates.clone());
            self.changes.push(MetadataUpdate::SetProperties { updates });
        }
    }

    fn remove_properties(&mut self, removals: Vec<String>) {
        if !removals.is_empty() {
            self.document.properties.retain(|name, _| !removals.contains(name));
            self.changes.push(MetadataUpdate::RemoveProperties { removals });
        }
    }

    fn set_location(&mut self, location: String) {
        if self.document.location != location {
            self.document.location.clone_from(&location);
            self.changes.push(MetadataUpdate::SetLocation { location });
        }
    }

    fn remove_statistics(&mut self, snapshot_id: i64) {
        if remove_where(&mut self.document.statistics, |file| file.snapshot_id == snapshot_id) {
            self.changes.push(MetadataUpdate::RemoveStatistics { snapshot_id });
        }
    }

    fn remove_partition_statistics(&mut self, snapshot_id: i64) {
        if remove_where(&mut self.document.partition_statistics, |file| file.snapshot_id == snapshot_id) {
            self.changes.push(MetadataUpdate::RemovePartitionStatistics { snapshot_id });
        }
    }
}

/// Removes matching items; returns whether there were any.
fn remove_where<T>(items: &mut Vec<T>, matches: impl Fn(&T) -> bool) -> bool {
    let before = items.len();
    items.retain(|item| !matches(item));
    items.len() != before
}
