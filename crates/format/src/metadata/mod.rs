//! Table metadata of versions 1, 2 and 3 ("Table Metadata"; JSON in Appendix C), its changes and its history.
//!
//! A [`TableMetadata`] is always valid: it comes from a document ([`TableMetadata::from_json`]) or from a
//! [`MetadataBuilder`], and both run the same checks. It is immutable; a change creates a new one.

mod builder;
mod display;
mod encryption;
mod file;
pub mod properties;
mod range;
mod refs;
mod relocated;
pub mod retention;
mod snapshot;
mod statistics;
mod update;

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

pub use builder::MetadataBuilder;
pub use encryption::EncryptedKey;
pub use file::compression::{compress, decompress};
pub use file::file_name::{MetadataCodec, hadoop_metadata_file_name, metadata_file_name, metadata_file_version};
pub use range::{SnapshotBound, SnapshotRange};
pub use refs::{MAIN_BRANCH, RefKind, SnapshotRef};
pub use snapshot::{Operation, Snapshot, SnapshotManifests, Summary};
pub use statistics::{BlobMetadata, PartitionStatisticsFile, StatisticsFile};
pub use update::definition::TableDefinition;
pub use update::requirement::{
    UpdateRequirement, requirements_for_create, requirements_for_replace, requirements_for_update,
};
pub use update::{LAST_ADDED, MetadataUpdate};

pub use crate::json::StringMap;
use crate::spec::{PartitionSpec, SortOrder, UpdatePartitionSpec};
use crate::types::Schema;
pub use crate::version::FormatVersion;

/// Valid, immutable table metadata.
#[derive(Debug, Clone)]
pub struct TableMetadata {
    document: Document,
    current_schema: Arc<Schema>,
    default_spec: Arc<PartitionSpec>,
    default_sort_order: Arc<SortOrder>,
    /// Index of each snapshot in the document.
    snapshots_by_id: HashMap<i64, usize>,
}

/// The fields of a metadata document, not yet checked against each other.
#[derive(Debug, Clone, PartialEq)]
struct Document {
    format_version: FormatVersion,
    table_uuid: Option<String>,
    location: String,
    last_sequence_number: i64,
    last_updated_ms: i64,
    last_column_id: i32,
    schemas: Vec<Arc<Schema>>,
    current_schema_id: i32,
    partition_specs: Vec<Arc<PartitionSpec>>,
    default_spec_id: i32,
    last_partition_id: i32,
    sort_orders: Vec<Arc<SortOrder>>,
    default_sort_order_id: i32,
    properties: StringMap,
    current_snapshot_id: Option<i64>,
    snapshots: Vec<Arc<Snapshot>>,
    refs: IndexMap<String, SnapshotRef>,
    snapshot_log: Vec<SnapshotLogEntry>,
    metadata_log: Vec<MetadataLogEntry>,
    statistics: Vec<StatisticsFile>,
    partition_statistics: Vec<PartitionStatisticsFile>,
    encryption_keys: Vec<EncryptedKey>,
    next_row_id: i64,
    unknown: Map<String, Json>,
}

impl PartialEq for TableMetadata {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
    }
}

/// When a snapshot became the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLogEntry {
    /// Milliseconds from the epoch.
    pub timestamp_ms: i64,
    /// The snapshot; it may have been expired since.
    pub snapshot_id: i64,
}

/// A previous metadata file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataLogEntry {
    /// When it was written, in milliseconds from the epoch.
    pub timestamp_ms: i64,
    /// Its location.
    pub metadata_file: String,
}

impl TableMetadata {
    /// Format version.
    pub fn format_version(&self) -> FormatVersion {
        self.document.format_version
    }

    /// The table's uuid; old v1 tables have none.
    pub fn table_uuid(&self) -> Option<&str> {
        self.document.table_uuid.as_deref()
    }

    /// Base location of the table, without a slash at the end.
    pub fn location(&self) -> &str {
        &self.document.location
    }

    /// The highest sequence number; 0 in v1.
    pub fn last_sequence_number(&self) -> i64 {
        self.document.last_sequence_number
    }

    /// The sequence number of the next snapshot; 0 in v1.
    pub fn next_sequence_number(&self) -> i64 {
        match self.document.format_version {
            FormatVersion::V1 => 0,
            _ => self.document.last_sequence_number.saturating_add(1),
        }
    }

    /// Time of the last change, in milliseconds from the epoch.
    pub fn last_updated_ms(&self) -> i64 {
        self.document.last_updated_ms
    }

    /// The highest column id ever assigned.
    pub fn last_column_id(&self) -> i32 {
        self.document.last_column_id
    }

    /// All schemas.
    pub fn schemas(&self) -> &[Arc<Schema>] {
        &self.document.schemas
    }

    /// The schema with this id.
    pub fn schema(&self, schema_id: i32) -> Option<&Arc<Schema>> {
        self.document.schemas.iter().find(|schema| schema.schema_id() == schema_id)
    }

    /// Id of the current schema.
    pub fn current_schema_id(&self) -> i32 {
        self.document.current_schema_id
    }

    /// The current schema.
    pub fn current_schema(&self) -> &Arc<Schema> {
        &self.current_schema
    }

    /// All partition specs.
    pub fn partition_specs(&self) -> &[Arc<PartitionSpec>] {
        &self.document.partition_specs
    }

