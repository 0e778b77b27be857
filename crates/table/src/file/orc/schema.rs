//! The ORC schema of a data file ("Appendix A: ORC"): types, and attributes with the Iceberg type.
//!
//! The attributes are carried in the metadata of Arrow fields, which the encoder writes unchanged.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use icefield_format::types::{Field, PrimitiveType, Schema, Type};
use icefield_orc::TYPE_KEY;

use crate::error::{Error, Result};
use crate::file::is_stored;

/// Attribute with a column's field id.
pub(super) const ID: &str = "iceberg.id";

/// The stored columns of a table with the attributes of their types.
pub(super) fn with_attributes(schema: &Schema, arrow: &ArrowSchema) -> Result<SchemaRef> {
    Ok(Arc::new(ArrowSchema::new(fields(schema.fields(), arrow.fields(), "")?)))
}

fn fields(of: &[Field], arrow: &Fields, parent: &str) -> Result<Fields> {
    let stored = of.iter().filter(|field| is_stored(field));
    let path = |field: &Field| if parent.is_empty() { field.name.clone() } else { format!("{parent}.{}", field.name) };
    stored.zip(arrow).map(|(field, arrow)| node(field, arrow, &path(field))).collect()
}

fn node(field: &Field, arrow: &FieldRef, path: &str) -> Result<FieldRef> {
    let data_type = match (&field.ty, arrow.data_type()) {
        (Type::Struct(own), DataType::Struct(children)) => DataType::Struct(fields(&own.fields, children, path)?),
        (Type::List(own), DataType::List(element)) => DataType::List(inner(&own.element, element, path, "element")?),
        (Type::List(own), DataType::LargeList(element)) => {
            DataType::LargeList(inner(&own.element, element, path, "element")?)
        }
        (Type::Map(own), DataType::Map(entries, sorted)) => {
            let DataType::Struct(pair) = entries.data_type() else { return Err(misfit(field, arrow, path)) };
            let [key, value] = &pair[..] else { return Err(misfit(field, arrow, path)) };
            let pair = [inner(&own.key, key, path, "key")?, inner(&own.value, value, path, "value")?];
            let pair = DataType::Struct(Fields::from(pair.to_vec()));
            DataType::Map(Arc::new(ArrowField::new(entries.name(), pair, false)), *sorted)
        }
        // The parts of a variant have no ids.
        (Type::Variant, DataType::Struct(_)) | (Type::Primitive(_), _) => arrow.data_type().clone(),
        _ => return Err(misfit(field, arrow, path)),
    };
    let mut metadata = attributes(&field.ty, path)?;
    metadata.insert(ID.to_owned(), field.id.to_string());
    metadata.insert("iceberg.required".to_owned(), field.required.to_string());
    Ok(Arc::new(ArrowField::new(&field.name, data_type, arrow.is_nullable()).with_metadata(metadata)))
}

fn inner(field: &Field, arrow: &FieldRef, parent: &str, name: &str) -> Result<FieldRef> {
    let named = node(field, arrow, &format!("{parent}.{name}"))?;
    Ok(Arc::new(named.as_ref().clone().with_name(name)))
}

fn misfit(field: &Field, arrow: &ArrowField, path: &str) -> Error {
    Error::Internal(format!("column {path} of type {} comes as {}", field.ty, arrow.data_type()))
}

