//! Union by name: adds what another schema has and this one lacks.

use super::{NewColumn, UpdateSchema};
use crate::error::{Error, Result};
use crate::types::nested::FieldsByName;
use crate::types::promotion::is_promotion_allowed;
use crate::types::{Field, Schema, StructType, Type};

impl UpdateSchema {
    /// Adds the missing columns of `other`, at any depth, as optional ones. Where `other` requires it, promotes types,
    /// makes columns optional, and copies comments and write defaults. Columns are matched by name.
    pub fn union_by_name(&mut self, other: &Schema) -> Result<&mut Self> {
        let mut changed = self.clone();
        let base = self.base.clone();
        changed.union_structs(None, base.as_struct(), other.as_struct())?;
        *self = changed;
        Ok(self)
    }

    fn union_structs(&mut self, parent: Option<i32>, existing: &StructType, other: &StructType) -> Result<()> {
        let by_name = FieldsByName::new(existing, self.case_sensitive);
        let mut pairs = Vec::with_capacity(other.fields.len());
        for field in &other.fields {
            let twin = by_name.get(&field.name)?;
            if let Some(twin) = twin {
                self.union_types(twin, field)?;
            }
            pairs.push((field, twin));
        }
        for (field, twin) in pairs {
            match twin {
                Some(twin) => self.union_fields(twin, field)?,
                None => self.add_missing(parent, field)?,
            }
        }
        Ok(())
    }

    /// Merges the nested fields of two fields with the same name.
    fn union_types(&mut self, existing: &Field, other: &Field) -> Result<()> {
        match (&existing.ty, &other.ty) {
            (Type::Struct(ty), Type::Struct(other)) => self.union_structs(Some(existing.id), ty, other),
            (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) => {
                let pairs = || existing.ty.children().into_iter().zip(other.ty.children());
                for (twin, field) in pairs() {
                    self.union_types(twin, field)?;
                }
                for (twin, field) in pairs() {
                    self.union_fields(twin, field)?;
                }
                Ok(())
            }
            (_, Type::Primitive(_) | Type::Variant) => Ok(()),
            (ty, other) => {
                Err(Error::invalid(format!("{:?} is a {ty}, which has no union with {other}", existing.name)))
            }
        }
    }

    fn union_fields(&mut self, existing: &Field, other: &Field) -> Result<()> {
        let name = self.base.column_name(existing.id).unwrap_or(&existing.name).to_owned();
        if existing.required && !other.required {
            self.make_optional(&name)?;
        }
        if !self.is_no_wider(&existing.ty, &other.ty) {
            match &other.ty {
                Type::Primitive(ty) => self.update_type(&name, ty)?,
                ty => return Err(Error::invalid(format!("cannot change the type of {name:?} to {ty}"))),
            };
        }
        if other.doc.is_some() && other.doc != existing.doc {
            self.update_doc(&name, other.doc.as_deref())?;
        }
        if other.write_default.is_some() && other.write_default != existing.write_default {
            self.update_default(&name, other.write_default.clone())?;
        }
        Ok(())
    }

    /// Whether values of `other` fit without a type change. Nested fields are compared separately.
    fn is_no_wider(&self, existing: &Type, other: &Type) -> bool {
        match (existing, other) {
            (Type::Primitive(existing), Type::Primitive(_)) => {
                is_promotion_allowed(other, existing, self.format_version)
            }
            (Type::Primitive(_), _) | (_, Type::Primitive(_)) => false,
            _ => true,
        }
    }

    fn add_missing(&mut self, parent: Option<i32>, field: &Field) -> Result<()> {
        let parent = parent.and_then(|id| self.base.column_name(id)).map(str::to_owned);
        let name = parent.as_ref().map_or(field.name.clone(), |parent| format!("{parent}.{}", field.name));
        let column = NewColumn::inside(parent.as_deref(), &field.name, field.ty.clone())
            .with_doc(field.doc.clone())
            .with_default(field.initial_default.clone());
        self.add(column)?.update_default(&name, field.write_default.clone())?;
        Ok(())
    }
}
