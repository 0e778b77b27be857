//! The JSON form of types and schemas (Appendix C, "Schemas").

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::nested::too_deep;
use super::value_json;
use super::{Field, ListType, MapType, Schema, StructType, Type};
use crate::error::{Error, Result};
use crate::json::{Object, brief};
use crate::limits::Limits;
use crate::value::Value;

/// How to treat a type name that the specification does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Refuse,
    Keep,
}

impl Schema {
    /// Reads a schema; an unknown type name is an error.
    pub fn from_json(json: &Json) -> Result<Self> {
        read_schema(json, Names::Refuse, &Limits::default())
    }

    /// Reads a schema in table metadata: an unknown type name, of a later specification, is kept as
    /// [`super::PrimitiveType::Unrecognized`], so that the table loads.
    pub fn from_metadata_json(json: &Json, limits: &Limits) -> Result<Self> {
        read_schema(json, Names::Keep, limits)
    }

    /// Writes the JSON form like the Java library.
    pub fn to_json(&self) -> Json {
        let mut members = Map::new();
        members.insert("type".into(), "struct".into());
        members.insert("schema-id".into(), self.schema_id().into());
        if !self.identifier_field_ids().is_empty() {
            members.insert("identifier-field-ids".into(), self.identifier_field_ids().into());
        }
        members.insert("fields".into(), self.fields().iter().map(Field::to_json).collect());
        Json::Object(members)
    }
}

impl Type {
    /// Reads a type: a name, or an object for a struct, list or map.
    pub fn from_json(json: &Json) -> Result<Self> {
        TypeReader::new(Names::Refuse, &Limits::default()).read(json, 0)
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Primitive(_) | Self::Variant => Json::String(self.to_string()),
            Self::Struct(ty) => {
                json!({"type": "struct", "fields": ty.fields.iter().map(Field::to_json).collect::<Json>()})
            }
            Self::List(ty) => json!({
                "type": "list",
                "element-id": ty.element.id,
                "element": ty.element.ty.to_json(),
                "element-required": ty.element.required,
            }),
            Self::Map(ty) => json!({
                "type": "map",
                "key-id": ty.key.id,
                "key": ty.key.ty.to_json(),
                "value-id": ty.value.id,
                "value": ty.value.ty.to_json(),
                "value-required": ty.value.required,
            }),
        }
    }
}

impl Field {
    /// Writes the JSON form of a struct's field.
    pub fn to_json(&self) -> Json {
        let mut members = Map::new();
        members.insert("id".into(), self.id.into());
        members.insert("name".into(), self.name.as_str().into());
        members.insert("required".into(), self.required.into());
        members.insert("type".into(), self.ty.to_json());
        if let Some(doc) = &self.doc {
            members.insert("doc".into(), doc.as_str().into());
        }
        for (key, default) in [("initial-default", &self.initial_default), ("write-default", &self.write_default)] {
            // A default that is not a value of the type cannot be written; creating such a field is an error.
            let written = |value| match &self.ty {
                Type::Struct(_) => Some(json!({})),
                ty => value_json::to_json(value, ty).ok(),
            };
            if let Some(json) = default.as_ref().and_then(written) {
                members.insert(key.into(), json);
            }
        }
        Json::Object(members)
    }
}

fn read_schema(json: &Json, names: Names, limits: &Limits) -> Result<Schema> {
    let Type::Struct(root) = TypeReader::new(names, limits).read(json, 0)? else {
        return Err(Error::corrupt("", "a schema must be a struct"));
    };
    let object = Object::new(json, "a schema")?;
    let schema_id = object.optional_int("schema-id")?.unwrap_or(0);
    let identifiers = object.optional_ints("identifier-field-ids")?.unwrap_or_default();
    Schema::build(schema_id, root, identifiers, limits).map_err(|error| match error {
        Error::Invalid(message) | Error::Unfit(message) => Error::corrupt("", message),
        other => other,
    })
}

/// Reads types and counts their fields.
struct TypeReader<'a> {
    names: Names,
    limits: &'a Limits,
    fields: usize,
}

