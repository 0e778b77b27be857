//! Single values as JSON (Appendix D, "JSON single-value serialization").

use serde_json::Value as Json;

use super::Value;
use crate::error::{Error, Result};
use crate::types::{PrimitiveType, Type};

/// Writes a value of a type.
pub fn to_json(value: &Value, _ty: &Type) -> Json {
    match value {
        Value::Boolean(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Long(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Double(value) => (*value).into(),
        Value::String(value) => value.as_str().into(),
        _ => Json::Null,
    }
}

/// Reads a value of a type.
pub fn from_json(json: &Json, ty: &Type) -> Result<Value> {
    let wrong = || Error::corrupt("", format!("not a {ty}: {json}"));
    match ty {
        Type::Primitive(PrimitiveType::Boolean) => json.as_bool().map(Value::Boolean).ok_or_else(wrong),
        Type::Primitive(PrimitiveType::Int) => {
            json.as_i64().and_then(|number| i32::try_from(number).ok()).map(Value::Int).ok_or_else(wrong)
        }
        Type::Primitive(PrimitiveType::Long) => json.as_i64().map(Value::Long).ok_or_else(wrong),
        Type::Primitive(PrimitiveType::Double) => json.as_f64().map(Value::Double).ok_or_else(wrong),
        Type::Primitive(PrimitiveType::String) => {
            json.as_str().map(|text| Value::String(text.to_owned())).ok_or_else(wrong)
        }
        _ => Err(Error::unsupported(format!("default values of type {ty}"))),
    }
}
