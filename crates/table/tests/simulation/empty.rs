//! The table that a schedule starts with.

use std::sync::Arc;

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableDefinition};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{Committed, read_metadata};
use icefield_table::operation::create::create;
use icefield_table::storage::{Existing, Storage};

use crate::contents::WHOLE;
use crate::schedule::START_MS;

/// A table without snapshots.
pub fn empty(storage: &Storage, version: u8) -> Committed {
    let fields = vec![Field::required(1, "key", PrimitiveType::Long), Field::required(2, "p", PrimitiveType::Int)];
    let schema = Schema::new(0, fields).unwrap();
    let properties = [
        ("format-version", version.to_string().as_str()),
        ("commit.retry.num-retries", "3"),
        ("commit.retry.min-wait-ms", "0"),
        ("commit.retry.max-wait-ms", "0"),
        ("commit.status-check.num-retries", "0"),
        ("commit.status-check.min-wait-ms", "0"),
        ("commit.manifest.min-count-to-merge", "3"),
        ("write.manifest.compression-codec", "uncompressed"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let definition = TableDefinition {
        partition_spec: PartitionSpec::from_text(0, &["p"], &schema).unwrap(),
        schema,
        sort_order: SortOrder::unsorted(),
        location: format!("memory://simulation/empty-{version}"),
        properties: properties.into_iter().collect(),
    };
    let Committed { location, metadata } = create(storage, &definition).unwrap();
    let spec = PartitionSpec { spec_id: WHOLE, ..PartitionSpec::unpartitioned() };
    let both = MetadataBuilder::from_base(&metadata, START_MS).apply_all([MetadataUpdate::AddSpec { spec }]);
    Committed { location, metadata: Arc::new(both.unwrap().build().unwrap()) }
}

/// The same table at another location. This is faster than creating a table, which checks each property and takes
/// longer than a whole change.
pub fn moved(storage: &Storage, table: &Committed, root: &str) -> Committed {
    let text = table.metadata.to_json().replace(table.metadata.location(), root);
    let location = table.location.replace(table.metadata.location(), root);
    storage.put(&location, text.into_bytes(), Existing::Refuse).unwrap();
    let metadata = Arc::new(read_metadata(storage, &location).unwrap());
    Committed { location, metadata }
}
