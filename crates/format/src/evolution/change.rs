//! Operations on a schema: each checks and records a change.

use super::{Identifier, Move, Target, UpdateSchema};
use crate::error::{Error, Result};
use crate::types::ids::next_id;
use crate::types::nested::{check_named, check_text_of_name};
use crate::types::promotion::{is_promotion_allowed, promote, promotions};
use crate::types::value_json;
use crate::types::{Field, PrimitiveType, Type};
use crate::value::Value;

/// A column to add.
#[derive(Debug, Clone)]
pub struct NewColumn {
    parent: Option<String>,
    name: String,
    ty: Type,
    required: bool,
    doc: Option<String>,
    default: Option<Value>,
}

impl NewColumn {
    /// Adds an optional top-level column. A name with a dot is refused, since it may mean a nested field: see
    /// [`NewColumn::inside`].
    pub fn new(name: &str, ty: impl Into<Type>) -> Result<Self> {
        if name.contains('.') {
            return Err(Error::invalid(format!(
                "the name {name:?} is ambiguous: pass the parent and the name separately"
            )));
        }
        Ok(Self::inside(None, name, ty))
    }

    /// Adds an optional field to a struct, or to the struct that is a list's element or a map's value; without a
    /// parent, to the top level. Ids inside its type are ignored.
    pub fn inside(parent: Option<&str>, name: &str, ty: impl Into<Type>) -> Self {
        let parent = parent.map(str::to_owned);
        Self { parent, name: name.to_owned(), ty: ty.into(), required: false, doc: None, default: None }
    }

    /// Makes the column required, for which it needs a default.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Sets the comment of the column.
    #[must_use]
    pub fn with_doc(self, doc: Option<String>) -> Self {
        Self { doc, ..self }
    }

    /// Sets the default of the column, for existing and for new rows.
    #[must_use]
    pub fn with_default(self, default: Option<Value>) -> Self {
        Self { default, ..self }
    }
}

impl UpdateSchema {
    /// Adds a column after the existing ones.
    pub fn add(&mut self, column: NewColumn) -> Result<&mut Self> {
        let (parent, full_name) = match &column.parent {
            Some(parent) => self.parent(parent, &column.name)?,
            None => (None, column.name.clone()),
        };
        let given_name =
            column.parent.as_ref().map_or(column.name.clone(), |parent| format!("{parent}.{}", column.name));
        if self.find(&given_name)?.is_some_and(|field| !self.deletes.contains(&field.id)) {
            return refuse(format!("cannot add the column {given_name:?}: it already exists"));
        }
        if column.name.is_empty() {
            return refuse(match &column.parent {
                None => "cannot add a column with an empty name".to_owned(),
                Some(parent) => format!("cannot add a field with an empty name to {parent:?}"),
            });
        }
        check_text_of_name(&column.name)?;
        check_named(column.ty.children(), Some(&full_name))?;
        if column.required && column.default.is_none() && !self.allow_incompatible {
            return refuse(format!("cannot add the required column {full_name:?} without a default"));
        }
        if column.required && column.ty == Type::Primitive(PrimitiveType::Unknown) {
            return refuse(format!("the column {full_name:?} of type unknown cannot be required"));
        }
        check_default(column.default.as_ref(), &column.ty)?;
        let mut last_id = self.last_column_id;
        let id = next_id(&mut last_id)?;
        let field = Field {
            id,
            name: column.name,
            required: column.required,
            ty: column.ty.with_fresh_ids(&mut last_id)?,
            doc: column.doc,
            initial_default: column.default.clone(),
            write_default: column.default,
        };
        self.last_column_id = last_id;
        self.added_names.insert(self.cased(&full_name), id);
        if let Some(parent) = parent {
            self.added_parents.insert(id, parent);
        }
        self.updates.insert(id, field);
        self.additions.entry(parent).or_default().push(id);
        Ok(self)
    }

    /// Finds the struct that a field is added to, and the full name of the field.
    fn parent(&self, parent: &str, name: &str) -> Result<(Option<i32>, String)> {
        let Some(field) = self.find(parent)? else {
            return Err(self.missing(&format!("cannot add {name:?} to {parent:?}"), parent));
        };
        let inner = match &field.ty {
            Type::Map(map) => &map.value,
            Type::List(list) => &list.element,
            _ => field,
        };
        if inner.ty.as_struct().is_none() {
            return refuse(format!("cannot add {name:?} to {parent:?}: it is a {}", inner.ty));
        }
        if self.deletes.contains(&inner.id) {
            return refuse(format!("cannot add {name:?} to {parent:?}, which will be deleted"));
        }
        let full = self.base.column_name(inner.id).unwrap_or(parent);
        Ok((Some(inner.id), format!("{full}.{name}")))
    }

