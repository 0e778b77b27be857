//! Parses the writer's schema in the header of an Avro file (Avro, "Schema Declaration"), with Iceberg's field ids
//! ("Appendix A: Avro").

use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::{Map, Value as Json};

use crate::{Error, Limits, Result};

/// Name of the document in errors.
const PLACE: &str = "avro.schema";

/// A schema with all names resolved. It is a tree, so a recursive schema is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// `null`
    Null,
    /// `boolean`
    Boolean,
    /// `int`
    Int(Option<Logical>),
    /// `long`
    Long(Option<Logical>),
    /// `float`
    Float,
    /// `double`
    Double,
    /// `bytes`
    Bytes(Option<Logical>),
    /// `string`
    String(Option<Logical>),
    /// `fixed` with its size
    Fixed(u64, Option<Logical>),
    /// `enum` with its symbols
    Enum(Arc<[String]>),
    /// `array`
    Array(Arc<ArraySchema>),
    /// `map`, whose keys are strings
    Map(Arc<MapSchema>),
    /// A union.
    Union(Arc<[Schema]>),
    /// `record`
    Record(Arc<RecordSchema>),
}

/// The schema of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySchema {
    /// Schema of the items.
    pub items: Schema,
    /// Iceberg's field id of the items (`element-id`).
    pub element_id: Option<i32>,
    /// Whether the items are the key-value pairs of a map (`logicalType` is `map`).
    pub is_map: bool,
}

/// The schema of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSchema {
    /// Schema of the values.
    pub values: Schema,
    /// Iceberg's field id of the keys (`key-id`).
    pub key_id: Option<i32>,
    /// Iceberg's field id of the values (`value-id`).
    pub value_id: Option<i32>,
}

/// A logical type: the meaning of a primitive's numbers or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logical {
    /// `decimal`
    Decimal {
        /// Total number of digits.
        precision: u8,
        /// Number of fractional digits.
        scale: u8,
    },
    /// `date`
    Date,
    /// `time-millis`
    TimeMillis,
    /// `time-micros`
    TimeMicros,
    /// `timestamp-millis`, `local-timestamp-millis`
    TimestampMillis {
        /// Whether the timestamp is in UTC (`adjust-to-utc`), if the writer says so.
        utc: Option<bool>,
    },
    /// `timestamp-micros`, `local-timestamp-micros`
    TimestampMicros {
        /// Whether the timestamp is in UTC (`adjust-to-utc`), if the writer says so.
        utc: Option<bool>,
    },
    /// `timestamp-nanos`, `local-timestamp-nanos`
    TimestampNanos {
        /// Whether the timestamp is in UTC (`adjust-to-utc`), if the writer says so.
        utc: Option<bool>,
    },
    /// `uuid`
    Uuid,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSchema {
    /// Name without namespace.
    pub name: String,
    /// Fields in the order in which they are encoded.
    pub fields: Vec<RecordField>,
    /// Number of schemas in this tree, including this one.
    size: usize,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    /// Name in Avro.
    pub name: String,
    /// Name in Iceberg, if it differs (`iceberg-field-name`).
    pub iceberg_name: Option<String>,
    /// Iceberg's field id (`field-id`).
    pub field_id: Option<i32>,
    /// Schema of the field.
    pub schema: Schema,
}

impl Schema {
    /// Parses the JSON in a header.
    pub fn parse(json: &[u8], limits: &Limits) -> Result<Self> {
        let mut budget = limits.budget(json.len());
        let json = crate::json::parse_within(json, &mut budget).map_err(|error| error.within("avro.schema, "))?;
        let mut parser = Parser { limits, named: HashMap::new(), open: Vec::new() };
        let schema = parser.schema(&json, "", 0)?;
        parser.check_size(schema.size())?;
        Ok(schema)
    }

    /// Checks the number of fields against the limits.
    ///
    /// # Errors
    /// Too many fields.
    pub(super) fn check_size(&self, limits: &Limits) -> Result<()> {
        check_size(self.size(), limits)
    }

    /// Number of schemas in this tree, including this one.
    fn size(&self) -> usize {
        match self {
            Self::Array(array) => array.items.size().saturating_add(1),
            Self::Map(map) => map.values.size().saturating_add(1),
            Self::Union(branches) => branches.iter().fold(1, |sum: usize, branch| sum.saturating_add(branch.size())),
            Self::Record(record) => record.size,
            _ => 1,
        }
    }

    /// Name of the type in the Avro specification.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int(_) => "int",
            Self::Long(_) => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes(_) => "bytes",
            Self::String(_) => "string",
            Self::Fixed(..) => "fixed",
            Self::Enum(_) => "enum",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Record(_) => "record",
        }
    }
}

