//! Applies all pending changes at once.

use super::{Identifier, Move, Target, UpdateSchema};
use crate::error::{Error, Result};
use crate::types::{Field, MapType, Schema, StructType, Type};

impl UpdateSchema {
    /// Returns the schema with all changes; its id is 0 until the table assigns one.
    pub fn apply(&self) -> Result<Schema> {
        self.check_identifiers_kept()?;
        let fields = self.fields(self.base.as_struct())?;
        let fields = self.add_and_move(fields, None)?;
        let schema = Schema::new(0, fields)?;
        let mut ids = Vec::with_capacity(self.identifiers.len());
        for identifier in &self.identifiers {
            let (field, name) = match identifier {
                Identifier::Known(id) => (schema.find_field(*id), self.name_now(*id)),
                Identifier::Named(name) => (schema.find_by_name(name, self.case_sensitive)?, name.clone()),
            };
            let missing = || Error::invalid(format!("the identifier field {name:?} is not in the changed schema"));
            ids.push(field.ok_or_else(missing)?.id);
        }
        let schema = Schema::with_identifiers(0, schema.fields().to_vec(), ids)?;
        schema.check_structs(Some(&self.base))?;
        schema.check_compatibility(self.format_version)?;
        Ok(schema)
    }

    /// Checks that no identifier field is deleted implicitly, either itself or with a struct around it.
    fn check_identifiers_kept(&self) -> Result<()> {
        for identifier in &self.identifiers {
            let (mut next, name) = match identifier {
                Identifier::Known(id) => (Some(*id), self.base.column_name(*id).unwrap_or_default()),
                Identifier::Named(name) => (self.find(name)?.map(|field| field.id), name.as_str()),
            };
            while let Some(id) = next {
                if self.deletes.contains(&id) {
                    return Err(Error::invalid(format!(
                        "cannot delete {:?}: {name:?} is an identifier field; set other identifier fields first",
                        self.base.column_name(id).unwrap_or(name)
                    )));
                }
                next = self.base.parent(id);
            }
        }
        Ok(())
    }

    fn fields(&self, ty: &StructType) -> Result<Vec<Field>> {
        let mut fields = Vec::with_capacity(ty.fields.len());
        for field in &ty.fields {
            if let Some(ty) = self.field(field)? {
                let update = self.updates.get(&field.id).unwrap_or(field);
                fields.push(Field { ty, ..update.clone() });
            }
        }
        Ok(fields)
    }

    /// Returns the type of a field after the changes; `None` if the field is deleted.
    fn field(&self, field: &Field) -> Result<Option<Type>> {
        if self.deletes.contains(&field.id) {
            return Ok(None);
        }
        if let Some(update) = self.updates.get(&field.id).filter(|update| !update.ty.is_nested()) {
            return Ok(Some(update.ty.clone()));
        }
        Ok(Some(match &field.ty {
            Type::Struct(ty) => {
                let fields = self.fields(ty)?;
                StructType { fields: self.add_and_move(fields, Some(field.id))? }.into()
            }
            ty => self.inside(ty)?,
        }))
    }

    fn inside(&self, ty: &Type) -> Result<Type> {
        match ty {
            Type::List(list) => match self.only(&list.element)? {
                Some(element) => Ok(ty.with_children(vec![element])),
                None => Err(Error::invalid(format!("cannot delete the element of {ty}"))),
            },
            Type::Map(map) => {
                self.check_key(map, ty)?;
                match self.only(&map.value)? {
                    Some(value) => Ok(ty.with_children(vec![map.key.clone(), value])),
                    None => Err(Error::invalid(format!("cannot delete the value of {ty}"))),
                }
            }
            other => Ok(other.clone()),
        }
    }

    /// Changes a list's element or a map's value: only its type and whether it is required may change.
    fn only(&self, field: &Field) -> Result<Option<Field>> {
        let Some(ty) = self.field(field)? else { return Ok(None) };
        let required = self.updates.get(&field.id).unwrap_or(field).required;
        Ok(Some(Field { ty, required, ..field.clone() }))
    }

    /// Checks that a map's key is unchanged: otherwise existing entries could become equal.
    fn check_key(&self, map: &MapType, ty: &Type) -> Result<()> {
        let key = &map.key;
        let touched = self.deletes.contains(&key.id)
            || self.updates.contains_key(&key.id)
            || self.additions.contains_key(&Some(key.id));
        let changed = || {
            Ok::<_, Error>(match &key.ty {
                Type::Struct(inner) => self.fields(inner)? != inner.fields,
                inner => self.inside(inner)? != *inner,
            })
        };
        if touched || changed()? {
            return Err(Error::invalid(format!("cannot change the keys of {ty}")));
        }
        Ok(())
    }

    /// Adds the new fields of a struct, then moves fields; both new and existing ones can be moved.
    fn add_and_move(&self, mut fields: Vec<Field>, parent: Option<i32>) -> Result<Vec<Field>> {
        let added = self.additions.get(&parent).into_iter().flatten();
        fields.extend(added.filter_map(|id| self.updates.get(id).cloned()));
        for step in self.moves.get(&parent).into_iter().flatten() {
            move_field(&mut fields, *step)?;
        }
        Ok(fields)
    }
}

fn move_field(fields: &mut Vec<Field>, Move { id, to }: Move) -> Result<()> {
    let position = |fields: &[Field], id: i32| {
        let found = fields.iter().position(|field| field.id == id);
        found.ok_or_else(|| Error::invalid(format!("cannot move: the field {id} will be deleted")))
    };
    let moved = fields.remove(position(fields, id)?);
    let at = match to {
        Target::First => 0,
        Target::Before(other) => position(fields, other)?,
        Target::After(other) => position(fields, other)? + 1,
    };
    fields.insert(at, moved);
    Ok(())
}
