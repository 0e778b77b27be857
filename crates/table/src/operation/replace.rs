//! Replaces the definition of a table: new columns, partition spec and sort order, additional properties, and an empty
//! main branch. Earlier snapshots stay in the history.

use icefield_format::metadata::properties::check_set;
use icefield_format::metadata::{MetadataUpdate, TableDefinition, TableMetadata};

use crate::commit::Change;
use crate::error::Result;
use crate::write::provider;

/// Replaces the definition of a table, whatever its state at the commit: other commits are no conflict.
#[derive(Debug)]
pub struct Replace {
    definition: TableDefinition,
}

impl Replace {
    /// A replacement with this definition; columns and partition fields that the table already has keep their ids.
    ///
    /// # Errors
    /// A table property with an invalid value.
    pub fn new(definition: TableDefinition) -> Result<Self> {
        check_set(&definition.properties)?;
        provider::check(&definition.properties)?;
        Ok(Self { definition })
    }
}

impl Change for Replace {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        Ok(self.definition.replace_updates(base)?)
    }
}
