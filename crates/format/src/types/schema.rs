//! Schemas: the columns of a table, and lookup by id and by name ("Schemas and Data Types", "Identifier Field IDs").

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::index::Index;
use super::nested::{Children, check_named};
use super::{Field, PrimitiveType, StructType, Type};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::nearest::{hint, listed};

/// An immutable table schema; cheap to clone.
#[derive(Clone)]
pub struct Schema {
    schema_id: i32,
    root: Arc<StructType>,
    identifier_field_ids: Vec<i32>,
    index: Arc<Index>,
}

impl Schema {
    /// Creates a schema without identifier fields. Ids and full names must be unique.
    pub fn new(schema_id: i32, fields: Vec<Field>) -> Result<Self> {
        Self::with_identifiers(schema_id, fields, Vec::new())
    }

    /// Creates a schema with identifier fields; repeated ids count once.
    pub fn with_identifiers(schema_id: i32, fields: Vec<Field>, identifier_field_ids: Vec<i32>) -> Result<Self> {
        Self::build(schema_id, Arc::new(StructType { fields }), identifier_field_ids, &Limits::default())
    }

    /// Creates a schema from a struct.
    pub fn from_struct(schema_id: i32, root: Arc<StructType>) -> Result<Self> {
        Self::build(schema_id, root, Vec::new(), &Limits::default())
    }

    pub(super) fn build(schema_id: i32, root: Arc<StructType>, identifiers: Vec<i32>, limits: &Limits) -> Result<Self> {
        let index = Arc::new(Index::new(&root, limits)?);
        let mut schema = Self { schema_id, root, identifier_field_ids: identifiers, index };
        schema.identifier_field_ids.sort_unstable();
        schema.identifier_field_ids.dedup();
        for id in &schema.identifier_field_ids {
            schema.check_identifier(*id)?;
        }
        Ok(schema)
    }

    /// Id of the schema in the table.
    pub fn schema_id(&self) -> i32 {
        self.schema_id
    }

    /// Returns the same schema with another id.
    #[must_use]
    pub fn with_schema_id(&self, schema_id: i32) -> Self {
        Self { schema_id, ..self.clone() }
    }

    /// The columns as a struct.
    pub fn as_struct(&self) -> &Arc<StructType> {
        &self.root
    }

    /// The columns.
    pub fn fields(&self) -> &[Field] {
        &self.root.fields
    }

    /// Ids of the identifier fields, ascending.
    pub fn identifier_field_ids(&self) -> &[i32] {
        &self.identifier_field_ids
    }

    /// The field with this id, at any depth.
    pub fn find_field(&self, id: i32) -> Option<&Field> {
        let (last, ancestors) = self.index.place(id)?.path.split_last()?;
        let mut fields = Children::of_struct(&self.root);
        for position in ancestors {
            fields = fields.get(*position)?.ty.children();
        }
        fields.get(*last)
    }

    /// The type of the field with this id.
    pub fn find_type(&self, id: i32) -> Option<&Type> {
        self.find_field(id).map(|field| &field.ty)
    }

    /// Returns the field with this full name: names joined by dots, with `element`, `key` and `value`. If a list's
    /// element or a map's value is a struct, that step may be omitted (`locations.latitude`).
    ///
    /// If `case_sensitive` is false, it is an error if any two names of the schema differ only in case.
    pub fn find_by_name(&self, name: &str, case_sensitive: bool) -> Result<Option<&Field>> {
        let id = match case_sensitive {
            true => self.index.by_name().get(name),
            false => self.index.by_lower_case_name()?.get(&name.to_lowercase()),
        };
        Ok(id.and_then(|id| self.find_field(*id)))
    }

    /// Like [`Self::find_by_name`], but an unknown name is an error that suggests a remedy.
    pub fn named(&self, name: &str, case_sensitive: bool) -> Result<&Field> {
        self.find_by_name(name, case_sensitive)?.ok_or_else(|| self.missing(name, case_sensitive))
    }

    /// Creates the error for an unknown name: the name that was probably meant, and the existing names.
    pub fn missing(&self, name: &str, case_sensitive: bool) -> Error {
        let full_names = || self.ids().iter().filter_map(|id| self.column_name(*id));
        let lower = name.to_lowercase();
        if case_sensitive && let Some(other) = full_names().find(|known| known.to_lowercase() == lower) {
            return Error::unfit(format!(
                "there is no column {name:?} in the schema, but {other:?}: correct the case, or pass case_sensitive=False"
            ));
        }
        let around = name.rsplit_once('.').and_then(|(parent, _)| self.find_by_name(parent, case_sensitive).ok()?);
        let inside = around.and_then(|field| Some((field, field.ty.as_struct()?)));
        let list = match inside {
            Some((parent, inner)) => {
                format!("fields of {:?}: {}", parent.name, listed(inner.fields.iter().map(|field| field.name.as_str())))
            }
            None => format!("columns: {}", listed(self.fields().iter().map(|field| field.name.as_str()))),
        };
        Error::unfit(format!("there is no column {name:?} in the schema{} ({list})", hint(name, full_names())))
    }

