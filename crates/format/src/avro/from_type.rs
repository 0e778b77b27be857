//! Creates Avro schemas for Iceberg types, like the Java library ("Appendix A: Avro").

use hashbrown::HashSet;
use serde_json::{Map, Value as Json, json};

use super::name::sanitized;
use crate::types::{Field, PrimitiveType, StructType, Type};
use crate::{Error, Result};

/// Returns the schema of a record called `name`, as JSON.
pub fn record_schema(name: &str, ty: &StructType) -> Result<Json> {
    let mut made = Maker::default();
    made.record(name, ty)
}

/// Minimum number of bytes that can hold every decimal of this precision.
pub fn decimal_bytes(precision: u8) -> usize {
    let largest = 10i128.saturating_pow(u32::from(precision)).saturating_sub(1);
    (1..16).find(|bytes| largest < 1i128 << (bytes * 8 - 1)).unwrap_or(16)
}

#[derive(Default)]
struct Maker {
    /// Named types that are already defined: Avro allows one definition, and later uses must refer to it by name.
    named: HashSet<String>,
}

impl Maker {
    fn record(&mut self, name: &str, ty: &StructType) -> Result<Json> {
        let mut names = HashSet::new();
        if let Some(field) = ty.fields.iter().find(|field| !names.insert(sanitized(&field.name))) {
            let (own, name) = (&field.name, sanitized(&field.name));
            return Err(Error::unsupported(format!(
                "column {own:?} becomes {name:?} in an Avro file, as another column of the same struct does: rename one of them"
            )));
        }
        let fields = ty.fields.iter().map(|field| self.field(field)).collect::<Result<Vec<_>>>()?;
        Ok(json!({"type": "record", "name": name, "fields": fields}))
    }

    fn field(&mut self, field: &Field) -> Result<Json> {
        let mut members = Map::new();
        let name = sanitized(&field.name);
        members.insert("name".into(), name.as_ref().into());
        members.insert("type".into(), self.value(field)?);
        if let Some(doc) = &field.doc {
            members.insert("doc".into(), doc.as_str().into());
        }
        if !field.required {
            members.insert("default".into(), Json::Null);
        }
        if name != field.name {
            members.insert("iceberg-field-name".into(), field.name.as_str().into());
        }
        members.insert("field-id".into(), field.id.into());
        Ok(Json::Object(members))
    }

    /// The schema of a field's values: a union with null if the field is optional.
    fn value(&mut self, field: &Field) -> Result<Json> {
        let inner = match &field.ty {
            Type::Primitive(ty) => self.primitive(ty)?,
            Type::Struct(ty) => self.record(&format!("r{}", field.id), ty)?,
            Type::List(ty) => {
                json!({"type": "array", "items": self.value(&ty.element)?, "element-id": ty.element.id})
            }
            Type::Map(ty) if ty.key.ty == Type::Primitive(PrimitiveType::String) => {
                json!({"type": "map", "values": self.value(&ty.value)?, "key-id": ty.key.id, "value-id": ty.value.id})
            }
            Type::Map(ty) => {
                let name = format!("k{}_v{}", ty.key.id, ty.value.id);
                let pair = StructType::new(vec![ty.key.clone(), ty.value.clone()]);
                json!({"type": "array", "items": self.record(&name, &pair)?, "logicalType": "map"})
            }
            Type::Variant => {
                let part = |name: &str| json!({"name": name, "type": "bytes"});
                let (name, parts) = (format!("r{}", field.id), [part("metadata"), part("value")]);
                json!({"type": "record", "name": name, "fields": parts, "logicalType": "variant"})
            }
        };
        Ok(if field.required || inner == "null" { inner } else { json!(["null", inner]) })
    }

