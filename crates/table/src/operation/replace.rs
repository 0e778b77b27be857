//! Replaced tables: other columns, another partition spec and sort order, more properties, and an empty main branch. What was
//! in the table stays in its history.

use icefield_format::metadata::properties::check_set;
use icefield_format::metadata::{MetadataUpdate, TableDefinition, TableMetadata};

use crate::commit::Change;
use crate::error::Result;

/// The replacement of a table as it is at the commit, whatever others have committed before.
#[derive(Debug)]
pub struct Replace {
    definition: TableDefinition,
}

impl Replace {
    /// A replacement by this definition; columns and partition fields that the table has keep their ids.
    ///
    /// # Errors
    /// A table property that has a value it cannot have.
    pub fn new(definition: TableDefinition) -> Result<Self> {
        check_set(&definition.properties)?;
        Ok(Self { definition })
    }
}

impl Change for Replace {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        Ok(self.definition.replace_updates(base)?)
    }
}
