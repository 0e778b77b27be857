//! Name mappings: field ids for data files without ids ("Column Projection", "Name Mapping Serialization"); `avro_ids`
//! applies them to Avro schemas.

mod avro_ids;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value as Json};

use super::{Field, Schema, Type};
use crate::error::{Error, Result};
use crate::json::{self, Object};
use crate::limits::Limits;

/// Table property that stores the name mapping as JSON.
pub const NAME_MAPPING_PROPERTY: &str = "schema.name-mapping.default";

/// Maps field names to ids; nested names are looked up below their parents.
#[derive(Debug, Clone, Default)]
pub struct NameMapping {
    root: Level,
}

/// An entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedField {
    /// Field id; without one, the field and everything inside it are not read.
    pub id: Option<i32>,
    /// Distinct names that the field may have.
    pub names: Vec<String>,
    /// Entries for nested fields: fields of a struct, `element` of a list, `key` and `value` of a map.
    pub fields: Option<Vec<MappedField>>,
}

/// Entries of one level, indexed by name.
#[derive(Debug, Clone, Default)]
struct Level {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
struct Entry {
    id: Option<i32>,
    names: Vec<String>,
    inside: Option<Level>,
}

impl NameMapping {
    /// Creates a mapping from entries. Ids must be unique, and names unique among siblings.
    pub fn new(fields: Vec<MappedField>) -> Result<Self> {
        Ok(Self { root: Level::new(fields, &mut HashSet::new(), &Limits::default(), 0)? })
    }

    /// Creates the mapping of a schema: each field by its current name.
    pub fn of_schema(schema: &Schema) -> Result<Self> {
        Self::new(mapped_fields(schema.fields().iter()))
    }

    /// Parses the text of the property [`NAME_MAPPING_PROPERTY`].
    pub fn parse(text: &str) -> Result<Self> {
        let json = json::parse(text.as_bytes()).map_err(|error| error.within("name mapping, "))?;
        Self::from_json(&json)
    }

    /// Reads the JSON form.
    pub fn from_json(json: &Json) -> Result<Self> {
        let mut budget = Limits::default().fields;
        let fields = read_fields(json, &mut budget, 0)?;
        Self::new(fields).map_err(|error| Error::corrupt("", error.to_string()))
    }

    /// The JSON form.
    pub fn to_json(&self) -> Json {
        write_fields(&self.fields())
    }

    /// Returns the entries.
    pub fn fields(&self) -> Vec<MappedField> {
        self.root.fields()
    }

    /// Returns the entry of a field by its full name, joined by dots. A single name may contain dots.
    pub fn find(&self, path: &str) -> Option<MappedField> {
        self.entry(path).map(Entry::field)
    }

    /// Returns the id of a field by its full name, joined by dots.
    pub fn id(&self, path: &str) -> Option<i32> {
        self.entry(path)?.id
    }

    fn entry(&self, path: &str) -> Option<&Entry> {
        self.root.find(path, &mut HashSet::new())
    }

    /// Returns the entries by id.
    pub fn by_id(&self) -> BTreeMap<i32, MappedField> {
        let mut found = BTreeMap::new();
        self.root.collect(&mut found);
        found
    }

    /// Updates the mapping after a change of the schema: new names of renamed fields are added to their old ones, new
    /// fields get entries, and a name that now belongs to another field is removed from its former entry.
    ///
    /// `updates` has the changed and new fields by id, `additions` the ids of new fields by parent id.
    pub(crate) fn updated(
        &self,
        updates: &HashMap<i32, Field>,
        additions: &HashMap<Option<i32>, Vec<i32>>,
    ) -> Result<Self> {
        let update = Update { updates, additions };
        let fields = update.level(self.fields());
        Self::new(update.with_new(Some(fields), None).unwrap_or_default())
    }
}

impl PartialEq for NameMapping {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl Level {
    fn new(fields: Vec<MappedField>, ids: &mut HashSet<i32>, limits: &Limits, depth: usize) -> Result<Self> {
        if depth > limits.depth {
            return Err(Error::invalid(format!("name mapping nested deeper than {} levels", limits.depth)));
        }
        let mut level = Self { entries: Vec::with_capacity(fields.len()), by_name: HashMap::new() };
        for MappedField { id, names, fields } in fields {
            if let Some(id) = id.filter(|id| !ids.insert(*id)) {
                return Err(Error::invalid(format!("name mapping: the id {id} appears twice")));
            }
            let mut unique = Vec::with_capacity(names.len());
            for name in names {
                match level.by_name.insert(name.clone(), level.entries.len()) {
                    None => unique.push(name),
                    Some(other) if other == level.entries.len() => {}
                    Some(_) => return Err(Error::invalid(format!("name mapping: the name {name:?} appears twice"))),
                }
            }
            let inside = fields.map(|fields| Self::new(fields, ids, limits, depth + 1)).transpose()?;
            level.entries.push(Entry { id, names: unique, inside });
        }
        Ok(level)
    }

    fn fields(&self) -> Vec<MappedField> {
        self.entries.iter().map(Entry::field).collect()
    }

    /// Finds the entry of a path. Names may contain dots, so a path can be split in many ways; `failed` remembers dead
    /// ends, by level and length of the rest.
    fn find(&self, path: &str, failed: &mut HashSet<(usize, usize)>) -> Option<&Entry> {
        let entry = |name: &str| self.by_name.get(name).and_then(|at| self.entries.get(*at));
        if let Some(found) = entry(path) {
            return Some(found);
        }
        let place = (std::ptr::from_ref(self).addr(), path.len());
        if failed.contains(&place) {
            return None;
        }
        let found = path.match_indices('.').find_map(|(at, _)| {
            let (name, rest) = path.split_at_checked(at)?;
            entry(name)?.inside.as_ref()?.find(rest.get(1..)?, failed)
        });
        if found.is_none() {
            failed.insert(place);
        }
        found
    }