impl RecordSchema {
    /// Returns the field with this id; if the writer left out ids, the field with one of these names.
    pub fn field(&self, id: i32, names: &[&str]) -> Option<(usize, &RecordField)> {
        let fields = || self.fields.iter().enumerate();
        fields().find(|(_, field)| field.field_id == Some(id)).or_else(|| {
            names.iter().find_map(|&name| fields().find(|(_, field)| field.field_id.is_none() && field.is_named(name)))
        })
    }
}

impl RecordField {
    /// Whether this is its name in Avro or in Iceberg.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.iceberg_name.as_deref() == Some(name)
    }
}

struct Parser<'a> {
    limits: &'a Limits,
    /// Named types so far, by full name.
    named: HashMap<String, Schema>,
    /// Full names of the records around the current position.
    open: Vec<String>,
}

impl Parser<'_> {
    fn schema(&mut self, json: &Json, namespace: &str, depth: usize) -> Result<Schema> {
        if depth > self.limits.depth {
            return Err(Error::corrupt(PLACE, format!("nested more than {} levels deep", self.limits.depth)));
        }
        match json {
            Json::String(word) => self.word(word, namespace, &Map::new()),
            Json::Array(branches) => {
                let branches = branches.iter().map(|branch| self.schema(branch, namespace, depth + 1));
                Ok(Schema::Union(branches.collect::<Result<_>>()?))
            }
            Json::Object(object) => match object.get("type") {
                Some(Json::String(word)) => self.object(word, object, namespace, depth),
                Some(inner) => self.schema(inner, namespace, depth + 1),
                None => Err(Error::corrupt(PLACE, "a schema has no type")),
            },
            _ => Err(Error::corrupt(PLACE, "a schema is neither a name, a list nor an object")),
        }
    }

    fn object(&mut self, word: &str, object: &Map<String, Json>, namespace: &str, depth: usize) -> Result<Schema> {
        let inner = |key: &str| object.get(key).ok_or_else(|| Error::corrupt(PLACE, format!("{word} without {key}")));
        match word {
            "array" => {
                let items = self.schema(inner("items")?, namespace, depth + 1)?;
                let is_map = object.get("logicalType").and_then(Json::as_str) == Some("map");
                Ok(Schema::Array(Arc::new(ArraySchema { items, element_id: id(object, "element-id"), is_map })))
            }
            "map" => {
                let values = self.schema(inner("values")?, namespace, depth + 1)?;
                let (key_id, value_id) = (id(object, "key-id"), id(object, "value-id"));
                Ok(Schema::Map(Arc::new(MapSchema { values, key_id, value_id })))
            }
            "record" | "error" => self.record(object, namespace, depth),
            "fixed" => {
                let size = inner("size")?.as_u64().filter(|&size| size <= i32::MAX as u64);
                let size = size.ok_or_else(|| Error::corrupt(PLACE, "invalid size of a fixed"))?;
                let schema = Schema::Fixed(size, logical_of(object, Base::Fixed(size)));
                self.named.insert(full_name(object, namespace)?, schema.clone());
                Ok(schema)
            }
            "enum" => {
                let symbols = inner("symbols")?.as_array().map(Vec::as_slice).unwrap_or_default();
                let symbols = symbols.iter().map(|symbol| symbol.as_str().unwrap_or_default().to_owned());
                let schema = Schema::Enum(symbols.collect());
                self.named.insert(full_name(object, namespace)?, schema.clone());
                Ok(schema)
            }
            word => self.word(word, namespace, object),
        }
    }

    /// Resolves a primitive, or a name that was defined before.
    fn word(&self, word: &str, namespace: &str, object: &Map<String, Json>) -> Result<Schema> {
        Ok(match word {
            "null" => Schema::Null,
            "boolean" => Schema::Boolean,
            "int" => Schema::Int(logical_of(object, Base::Int)),
            "long" => Schema::Long(logical_of(object, Base::Long)),
            "float" => Schema::Float,
            "double" => Schema::Double,
            "bytes" => Schema::Bytes(logical_of(object, Base::Bytes)),
            "string" => Schema::String(logical_of(object, Base::Text)),
            name => {
                let full = qualified(name, namespace);
                if self.open.iter().any(|open| *open == full || open == name) {
                    return Err(Error::corrupt(PLACE, format!("the record {name} contains itself")));
                }
                let schema = self.named.get(&full).or_else(|| self.named.get(name));
                schema.cloned().ok_or_else(|| Error::corrupt(PLACE, format!("unknown type {name}")))?
            }
        })
    }

    fn record(&mut self, object: &Map<String, Json>, namespace: &str, depth: usize) -> Result<Schema> {
        let full = full_name(object, namespace)?;
        let (namespace, name) = full.rsplit_once('.').unwrap_or(("", &full));
        let Some(Json::Array(fields)) = object.get("fields") else {
            return Err(Error::corrupt(PLACE, format!("the record {name} has no fields")));
        };
        self.open.push(full.clone());
        let fields = fields.iter().map(|field| self.field(field, namespace, depth)).collect::<Result<Vec<_>>>()?;
        self.open.pop();
        let size = fields.iter().fold(1, |sum: usize, field| sum.saturating_add(field.schema.size()));
        self.check_size(size)?;
        let schema = Schema::Record(Arc::new(RecordSchema { name: name.to_owned(), fields, size }));
        self.named.insert(full, schema.clone());
        Ok(schema)
    }

    fn field(&mut self, json: &Json, namespace: &str, depth: usize) -> Result<RecordField> {
        let text = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_owned);
        let name = text("name").ok_or_else(|| Error::corrupt(PLACE, "a field without a name"))?;
        let ty = json.get("type").ok_or_else(|| Error::corrupt(PLACE, format!("the field {name} has no type")))?;
        // Some writers put the attributes of a primitive type into the field itself.
        let schema = match ty {
            Json::String(word) => self.word(word, namespace, json.as_object().unwrap_or(&Map::new()))?,
            ty => self.schema(ty, namespace, depth + 1)?,
        };
        let field_id = json.as_object().and_then(|object| id(object, "field-id"));
        Ok(RecordField { name, iceberg_name: text("iceberg-field-name"), field_id, schema })
    }

    /// Checks the size of a tree: named types allow a small document to describe a huge tree, and all code that visits
    /// the tree relies on this limit.
    fn check_size(&self, size: usize) -> Result<()> {
        check_size(size, self.limits)
    }
}