/// What the ORC type alone does not express.
fn attributes(ty: &Type, path: &str) -> Result<HashMap<String, String>> {
    let attribute = |name: &str, value: &str| HashMap::from([(name.to_owned(), value.to_owned())]);
    let binary = |value: &str| attribute("iceberg.binary-type", value);
    let Type::Primitive(ty) = ty else {
        return Ok(match ty {
            Type::Variant => attribute("iceberg.struct-type", "VARIANT"),
            _ => HashMap::new(),
        });
    };
    Ok(match ty {
        PrimitiveType::Boolean
        | PrimitiveType::Int
        | PrimitiveType::Float
        | PrimitiveType::Double
        | PrimitiveType::Decimal { .. }
        | PrimitiveType::Date
        | PrimitiveType::String => HashMap::new(),
        PrimitiveType::Long => attribute("iceberg.long-type", "LONG"),
        PrimitiveType::Time => {
            let mut metadata = attribute("iceberg.long-type", "TIME");
            metadata.insert(TYPE_KEY.to_owned(), "bigint".to_owned());
            metadata
        }
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => attribute("iceberg.timestamp-unit", "MICROS"),
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => attribute("iceberg.timestamp-unit", "NANOS"),
        PrimitiveType::Uuid => binary("UUID"),
        PrimitiveType::Fixed(length) => {
            let mut metadata = binary("FIXED");
            metadata.insert("iceberg.length".to_owned(), length.to_string());
            metadata
        }
        PrimitiveType::Binary => binary("BINARY"),
        PrimitiveType::Geometry { .. } => binary("GEOMETRY"),
        PrimitiveType::Geography { .. } => binary("GEOGRAPHY"),
        PrimitiveType::Unknown | PrimitiveType::Unrecognized(_) => {
            return Err(Error::unsupported(format!("column {path}: writing a column of the type {ty}")));
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use icefield_format::types::{ListType, MapType, StructType};
    use icefield_orc::TypeDescription;

    use super::*;
    use crate::write::conform::{Conform, Matching};

    const DOCUMENT: &str = include_str!("../../../../../docs/types.md");

    fn field_of(name: &str) -> Field {
        let optional = |id, ty: PrimitiveType| Field::optional(id, "x", ty);
        let ty: Type = match name {
            "variant" => Type::Variant,
            "struct<7: x: optional int>" => StructType::new(vec![optional(7, PrimitiveType::Int)]).into(),
            "list<long>" => ListType::optional(8, PrimitiveType::Long).into(),
            "map<string, date>" => MapType::optional(9, PrimitiveType::String, 10, PrimitiveType::Date).into(),
            name => PrimitiveType::parse(name).unwrap().into(),
        };
        Field::optional(1, "c", ty)
    }

    /// The ORC type of a column missing from the data: as it is stored, with its attributes.
    fn written(field: &Field) -> TypeDescription {
        let fields = vec![field.clone(), Field::optional(99, "other", PrimitiveType::Int)];
        let schema = Schema::new(0, fields).unwrap();
        let nothing = RecordBatch::new_empty(Arc::new(ArrowSchema::empty()));
        let conform = Conform::new(&schema, &nothing.schema(), Matching::default()).unwrap();
        let arrow = with_attributes(&schema, conform.schema()).unwrap();
        TypeDescription::from_arrow(&arrow).unwrap().children[0].clone()
    }

    #[test]
    fn types_are_those_of_the_document() {
        let section = DOCUMENT.split("\n## ").find(|section| section.starts_with("In ORC files")).unwrap();
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows.len() > 20);
        for row in rows {
            let cells: Vec<String> =
                row.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect();
            let [name, orc, attributes] = cells.as_slice() else { panic!("{row}") };
            let found = written(&field_of(name));
            assert_eq!(found.to_string(), *orc, "{name}");
            let mut expected: Vec<&str> =
                attributes.trim_matches('|').split(", ").filter(|one| !one.is_empty()).collect();
            expected.extend(["iceberg.id=1", "iceberg.required=false"]);
            expected.sort_unstable();
            let found: Vec<String> = found.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn ids_stand_at_every_depth_but_in_variants() {
        for (name, ids) in [
            ("struct<7: x: optional int>", vec![Some("7")]),
            ("list<long>", vec![Some("8")]),
            ("map<string, date>", vec![Some("9"), Some("10")]),
            ("variant", vec![None, None]),
        ] {
            let node = written(&field_of(name));
            assert_eq!(node.children.iter().map(|child| child.attribute(ID)).collect::<Vec<_>>(), ids, "{name}");
        }
    }

    #[test]
    fn columns_of_unknown_type_are_left_out() {
        assert_eq!(written(&field_of("unknown")).to_string(), "int");
    }
}
