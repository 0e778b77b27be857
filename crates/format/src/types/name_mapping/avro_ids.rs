//! Assigns ids to the fields of Avro files without ids, by a name mapping ("Column Projection"; Appendix A, "Avro").

use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::types::NameMapping;

impl NameMapping {
    /// Returns the Avro schema with ids from the mapping. Existing ids are kept; fields without an id, and what is
    /// inside them, stay unchanged and are not read.
    pub fn apply_to_avro(&self, schema: &Json) -> Result<Json> {
        let limits = Limits::default();
        Walk { mapping: self, depth: limits.depth }.schema(schema, "")
    }
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    mapping: &'a NameMapping,
    /// Remaining levels of nesting.
    depth: usize,
}

impl Walk<'_> {
    fn schema(self, schema: &Json, path: &str) -> Result<Json> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| Error::corrupt("", "Avro schema nested too deeply"))?;
        let walk = Self { depth, ..self };
        match schema {
            Json::Array(options) => options.iter().map(|option| walk.schema(option, path)).collect(),
            Json::Object(object) => match object.get("type") {
                Some(Json::String(kind)) if kind == "record" && !is_variant(object) => walk.record(object, path),
                Some(Json::String(kind)) if kind == "array" => walk.array(object, path),
                Some(Json::String(kind)) if kind == "map" => walk.map(object, path),
                _ => Ok(schema.clone()),
            },
            other => Ok(other.clone()),
        }
    }

    fn record(self, record: &Map<String, Json>, path: &str) -> Result<Json> {
        let fields = record.get("fields").and_then(Json::as_array);
        let fields = fields.ok_or_else(|| Error::corrupt("", "an Avro record without fields"))?;
        let mut numbered = Vec::with_capacity(fields.len());
        for field in fields {
            numbered.push(self.field(field, path)?);
        }
        Ok(with(record, [("fields", Json::Array(numbered))]))
    }

    fn field(self, field: &Json, path: &str) -> Result<Json> {
        let object = field.as_object().ok_or_else(|| Error::corrupt("", "an Avro field must be an object"))?;
        let name = object.get("name").and_then(Json::as_str);
        let path = join(path, name.ok_or_else(|| Error::corrupt("", "an Avro field without a name"))?);
        let known = object.get("field-id").cloned();
        match (known.or_else(|| self.mapping.id(&path).map(Json::from)), object.get("type")) {
            (Some(id), Some(ty)) => Ok(with(object, [("type", self.schema(ty, &path)?), ("field-id", id)])),
            _ => Ok(field.clone()),
        }
    }

    fn array(self, array: &Map<String, Json>, path: &str) -> Result<Json> {
        let Some(items) = array.get("items") else { return Ok(Json::Object(array.clone())) };
        // An array of key-value records is a map whose keys are not strings.
        if array.get("logicalType").and_then(Json::as_str) == Some("map") {
            return Ok(with(array, [("items", self.schema(items, path)?)]));
        }
        let path = join(path, "element");
        let known = array.get("element-id").cloned();
        match known.or_else(|| self.mapping.id(&path).map(Json::from)) {
            Some(id) => Ok(with(array, [("items", self.schema(items, &path)?), ("element-id", id)])),
            None => Ok(Json::Object(array.clone())),
        }
    }

    fn map(self, map: &Map<String, Json>, path: &str) -> Result<Json> {
        let id = |key: &str, name: &str| {
            map.get(key).cloned().or_else(|| self.mapping.id(&join(path, name)).map(Json::from))
        };
        match (id("key-id", "key"), id("value-id", "value"), map.get("values")) {
            (Some(key), Some(value), Some(values)) => {
                let values = self.schema(values, &join(path, "value"))?;
                Ok(with(map, [("values", values), ("key-id", key), ("value-id", value)]))
            }
            _ => Ok(Json::Object(map.clone())),
        }
    }
}

fn is_variant(record: &Map<String, Json>) -> bool {
    record.get("logicalType").and_then(Json::as_str) == Some("variant")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn with<const N: usize>(object: &Map<String, Json>, members: [(&str, Json); N]) -> Json {
    let mut object = object.clone();
    for (key, value) in members {
        object.insert(key.to_owned(), value);
    }
    Json::Object(object)
}