    /// Deletes a column with everything inside it.
    pub fn delete(&mut self, name: &str) -> Result<&mut Self> {
        let id = self.existing(name, "delete")?.id;
        if self.additions.contains_key(&Some(id)) {
            return refuse(format!("cannot delete {name:?}: columns were added to it"));
        }
        if self.updates.contains_key(&id) {
            return refuse(format!("cannot delete {name:?}: it was changed"));
        }
        self.deletes.insert(id);
        Ok(self)
    }

    /// Renames a column; `new_name` is its own name, without those of the structs around it.
    pub fn rename(&mut self, name: &str, new_name: &str) -> Result<&mut Self> {
        let field = self.existing(name, "rename")?;
        self.check_kept(field.id, name)?;
        if new_name.is_empty() {
            return refuse(format!("cannot rename {name:?}: the new name is empty"));
        }
        check_text_of_name(new_name)?;
        let update = self.updates.get(&field.id).unwrap_or(field);
        let renamed = Field { name: new_name.to_owned(), ..update.clone() };
        self.updates.insert(renamed.id, renamed);
        Ok(self)
    }

    /// Makes a column required. It must be a new column with a default, unless incompatible changes are allowed.
    pub fn require(&mut self, name: &str) -> Result<&mut Self> {
        self.set_required(name, true)
    }

    /// Makes a column optional.
    pub fn make_optional(&mut self, name: &str) -> Result<&mut Self> {
        self.set_required(name, false)
    }

    fn set_required(&mut self, name: &str, required: bool) -> Result<&mut Self> {
        let field = self.for_update(name)?;
        if field.required == required {
            return Ok(self);
        }
        let added_with_default = self.added_names.contains_key(&self.cased(name)) && field.initial_default.is_some();
        if required && !added_with_default && !self.allow_incompatible {
            return refuse(format!("cannot make the optional column {name:?} required: it may hold nulls"));
        }
        self.check_kept(field.id, name)?;
        let changed = Field { required, ..field.clone() };
        self.updates.insert(changed.id, changed);
        Ok(self)
    }

    /// Promotes a column, and its defaults, to another type.
    pub fn update_type(&mut self, name: &str, ty: &PrimitiveType) -> Result<&mut Self> {
        let field = self.for_update(name)?;
        self.check_kept(field.id, name)?;
        if field.ty.as_primitive() == Some(ty) {
            return Ok(self);
        }
        if !is_promotion_allowed(&field.ty, ty, self.format_version) {
            let message = format!("cannot change the type of {name:?} from {} to {ty}", field.ty);
            return Err(Error::unfit(match promotions(&field.ty, self.format_version) {
                Some(wider) => format!("{message}: a column of this type can become {wider}"),
                None => format!("{message}: no other type can hold all of its values"),
            }));
        }
        if field.ty.as_primitive() == Some(&PrimitiveType::Date) && self.partition_sources.contains(&field.id) {
            return refuse(format!("cannot change the type of {name:?} to {ty}: its dates are partition values"));
        }
        let promoted =
            |default: &Option<Value>| default.as_ref().map(|value| promote(value, &field.ty, ty)).transpose();
        let changed = Field {
            initial_default: promoted(&field.initial_default)?,
            write_default: promoted(&field.write_default)?,
            ty: ty.clone().into(),
            ..field.clone()
        };
        self.updates.insert(changed.id, changed);
        Ok(self)
    }

    /// Sets or removes the comment of a column.
    pub fn update_doc(&mut self, name: &str, doc: Option<&str>) -> Result<&mut Self> {
        let field = self.for_update(name)?;
        self.check_kept(field.id, name)?;
        if field.doc.as_deref() != doc {
            let changed = Field { doc: doc.map(str::to_owned), ..field.clone() };
            self.updates.insert(changed.id, changed);
        }
        Ok(self)
    }

    /// Returns the type of a column after the changes so far.
    pub fn type_of(&self, name: &str) -> Result<Type> {
        self.for_update(name).map(|field| field.ty.clone())
    }

    /// Sets or removes the default of a column for new rows.
    pub fn update_default(&mut self, name: &str, default: Option<Value>) -> Result<&mut Self> {
        let field = self.for_update(name)?;
        self.check_kept(field.id, name)?;
        check_default(default.as_ref(), &field.ty)?;
        if default.is_none() || field.write_default != default {
            let changed = Field { write_default: default, ..field.clone() };
            self.updates.insert(changed.id, changed);
        }
        Ok(self)
    }

