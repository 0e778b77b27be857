//! New tables: their first metadata file.

use std::sync::Arc;

use icefield_format::metadata::properties::check_set;
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableDefinition, TableMetadata};

use crate::clock::now_ms;
use crate::commit::{Committed, write_metadata};
use crate::error::Result;
use crate::storage::Storage;

/// Writes the first metadata file of a new table. No catalog has an entry for it yet.
pub fn create(storage: &Storage, definition: &TableDefinition) -> Result<Committed> {
    let metadata = stage(definition)?;
    let location = write_metadata(storage, &metadata, 0)?;
    Ok(Committed { location, metadata: Arc::new(metadata) })
}

/// The metadata of a new table, which are written nowhere.
pub fn stage(definition: &TableDefinition) -> Result<TableMetadata> {
    check_set(&definition.properties)?;
    let updates = definition.create_updates(uuid::Uuid::new_v4().to_string())?;
    let version = updates.iter().find_map(|update| match update {
        MetadataUpdate::UpgradeFormatVersion { format_version } => Some(*format_version),
        _ => None,
    });
    let mut builder = MetadataBuilder::new_table(now_ms());
    if let Some(version) = version {
        builder = builder.with_format_version(version.try_into()?);
    }
    Ok(builder.apply_all(updates)?.build()?)
}
