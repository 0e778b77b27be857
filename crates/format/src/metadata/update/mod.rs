//! Updates of table metadata, named as in the REST protocol (REST catalog, `TableUpdate`). The modules convert table
//! definitions and a user's changes to updates, and updates to the requirements of a commit.

mod change;
pub(super) mod definition;
mod ref_changes;
pub(super) mod requirement;

use std::sync::Arc;

use serde_json::Value as Json;

use super::{EncryptedKey, PartitionStatisticsFile, Snapshot, SnapshotRef, StatisticsFile, StringMap};
use crate::json::{self, Object, Writer, write_strings};
use crate::spec::{PartitionSpec, SortOrder};
use crate::types::Schema;
use crate::{Error, Result};

/// In place of an id: the schema, spec or sort order that was added last.
pub const LAST_ADDED: i32 = -1;

/// An update of table metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataUpdate {
    /// Assigns the table's uuid.
    AssignUuid {
        /// The uuid.
        uuid: String,
    },
    /// Raises the format version.
    UpgradeFormatVersion {
        /// The new version.
        format_version: i32,
    },
    /// Adds a schema and assigns its id.
    AddSchema {
        /// The schema.
        schema: Schema,
    },
    /// Makes a schema the current one.
    SetCurrentSchema {
        /// Its id, or [`LAST_ADDED`].
        schema_id: i32,
    },
    /// Removes schemas that are not current.
    RemoveSchemas {
        /// Their ids.
        schema_ids: Vec<i32>,
    },
    /// Adds a partition spec and assigns its id.
    AddSpec {
        /// The spec.
        spec: PartitionSpec,
    },
    /// Makes a spec the default one.
    SetDefaultSpec {
        /// Its id, or [`LAST_ADDED`].
        spec_id: i32,
    },
    /// Removes specs that are not the default.
    RemovePartitionSpecs {
        /// Their ids.
        spec_ids: Vec<i32>,
    },
    /// Adds a sort order and assigns its id.
    AddSortOrder {
        /// The order.
        sort_order: SortOrder,
    },
    /// Makes a sort order the default one.
    SetDefaultSortOrder {
        /// Its id, or [`LAST_ADDED`].
        sort_order_id: i32,
    },
    /// Adds a snapshot without changing any branch.
    AddSnapshot {
        /// The snapshot.
        snapshot: Arc<Snapshot>,
    },
    /// Removes snapshots, their statistics, and the references to them.
    RemoveSnapshots {
        /// Their ids.
        snapshot_ids: Vec<i64>,
    },
    /// Creates or moves a branch or tag.
    SetSnapshotRef {
        /// Its name.
        ref_name: String,
        /// Its new snapshot and retention.
        reference: SnapshotRef,
    },
    /// Removes a branch or tag.
    RemoveSnapshotRef {
        /// Its name.
        ref_name: String,
    },
    /// Sets properties.
    SetProperties {
        /// Names and values.
        updates: StringMap,
    },
    /// Removes properties.
    RemoveProperties {
        /// Names.
        removals: Vec<String>,
    },
    /// Changes the base location of the table; its files stay.
    SetLocation {
        /// The new base location.
        location: String,
    },
    /// Sets the statistics file of a snapshot.
    SetStatistics {
        /// The file.
        statistics: StatisticsFile,
    },
    /// Removes the statistics files of a snapshot.
    RemoveStatistics {
        /// The snapshot.
        snapshot_id: i64,
    },
    /// Sets the partition statistics file of a snapshot.
    SetPartitionStatistics {
        /// The file.
        partition_statistics: PartitionStatisticsFile,
    },
    /// Removes the partition statistics files of a snapshot.
    RemovePartitionStatistics {
        /// The snapshot.
        snapshot_id: i64,
    },
    /// Adds an encryption key.
    AddEncryptionKey {
        /// The key.
        encryption_key: EncryptedKey,
    },
    /// Removes an encryption key.
    RemoveEncryptionKey {
        /// Its id.
        key_id: String,
    },
}