    /// Moves a column to the beginning of its struct.
    pub fn move_first(&mut self, name: &str) -> Result<&mut Self> {
        let id = self.for_move(name, name)?;
        self.remember_move(name, Move { id, to: Target::First })
    }

    /// Moves a column before another one in its struct.
    pub fn move_before(&mut self, name: &str, before: &str) -> Result<&mut Self> {
        let (id, other) = (self.for_move(name, name)?, self.for_move(name, before)?);
        self.remember_move(name, Move { id, to: Target::Before(other) })
    }

    /// Moves a column after another one in its struct.
    pub fn move_after(&mut self, name: &str, after: &str) -> Result<&mut Self> {
        let (id, other) = (self.for_move(name, name)?, self.for_move(name, after)?);
        self.remember_move(name, Move { id, to: Target::After(other) })
    }

    fn remember_move(&mut self, name: &str, step: Move) -> Result<&mut Self> {
        let parent = self.parent_of(step.id);
        if let Target::Before(other) | Target::After(other) = step.to {
            if other == step.id {
                return refuse(format!("cannot move {name:?} before or after itself"));
            }
            if self.parent_of(other) != parent {
                return refuse(format!("cannot move {name:?} to a different struct"));
            }
        }
        if let Some(ty) = parent.and_then(|id| self.base.find_type(id)).filter(|ty| ty.as_struct().is_none()) {
            return refuse(format!("cannot move {name:?}: {ty} has no order of fields"));
        }
        self.moves.entry(parent).or_default().push(step);
        Ok(self)
    }

    /// Sets the identifier fields by their full names.
    pub fn set_identifier_fields<S: AsRef<str>>(&mut self, names: &[S]) -> &mut Self {
        let identifier = |name: &str| match self.find(name) {
            // Refer to it by id, so that it is found after a rename.
            Ok(Some(field)) if self.base.column_name(field.id) == Some(&self.name_now(field.id)) => {
                Identifier::Known(field.id)
            }
            _ => Identifier::Named(name.to_owned()),
        };
        self.identifiers = names.iter().map(|name| identifier(name.as_ref())).collect();
        self
    }

    fn parent_of(&self, id: i32) -> Option<i32> {
        self.added_parents.get(&id).copied().or_else(|| self.base.parent(id))
    }

    pub(super) fn cased(&self, name: &str) -> String {
        if self.case_sensitive { name.to_owned() } else { name.to_lowercase() }
    }

    pub(super) fn find(&self, name: &str) -> Result<Option<&Field>> {
        self.base.find_by_name(name, self.case_sensitive)
    }

    fn existing(&self, name: &str, what: &str) -> Result<&Field> {
        self.find(name)?.ok_or_else(|| self.missing(&format!("cannot {what} {name:?}"), name))
    }

    /// Returns a column after the changes so far.
    fn for_update(&self, name: &str) -> Result<&Field> {
        let added = || self.updates.get(self.added_names.get(&self.cased(name))?);
        let field = match self.find(name)? {
            Some(field) => Some(self.updates.get(&field.id).unwrap_or(field)),
            None => added(),
        };
        field.ok_or_else(|| self.missing(&format!("cannot update {name:?}"), name))
    }

    fn for_move(&self, moved: &str, name: &str) -> Result<i32> {
        if let Some(id) = self.added_names.get(&self.cased(name)) {
            return Ok(*id);
        }
        let field = self.find(name)?;
        field.map(|field| field.id).ok_or_else(|| self.missing(&format!("cannot move {moved:?}"), name))
    }

    /// Creates the error for a column that does not exist.
    fn missing(&self, doing: &str, name: &str) -> Error {
        Error::unfit(format!("{doing}: {}", self.base.missing(name, self.case_sensitive)))
    }

    /// Returns the full name of an original column after the renames so far.
    pub(super) fn name_now(&self, id: i32) -> String {
        let mut steps = Vec::new();
        let mut next = Some(id);
        while let Some(field) = next.and_then(|id| self.base.find_field(id)) {
            steps.push(self.updates.get(&field.id).unwrap_or(field).name.as_str());
            next = self.base.parent(field.id);
        }
        steps.reverse();
        steps.join(".")
    }

    fn check_kept(&self, id: i32, name: &str) -> Result<()> {
        if self.deletes.contains(&id) {
            return refuse(format!("cannot update {name:?}, which will be deleted"));
        }
        Ok(())
    }
}

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::invalid(message))
}

fn check_default(default: Option<&Value>, ty: &Type) -> Result<()> {
    let Some(default) = default else { return Ok(()) };
    if ty.is_nested() || value_json::to_json(default, ty).is_err() {
        return refuse(format!("{default:?} cannot be a default of the type {ty}"));
    }
    Ok(())
}
