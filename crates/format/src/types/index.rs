//! Finds the fields of a schema by id and by name.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::nested::{Children, too_deep};
use super::value_json;
use super::{Field, PrimitiveType, StructType, Type};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// Limit of the bytes of all full names in a schema: a long name is repeated in the names of all its nested fields.
const LONGEST_NAMES: usize = 1 << 26;

/// Index of the fields of a struct, nested ones included.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_id: HashMap<i32, Place>,
    by_name: HashMap<String, i32>,
    by_lower_case_name: OnceLock<Result<HashMap<String, i32>>>,
    /// Ids in field order, parents before their children.
    ids: Vec<i32>,
}

/// Position of a field in the schema.
#[derive(Debug)]
pub(super) struct Place {
    /// Full name: its own and those of its ancestors, joined by dots.
    pub(super) name: String,
    /// Id of the parent field.
    pub(super) parent: Option<i32>,
    /// Path to it: indices in structs; 0 for a list's element and a map's key, 1 for a map's value.
    pub(super) path: Box<[usize]>,
    /// Whether any of its ancestors is a list or a map.
    pub(super) repeated: bool,
}

impl Index {
    /// Indexes the fields of a struct, whose ids and full names must be unique.
    pub(super) fn new(root: &StructType, limits: &Limits) -> Result<Self> {
        let mut builder = Builder { index: Self::default(), short_names: Vec::new(), name_bytes: 0, limits };
        builder.children(Children::of_struct(root), &Above::default(), false, 0)?;
        let Builder { mut index, short_names, .. } = builder;
        for (name, id) in short_names {
            index.by_name.entry(name).or_insert(id);
        }
        Ok(index)
    }

    pub(super) fn place(&self, id: i32) -> Option<&Place> {
        self.by_id.get(&id)
    }

    pub(super) fn ids(&self) -> &[i32] {
        &self.ids
    }

    pub(super) fn by_name(&self) -> &HashMap<String, i32> {
        &self.by_name
    }

    /// Returns the index by lower-case name; an error if two names differ only in case.
    pub(super) fn by_lower_case_name(&self) -> Result<&HashMap<String, i32>> {
        self.by_lower_case_name.get_or_init(|| self.lower_case()).as_ref().map_err(Clone::clone)
    }

    fn lower_case(&self) -> Result<HashMap<String, i32>> {
        let mut lower = HashMap::with_capacity(self.by_name.len());
        for (name, id) in &self.by_name {
            if let Some(other) = lower.insert(name.to_lowercase(), *id).filter(|other| other != id) {
                let mut names = [*id, other].map(|id| self.by_id.get(&id).map_or("?", |place| place.name.as_str()));
                names.sort_unstable();
                let [a, b] = names;
                return Err(Error::invalid(format!("{a:?} and {b:?} differ only in case")));
            }
        }
        Ok(lower)
    }
}

/// What a field inherits from its ancestors.
#[derive(Default)]
struct Above {
    id: Option<i32>,
    name: String,
    short_name: String,
    path: Vec<usize>,
    repeated: bool,
}

impl Above {
    fn join(&self, above: &str, name: &str) -> String {
        if self.id.is_none() { name.to_owned() } else { format!("{above}.{name}") }
    }
}

struct Builder<'a> {
    index: Index,
    short_names: Vec<(String, i32)>,
    name_bytes: usize,
    limits: &'a Limits,
}

impl Builder<'_> {
    fn children(&mut self, children: Children<'_>, above: &Above, structs_short: bool, depth: usize) -> Result<()> {
        if depth > self.limits.type_depth {
            return Err(too_deep(self.limits));
        }
        for (position, field) in children.into_iter().enumerate() {
            // Names may omit a struct as element or value, but not a map's key.
            let left_out = structs_short && field.name != "key" && matches!(field.ty, Type::Struct(_));
            self.field(field, position, left_out, above, depth)?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, position: usize, left_out: bool, above: &Above, depth: usize) -> Result<()> {
        let name = above.join(&above.name, &field.name);
        let short_name = above.join(&above.short_name, &field.name);
        self.check(field, &name, short_name.len())?;
        self.index.ids.push(field.id);
        let mut path = above.path.clone();
        path.push(position);
        let collection = matches!(field.ty, Type::List(_) | Type::Map(_));
        let own = Above {
            id: Some(field.id),
            name,
            // `locations.latitude` in addition to `locations.element.latitude`.
            short_name: if left_out { above.short_name.clone() } else { short_name.clone() },
            path,
            repeated: above.repeated || collection,
        };
        self.children(field.ty.children(), &own, collection, depth + 1)?;
        let Above { name, path, .. } = own;
        self.add(field.id, Place { name, parent: above.id, path: path.into(), repeated: above.repeated }, short_name)
    }

    fn add(&mut self, id: i32, place: Place, short_name: String) -> Result<()> {
        if let Some(other) = self.index.by_name.insert(place.name.clone(), id) {
            return Err(Error::invalid(format!("the name {:?} is used by fields {other} and {id}", place.name)));
        }
        if short_name != place.name {
            self.short_names.push((short_name, id));
        }
        let name = place.name.clone();
        match self.index.by_id.insert(id, place) {
            None => Ok(()),
            Some(other) => Err(Error::invalid(format!("the field id {id} is used by {:?} and {name:?}", other.name))),
        }
    }

    /// Checks the limits, and that the field's type and defaults are valid.
    fn check(&mut self, field: &Field, name: &str, short_name: usize) -> Result<()> {
        if self.index.ids.len() >= self.limits.fields {
            return Err(Error::invalid(format!("more than {} fields", self.limits.fields)));
        }
        self.name_bytes = self.name_bytes.saturating_add(name.len()).saturating_add(short_name);
        if self.name_bytes > LONGEST_NAMES {
            return Err(Error::invalid("the full names of all fields are too long"));
        }
        let unknown = field.ty == Type::Primitive(PrimitiveType::Unknown);
        if field.required && unknown {
            return Err(Error::invalid(format!("{name:?}: a field of type unknown cannot be required")));
        }
        for default in [&field.initial_default, &field.write_default].into_iter().flatten() {
            // A default without a JSON form could not be written. Of the nested types, only structs may have a default,
            // `{}`.
            let written = value_json::to_json(default, &field.ty);
            let of_fields = matches!(field.ty, Type::Struct(_)) && *default == Field::OF_FIELDS;
            if !of_fields && (field.ty.is_nested() || written.is_err()) {
                return Err(Error::invalid(format!("{name:?}: {default:?} cannot be a default of a {}", field.ty)));
            }
        }
        Ok(())
    }
}