impl MetadataUpdate {
    /// Name of the action in the REST protocol.
    pub fn action(&self) -> &'static str {
        match self {
            Self::AssignUuid { .. } => "assign-uuid",
            Self::UpgradeFormatVersion { .. } => "upgrade-format-version",
            Self::AddSchema { .. } => "add-schema",
            Self::SetCurrentSchema { .. } => "set-current-schema",
            Self::RemoveSchemas { .. } => "remove-schemas",
            Self::AddSpec { .. } => "add-spec",
            Self::SetDefaultSpec { .. } => "set-default-spec",
            Self::RemovePartitionSpecs { .. } => "remove-partition-specs",
            Self::AddSortOrder { .. } => "add-sort-order",
            Self::SetDefaultSortOrder { .. } => "set-default-sort-order",
            Self::AddSnapshot { .. } => "add-snapshot",
            Self::RemoveSnapshots { .. } => "remove-snapshots",
            Self::SetSnapshotRef { .. } => "set-snapshot-ref",
            Self::RemoveSnapshotRef { .. } => "remove-snapshot-ref",
            Self::SetProperties { .. } => "set-properties",
            Self::RemoveProperties { .. } => "remove-properties",
            Self::SetLocation { .. } => "set-location",
            Self::SetStatistics { .. } => "set-statistics",
            Self::RemoveStatistics { .. } => "remove-statistics",
            Self::SetPartitionStatistics { .. } => "set-partition-statistics",
            Self::RemovePartitionStatistics { .. } => "remove-partition-statistics",
            Self::AddEncryptionKey { .. } => "add-encryption-key",
            Self::RemoveEncryptionKey { .. } => "remove-encryption-key",
        }
    }

    /// Reads the JSON form.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a metadata update")?;
        Ok(match object.field("action", json::string)?.to_lowercase().as_str() {
            "assign-uuid" => Self::AssignUuid { uuid: object.field("uuid", json::string)? },
            "upgrade-format-version" => {
                Self::UpgradeFormatVersion { format_version: object.field("format-version", json::int)? }
            }
            "add-schema" => Self::AddSchema { schema: object.field("schema", Schema::from_json)? },
            "set-current-schema" => Self::SetCurrentSchema { schema_id: object.field("schema-id", json::int)? },
            "remove-schemas" => Self::RemoveSchemas { schema_ids: object.field("schema-ids", ints)? },
            "add-spec" => Self::AddSpec { spec: object.field("spec", PartitionSpec::from_json)? },
            "set-default-spec" => Self::SetDefaultSpec { spec_id: object.field("spec-id", json::int)? },
            "remove-partition-specs" => Self::RemovePartitionSpecs { spec_ids: object.field("spec-ids", ints)? },
            "add-sort-order" => Self::AddSortOrder { sort_order: object.field("sort-order", SortOrder::from_json)? },
            "set-default-sort-order" => {
                Self::SetDefaultSortOrder { sort_order_id: object.field("sort-order-id", json::int)? }
            }
            "add-snapshot" => Self::AddSnapshot { snapshot: Arc::new(object.field("snapshot", Snapshot::from_json)?) },
            "remove-snapshots" => Self::RemoveSnapshots {
                snapshot_ids: object.field("snapshot-ids", |value| json::list(value, json::long))?,
            },
            "set-snapshot-ref" => Self::SetSnapshotRef {
                ref_name: object.field("ref-name", json::string)?,
                reference: SnapshotRef::read_fields(object)?,
            },
            "remove-snapshot-ref" => Self::RemoveSnapshotRef { ref_name: object.field("ref-name", json::string)? },
            // The first implementations wrote "updated" and "removed".
            "set-properties" => {
                Self::SetProperties { updates: object.field(either(object, "updates", "updated"), json::string_map)? }
            }
            "remove-properties" => {
                let name = either(object, "removals", "removed");
                Self::RemoveProperties { removals: object.field(name, |value| json::list(value, json::string))? }
            }
            "set-location" => Self::SetLocation { location: object.field("location", json::string)? },
            "set-statistics" => {
                Self::SetStatistics { statistics: object.field("statistics", StatisticsFile::from_json)? }
            }
            "remove-statistics" => Self::RemoveStatistics { snapshot_id: object.field("snapshot-id", json::long)? },
            "set-partition-statistics" => Self::SetPartitionStatistics {
                partition_statistics: object.field("partition-statistics", PartitionStatisticsFile::from_json)?,
            },
            "remove-partition-statistics" => {
                Self::RemovePartitionStatistics { snapshot_id: object.field("snapshot-id", json::long)? }
            }
            "add-encryption-key" => {
                Self::AddEncryptionKey { encryption_key: object.field("encryption-key", EncryptedKey::from_json)? }
            }
            "remove-encryption-key" => Self::RemoveEncryptionKey { key_id: object.field("key-id", json::string)? },
            other => return Err(Error::corrupt("/action", format!("unknown table update: {other:?}"))),
        })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let mut object = Writer::default();
        object.put("action", self.action());
        match self {
            Self::AssignUuid { uuid } => object.put("uuid", uuid.as_str()),
            Self::UpgradeFormatVersion { format_version } => object.put("format-version", *format_version),
            Self::AddSchema { schema } => {
                object.put("schema", schema.to_json()).put("last-column-id", schema.highest_field_id())
            }
            Self::SetCurrentSchema { schema_id } => object.put("schema-id", *schema_id),
            Self::RemoveSchemas { schema_ids } => object.put("schema-ids", schema_ids.clone()),
            Self::AddSpec { spec } => object.put("spec", spec.to_json()),
            Self::SetDefaultSpec { spec_id } => object.put("spec-id", *spec_id),
            Self::RemovePartitionSpecs { spec_ids } => object.put("spec-ids", spec_ids.clone()),
            Self::AddSortOrder { sort_order } => object.put("sort-order", sort_order.to_json()),
            Self::SetDefaultSortOrder { sort_order_id } => object.put("sort-order-id", *sort_order_id),
            Self::AddSnapshot { snapshot } => object.put("snapshot", snapshot.to_json()),
            Self::RemoveSnapshots { snapshot_ids } => object.put("snapshot-ids", snapshot_ids.clone()),
            Self::SetSnapshotRef { ref_name, reference } => {
                reference.write_fields(object.put("ref-name", ref_name.as_str()));
                &mut object
            }
            Self::RemoveSnapshotRef { ref_name } => object.put("ref-name", ref_name.as_str()),
            Self::SetProperties { updates } => object.put("updates", write_strings(updates)),
            Self::RemoveProperties { removals } => object.put("removals", removals.clone()),
            Self::SetLocation { location } => object.put("location", location.as_str()),
            Self::SetStatistics { statistics } => {
                object.put("snapshot-id", statistics.snapshot_id).put("statistics", statistics.to_json())
            }
            Self::RemoveStatistics { snapshot_id } | Self::RemovePartitionStatistics { snapshot_id } => {
                object.put("snapshot-id", *snapshot_id)
            }
            Self::SetPartitionStatistics { partition_statistics } => {
                object.put("partition-statistics", partition_statistics.to_json())
            }
            Self::AddEncryptionKey { encryption_key } => object.put("encryption-key", encryption_key.to_json()),
            Self::RemoveEncryptionKey { key_id } => object.put("key-id", key_id.as_str()),
        };
        object.finish()
    }
}

fn ints(value: &Json) -> Result<Vec<i32>> {
    json::list(value, json::int)
}

/// Returns the name of a field, or its older name if the object has only that.
fn either(object: Object<'_>, name: &'static str, older: &'static str) -> &'static str {
    if object.member(name).is_none() && object.member(older).is_some() { older } else { name }
}