    fn collect(&self, found: &mut BTreeMap<i32, MappedField>) {
        for entry in &self.entries {
            if let Some(id) = entry.id {
                found.insert(id, entry.field());
            }
            if let Some(inside) = &entry.inside {
                inside.collect(found);
            }
        }
    }
}

impl Entry {
    fn field(&self) -> MappedField {
        MappedField { id: self.id, names: self.names.clone(), fields: self.inside.as_ref().map(Level::fields) }
    }
}

/// Creates entries that map fields by their names.
fn mapped_fields<'a>(fields: impl Iterator<Item = &'a Field>) -> Vec<MappedField> {
    let mapped = fields.map(|field| MappedField {
        id: Some(field.id),
        names: vec![field.name.clone()],
        fields: mapped_inside(&field.ty),
    });
    mapped.collect()
}

fn mapped_inside(ty: &Type) -> Option<Vec<MappedField>> {
    ty.is_nested().then(|| mapped_fields(ty.children().into_iter()))
}

fn read_fields(json: &Json, budget: &mut usize, depth: usize) -> Result<Vec<MappedField>> {
    let limits = Limits::default();
    let items = json.as_array().ok_or_else(|| Error::corrupt("", "mapped fields must be an array"))?;
    *budget = budget.checked_sub(items.len()).ok_or_else(|| Error::corrupt("", "too many mapped fields"))?;
    if depth > limits.depth {
        return Err(Error::corrupt("", format!("mapped fields nested deeper than {} levels", limits.depth)));
    }
    let mut fields = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        fields.push(read_field(item, budget, depth).map_err(|error| error.within(&format!("/{position}")))?);
    }
    Ok(fields)
}

fn read_field(json: &Json, budget: &mut usize, depth: usize) -> Result<MappedField> {
    let object = Object::new(json, "a mapped field")?;
    let id = object.optional_int("field-id")?;
    // An existing member must be an array; `null` is an error.
    let names = match object.members().get("names") {
        None => Vec::new(),
        Some(Json::Array(names)) => names
            .iter()
            .map(|name| name.as_str().map(str::to_owned).ok_or_else(|| Error::corrupt("/names", "names must be text")))
            .collect::<Result<_>>()?,
        Some(_) => return Err(Error::corrupt("/names", "names must be an array")),
    };
    let fields = match object.members().get("fields") {
        // PyIceberg writes `null` if there are no nested fields.
        None | Some(Json::Null) => None,
        Some(json) => Some(read_fields(json, budget, depth + 1).map_err(|error| error.within("/fields"))?),
    };
    Ok(MappedField { id, names, fields })
}

fn write_fields(fields: &[MappedField]) -> Json {
    let write = |field: &MappedField| {
        let mut members = Map::new();
        if let Some(id) = field.id {
            members.insert("field-id".into(), id.into());
        }
        members.insert("names".into(), field.names.clone().into());
        if let Some(fields) = &field.fields {
            members.insert("fields".into(), write_fields(fields));
        }
        Json::Object(members)
    };
    fields.iter().map(write).collect()
}

/// Applies a change of the schema to a mapping.
struct Update<'a> {
    updates: &'a HashMap<i32, Field>,
    additions: &'a HashMap<Option<i32>, Vec<i32>>,
}

impl Update<'_> {
    /// Updates the entries of one level, and adds new names.
    fn level(&self, fields: Vec<MappedField>) -> Vec<MappedField> {
        let changed = fields.iter().filter_map(|field| self.updates.get(&field.id?));
        let assigned: HashMap<String, i32> = changed.map(|field| (field.name.clone(), field.id)).collect();
        let mut updated: Vec<_> = fields.into_iter().map(|field| self.field(field)).collect();
        take_names(&mut updated, &assigned);
        updated
    }

    fn field(&self, field: MappedField) -> MappedField {
        let mut names = field.names;
        if let Some(update) = field.id.and_then(|id| self.updates.get(&id)).filter(|new| !names.contains(&new.name)) {
            names.push(update.name.clone());
        }
        let inside = field.fields.map(|fields| self.level(fields));
        let fields = match field.id {
            Some(_) => self.with_new(inside, field.id),
            None => inside,
        };
        MappedField { id: field.id, names, fields }
    }

    /// Updates the entries of one level, and adds fields that are new in the parent.
    fn with_new(&self, fields: Option<Vec<MappedField>>, parent: Option<i32>) -> Option<Vec<MappedField>> {
        let added: Vec<_> =
            self.additions.get(&parent).into_iter().flatten().filter_map(|id| self.updates.get(id)).collect();
        if added.is_empty() {
            return fields;
        }
        let assigned = added.iter().map(|field| (field.name.clone(), field.id)).collect();
        let mut fields = fields.unwrap_or_default();
        take_names(&mut fields, &assigned);
        fields.extend(mapped_fields(added.into_iter()));
        Some(fields)
    }
}

/// Removes names from entries other than those that they are now assigned to.
fn take_names(fields: &mut [MappedField], assigned: &HashMap<String, i32>) {
    for field in fields {
        let id = field.id;
        field.names.retain(|name| assigned.get(name).is_none_or(|owner| Some(*owner) == id));
    }
}