impl<'a> TypeReader<'a> {
    fn new(names: Names, limits: &'a Limits) -> Self {
        Self { names, limits, fields: 0 }
    }

    fn read(&mut self, json: &Json, depth: usize) -> Result<Type> {
        if depth > self.limits.type_depth {
            return Err(too_deep(self.limits));
        }
        if let Json::String(name) = json {
            return self.named(name);
        }
        let object = Object::new(json, "a type that is not a name")?;
        match object.get("type").and_then(Json::as_str) {
            Some("struct") => self.structure(object, depth),
            Some("list") => self.list(object, depth),
            Some("map") => self.map(object, depth),
            _ => Err(Error::corrupt("/type", "a nested type must be struct, list or map")),
        }
    }

    fn named(&self, name: &str) -> Result<Type> {
        let ty = match self.names {
            Names::Refuse => Type::parse(name),
            Names::Keep => Type::parse_lenient(name),
        };
        ty.map_err(|error| Error::corrupt("", error.to_string()))
    }

    fn count(&mut self, fields: usize) -> Result<()> {
        self.fields = self.fields.saturating_add(fields);
        if self.fields > self.limits.fields {
            return Err(Error::corrupt("", format!("more than {} fields", self.limits.fields)));
        }
        Ok(())
    }

    fn member(&mut self, object: Object<'_>, key: &str, depth: usize) -> Result<Type> {
        self.read(object.required(key)?, depth + 1).map_err(|error| error.within(&format!("/{key}")))
    }

    fn structure(&mut self, object: Object<'_>, depth: usize) -> Result<Type> {
        let items = object.array("fields")?;
        self.count(items.len())?;
        let mut fields = Vec::with_capacity(items.len());
        for (position, item) in items.iter().enumerate() {
            fields.push(self.field(item, depth).map_err(|error| error.within(&format!("/fields/{position}")))?);
        }
        Ok(Type::Struct(Arc::new(StructType { fields })))
    }

    fn field(&mut self, json: &Json, depth: usize) -> Result<Field> {
        let object = Object::new(json, "a field")?;
        let ty = self.member(object, "type", depth)?;
        Ok(Field {
            id: object.int("id")?,
            name: object.string("name")?.to_owned(),
            required: object.boolean("required")?,
            doc: object.optional_string("doc")?.map(str::to_owned),
            initial_default: default(object, "initial-default", &ty)?,
            write_default: default(object, "write-default", &ty)?,
            ty,
        })
    }

    fn list(&mut self, object: Object<'_>, depth: usize) -> Result<Type> {
        self.count(1)?;
        let element = self.member(object, "element", depth)?;
        let id = object.int("element-id")?;
        Ok(match object.boolean("element-required")? {
            true => ListType::required(id, element),
            false => ListType::optional(id, element),
        }
        .into())
    }

    fn map(&mut self, object: Object<'_>, depth: usize) -> Result<Type> {
        self.count(2)?;
        let key = self.member(object, "key", depth)?;
        let value = self.member(object, "value", depth)?;
        let (key_id, value_id) = (object.int("key-id")?, object.int("value-id")?);
        Ok(match object.boolean("value-required")? {
            true => MapType::required(key_id, key, value_id, value),
            false => MapType::optional(key_id, key, value_id, value),
        }
        .into())
    }
}

/// Reads a default; null means no default. A struct's default is `{}`, since its fields have their own.
fn default(object: Object<'_>, key: &str, ty: &Type) -> Result<Option<Value>> {
    let Some(json) = object.get(key) else { return Ok(None) };
    let place = format!("/{key}");
    if let (Type::Struct(_), Json::Object(members)) = (ty, json)
        && members.is_empty()
    {
        return Ok(Some(Field::OF_FIELDS));
    }
    if ty.is_nested() {
        let wanted = if matches!(ty, Type::Struct(_)) { "null or {}" } else { "null" };
        let message = format!("a default of {ty} must be {wanted}, not {}", brief(json));
        return Err(Error::corrupt(place, message));
    }
    value_json::from_json(json, ty).map(Some).map_err(|error| match error {
        Error::Corrupt(_) => error.within(&place),
        other => Error::corrupt(place, other.to_string()),
    })
}
