//! Selects parts of a schema: the columns that a reader needs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Field, Schema, StructType, Type};
use crate::error::{Error, Result};

/// The name that selects all columns.
const ALL_COLUMNS: &str = "*";

/// What the selection of a nested field includes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    /// Everything inside it.
    Whole,
    /// Nothing inside it: a struct is empty unless fields inside it are selected too.
    Bare,
}

impl Schema {
    /// Selects columns by full name, including everything inside them; `*` selects all columns. An unknown name is an
    /// error.
    pub fn select<S: AsRef<str>>(&self, names: &[S], case_sensitive: bool) -> Result<Self> {
        if names.iter().any(|name| name.as_ref() == ALL_COLUMNS) {
            return Ok(self.clone());
        }
        let mut ids = HashSet::new();
        for name in names {
            let name = name.as_ref();
            ids.insert(self.named(name, case_sensitive)?.id);
        }
        self.select_ids(&ids)
    }

    /// Selects the columns of [`Schema::select`], in the order of `names`.
    ///
    /// A struct takes the position where it, or the first field inside it, is named; its fields are ordered in the same
    /// way. `*` means all columns; columns named before it come first.
    pub fn select_in_order<S: AsRef<str>>(&self, names: &[S], case_sensitive: bool) -> Result<Self> {
        let mut order = Order { named: HashMap::new(), all: usize::MAX };
        let (mut ids, mut whole) = (HashSet::new(), false);
        for (place, name) in names.iter().enumerate() {
            let name = name.as_ref();
            if name == ALL_COLUMNS {
                whole = true;
                order.all = order.all.min(place);
                continue;
            }
            let id = self.named(name, case_sensitive)?.id;
            order.named.entry(id).or_insert(place);
            ids.insert(id);
        }
        let chosen = if whole { self.clone() } else { self.select_ids(&ids)? };
        let mut fields = chosen.fields().to_vec();
        order.fields(&mut fields, order.all);
        if fields == chosen.fields() {
            return Ok(chosen);
        }
        Self::from_struct(chosen.schema_id(), Arc::new(StructType { fields }))
    }

    /// Selects fields by id, including everything inside them and their ancestors.
    pub fn select_ids(&self, ids: &HashSet<i32>) -> Result<Self> {
        self.pruned(ids, Nested::Whole)
    }

    /// Selects exactly the fields with these ids and their ancestors: a struct is empty unless fields inside it are
    /// selected too. Lists and maps cannot be selected themselves, only what is inside them.
    pub fn project(&self, ids: &HashSet<i32>) -> Result<Self> {
        self.pruned(ids, Nested::Bare)
    }

    /// Selects all fields except those with these ids.
    pub fn select_not(&self, ids: &HashSet<i32>) -> Result<Self> {
        let mut rest = HashSet::new();
        leaves(self.as_struct().fields.iter(), false, &mut rest);
        self.project(&rest.difference(ids).copied().collect())
    }

    /// Returns the ids whose projection is the whole schema: all except those of lists and maps.
    pub fn projected_ids(&self) -> HashSet<i32> {
        let mut ids = HashSet::new();
        leaves(self.as_struct().fields.iter(), true, &mut ids);
        ids
    }

    fn pruned(&self, ids: &HashSet<i32>, nested: Nested) -> Result<Self> {
        let pruned = Prune { ids, nested }.structure(self.as_struct())?;
        match pruned {
            Some(Cow::Borrowed(_)) => Ok(self.clone()),
            Some(Cow::Owned(root)) => Self::from_struct(0, Arc::new(root)),
            None if self.fields().is_empty() => Ok(self.clone()),
            None => Self::new(0, Vec::new()),
        }
    }
}

/// Positions at which fields are first named.
struct Order {
    named: HashMap<i32, usize>,
    /// Position of `*`.
    all: usize,
}

impl Order {
    /// Sorts fields and their nested fields; returns the first position at which one of them is named. `outer` is the
    /// position of their parent.
    fn fields(&self, fields: &mut [Field], outer: usize) -> usize {
        let mut places: HashMap<i32, usize> = HashMap::with_capacity(fields.len());
        for field in fields.iter_mut() {
            places.insert(field.id, self.field(field, outer));
        }
        let place = |field: &Field| places.get(&field.id).copied().unwrap_or(usize::MAX);
        fields.sort_by_key(place);
        fields.first().map_or(usize::MAX, place)
    }

