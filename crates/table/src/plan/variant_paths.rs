//! Columns of a scan that are values inside of variants: `v:a.b[0]::long`, typed, and null where a variant lacks the value or has one of another
//! type.
//!
//! Such a column is named by its path as filters are written; its id is none that a column of the table has, had or can get while the scan lives.

use std::collections::{BTreeMap, HashSet};

use icefield_format::expr::{Extract, Term};
use icefield_format::types::{Field, Schema, Type};

use super::Scan;
use crate::error::{Error, Result};

/// Values inside of variants, by the ids that they have as columns.
pub type VariantPaths = BTreeMap<i32, VariantPath>;

/// A value inside of the variants of a column.
#[derive(Debug, Clone)]
pub struct VariantPath {
    /// The id of the column of variants.
    pub column: i32,
    /// The top-level column that has them, of nothing else.
    pub root: Field,
    /// The path, and the type that values have.
    pub extract: Extract,
}

impl VariantPath {
    /// The path in a column of a schema.
    ///
    /// # Errors
    /// A column that is not there, or that cannot be read without what is around it.
    pub fn new(schema: &Schema, column: i32, extract: Extract) -> Result<Self> {
        let name = || schema.column_name(column).unwrap_or_default().to_owned();
        if schema.accessor(column).is_none() {
            let message = "lies in a list or map, of whose variants no values are selected";
            return Err(Error::column(name(), message));
        }
        let missing = || Error::Internal(format!("a schema without column {column}"));
        let part = schema.select_ids(&HashSet::from([column]))?;
        let root = part.fields().first().cloned().ok_or_else(missing)?;
        Ok(Self { column, root, extract })
    }
}

impl Scan {
    /// The columns with those that are named by a path in a variant, such as `v:a::long`; the names as they are there; and the paths.
    pub(super) fn with_variant_paths(
        &self,
        columns: &Schema,
        names: &[String],
    ) -> Result<(Schema, Vec<String>, VariantPaths)> {
        let mut known: Vec<String> = Vec::with_capacity(names.len());
        let mut added: Vec<Field> = Vec::new();
        let mut paths = VariantPaths::new();
        for name in names {
            if !name.contains(':') || columns.find_by_name(name, self.case_sensitive)?.is_some() {
                known.push(name.clone());
                continue;
            }
            let term = Term::parse_extract(name)?.bind(columns, self.case_sensitive)?;
            let Some(extract) = term.extract else {
                return Err(Error::Internal(format!("{name:?} is no path in a variant")));
            };
            let column = term.reference.id;
            let full_name = columns.column_name(column).unwrap_or(&term.reference.name);
            let text = Term::extract(extract.clone(), full_name).to_string();
            if added.iter().all(|field| field.name != text) {
                let path = VariantPath::new(columns, column, extract)?;
                let mut free = (self.metadata.last_column_id().saturating_add(1)..)
                    .filter(|id| columns.find_field(*id).is_none() && !paths.contains_key(id));
                let id = free.next().ok_or_else(|| Error::invalid("the table has as many columns as there are ids"))?;
                added.push(Field::optional(id, &*text, Type::Primitive(path.extract.ty().clone())));
                paths.insert(id, path);
            }
            known.push(text);
        }
        let fields = columns.fields().iter().cloned().chain(added).collect();
        Ok((Schema::new(columns.schema_id(), fields)?, known, paths))
    }
}
