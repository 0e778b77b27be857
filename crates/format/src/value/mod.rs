//! Single values ("Appendix D: Single-value serialization").
//!
//! [`binary`] is their serialization as bytes (that as JSON, which also covers nested types, is in
//! [`types::value_json`](crate::types::value_json)), [`order`] the order of bounds and sorted files, [`uuid`] the
//! special cases of uuids, [`variant`] decodes and encodes variants, [`bounds`] truncates bounds, [`geo`] and [`wkb`]
//! compute bounds of shapes, [`envelope`] has the boxes of spatial filters, [`human`] formats values for people and
//! partition paths. [`calendar`] and [`decimal`] parse and format text for the others.

pub mod binary;
pub mod bounds;
pub mod calendar;
pub mod decimal;
pub mod envelope;
pub mod geo;
pub mod human;
pub mod order;
pub mod uuid;
pub mod variant;
pub mod wkb;

/// A non-null value without its type, which is always passed along.
///
/// Values are physical: `date` is an [`Value::Int`] of days, timestamps and `time` are a [`Value::Long`] of
/// microseconds or nanoseconds. `PartialEq` is bitwise for floats (NaN equals the same NaN, -0.0 differs from 0.0);
/// `value::order` has the order of the specification.
#[derive(Debug, Clone)]
pub enum Value {
    /// `boolean`
    Boolean(bool),
    /// `int`, `date`
    Int(i32),
    /// `long`, `time`, `timestamp`, `timestamptz`, `timestamp_ns`, `timestamptz_ns`
    Long(i64),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// `decimal`: the unscaled number; the type has the scale.
    Decimal(i128),
    /// `string`
    String(String),
    /// `uuid`, big endian
    Uuid([u8; 16]),
    /// `fixed`, `binary`, `geometry`, `geography` (WKB)
    Binary(Vec<u8>),
    /// `variant`
    Variant {
        /// The metadata part.
        metadata: Vec<u8>,
        /// The value part.
        value: Vec<u8>,
    },
    /// `struct`: one value for each field, in the order of the type.
    Struct(Vec<Option<Value>>),
    /// `list`
    List(Vec<Option<Value>>),
    /// `map`: pairs in stored order.
    Map(Vec<(Value, Option<Value>)>),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Decimal(a), Self::Decimal(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::Variant { metadata: a, value: b }, Self::Variant { metadata: c, value: d }) => a == c && b == d,
            (Self::Struct(a), Self::Struct(b)) | (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Value {
    /// Kind of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "boolean",
            Self::Int(_) => "32-bit integer",
            Self::Long(_) => "64-bit integer",
            Self::Float(_) => "float",
            Self::Double(_) => "double",
            Self::Decimal(_) => "decimal",
            Self::String(_) => "string",
            Self::Uuid(_) => "uuid",
            Self::Binary(_) => "bytes",
            Self::Variant { .. } => "variant",
            Self::Struct(_) => "struct",
            Self::List(_) => "list",
            Self::Map(_) => "map",
        }
    }
}
