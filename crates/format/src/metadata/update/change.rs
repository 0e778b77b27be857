//! Changes of the schema in the terms of a user, as updates ("Schema Evolution").

use crate::evolution::UpdateSchema;
use crate::metadata::{MetadataUpdate, StringMap, TableMetadata};
use crate::transform::Transform;
use crate::types::Schema;
use crate::{Error, Result};

impl TableMetadata {
    /// Starts a change of the current schema.
    pub fn update_schema(&self) -> UpdateSchema {
        let version = self.format_version().number();
        let mut change = UpdateSchema::new(self.current_schema(), self.last_column_id(), version);
        change.partitioned_by(self.partition_specs().iter().map(AsRef::as_ref));
        change
    }

    /// The updates that make the result of a change the current schema, with those of the properties that name columns.
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

    /// A column stays while new files are partitioned or sorted by it.
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

    /// The updates after which columns of `other`, the schema of rows to be written, have their place in the table.
    /// Required columns stay required: the writer checks whether rows fit.
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
