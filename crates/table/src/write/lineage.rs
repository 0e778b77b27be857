//! The columns of rows that were there before ("Row Lineage").

use std::sync::Arc;

use icefield_format::types::reserved::{LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID};
use icefield_format::types::{Field, Schema};

use crate::error::Result;

/// A schema with the columns of row lineage behind its own.
pub fn with_lineage(schema: &Schema) -> Result<Arc<Schema>> {
    with_lineage_columns(schema, |_| true)
}

/// A schema with some columns of row lineage behind its own, by their names.
pub(super) fn with_lineage_columns(schema: &Schema, wanted: impl Fn(&str) -> bool) -> Result<Arc<Schema>> {
    let lineage = [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER].into_iter().filter(|column| wanted(column.name));
    let lineage = lineage.map(|column| -> Field { column.to_field() });
    let fields = schema.fields().iter().cloned().chain(lineage).collect();
    Ok(Arc::new(Schema::new(schema.schema_id(), fields)?))
}
