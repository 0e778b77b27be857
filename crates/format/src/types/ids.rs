//! Assigns field ids: fresh ones for a new table, or by name those of another schema ("Field IDs").

use std::sync::Arc;

use super::nested::FieldsByName;
use super::{Field, Schema, StructType, Type};
use crate::error::{Error, Result};

impl Schema {
    /// Returns the same columns with new ids above `last_id`; all fields of a struct are numbered before the fields
    /// inside them.
    pub fn with_fresh_ids(&self, schema_id: i32, last_id: &mut i32) -> Result<Self> {
        self.with_ids(schema_id, &mut |_| next_id(last_id))
    }

    /// Returns the same columns with the ids that `base` has for their full names; other fields get new ids above
    /// `last_id`.
    pub fn with_fresh_ids_from(&self, base: &Self, last_id: &mut i32) -> Result<Self> {
        self.with_ids(0, &mut |field| {
            let known = self.column_name(field.id).and_then(|name| base.names().get(name));
            known.map_or_else(|| next_id(last_id), |id| Ok(*id))
        })
    }

    /// Returns the same columns with the ids of `source`, matched by name; an error if `source` lacks a field.
    pub fn with_ids_of(&self, source: &Self, case_sensitive: bool) -> Result<Self> {
        let root = Reassign { case_sensitive, last_id: None }.structure(self.as_struct(), source.as_struct())?;
        self.renumbered(0, root)
    }

    /// Returns the same columns with the ids of `source`, matched by name; other fields get new ids above its highest.
    pub fn with_ids_of_or_fresh(&self, source: &Self, case_sensitive: bool) -> Result<Self> {
        let mut reassign = Reassign { case_sensitive, last_id: Some(source.highest_field_id()) };
        let root = reassign.structure(self.as_struct(), source.as_struct())?;
        self.renumbered(0, root)
    }

    fn with_ids(&self, schema_id: i32, assign: &mut dyn FnMut(&Field) -> Result<i32>) -> Result<Self> {
        let fields = with_ids(self.fields().iter(), assign)?;
        self.renumbered(schema_id, StructType { fields })
    }

    /// Creates a schema from these columns, which differ from `self` only in their ids; identifier fields are matched
    /// by name.
    fn renumbered(&self, schema_id: i32, root: StructType) -> Result<Self> {
        let schema = Self::from_struct(schema_id, Arc::new(root))?;
        if self.identifier_field_ids().is_empty() {
            return Ok(schema);
        }
        let names = self.identifier_field_ids().iter().filter_map(|id| self.column_name(*id));
        let ids = names.map(|name| {
            let id = schema.names().get(name).copied();
            id.ok_or_else(|| Error::invalid(format!("the identifier field {name:?} is not in the new schema")))
        });
        let ids = ids.collect::<Result<_>>()?;
        Self::build(schema_id, Arc::clone(schema.as_struct()), ids, &crate::limits::Limits::default())
    }
}

impl Type {
    /// Returns the same type with new ids above `last_id` for its nested fields.
    pub fn with_fresh_ids(&self, last_id: &mut i32) -> Result<Self> {
        self.with_ids(&mut |_| next_id(last_id))
    }

    /// Returns the same type with other ids for its nested fields; each level is numbered before the next one.
    pub(super) fn with_ids(&self, assign: &mut dyn FnMut(&Field) -> Result<i32>) -> Result<Self> {
        if !self.is_nested() {
            return Ok(self.clone());
        }
        Ok(self.with_children(with_ids(self.children().into_iter(), assign)?))
    }
}

/// Increments `last_id` and returns it.
pub(crate) fn next_id(last_id: &mut i32) -> Result<i32> {
    *last_id = last_id.checked_add(1).ok_or_else(|| Error::invalid("all field ids are used up"))?;
    Ok(*last_id)
}

/// Assigns ids to all of `fields`, then to their nested fields.
pub(super) fn with_ids<'a>(
    fields: impl Iterator<Item = &'a Field> + Clone,
    assign: &mut dyn FnMut(&Field) -> Result<i32>,
) -> Result<Vec<Field>> {
    let ids: Vec<i32> = fields.clone().map(&mut *assign).collect::<Result<_>>()?;
    let numbered = fields.zip(ids).map(|(field, id)| Ok(Field { id, ty: field.ty.with_ids(assign)?, ..field.clone() }));
    numbered.collect()
}

/// Matches fields of one schema with those of another by name, level by level.
struct Reassign {
    case_sensitive: bool,
    /// Last id assigned to new fields; `None`: an unmatched field is an error.
    last_id: Option<i32>,
}

impl Reassign {
    fn structure(&mut self, ty: &StructType, source: &StructType) -> Result<StructType> {
        let mut found = Vec::with_capacity(ty.fields.len());
        let mut types = Vec::with_capacity(ty.fields.len());
        let by_name = FieldsByName::new(source, self.case_sensitive);
        for field in &ty.fields {
            let twin = by_name.get(&field.name)?;
            types.push(match (twin, &mut self.last_id) {
                (Some(twin), _) => self.ty(&field.ty, &twin.ty)?,
                (None, Some(last_id)) => field.ty.with_fresh_ids(last_id)?,
                (None, None) => {
                    return Err(Error::invalid(format!("field {:?} is not in the source schema", field.name)));
                }
            });
            found.push(twin.map(|twin| twin.id));
        }
        let mut fields = Vec::with_capacity(types.len());
        for ((field, ty), known) in ty.fields.iter().zip(types).zip(found) {
            let id = match (known, &mut self.last_id) {
                (Some(id), _) => id,
                (None, Some(last_id)) => next_id(last_id)?,
                (None, None) => field.id,
            };
            fields.push(Field { id, ty, ..field.clone() });
        }
        Ok(StructType { fields })
    }

    fn ty(&mut self, ty: &Type, source: &Type) -> Result<Type> {
        match (ty, source) {
            (Type::Struct(ty), Type::Struct(source)) => Ok(self.structure(ty, source)?.into()),
            (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) => {
                let mut fields = Vec::with_capacity(2);
                for (field, twin) in ty.children().into_iter().zip(source.children()) {
                    fields.push(Field { id: twin.id, ty: self.ty(&field.ty, &twin.ty)?, ..field.clone() });
                }
                Ok(ty.with_children(fields))
            }
            (Type::Primitive(_) | Type::Variant, _) => Ok(ty.clone()),
            _ => Err(Error::invalid(format!("{source} in the source schema does not fit {ty}"))),
        }
    }
}