fn check_size(size: usize, limits: &Limits) -> Result<()> {
    match size > limits.fields {
        true => Err(Error::corrupt(PLACE, format!("more than {} fields", limits.fields))),
        false => Ok(()),
    }
}

fn id(object: &Map<String, Json>, key: &str) -> Option<i32> {
    object.get(key).and_then(Json::as_i64).and_then(|id| i32::try_from(id).ok())
}

fn qualified(name: &str, namespace: &str) -> String {
    if namespace.is_empty() || name.contains('.') { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn full_name(object: &Map<String, Json>, namespace: &str) -> Result<String> {
    let text = |key: &str| object.get(key).and_then(Json::as_str);
    let name = text("name").ok_or_else(|| Error::corrupt(PLACE, "a named type without a name"))?;
    Ok(qualified(name, text("namespace").unwrap_or(namespace)))
}

/// The primitive that a logical type applies to.
#[derive(Clone, Copy)]
enum Base {
    Int,
    Long,
    Bytes,
    Text,
    Fixed(u64),
}

/// Maximum number of digits of a decimal.
const MOST_DIGITS: u8 = 38;

/// Parses the logical type of a primitive. As the Avro specification requires ("Logical Types"), an unknown or
/// malformed one, or one that does not apply to this primitive, is ignored.
fn logical_of(object: &Map<String, Json>, base: Base) -> Option<Logical> {
    logical(object).filter(|logical| match (logical, base) {
        (Logical::Decimal { precision, scale }, Base::Bytes | Base::Fixed(_)) => {
            (1..=MOST_DIGITS).contains(precision) && scale <= precision
        }
        (Logical::Date | Logical::TimeMillis, Base::Int)
        | (
            Logical::TimeMicros
            | Logical::TimestampMillis { .. }
            | Logical::TimestampMicros { .. }
            | Logical::TimestampNanos { .. },
            Base::Long,
        )
        | (Logical::Uuid, Base::Text | Base::Fixed(16)) => true,
        _ => false,
    })
}

fn logical(object: &Map<String, Json>) -> Option<Logical> {
    let number = |key: &str| object.get(key).and_then(Json::as_u64).and_then(|n| u8::try_from(n).ok());
    let utc = object.get("adjust-to-utc").and_then(Json::as_bool);
    Some(match object.get("logicalType")?.as_str()? {
        "decimal" => Logical::Decimal {
            precision: number("precision")?,
            scale: object.get("scale").map_or(Some(0), |_| number("scale"))?,
        },
        "date" => Logical::Date,
        "time-millis" => Logical::TimeMillis,
        "time-micros" => Logical::TimeMicros,
        "timestamp-millis" => Logical::TimestampMillis { utc },
        "timestamp-micros" => Logical::TimestampMicros { utc },
        "timestamp-nanos" => Logical::TimestampNanos { utc },
        "local-timestamp-millis" => Logical::TimestampMillis { utc: Some(false) },
        "local-timestamp-micros" => Logical::TimestampMicros { utc: Some(false) },
        "local-timestamp-nanos" => Logical::TimestampNanos { utc: Some(false) },
        "uuid" => Logical::Uuid,
        _ => return None,
    })
}
