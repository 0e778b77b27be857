//! The definition of a table, and the updates that create a table from it, replace a table with it, or change one part.

use crate::metadata::properties::{FORMAT_VERSION, PARQUET_COMPRESSION, PARQUET_COMPRESSION_OF_NEW_TABLES, RESERVED};
use crate::metadata::{FormatVersion, LAST_ADDED, MAIN_BRANCH, MetadataUpdate, StringMap, TableMetadata};
use crate::spec::{FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec, SortField, SortOrder};
use crate::types::Schema;
use crate::{Error, Result};

/// Definition of a table to be created. Ids of columns and partition fields only connect the parts of the definition:
/// the table assigns its own.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    /// The columns.
    pub schema: Schema,
    /// How files are partitioned, by columns of `schema`.
    pub partition_spec: PartitionSpec,
    /// How files are sorted, by columns of `schema`.
    pub sort_order: SortOrder,
    /// Base location of the table.
    pub location: String,
    /// Properties; `format-version` sets the version, other reserved names are dropped.
    pub properties: StringMap,
}

impl TableDefinition {
    /// Returns the updates that create a table with this uuid, in the order that REST catalogs expect.
    pub fn create_updates(&self, uuid: impl Into<String>) -> Result<Vec<MetadataUpdate>> {
        let version = FormatVersion::of_new_table(&self.properties)?;
        self.schema.check_named()?;
        self.schema.check_structs(None)?;
        let schema = self.schema.with_fresh_ids(0, &mut 0)?;
        let mut partition_spec = self.spec_over(&schema)?;
        for (field_id, field) in (FIRST_PARTITION_FIELD_ID..).zip(&mut partition_spec.fields) {
            field.field_id = field_id;
        }
        let sort_order = self.order_over(&schema)?;
        Ok(vec![
            MetadataUpdate::AssignUuid { uuid: uuid.into() },
            MetadataUpdate::UpgradeFormatVersion { format_version: version.number().into() },
            MetadataUpdate::AddSchema { schema },
            MetadataUpdate::SetCurrentSchema { schema_id: LAST_ADDED },
            MetadataUpdate::AddSpec { spec: partition_spec },
            MetadataUpdate::SetDefaultSpec { spec_id: LAST_ADDED },
            MetadataUpdate::AddSortOrder { sort_order },
            MetadataUpdate::SetDefaultSortOrder { sort_order_id: LAST_ADDED },
            MetadataUpdate::SetLocation { location: self.location.clone() },
            MetadataUpdate::SetProperties { updates: self.persisted_properties() },
        ])
    }

    /// Returns the updates that replace an existing table with this one: its history stays, `main` is removed, and
    /// existing columns and partition fields keep their ids.
    pub fn replace_updates(&self, table: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        let version = asked_version(&self.properties)?.unwrap_or(table.format_version());
        let mut last_column_id = table.last_column_id();
        self.schema.check_named()?;
        self.schema.check_structs(None)?;
        let schema = self.schema.with_fresh_ids_from(table.current_schema(), &mut last_column_id)?;
        let spec = table.reassign_field_ids(self.spec_over(&schema)?)?;
        let sort_order = self.order_over(&schema)?;
        let mut updates = vec![
            MetadataUpdate::UpgradeFormatVersion { format_version: version.number().into() },
            MetadataUpdate::RemoveSnapshotRef { ref_name: MAIN_BRANCH.to_owned() },
        ];
        updates.extend(table.current_schema_updates(&schema));
        updates.extend(table.default_spec_updates(&spec));
        updates.extend(table.default_sort_order_updates(&sort_order));
        updates.push(MetadataUpdate::SetLocation { location: self.location.clone() });
        updates.push(MetadataUpdate::SetProperties { updates: self.persisted_properties() });
        Ok(updates)
    }

