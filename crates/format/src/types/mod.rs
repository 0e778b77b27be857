//! Types and schemas ("Schemas and Data Types"; JSON forms in Appendix C).

use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// A primitive type of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    /// v3: always null; the type of a column whose type is not known yet.
    Unknown,
    /// True or false.
    Boolean,
    /// 32-bit signed integer.
    Int,
    /// 64-bit signed integer.
    Long,
    /// 32-bit IEEE 754.
    Float,
    /// 64-bit IEEE 754.
    Double,
    /// Fixed-point decimal, precision 1 to 38.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Days from 1970-01-01.
    Date,
    /// Microseconds from midnight.
    Time,
    /// Microseconds, no zone.
    Timestamp,
    /// Microseconds from the epoch, UTC.
    Timestamptz,
    /// v3: nanoseconds, no zone.
    TimestampNs,
    /// v3: nanoseconds from the epoch, UTC.
    TimestamptzNs,
    /// UTF-8 text.
    String,
    /// 16 bytes, big endian.
    Uuid,
    /// Bytes of one length.
    Fixed(u32),
    /// Bytes.
    Binary,
    /// v3: planar shapes as WKB. `None` is the default CRS, `OGC:CRS84`.
    Geometry {
        /// Coordinate reference system, as written.
        crs: Option<Arc<str>>,
    },
    /// v3: shapes on the ellipsoid as WKB.
    Geography {
        /// Coordinate reference system, as written.
        crs: Option<Arc<str>>,
        /// How edges run; `None` is the default, spherical.
        algorithm: Option<EdgeAlgorithm>,
    },
    /// A type name of a later specification: kept as written so that the table loads; whatever touches it refuses.
    Unrecognized(Arc<str>),
}

/// How the edges of a geography are interpolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeAlgorithm {
    /// Great circles (the default).
    Spherical,
    /// Vincenty's formulae.
    Vincenty,
    /// Thomas' formulae.
    Thomas,
    /// Andoyer's formulae.
    Andoyer,
    /// Karney's method.
    Karney,
}

/// Any type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A primitive type.
    Primitive(PrimitiveType),
    /// v3: semi-structured value; neither primitive nor nested.
    Variant,
    /// Named fields.
    Struct(Arc<StructType>),
    /// Elements of one type.
    List(Arc<ListType>),
    /// Pairs of key and value.
    Map(Arc<MapType>),
}

/// A field of a struct, the element of a list, the key or value of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Unique within the schema.
    pub id: i32,
    /// Name; `element`, `key` and `value` in lists and maps.
    pub name: String,
    /// No nulls.
    pub required: bool,
    /// The type.
    pub ty: Type,
    /// A comment.
    pub doc: Option<String>,
    /// v3: what rows of files without the column hold.
    pub initial_default: Option<Value>,
    /// v3: what a writer that is given no value writes.
    pub write_default: Option<Value>,
}

/// A struct type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StructType {
    /// The fields, in order.
    pub fields: Vec<Field>,
}

/// A list type; `element.name` is `element`.
#[derive(Debug, Clone, PartialEq)]
pub struct ListType {
    /// The element.
    pub element: Field,
}

/// A map type; the names are `key` and `value`, and the key is required.
#[derive(Debug, Clone, PartialEq)]
pub struct MapType {
    /// The key.
    pub key: Field,
    /// The value.
    pub value: Field,
}

/// A table schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Id within the table.
    pub schema_id: i32,
    /// The columns.
    pub root: Arc<StructType>,
    /// Ids of the fields that identify a row, in ascending order.
    pub identifier_field_ids: Vec<i32>,
}

impl Field {
    /// A required field without doc or defaults.
    pub fn required(id: i32, name: impl Into<String>, ty: impl Into<Type>) -> Self {
        Self { required: true, ..Self::optional(id, name, ty) }
    }

    /// An optional field without doc or defaults.
    pub fn optional(id: i32, name: impl Into<String>, ty: impl Into<Type>) -> Self {
        Self {
            id,
            name: name.into(),
            required: false,
            ty: ty.into(),
            doc: None,
            initial_default: None,
            write_default: None,
        }
    }
}

impl From<PrimitiveType> for Type {
    fn from(ty: PrimitiveType) -> Self {
        Self::Primitive(ty)
    }
}

impl Type {
    /// The primitive type, if it is one.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(ty) => Some(ty),
            _ => None,
        }
    }
}

impl fmt::Display for EdgeAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spherical => "spherical",
            Self::Vincenty => "vincenty",
            Self::Thomas => "thomas",
            Self::Andoyer => "andoyer",
            Self::Karney => "karney",
        })
    }
}
