//! Scan columns that are values inside variants: `v:a.b[0]::long`, typed, and null if a variant lacks the value or
//! has another type.
//!
//! Such a column is named after its path in filter syntax; its id is one that no table column has, had, or can get
//! during the scan.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use icefield_format::expr::{
    BoundExpr, BoundPredicate, BoundReference, BoundTerm, Expression, Extract, PathStep, Term,
};
use icefield_format::types::{Field, Schema, Type};

use crate::error::{Error, Result};
use crate::plan::Scan;

/// Values inside variants, by their column ids.
pub type VariantPaths = BTreeMap<i32, VariantPath>;

/// A value inside the variants of a column.
#[derive(Debug, Clone)]
pub struct VariantPath {
    /// The id of the variant column.
    pub column: i32,
    /// The top-level column that contains the variant, pruned to it.
    pub root: Field,
    /// The path, and the type of the values.
    pub extract: Extract,
}

impl VariantPath {
    /// The path in a column of a schema.
    ///
    /// # Errors
    /// A missing column, or one that cannot be read apart from its parents.
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

/// The columns that a filter tests, with values inside variants as columns of their own.
#[derive(Debug)]
pub struct Tested {
    /// The filter on these columns.
    pub filter: BoundExpr,
    /// The table columns, followed by those of paths.
    pub columns: Schema,
    /// The paths, by ids that no table column has.
    pub paths: VariantPaths,
}

impl Tested {
    /// The columns of a filter that is bound to a schema.
    pub fn new(filter: &BoundExpr, schema: &Schema) -> Result<Self> {
        let mut free = (1..).filter(|id| schema.find_field(*id).is_none());
        let (mut ids, mut paths) = (HashSet::new(), VariantPaths::new());
        let mut added: Vec<Field> = Vec::new();
        let filter = filter.try_map(&mut |predicate: &Arc<BoundPredicate>| -> Result<BoundExpr> {
            let BoundTerm { reference, transform, extract, .. } = &*predicate.term;
            let (Some(extract), None, Some(_)) = (extract, transform, &reference.path) else {
                ids.insert(reference.id);
                return Ok(Expression::Predicate(predicate.clone()));
            };
            let known = paths.iter().find(|(_, path)| path.column == reference.id && path.extract == *extract);
            let id = match known {
                Some((id, _)) => *id,
                None => {
                    let id =
                        free.next().ok_or_else(|| Error::invalid("the table has as many columns as there are ids"))?;
                    let name = Term::extract(extract.clone(), &reference.name).to_string();
                    added.push(Field::optional(id, name, Type::Primitive(extract.ty().clone())));
                    paths.insert(id, VariantPath::new(schema, reference.id, extract.clone())?);
                    id
                }
            };
            let term = column(id, &reference.name, extract);
            let test = predicate.test.clone();
            Ok(Expression::Predicate(Arc::new(BoundPredicate { term: Arc::new(term), test })))
        })?;
        let of_table = schema.select_ids(&ids)?;
        let columns = Schema::new(of_table.schema_id(), of_table.fields().iter().cloned().chain(added).collect())?;
        Ok(Self { filter, columns, paths })
    }
}

/// A term for the column of a value inside variants.
fn column(id: i32, name: &str, extract: &Extract) -> BoundTerm {
    let ty = Type::Primitive(extract.ty().clone());
    let step = PathStep { position: 0, id, name: name.to_owned() };
    let reference =
        BoundReference { name: name.to_owned(), id, ty: ty.clone(), path: Some(vec![step]), nullable: true };
    BoundTerm { reference, transform: None, extract: None, ty }
}

impl Scan {
    /// The table columns and the columns named by variant paths, such as `v:a::long`; the names as spelled in the
    /// schema; and the paths.
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