    fn persisted_properties(&self) -> StringMap {
        let codec = (PARQUET_COMPRESSION.name.to_owned(), PARQUET_COMPRESSION_OF_NEW_TABLES.to_owned());
        let given = self.properties.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str()));
        std::iter::once(codec).chain(given.map(|(name, value)| (name.clone(), value.clone()))).collect()
    }

    /// Returns the same spec for another schema, with columns matched by name.
    fn spec_over(&self, schema: &Schema) -> Result<PartitionSpec> {
        let field = |field: &PartitionField| {
            field.check_new(&self.schema)?;
            Ok(PartitionField { source_ids: self.columns_in(schema, &field.source_ids)?, ..field.clone() })
        };
        Ok(PartitionSpec { spec_id: 0, fields: self.partition_spec.fields.iter().map(field).collect::<Result<_>>()? })
    }

    fn order_over(&self, schema: &Schema) -> Result<SortOrder> {
        let field = |field: &SortField| {
            Ok(SortField { source_ids: self.columns_in(schema, &field.source_ids)?, ..field.clone() })
        };
        let fields: Vec<_> = self.sort_order.fields.iter().map(field).collect::<Result<_>>()?;
        Ok(SortOrder { order_id: i32::from(!fields.is_empty()), fields })
    }

    fn columns_in(&self, schema: &Schema, source_ids: &[i32]) -> Result<Vec<i32>> {
        let column = |id: &i32| {
            let name =
                self.schema.column_name(*id).ok_or_else(|| Error::invalid(format!("there is no column {id}")))?;
            schema.named(name, true).map(|field| field.id)
        };
        source_ids.iter().map(column).collect()
    }
}

impl FormatVersion {
    /// The format version of a new table with these properties: `format-version`, or 2.
    pub fn of_new_table(properties: &StringMap) -> Result<Self> {
        Ok(asked_version(properties)?.unwrap_or(Self::V2))
    }
}

fn asked_version(properties: &StringMap) -> Result<Option<FormatVersion>> {
    let Some(number) = FORMAT_VERSION.read(properties)? else { return Ok(None) };
    let number = i32::try_from(number).map_err(|_| FORMAT_VERSION.unexpected(&number.to_string()))?;
    FormatVersion::try_from(number).map(Some)
}

impl TableMetadata {
    /// Returns the updates that create a table without snapshots like this one: its current schema, spec and order.
    pub fn creation_updates(&self) -> Vec<MetadataUpdate> {
        let uuid = self.table_uuid().map(|uuid| MetadataUpdate::AssignUuid { uuid: uuid.to_owned() });
        let version = self.format_version().number().into();
        let parts = [
            MetadataUpdate::UpgradeFormatVersion { format_version: version },
            MetadataUpdate::AddSchema { schema: self.current_schema().as_ref().clone() },
            MetadataUpdate::SetCurrentSchema { schema_id: LAST_ADDED },
            MetadataUpdate::AddSpec { spec: self.default_spec().as_ref().clone() },
            MetadataUpdate::SetDefaultSpec { spec_id: LAST_ADDED },
            MetadataUpdate::AddSortOrder { sort_order: self.default_sort_order().as_ref().clone() },
            MetadataUpdate::SetDefaultSortOrder { sort_order_id: LAST_ADDED },
            MetadataUpdate::SetLocation { location: self.location().to_owned() },
            MetadataUpdate::SetProperties { updates: self.properties().clone() },
        ];
        uuid.into_iter().chain(parts).collect()
    }

    /// Returns the updates that make this the current schema. Its ids must be those of the table, new ones above
    /// [`Self::last_column_id`].
    pub fn current_schema_updates(&self, schema: &Schema) -> Vec<MetadataUpdate> {
        match self.schemas().iter().find(|known| known.same_schema(schema)) {
            Some(known) => vec![MetadataUpdate::SetCurrentSchema { schema_id: known.schema_id() }],
            None => vec![
                MetadataUpdate::AddSchema { schema: schema.clone() },
                MetadataUpdate::SetCurrentSchema { schema_id: LAST_ADDED },
            ],
        }
    }

    /// Returns the updates that make this the default partition spec.
    pub fn default_spec_updates(&self, spec: &PartitionSpec) -> Vec<MetadataUpdate> {
        match self.partition_specs().iter().find(|known| known.compatible_with(spec)) {
            Some(known) => vec![MetadataUpdate::SetDefaultSpec { spec_id: known.spec_id }],
            None => vec![
                MetadataUpdate::AddSpec { spec: spec.clone() },
                MetadataUpdate::SetDefaultSpec { spec_id: LAST_ADDED },
            ],
        }
    }

    /// Returns the updates that make this the default sort order.
    pub fn default_sort_order_updates(&self, order: &SortOrder) -> Vec<MetadataUpdate> {
        match self.sort_orders().iter().find(|known| known.same_order(order)) {
            Some(known) => vec![MetadataUpdate::SetDefaultSortOrder { sort_order_id: known.order_id }],
            None => vec![
                MetadataUpdate::AddSortOrder { sort_order: order.clone() },
                MetadataUpdate::SetDefaultSortOrder { sort_order_id: LAST_ADDED },
            ],
        }
    }

