//! What a scan wants of every row: columns of the table, and of a changelog those that tell of the change.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{self, ReservedField};
use icefield_format::types::{NAME_MAPPING_PROPERTY, NameMapping, PrimitiveType, Schema};

use super::Scan;
use crate::error::{Error, Result};

/// The columns of changelogs beside those of the table, in their order.
const CHANGE_COLUMNS: [ReservedField<PrimitiveType>; 3] =
    [reserved::CHANGE_TYPE, reserved::CHANGE_ORDINAL, reserved::COMMIT_SNAPSHOT_ID];

/// What is wanted of every file of a scan.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The scan's schema, that filters are bound to.
    pub schema: Arc<Schema>,
    /// The columns that rows have, in their order: a part of `schema`, and metadata columns by their reserved ids.
    pub projection: Arc<Schema>,
    /// Ids for the columns of files that carry none.
    pub name_mapping: Option<Arc<NameMapping>>,
}

impl Wanted {
    /// The Arrow schema of the rows: types as documented in docs/types.md, field ids as metadata.
    pub fn arrow(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.projection.to_arrow(&ToArrow::default())?))
    }
}

impl Scan {
    /// What the scan wants of every file. `columns` are names to select, all without them; rows have them in the order of
    /// the names. A changelog has the columns of the change as well, behind those of the table unless they are named.
    pub fn wanted(&self, columns: Option<&[String]>) -> Result<Arc<Wanted>> {
        let changelog = self.changes.as_ref().is_some_and(|changes| changes.is_changelog());
        let projection = match columns {
            _ if changelog => Arc::new(self.changelog_columns(columns)?),
            Some(names) => Arc::new(self.schema.select_in_order(names, self.case_sensitive)?),
            None => self.schema.clone(),
        };
        let mapping = self.metadata.property(NAME_MAPPING_PROPERTY).map(NameMapping::parse).transpose()?;
        Ok(Arc::new(Wanted { schema: self.schema.clone(), projection, name_mapping: mapping.map(Arc::new) }))
    }

    fn changelog_columns(&self, columns: Option<&[String]>) -> Result<Schema> {
        for column in CHANGE_COLUMNS {
            if self.schema.find_by_name(column.name, true)?.is_some() {
                let name = column.name;
                return Err(Error::invalid(format!("the table has a column {name}: rename it to read a changelog")));
            }
        }
        let Some(names) = columns else {
            let fields = self.schema.fields().iter().cloned();
            return Ok(Schema::new(0, fields.chain(CHANGE_COLUMNS.map(|column| column.to_field())).collect())?);
        };
        let named = |name: &String| {
            CHANGE_COLUMNS.into_iter().find(|column| match self.case_sensitive {
                true => name == column.name,
                false => name.eq_ignore_ascii_case(column.name),
            })
        };
        let of_table: Vec<String> = names.iter().filter(|name| named(name).is_none()).cloned().collect();
        let table = self.schema.select_in_order(&of_table, self.case_sensitive)?;
        let all = || table.fields().iter().cloned().chain(CHANGE_COLUMNS.map(|column| column.to_field()));
        // Of a nested column that is named, the column around it has the place; `*` is all that are not named before it.
        let mut fields = Vec::new();
        for name in names {
            let id = match named(name) {
                Some(column) => Some(column.id),
                None if name == "*" => None,
                None => {
                    let id = self.schema.find_by_name(name, self.case_sensitive)?.map(|field| field.id);
                    std::iter::successors(id, |id| self.schema.parent(*id)).last()
                }
            };
            for field in all().filter(|field| name == "*" || id == Some(field.id)) {
                if !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
        Ok(Schema::new(0, fields)?)
    }
}
