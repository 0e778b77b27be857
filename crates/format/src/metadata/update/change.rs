//! Schema changes as a user states them, converted to updates ("Schema Evolution").

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Map;

use crate::evolution::UpdateSchema;
use crate::metadata::{Document, MetadataUpdate, StringMap, TableMetadata};
use crate::transform::Transform;
use crate::types::Schema;
use crate::{Error, Result};

impl TableMetadata {
    /// Returns what is needed to read and write rows, with these properties: no snapshots, references, statistics or
    /// logs, and only the older schemas that partition specs need.
    #[must_use]
    pub fn without_history(&self, properties: StringMap) -> Self {
        let document = &self.document;
        let mut needed = vec![self.document.current_schema_id];
        for spec in &document.partition_specs {
            let ids: Vec<i32> = spec.fields.iter().flat_map(|field| field.source_ids.iter().copied()).collect();
            let has_all = |schema: &&Arc<Schema>| ids.iter().all(|id| schema.find_field(*id).is_some());
            if !has_all(&&self.current_schema) {
                needed.extend(document.schemas.iter().rev().find(has_all).map(|schema| schema.schema_id()));
            }
        }
        let schemas = document.schemas.iter().filter(|schema| needed.contains(&schema.schema_id()));
        let document = Document {
            format_version: document.format_version,
            table_uuid: document.table_uuid.clone(),
            location: document.location.clone(),
            last_sequence_number: document.last_sequence_number,
            last_updated_ms: document.last_updated_ms,
            last_column_id: document.last_column_id,
            schemas: schemas.cloned().collect(),
            current_schema_id: document.current_schema_id,
            partition_specs: document.partition_specs.clone(),
            default_spec_id: document.default_spec_id,
            last_partition_id: document.last_partition_id,
            sort_orders: document.sort_orders.clone(),
            default_sort_order_id: document.default_sort_order_id,
            properties,
            next_row_id: document.next_row_id,
            current_snapshot_id: None,
            snapshots: Vec::new(),
            refs: IndexMap::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
            statistics: Vec::new(),
            partition_statistics: Vec::new(),
            encryption_keys: Vec::new(),
            unknown: Map::new(),
        };
        Self { document, snapshots_by_id: HashMap::new(), ..self.clone() }
    }

    /// Starts a change of the current schema.
    pub fn update_schema(&self) -> UpdateSchema {
        let version = self.format_version().number();
        let mut change = UpdateSchema::new(self.current_schema(), self.last_column_id(), version);
        change.partitioned_by(self.partition_specs().iter().map(AsRef::as_ref));
        change
    }

    /// Returns the updates that make the changed schema current and adjust properties that name columns.
    pub fn schema_updates(&self, change: &UpdateSchema) -> Result<Vec<MetadataUpdate>> {
        let schema = change.apply()?;
        if schema.same_schema(self.current_schema()) {
            return Ok(Vec::new());
        }
        self.check_sources(&schema)?;
        let mut updates = self.current_schema_updates(&schema);
        let properties = self.properties().iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let changes = change.property_changes(&schema, properties);
        if !changes.removed.is_empty() {
            updates.push(MetadataUpdate::RemoveProperties { removals: changes.removed });
        }
        if !changes.set.is_empty() {
            updates.push(MetadataUpdate::SetProperties { updates: changes.set.into_iter().collect::<StringMap>() });
        }
        Ok(updates)
    }

    /// Checks that no column is removed while the default spec or sort order uses it.
    fn check_sources(&self, schema: &Schema) -> Result<()> {
        let check = |source_ids: &[i32], user: &dyn Fn() -> String| match source_ids
            .iter()
            .find(|id| schema.find_field(**id).is_none())
        {
            Some(id) => {
                let name = self.current_schema().column_name(*id).unwrap_or("?");
                Err(Error::unfit(format!("cannot delete column {name}: {}", user())))
            }
            None => Ok(()),
        };
        for field in self.default_spec().fields.iter().filter(|field| field.transform != Transform::Void) {
            let (name, transform) = (&field.name, &field.transform);
            check(&field.source_ids, &|| {
                format!(
                    "partition field {name} ({transform}) has it as its source: remove the field from the spec first"
                )
            })?;
        }
        for field in &self.default_sort_order().fields {
            check(&field.source_ids, &|| format!("the sort order contains {field}: replace the order first"))?;
        }
        Ok(())
    }

    /// Returns the updates that add the columns of `other`, the schema of rows to be written, to the table. Required
    /// columns stay required: the writer checks whether the rows fit.
    pub fn widened_by(&self, other: &Schema) -> Result<Vec<MetadataUpdate>> {
        let mut change = self.update_schema();
        change.union_by_name(other)?.allow_incompatible();
        let schema = self.current_schema();
        let required = schema.ids().iter().filter(|id| schema.find_field(**id).is_some_and(|field| field.required));
        for name in required.filter_map(|id| schema.column_name(*id)) {
            change.require(name)?;
        }
        self.schema_updates(&change)
    }
}
