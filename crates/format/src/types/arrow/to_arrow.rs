//! Converts Iceberg types to Arrow: one Arrow type for each type, whatever layout the data files have.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, TimeUnit};
use serde_json::json;

use super::{DOC_KEY, EXTENSION_METADATA_KEY, EXTENSION_NAME_KEY, FIELD_ID_KEY, extension};
use crate::error::{Error, Result};
use crate::types::{DEFAULT_CRS, EdgeAlgorithm, Field, MAX_DECIMAL_PRECISION, PrimitiveType, Schema, Type};

/// Arrow layout of strings and binaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StringLayout {
    /// 32-bit offsets: `Utf8`, `Binary`.
    #[default]
    Small,
    /// 64-bit offsets: `LargeUtf8`, `LargeBinary`.
    Large,
    /// Views: `Utf8View`, `BinaryView`.
    View,
}

/// Options of the Arrow schema.
#[derive(Debug, Clone, Copy)]
pub struct ToArrow {
    /// Layout of strings and binaries.
    pub strings: StringLayout,
    /// Whether fields have their ids and comments as metadata.
    pub metadata: bool,
}

impl Default for ToArrow {
    fn default() -> Self {
        Self { strings: StringLayout::default(), metadata: true }
    }
}

impl Schema {
    /// Converts the columns to an Arrow schema. For an unknown type, the error names the column.
    pub fn to_arrow(&self, options: &ToArrow) -> Result<ArrowSchema> {
        Ok(ArrowSchema::new(options.fields(self.fields(), "")?))
    }
}

impl ToArrow {
    /// Converts a field.
    pub fn field(&self, field: &Field) -> Result<ArrowField> {
        self.named(field, &field.name)
    }

    fn fields(&self, fields: &[Field], parent: &str) -> Result<Fields> {
        fields.iter().map(|field| self.named(field, &join(parent, &field.name))).collect()
    }

    fn named(&self, field: &Field, path: &str) -> Result<ArrowField> {
        let mut arrow = ArrowField::new(&field.name, self.data_type(&field.ty, path)?, !field.required);
        if self.metadata {
            arrow.metadata_mut().insert(FIELD_ID_KEY, field.id.to_string());
            if let Some(doc) = &field.doc {
                arrow.metadata_mut().insert(DOC_KEY, doc.as_str());
            }
        }
        if let Some((name, metadata)) = extension_of(&field.ty) {
            arrow.metadata_mut().insert(EXTENSION_NAME_KEY, name);
            if let Some(metadata) = metadata {
                arrow.metadata_mut().insert(EXTENSION_METADATA_KEY, metadata);
            }
        }
        Ok(arrow)
    }

    fn data_type(&self, ty: &Type, path: &str) -> Result<DataType> {
        Ok(match ty {
            Type::Primitive(ty) => self.primitive(ty, path)?,
            Type::Variant => {
                let part = |name: &str| FieldRef::new(ArrowField::new(name, self.binary(), false));
                DataType::Struct([part("metadata"), part("value")].into_iter().collect())
            }
            Type::Struct(ty) => DataType::Struct(self.fields(&ty.fields, path)?),
            Type::List(ty) => DataType::List(self.inner(&ty.element, path)?),
            Type::Map(ty) => {
                let pair: Fields = [self.inner(&ty.key, path)?, self.inner(&ty.value, path)?].into_iter().collect();
                DataType::Map(Arc::new(ArrowField::new("entries", DataType::Struct(pair), false)), false)
            }
        })
    }

    fn inner(&self, field: &Field, path: &str) -> Result<FieldRef> {
        self.named(field, &join(path, &field.name)).map(Arc::new)
    }

    fn primitive(&self, ty: &PrimitiveType, path: &str) -> Result<DataType> {
        use PrimitiveType as P;
        let utc = || Some("UTC".into());
        Ok(match ty {
            P::Unknown => DataType::Null,
            P::Boolean => DataType::Boolean,
            P::Int => DataType::Int32,
            P::Long => DataType::Int64,
            P::Float => DataType::Float32,
            P::Double => DataType::Float64,
            P::Decimal { precision, scale } => return decimal(*precision, *scale, path),
            P::Date => DataType::Date32,
            P::Time => DataType::Time64(TimeUnit::Microsecond),
            P::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            P::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, utc()),
            P::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
            P::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
            P::String => match self.strings {
                StringLayout::Small => DataType::Utf8,
                StringLayout::Large => DataType::LargeUtf8,
                StringLayout::View => DataType::Utf8View,
            },
            P::Uuid => DataType::FixedSizeBinary(16),
            P::Fixed(length) => DataType::FixedSizeBinary(i32::try_from(*length).map_err(|_| {
                Error::unsupported(format!("column {path:?}: Arrow has no binary of fixed length {length}"))
            })?),
            P::Binary | P::Geometry { .. } | P::Geography { .. } => self.binary(),
            P::Unrecognized(name) => {
                return Err(Error::unsupported(format!("column {path:?}: unknown type {name:?}")));
            }
        })
    }

    fn binary(&self) -> DataType {
        match self.strings {
            StringLayout::Small => DataType::Binary,
            StringLayout::Large => DataType::LargeBinary,
            StringLayout::View => DataType::BinaryView,
        }
    }
}

pub(super) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn decimal(precision: u8, scale: u8, path: &str) -> Result<DataType> {
    match i8::try_from(scale) {
        Ok(arrow_scale) if (1..=MAX_DECIMAL_PRECISION).contains(&precision) && scale <= precision => {
            Ok(DataType::Decimal128(precision, arrow_scale))
        }
        _ => Err(Error::unsupported(format!("column {path:?}: Arrow has no decimal({precision}, {scale})"))),
    }
}

/// Returns the extension type of a type, with its parameters.
fn extension_of(ty: &Type) -> Option<(&'static str, Option<String>)> {
    match ty {
        Type::Variant => Some((extension::VARIANT, None)),
        Type::Primitive(PrimitiveType::Uuid) => Some((extension::UUID, None)),
        Type::Primitive(geo) => {
            let mut members = json!({"crs": geo.crs()?});
            if let (Some(edges), Some(object)) = (geo.edge_algorithm(), members.as_object_mut()) {
                object.insert("edges".into(), edges.to_string().into());
            }
            Some((extension::WKB, Some(members.to_string())))
        }
        _ => None,
    }
}

/// Parses the metadata of the extension `geoarrow.wkb` to a geometry or geography type.
pub(super) fn geo_of(metadata: Option<&str>) -> Result<PrimitiveType> {
    let members = match metadata.filter(|text| !text.is_empty()) {
        Some(text) => {
            serde_json::from_str(text).map_err(|error| Error::invalid(format!("{}: {error}", extension::WKB)))?
        }
        None => serde_json::Value::Null,
    };
    let crs = match members.get("crs") {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::String(crs)) if crs.eq_ignore_ascii_case(DEFAULT_CRS) => None,
        Some(serde_json::Value::String(crs)) => Some(crs.as_str().into()),
        Some(_) => return Err(Error::invalid("its coordinate reference system is not a name: give one as text")),
    };
    Ok(match members.get("edges").and_then(serde_json::Value::as_str) {
        None | Some("planar") => PrimitiveType::Geometry { crs },
        Some(edges) => PrimitiveType::Geography { crs, algorithm: Some(EdgeAlgorithm::parse(edges)?) },
    })
}
