//! Creates new tables: their first metadata file.

use std::sync::Arc;

use icefield_format::metadata::properties::check_set;
use icefield_format::metadata::{TableDefinition, TableMetadata};

use crate::commit::{Committed, created_by, write_metadata};
use crate::error::Result;
use crate::storage::Storage;

/// Writes the first metadata file of a new table. The table is not registered in a catalog.
pub fn create(storage: &Storage, definition: &TableDefinition) -> Result<Committed> {
    let metadata = stage(definition)?;
    let location = write_metadata(storage, &metadata, 0)?;
    Ok(Committed { location, metadata: Arc::new(metadata) })
}

/// The metadata of a new table, without writing it.
pub fn stage(definition: &TableDefinition) -> Result<TableMetadata> {
    check_set(&definition.properties)?;
    created_by(&definition.create_updates(uuid::Uuid::new_v4().to_string())?)
}