    /// All names, including short ones, with field ids.
    pub fn names(&self) -> &HashMap<String, i32> {
        self.index.by_name()
    }

    /// All names in lower case; an error if two names differ only in case.
    pub fn lower_case_names(&self) -> Result<&HashMap<String, i32>> {
        self.index.by_lower_case_name()
    }

    /// The full name of the field with this id.
    pub fn column_name(&self, id: i32) -> Option<&str> {
        self.index.place(id).map(|place| place.name.as_str())
    }

    /// Parent id of the field with this id; `None` for top-level columns.
    pub fn parent(&self, id: i32) -> Option<i32> {
        self.index.place(id)?.parent
    }

    /// Parent id of every nested field.
    pub fn parents(&self) -> HashMap<i32, i32> {
        self.ids().iter().filter_map(|id| Some((*id, self.parent(*id)?))).collect()
    }

    /// Ids of all fields, nested ones included, in field order with parents first.
    pub fn ids(&self) -> &[i32] {
        self.index.ids()
    }

    /// The highest field id; 0 without fields.
    pub fn highest_field_id(&self) -> i32 {
        self.ids().iter().copied().max().unwrap_or(0)
    }

    /// Path from a row to a field: indices in structs. `None` for fields inside lists and maps.
    pub fn accessor(&self, id: i32) -> Option<&[usize]> {
        self.index.place(id).filter(|place| !place.repeated).map(|place| &*place.path)
    }

    /// Whether the field may be null: the field itself or one of its ancestors is optional.
    pub fn is_nullable(&self, id: i32) -> Option<bool> {
        let mut next = Some(id);
        while let Some(id) = next {
            if !self.find_field(id)?.required {
                return Some(true);
            }
            next = self.parent(id);
        }
        Some(false)
    }

    /// Whether both have the same fields and identifier fields; schema ids are ignored.
    pub fn same_schema(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.root, &other.root) || self.root == other.root)
            && self.identifier_field_ids == other.identifier_field_ids
    }

    /// Refuses fields without a name, which only tables of other writers have.
    pub(crate) fn check_named(&self) -> Result<()> {
        check_named(Children::of_struct(&self.root), None)
    }

    /// Refuses structs without fields, which Parquet cannot store, except those that also exist in `before`.
    pub(crate) fn check_structs(&self, before: Option<&Self>) -> Result<()> {
        let is_empty = |ty: &Type| ty.as_struct().is_some_and(|ty| ty.fields.is_empty());
        let was_there = |id: i32| before.and_then(|before| before.find_type(id)).is_some_and(is_empty);
        match self.ids().iter().find(|id| self.find_type(**id).is_some_and(is_empty) && !was_there(**id)) {
            None => Ok(()),
            Some(id) => {
                let name = self.column_name(*id).unwrap_or_default();
                Err(Error::invalid(format!(
                    "{name:?} is a struct without fields, which Parquet files cannot store: give it a field or leave it \
                     out; delete the struct itself instead of the last of its fields"
                )))
            }
        }
    }

    /// Checks that a field may be an identifier field ("Identifier Field IDs").
    fn check_identifier(&self, id: i32) -> Result<()> {
        let refuse = |why: &str| {
            let name = self.column_name(id).map_or_else(|| format!("with id {id}"), |name| format!("{name:?}"));
            Err(Error::invalid(format!("the field {name} cannot be an identifier field: {why}")))
        };
        let Some(field) = self.find_field(id) else {
            return refuse("there is no such field");
        };
        match &field.ty {
            Type::Primitive(PrimitiveType::Float | PrimitiveType::Double) => return refuse("it is a float or double"),
            Type::Primitive(_) => {}
            _ => return refuse("its type is not primitive"),
        }
        if !field.required {
            return refuse("it is optional");
        }
        if self.index.place(id).is_some_and(|place| place.repeated) {
            return refuse("it is inside a list or map");
        }
        match self.is_nullable(id) {
            Some(true) => refuse("it is inside an optional struct"),
            _ => Ok(()),
        }
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.schema_id == other.schema_id && self.same_schema(other)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema {} {self}", self.schema_id)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("table {\n")?;
        for field in self.fields() {
            let mark = if self.identifier_field_ids.contains(&field.id) { " (id)" } else { "" };
            writeln!(f, "  {field}{mark}")?;
        }
        f.write_str("}")
    }
}
