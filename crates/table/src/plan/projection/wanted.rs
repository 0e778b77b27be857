//! The columns that a scan reads from every file: table columns and named metadata columns.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::DELETED;
use icefield_format::types::{NAME_MAPPING_PROPERTY, NameMapping, Schema};

use super::metadata_columns::PartitionFieldIds;
use super::variant_paths::VariantPaths;
use crate::error::Result;
use crate::plan::Scan;

/// What a scan reads from every file.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The schema that filters are bound to: the scan's, with the metadata columns in its filter.
    pub schema: Arc<Schema>,
    /// The columns of the rows, in order: a subset of `schema`, and metadata columns by their reserved ids.
    pub projection: Arc<Schema>,
    /// Ids for columns of files without ids.
    pub name_mapping: Option<Arc<NameMapping>>,
    /// The partition field of each field of `_partition`.
    pub partition_fields: PartitionFieldIds,
    /// The columns of `projection` that are values inside variants.
    pub variant_paths: VariantPaths,
    /// Whether deleted rows are left out even if `_deleted` is selected or in the filter: it is false in all rows then.
    pub only_live_rows: bool,
}

impl Wanted {
    /// Some columns of a schema, for files with ids.
    pub fn new(schema: Arc<Schema>, projection: Arc<Schema>) -> Self {
        let (partition_fields, variant_paths) = (PartitionFieldIds::new(), VariantPaths::new());
        Self { schema, projection, name_mapping: None, partition_fields, variant_paths, only_live_rows: false }
    }

    /// The Arrow schema of the rows: types as documented in docs/types.md, field ids as metadata.
    pub fn arrow(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.projection.to_arrow(&ToArrow::default())?))
    }

    /// Whether deleted rows are returned: if `_deleted` is selected or in the filter, except for changes of rows.
    pub fn has_deleted_rows(&self) -> bool {
        !self.only_live_rows
            && [&self.schema, &self.projection].iter().any(|schema| schema.find_field(DELETED.id).is_some())
    }
}

impl Scan {
    /// What the scan reads from every file. `columns` are the names to select, in order; `None` selects all table
    /// columns. A changelog also has its change columns, after the table's unless they are named. Other metadata
    /// columns are included if named, and values inside variants by their paths ([`VariantPath`]).
    ///
    /// [`VariantPath`]: super::variant_paths::VariantPath
    pub fn wanted(&self, columns: Option<&[String]>) -> Result<Arc<Wanted>> {
        let (_, filtered) = self.bound_filter()?;
        let named = self.columns_named(columns.unwrap_or_default().iter().map(String::as_str))?;
        let (projection, variant_paths) = match columns {
            None => (named.schema, VariantPaths::new()),
            Some(names) if names.iter().any(|name| name.contains(':')) => {
                let (schema, names, paths) = self.with_variant_paths(&named.schema, names)?;
                (Arc::new(schema.select_in_order(&names, self.case_sensitive)?), paths)
            }
            Some(names) => (Arc::new(named.schema.select_in_order(names, self.case_sensitive)?), VariantPaths::new()),
        };
        let mapping = self.metadata.property(NAME_MAPPING_PROPERTY).map(NameMapping::parse).transpose()?;
        let mut partition_fields = filtered.partition_fields;
        partition_fields.extend(named.partition_fields);
        Ok(Arc::new(Wanted {
            schema: filtered.schema,
            projection,
            name_mapping: mapping.map(Arc::new),
            partition_fields,
            variant_paths,
            only_live_rows: self.only_live_rows,
        }))
    }
}