    /// Returns the spec with the field ids that the table already uses for the same values. In v1 fields must keep
    /// their positions, so the fields of the default spec come first, removed ones as `void`.
    fn reassign_field_ids(&self, spec: PartitionSpec) -> Result<PartitionSpec> {
        let mut last_id = self.last_partition_id();
        let mut next_id = || {
            last_id = last_id.checked_add(1).ok_or_else(|| Error::invalid("all partition field ids are used up"))?;
            Ok(last_id)
        };
        if self.format_version() > FormatVersion::V1 {
            let history = || self.partition_specs().iter().flat_map(|spec| &spec.fields);
            let reassigned = spec.fields.into_iter().map(|field| {
                let known = history().filter(|known| known.same_value(&field)).map(|known| known.field_id).max();
                Ok(PartitionField { field_id: known.map_or_else(&mut next_id, Ok)?, ..field })
            });
            return Ok(PartitionSpec { spec_id: 0, fields: reassigned.collect::<Result<_>>()? });
        }
        let mut new = spec.fields;
        let names: Vec<String> = new.iter().map(|field| field.name.clone()).collect();
        let mut fields = Vec::with_capacity(new.len());
        for old in &self.default_spec().fields {
            fields.push(match new.iter().position(|field| field.same_value(old)) {
                Some(position) => PartitionField { field_id: old.field_id, ..new.remove(position) },
                None => old.voided(names.contains(&old.name)),
            });
        }
        for field in new {
            fields.push(PartitionField { field_id: next_id()?, ..field });
        }
        Ok(PartitionSpec { spec_id: 0, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::metadata::{MetadataBuilder, SnapshotRef};
    use crate::types::{Field, PrimitiveType};

    #[test]
    fn the_version_of_a_new_table_is_what_its_properties_say() {
        let cases = [
            (None, Ok(2)),
            (Some("1"), Ok(1)),
            (Some(" 3 "), Ok(3)),
            (Some("null"), Ok(2)),
            (Some("two"), Err("table property 'format-version': expected an integer of at least 1, got 'two'")),
            (
                Some("9223372036854775807"),
                Err("table property 'format-version': expected an integer of at least 1, got '9223372036854775807'"),
            ),
        ];
        for (text, expected) in cases {
            let properties = text.map(|text| ("format-version".to_owned(), text.to_owned())).into_iter().collect();
            let version = FormatVersion::of_new_table(&properties).map(FormatVersion::number);
            assert_eq!(version.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{text:?}");
        }
        assert!(FormatVersion::of_new_table(&[("format-version".to_owned(), "9".to_owned())].into()).is_err());
    }

    #[test]
    fn the_main_branch_is_there_where_there_is_a_current_snapshot() {
        let definition = TableDefinition {
            schema: Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)]).unwrap(),
            partition_spec: PartitionSpec::unpartitioned(),
            sort_order: SortOrder::unsorted(),
            location: "memory://t".to_owned(),
            properties: StringMap::new(),
        };
        let updates = definition.create_updates("9c12d441-03fe-4693-9a96-a0705ddf69c1").unwrap();
        let empty = MetadataBuilder::new_table(1).apply_all(updates).unwrap().build().unwrap();
        assert_eq!(empty.all_refs().count(), 0);
        let mut document = empty.to_json_value();
        document["current-snapshot-id"] = 7.into();
        document["last-sequence-number"] = 1.into();
        document["snapshots"] = serde_json::json!([
            {"snapshot-id": 7, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "m", "summary": {"operation": "append"}}
        ]);
        document["refs"] = serde_json::json!({"old": {"snapshot-id": 7, "type": "tag"}});
        let unnamed = TableMetadata::from_json_value(&document, &Limits::default()).unwrap();
        let names: Vec<_> =
            unnamed.all_refs().map(|(name, reference)| (name.to_owned(), reference.is_branch())).collect();
        assert_eq!(names, [("old".to_owned(), false), ("main".to_owned(), true)]);
        document["refs"] = serde_json::json!({"main": {"snapshot-id": 7, "type": "branch"}});
        let named = TableMetadata::from_json_value(&document, &Limits::default()).unwrap();
        assert_eq!(named.all_refs().collect::<Vec<_>>(), [("main", SnapshotRef::branch(7))]);
    }
}