    /// The partition spec with this id.
    pub fn partition_spec(&self, spec_id: i32) -> Option<&Arc<PartitionSpec>> {
        self.document.partition_specs.iter().find(|spec| spec.spec_id == spec_id)
    }

    /// Id of the spec for new files.
    pub fn default_spec_id(&self) -> i32 {
        self.document.default_spec_id
    }

    /// The spec for new files.
    pub fn default_spec(&self) -> &Arc<PartitionSpec> {
        &self.default_spec
    }

    /// Starts a change of the default partition spec.
    pub fn update_partition_spec(&self) -> UpdatePartitionSpec {
        UpdatePartitionSpec::new(
            self.document.format_version,
            Arc::clone(&self.current_schema),
            Arc::clone(&self.default_spec),
            self.document.partition_specs.clone(),
            self.document.last_partition_id,
        )
    }

    /// The highest partition field id ever assigned.
    pub fn last_partition_id(&self) -> i32 {
        self.document.last_partition_id
    }

    /// All sort orders.
    pub fn sort_orders(&self) -> &[Arc<SortOrder>] {
        &self.document.sort_orders
    }

    /// The sort order with this id.
    pub fn sort_order(&self, order_id: i32) -> Option<&Arc<SortOrder>> {
        self.document.sort_orders.iter().find(|order| order.order_id == order_id)
    }

    /// Id of the sort order for new files.
    pub fn default_sort_order_id(&self) -> i32 {
        self.document.default_sort_order_id
    }

    /// The sort order for new files.
    pub fn default_sort_order(&self) -> &Arc<SortOrder> {
        &self.default_sort_order
    }

    /// The table's properties, in the order of the document.
    pub fn properties(&self) -> &StringMap {
        &self.document.properties
    }

    /// The value of a property.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.document.properties.get(name).map(String::as_str)
    }

    /// All snapshots, in the order of the document.
    pub fn snapshots(&self) -> &[Arc<Snapshot>] {
        &self.document.snapshots
    }

    /// The snapshot with this id.
    pub fn snapshot(&self, snapshot_id: i64) -> Option<&Arc<Snapshot>> {
        self.snapshots_by_id.get(&snapshot_id).and_then(|position| self.document.snapshots.get(*position))
    }

    /// Id of the current snapshot; `None` if the table is empty.
    pub fn current_snapshot_id(&self) -> Option<i64> {
        self.document.current_snapshot_id
    }

    /// The current snapshot; `None` if the table is empty.
    pub fn current_snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.document.current_snapshot_id.and_then(|id| self.snapshot(id))
    }

    /// The snapshot and its ancestors, newest first, until an ancestor that has been expired.
    pub fn ancestors(&self, snapshot_id: i64) -> Ancestors<'_> {
        Ancestors { metadata: self, next: Some(snapshot_id), left: self.document.snapshots.len() }
    }

    /// The snapshot that was current at a time, according to the snapshot log.
    pub fn snapshot_id_as_of(&self, timestamp_ms: i64) -> Option<i64> {
        let mut past = self.document.snapshot_log.iter().filter(|entry| entry.timestamp_ms <= timestamp_ms);
        past.next_back().map(|entry| entry.snapshot_id)
    }

    /// Branches and tags by name.
    pub fn refs(&self) -> &IndexMap<String, SnapshotRef> {
        &self.document.refs
    }

    /// All branches and tags. `main` is included if there is a current snapshot: some writers set the current snapshot
    /// but write no `main` branch.
    pub fn all_refs(&self) -> impl Iterator<Item = (&str, SnapshotRef)> {
        let named = self.refs().iter().map(|(name, reference)| (name.as_str(), reference.clone()));
        let unnamed = self.current_snapshot().filter(|_| self.reference(MAIN_BRANCH).is_none());
        named.chain(unnamed.map(|current| (MAIN_BRANCH, SnapshotRef::branch(current.snapshot_id))))
    }

    /// The branch or tag with this name.
    pub fn reference(&self, name: &str) -> Option<&SnapshotRef> {
        self.document.refs.get(name)
    }

    /// History of the current snapshot, oldest first.
    pub fn snapshot_log(&self) -> &[SnapshotLogEntry] {
        &self.document.snapshot_log
    }

    /// Previous metadata files, oldest first.
    pub fn metadata_log(&self) -> &[MetadataLogEntry] {
        &self.document.metadata_log
    }

    /// Statistics files.
    pub fn statistics(&self) -> &[StatisticsFile] {
        &self.document.statistics
    }

    /// Partition statistics files.
    pub fn partition_statistics(&self) -> &[PartitionStatisticsFile] {
        &self.document.partition_statistics
    }

    /// Keys that encrypt other keys and manifest lists.
    pub fn encryption_keys(&self) -> &[EncryptedKey] {
        &self.document.encryption_keys
    }

    /// v3: a row id above all assigned ones; 0 before.
    pub fn next_row_id(&self) -> i64 {
        self.document.next_row_id
    }
}

/// See [`TableMetadata::ancestors`].
#[derive(Debug, Clone)]
pub struct Ancestors<'a> {
    metadata: &'a TableMetadata,
    next: Option<i64>,
    /// Remaining steps: ends the walk if the parents form a cycle.
    left: usize,
}

impl<'a> Iterator for Ancestors<'a> {
    type Item = &'a Arc<Snapshot>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let snapshot = self.metadata.snapshot(self.next?)?;
        self.next = snapshot.parent_snapshot_id;
        Some(snapshot)
    }
}
