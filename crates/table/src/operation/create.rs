//! Creates new tables: their first metadata file.

use std::sync::Arc;

use icefield_format::FormatVersion;
use icefield_format::metadata::properties::{ENCRYPTION_TABLE_KEY, check_set};
use icefield_format::metadata::{TableDefinition, TableMetadata};

use crate::commit::{Committed, created_by, write_metadata};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::write::{key_length, provider};

/// Writes the first metadata file of a new table. The table is not registered in a catalog.
pub fn create(storage: &Storage, definition: &TableDefinition) -> Result<Committed> {
    let metadata = stage(definition)?;
    let location = write_metadata(storage, &metadata, 0)?;
    Ok(Committed { location, metadata: Arc::new(metadata) })
}

/// The metadata of a new table, without writing it.
pub fn stage(definition: &TableDefinition) -> Result<TableMetadata> {
    check_set(&definition.properties)?;
    provider::check(&definition.properties)?;
    let metadata = created_by(&definition.create_updates(uuid::Uuid::new_v4().to_string())?)?;
    if key_length(metadata.properties())?.is_some() && metadata.format_version() < FormatVersion::V3 {
        return Err(Error::invalid(format!(
            "{} needs a table of version 3, which has a place for keys: set format-version=3",
            ENCRYPTION_TABLE_KEY.name
        )));
    }
    Ok(metadata)
}