    fn field(&self, field: &mut Field, outer: usize) -> usize {
        let own = self.named.get(&field.id).copied().unwrap_or(usize::MAX).min(outer);
        let mut inner = usize::MAX;
        match &field.ty {
            Type::Primitive(_) | Type::Variant => {}
            Type::Struct(ty) => {
                let mut fields = ty.fields.clone();
                inner = self.fields(&mut fields, own);
                field.ty = StructType { fields }.into();
            }
            collection => {
                let mut children: Vec<Field> = collection.children().into_iter().cloned().collect();
                // Keys always come before values, so the children are not sorted.
                for child in &mut children {
                    inner = inner.min(self.field(child, own));
                }
                field.ty = collection.with_children(children);
            }
        }
        own.min(inner)
    }
}

/// Collects the ids of fields that hold values; with `structs` also those of structs.
fn leaves<'a>(fields: impl Iterator<Item = &'a Field>, structs: bool, ids: &mut HashSet<i32>) {
    for field in fields {
        match &field.ty {
            Type::Primitive(_) | Type::Variant => {
                ids.insert(field.id);
            }
            Type::Struct(ty) => {
                if structs {
                    ids.insert(field.id);
                }
                leaves(ty.fields.iter(), structs, ids);
            }
            collection => inside_collection(collection, structs, ids),
        }
    }
}

fn inside_collection(ty: &Type, structs: bool, ids: &mut HashSet<i32>) {
    let last_is_leaf = match ty {
        Type::List(ty) => !ty.element.ty.is_nested(),
        Type::Map(ty) => !ty.value.ty.is_nested(),
        _ => false,
    };
    for child in ty.children() {
        // A map's key comes with its value.
        if last_is_leaf {
            ids.insert(child.id);
        }
        match &child.ty {
            Type::Struct(ty) => leaves(ty.fields.iter(), structs, ids),
            ty @ (Type::List(_) | Type::Map(_)) => inside_collection(ty, structs, ids),
            _ => {}
        }
    }
}

struct Prune<'a> {
    ids: &'a HashSet<i32>,
    nested: Nested,
}

impl Prune<'_> {
    /// Prunes a struct; `None` if nothing is left.
    fn structure<'t>(&self, ty: &'t StructType) -> Result<Option<Cow<'t, StructType>>> {
        let mut fields = Vec::new();
        let mut same = true;
        for field in &ty.fields {
            let Some(kept) = self.field(field)? else { continue };
            same &= matches!(kept, Cow::Borrowed(_));
            fields.push(Field { ty: kept.into_owned(), ..field.clone() });
        }
        Ok(match fields.len() {
            0 => None,
            all if all == ty.fields.len() && same => Some(Cow::Borrowed(ty)),
            _ => Some(Cow::Owned(StructType { fields })),
        })
    }

    /// Prunes a struct's field, a list's element or a map's value.
    fn field<'t>(&self, field: &'t Field) -> Result<Option<Cow<'t, Type>>> {
        let selected = self.ids.contains(&field.id);
        if selected && (self.nested == Nested::Whole || !field.ty.is_nested()) {
            return Ok(Some(Cow::Borrowed(&field.ty)));
        }
        let inner = self.ty(&field.ty)?;
        match (&field.ty, inner) {
            (Type::Struct(_), None) if selected => Ok(Some(Cow::Owned(StructType::default().into()))),
            (Type::List(_) | Type::Map(_), _) if selected => Err(Error::invalid(format!(
                "lists and maps cannot be projected by themselves: field {} ({:?}) is a {}",
                field.id, field.name, field.ty
            ))),
            (_, inner) => Ok(inner),
        }
    }

    fn ty<'t>(&self, ty: &'t Type) -> Result<Option<Cow<'t, Type>>> {
        match ty {
            Type::Primitive(_) | Type::Variant => Ok(None),
            Type::Struct(inner) => Ok(self.structure(inner)?.map(|kept| match kept {
                Cow::Borrowed(_) => Cow::Borrowed(ty),
                Cow::Owned(kept) => Cow::Owned(kept.into()),
            })),
            Type::List(list) => Ok(self.field(&list.element)?.map(|kept| match kept {
                Cow::Borrowed(_) => Cow::Borrowed(ty),
                Cow::Owned(kept) => Cow::Owned(ty.with_children(vec![Field { ty: kept, ..list.element.clone() }])),
            })),
            Type::Map(map) => match self.field(&map.value)? {
                Some(Cow::Owned(kept)) => {
                    let value = Field { ty: kept, ..map.value.clone() };
                    Ok(Some(Cow::Owned(ty.with_children(vec![map.key.clone(), value]))))
                }
                Some(Cow::Borrowed(_)) => Ok(Some(Cow::Borrowed(ty))),
                // Keys are not read without their values.
                None if self.ids.contains(&map.key.id) => Ok(Some(Cow::Borrowed(ty))),
                None => Ok(None),
            },
        }
    }
}
