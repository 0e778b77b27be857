//! Schemas, partition specs and sort orders of a table: equal ones are added once, and no id is ever assigned twice.

use std::sync::Arc;

use super::MetadataBuilder;
use crate::metadata::{FormatVersion, LAST_ADDED, MetadataUpdate};
use crate::spec::{PartitionSpec, SortOrder, SpecUse};
use crate::types::Schema;
use crate::{Error, Result};

impl MetadataBuilder {
    pub(super) fn add_schema(&mut self, schema: &Schema) -> Result<()> {
        schema.check_compatibility(self.document.format_version.number())?;
        let last_column_id = self.document.last_column_id.max(schema.highest_field_id());
        if let Some(known) = self.document.schemas.iter().find(|known| known.same_schema(schema)) {
            let schema_id = known.schema_id();
            let added_here = |change: &MetadataUpdate| matches!(change, MetadataUpdate::AddSchema { schema } if schema.schema_id() == schema_id);
            self.last_added_schema = self.changes.iter().any(added_here).then_some(schema_id);
            return Ok(());
        }
        let schema_ids = self.document.schemas.iter().map(|schema| schema.schema_id());
        let schema_id = next_id(self.document.current_schema_id, schema_ids)?;
        let schema = schema.with_schema_id(schema_id);
        self.document.last_column_id = last_column_id;
        self.document.schemas.push(Arc::new(schema.clone()));
        self.changes.push(MetadataUpdate::AddSchema { schema });
        self.last_added_schema = Some(schema_id);
        Ok(())
    }

    pub(super) fn set_current_schema(&mut self, schema_id: i32) -> Result<()> {
        let id = resolve(schema_id, self.last_added_schema, "schema")?;
        if id == self.document.current_schema_id {
            return Ok(());
        }
        if !self.document.schemas.iter().any(|schema| schema.schema_id() == id) {
            return Err(Error::invalid(format!("there is no schema with id {id}")));
        }
        self.document.current_schema_id = id;
        let schema_id = if self.last_added_schema == Some(id) { LAST_ADDED } else { id };
        self.changes.push(MetadataUpdate::SetCurrentSchema { schema_id });
        Ok(())
    }

    pub(super) fn remove_schemas(&mut self, schema_ids: Vec<i32>) -> Result<()> {
        if schema_ids.contains(&self.document.current_schema_id) {
            return Err(Error::invalid("the current schema cannot be removed"));
        }
        if !schema_ids.is_empty() {
            self.document.schemas.retain(|schema| !schema_ids.contains(&schema.schema_id()));
            self.changes.push(MetadataUpdate::RemoveSchemas { schema_ids });
        }
        Ok(())
    }

    pub(super) fn add_spec(&mut self, mut spec: PartitionSpec) -> Result<()> {
        spec.check(self.current_schema()?, SpecUse::Default)?;
        if let Some(known) = self.document.partition_specs.iter().find(|known| known.compatible_with(&spec)) {
            self.last_added_spec = self.last_added_spec.map(|_| known.spec_id);
            return Ok(());
        }
        if self.document.format_version == FormatVersion::V1 && !spec.has_sequential_ids() {
            return Err(Error::invalid(format!(
                "format version 1 requires consecutive partition field ids from 1000: {spec}"
            )));
        }
        spec.spec_id = next_id(0, self.document.partition_specs.iter().map(|spec| spec.spec_id))?;
        self.document.last_partition_id = self.document.last_partition_id.max(spec.last_assigned_field_id());
        self.document.partition_specs.push(Arc::new(spec.clone()));
        self.last_added_spec = Some(spec.spec_id);
        self.changes.push(MetadataUpdate::AddSpec { spec });
        Ok(())
    }

    /// Only `build` checks that the spec exists, as in the Java library.
    pub(super) fn set_default_spec(&mut self, spec_id: i32) -> Result<()> {
        let id = resolve(spec_id, self.last_added_spec, "partition spec")?;
        if id != self.document.default_spec_id {
            self.document.default_spec_id = id;
            let spec_id = if self.last_added_spec == Some(id) { LAST_ADDED } else { id };
            self.changes.push(MetadataUpdate::SetDefaultSpec { spec_id });
        }
        Ok(())
    }

    pub(super) fn remove_specs(&mut self, spec_ids: Vec<i32>) -> Result<()> {
        if spec_ids.contains(&self.document.default_spec_id) {
            return Err(Error::invalid("the default partition spec cannot be removed"));
        }
        if !spec_ids.is_empty() {
            self.document.partition_specs.retain(|spec| !spec_ids.contains(&spec.spec_id));
            self.changes.push(MetadataUpdate::RemovePartitionSpecs { spec_ids });
        }
        Ok(())
    }

    pub(super) fn add_sort_order(&mut self, mut sort_order: SortOrder) -> Result<()> {
        sort_order.check_id()?;
        sort_order.check(self.current_schema()?)?;
        if let Some(known) = self.document.sort_orders.iter().find(|known| known.same_order(&sort_order)) {
            self.last_added_sort_order = self.last_added_sort_order.map(|_| known.order_id);
            return Ok(());
        }
        if !sort_order.is_unsorted() {
            sort_order.order_id = next_id(1, self.document.sort_orders.iter().map(|order| order.order_id))?;
        }
        self.document.sort_orders.push(Arc::new(sort_order.clone()));
        self.last_added_sort_order = Some(sort_order.order_id);
        self.changes.push(MetadataUpdate::AddSortOrder { sort_order });
        Ok(())
    }

    pub(super) fn set_default_sort_order(&mut self, sort_order_id: i32) -> Result<()> {
        let id = resolve(sort_order_id, self.last_added_sort_order, "sort order")?;
        if id != self.document.default_sort_order_id {
            self.document.default_sort_order_id = id;
            let sort_order_id = if self.last_added_sort_order == Some(id) { LAST_ADDED } else { id };
            self.changes.push(MetadataUpdate::SetDefaultSortOrder { sort_order_id });
        }
        Ok(())
    }

    fn current_schema(&self) -> Result<&Schema> {
        let current = self.document.schemas.iter().find(|schema| schema.schema_id() == self.document.current_schema_id);
        current.map(|schema| &**schema).ok_or_else(|| Error::invalid("there is no current schema yet"))
    }
}

/// Resolves the id of an update: [`LAST_ADDED`] becomes the id of the last added definition.
fn resolve(id: i32, last_added: Option<i32>, what: &str) -> Result<i32> {
    if id != LAST_ADDED {
        return Ok(id);
    }
    last_added.ok_or_else(|| Error::invalid(format!("id -1 means the last added {what}, but none was added")))
}

/// Returns the next free id: one more than the highest, and at least `first`.
fn next_id(first: i32, ids: impl Iterator<Item = i32>) -> Result<i32> {
    let next = |id: i32| id.checked_add(1).ok_or_else(|| Error::invalid("all ids are used up"));
    ids.map(next).try_fold(first, |highest, next| next.map(|next| highest.max(next)))
}