    fn primitive(&mut self, ty: &PrimitiveType) -> Result<Json> {
        use PrimitiveType as P;
        let moment = |logical: &str, utc: bool| json!({"type": "long", "logicalType": logical, "adjust-to-utc": utc});
        Ok(match ty {
            P::Unknown => json!("null"),
            P::Boolean => json!("boolean"),
            P::Int => json!("int"),
            P::Long => json!("long"),
            P::Float => json!("float"),
            P::Double => json!("double"),
            P::Date => json!({"type": "int", "logicalType": "date"}),
            P::Time => json!({"type": "long", "logicalType": "time-micros"}),
            P::Timestamp => moment("timestamp-micros", false),
            P::Timestamptz => moment("timestamp-micros", true),
            P::TimestampNs => moment("timestamp-nanos", false),
            P::TimestamptzNs => moment("timestamp-nanos", true),
            P::String => json!("string"),
            P::Binary | P::Geometry { .. } | P::Geography { .. } => json!("bytes"),
            P::Uuid => self.fixed("uuid_fixed".to_owned(), 16, &[("logicalType", "uuid".into())]),
            P::Fixed(size) => self.fixed(format!("fixed_{size}"), *size as usize, &[]),
            P::Decimal { precision, scale } => {
                let logical =
                    [("logicalType", "decimal".into()), ("precision", (*precision).into()), ("scale", (*scale).into())];
                self.fixed(format!("decimal_{precision}_{scale}"), decimal_bytes(*precision), &logical)
            }
            P::Unrecognized(name) => return Err(Error::unsupported(format!("type {name} in an Avro file"))),
        })
    }

    fn fixed(&mut self, name: String, size: usize, more: &[(&str, Json)]) -> Json {
        if !self.named.insert(name.clone()) {
            return Json::String(name);
        }
        let mut members = Map::new();
        members.insert("type".into(), "fixed".into());
        members.insert("name".into(), name.into());
        members.insert("size".into(), size.into());
        members.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        Json::Object(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::{decimal_bytes, record_schema};
    use crate::types::{Field, ListType, MapType, PrimitiveType, StructType, Type};

    const DOCUMENT: &str = include_str!("../../../../docs/types.md");

    fn type_of(name: &str) -> Type {
        let map = |key| MapType::optional(9, key, 10, PrimitiveType::Date).into();
        match name {
            "variant" => Type::Variant,
            "struct<7: x: optional int>" => StructType::new(vec![Field::optional(7, "x", PrimitiveType::Int)]).into(),
            "list<long>" => ListType::optional(8, PrimitiveType::Long).into(),
            "map<string, date>" => map(PrimitiveType::String),
            "map<int, date>" => map(PrimitiveType::Int),
            name => PrimitiveType::parse(name).unwrap().into(),
        }
    }

    #[test]
    fn types_are_those_of_the_document() {
        let section = DOCUMENT.split("\n## ").find(|section| section.starts_with("In Avro files")).unwrap();
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows.len(), 24);
        for row in rows {
            let (name, avro) = row.trim_matches(['|', ' ']).split_once(" | ").unwrap();
            let (name, avro) = (name.trim_matches('`'), avro.trim_matches('`'));
            let avro: Json = serde_json::from_str(avro).unwrap();
            for field in [Field::required(1, "c", type_of(name)), Field::optional(1, "c", type_of(name))] {
                let optional = !field.required && name != "unknown";
                let made = record_schema("table", &StructType::new(vec![field])).unwrap();
                let expected = if optional { Json::Array(vec!["null".into(), avro.clone()]) } else { avro.clone() };
                assert_eq!(made["fields"][0]["type"], expected, "{name}");
            }
        }
    }

    #[test]
    fn columns_that_would_have_one_name_are_refused() {
        let fields = ["a b", "a_x20b"].map(|name| Field::optional(1, name, PrimitiveType::Int));
        let error = record_schema("table", &StructType::new(fields.to_vec())).unwrap_err().to_string();
        assert!(error.contains(r#""a_x20b" in an Avro file"#), "{error}");
    }

    #[test]
    fn decimals_take_as_many_bytes_as_in_java() {
        for (precision, bytes) in [(1, 1), (2, 1), (3, 2), (4, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)] {
            assert_eq!(decimal_bytes(precision), bytes, "precision {precision}");
        }
    }
}
