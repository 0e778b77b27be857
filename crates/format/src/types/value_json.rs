//! JSON form of single values ("Appendix D: JSON single-value serialization"), for defaults in schemas and literals in
//! REST expressions.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value as Json};

use crate::error::{Error, Result};
use crate::types::{ListType, MapType, PrimitiveType, StructType, Type};
use crate::value::{Value, calendar, decimal, human};

/// Writes `value`, of type `ty`, as JSON.
///
/// Like the reference implementation, it writes hexadecimal digits in upper case, omits null fields of structs, and
/// writes NaN and infinity as strings (which no reader accepts, since JSON has no such numbers).
///
/// # Errors
/// `Invalid` if the value is not of the type, `Unsupported` for a type without a JSON form.
pub fn to_json(value: &Value, ty: &Type) -> Result<Json> {
    match (ty, value) {
        (Type::Primitive(ty), value) => primitive_to_json(value, ty),
        (Type::Struct(ty), Value::Struct(values)) if values.len() == ty.fields.len() => {
            let mut object = Map::with_capacity(values.len());
            for (field, value) in ty.fields.iter().zip(values) {
                if let Some(value) = value {
                    object.insert(field.id.to_string(), to_json(value, &field.ty)?);
                }
            }
            Ok(Json::Object(object))
        }
        (Type::List(ty), Value::List(values)) => optionals_to_json(values.iter().map(Option::as_ref), &ty.element.ty),
        (Type::Map(ty), Value::Map(pairs)) => {
            let keys = optionals_to_json(pairs.iter().map(|(key, _)| Some(key)), &ty.key.ty)?;
            let values = optionals_to_json(pairs.iter().map(|(_, value)| value.as_ref()), &ty.value.ty)?;
            Ok(Json::Object(Map::from_iter([("keys".to_owned(), keys), ("values".to_owned(), values)])))
        }
        (Type::Variant, _) => Err(Error::unsupported("type variant has no single-value JSON")),
        _ => Err(Error::invalid(format!("a {} is not a value of type {ty}", value.kind()))),
    }
}

/// Reads a value of type `ty` from JSON. `null` is an error; [`from_json_or_null`] accepts it.
///
/// # Errors
/// `Corrupt` if the JSON is not a value of the type, `Unsupported` for a type without a JSON form.
pub fn from_json(json: &Json, ty: &Type) -> Result<Value> {
    match ty {
        Type::Primitive(ty) => primitive_from_json(json, ty),
        Type::Struct(ty) => struct_from_json(json, ty),
        Type::List(ty) => list_from_json(json, ty),
        Type::Map(ty) => map_from_json(json, ty),
        Type::Variant => Err(Error::unsupported("type variant has no single-value JSON")),
    }
}

/// Like [`from_json`], but `null` becomes `None`.
///
/// # Errors
/// As [`from_json`].
pub fn from_json_or_null(json: &Json, ty: &Type) -> Result<Option<Value>> {
    if json.is_null() { Ok(None) } else { from_json(json, ty).map(Some) }
}

fn optionals_to_json<'a>(values: impl Iterator<Item = Option<&'a Value>>, ty: &Type) -> Result<Json> {
    values.map(|value| value.map_or(Ok(Json::Null), |value| to_json(value, ty))).collect::<Result<_>>().map(Json::Array)
}

fn primitive_to_json(value: &Value, ty: &PrimitiveType) -> Result<Json> {
    use PrimitiveType as T;
    Ok(match (ty, value) {
        (T::Boolean, Value::Boolean(v)) => Json::Bool(*v),
        (T::Int, Value::Int(v)) => Json::from(*v),
        (T::Long, Value::Long(v)) => Json::from(*v),
        // Use the float's own shortest text: 1.1 must not become 1.10000002384185791.
        (T::Float, Value::Float(v)) => float_to_json(human::float(*v).parse().unwrap_or(f64::from(*v))),
        (T::Double, Value::Double(v)) => float_to_json(*v),
        (T::Decimal { scale, .. }, Value::Decimal(v)) => Json::String(decimal::to_plain_string(*v, *scale)),
        (T::Date, Value::Int(v)) => Json::String(calendar::format_date(i64::from(*v))),
        (T::Time, Value::Long(v)) if (0..calendar::MICROS_PER_DAY).contains(v) => {
            Json::String(calendar::format_time(*v * 1000))
        }
        (T::Timestamp, Value::Long(v)) => Json::String(calendar::format_micros(*v)),
        (T::Timestamptz, Value::Long(v)) => Json::String(calendar::format_micros(*v) + "+00:00"),
        (T::TimestampNs, Value::Long(v)) => Json::String(calendar::format_nanos(*v)),
        (T::TimestamptzNs, Value::Long(v)) => Json::String(calendar::format_nanos(*v) + "+00:00"),
        (T::String, Value::String(v)) => Json::String(v.clone()),
        (T::Uuid, Value::Uuid(v)) => Json::String(uuid::Uuid::from_bytes(*v).to_string()),
        (T::Fixed(_) | T::Binary, Value::Binary(v)) => Json::String(to_hex(v)),
        (T::Unknown | T::Geometry { .. } | T::Geography { .. } | T::Unrecognized(_), _) => {
            return Err(Error::unsupported(format!("type {ty} has no single-value JSON here")));
        }
        _ => return Err(Error::invalid(format!("a {} is not a value of type {ty}", value.kind()))),
    })
}

fn float_to_json(value: f64) -> Json {
    let special = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    Number::from_f64(value).map_or_else(|| Json::String(special.to_owned()), Json::Number)
}

fn primitive_from_json(json: &Json, ty: &PrimitiveType) -> Result<Value> {
    use PrimitiveType as T;
    let text = || json.as_str();
    let long = |value: Option<i64>| value.map(Value::Long);
    let value = match ty {
        T::Boolean => json.as_bool().map(Value::Boolean),
        T::Int => json.as_i64().and_then(|v| i32::try_from(v).ok()).map(Value::Int),
        T::Long => long(json.as_i64()),
        // The reference implementation reads a number without point or exponent as an integer and refuses it for a
        // float. Other writers write 1 for 1.0, so it is accepted here if the conversion is exact.
        T::Float => match json.as_i64() {
            Some(whole) => Some(whole as f32).filter(|v| *v as i128 == i128::from(whole)).map(Value::Float),
            None => json.as_f64().filter(|_| json.is_f64()).map(|v| Value::Float(v as f32)),
        },
        T::Double => match json.as_i64() {
            Some(whole) => Some(whole as f64).filter(|v| *v as i128 == i128::from(whole)).map(Value::Double),
            None => json.as_f64().filter(|_| json.is_f64()).map(Value::Double),
        },
        T::Decimal { precision, scale } => match json.as_i64() {
            Some(whole) => whole_decimal(whole, *precision, *scale),
            None => text()
                .and_then(decimal::parse)
                .filter(|parsed| parsed.scale == i64::from(*scale))
                .map(|parsed| Value::Decimal(parsed.unscaled)),
        },
        T::Date => text().and_then(calendar::parse_date).and_then(|v| i32::try_from(v).ok()).map(Value::Int),
        T::Time => long(text().and_then(calendar::parse_time).map(|nanos| nanos / 1000)),
        T::Timestamp => long(text().and_then(calendar::parse_timestamp).and_then(calendar::to_micros)),
        T::Timestamptz => long(text().and_then(calendar::parse_timestamp_utc).and_then(calendar::to_micros)),
        T::TimestampNs => long(text().and_then(calendar::parse_timestamp).and_then(calendar::to_nanos)),
        T::TimestamptzNs => long(text().and_then(calendar::parse_timestamp_utc).and_then(calendar::to_nanos)),
        T::String => text().map(|text| Value::String(text.to_owned())),
        T::Uuid => text().and_then(parse_uuid).map(Value::Uuid),
        T::Fixed(length) => {
            text().and_then(from_hex).filter(|bytes| bytes.len() == *length as usize).map(Value::Binary)
        }
        T::Binary => text().and_then(from_hex).map(Value::Binary),
        T::Unknown | T::Geometry { .. } | T::Geography { .. } | T::Unrecognized(_) => {
            return Err(Error::unsupported(format!("type {ty} has no single-value JSON here")));
        }
    };
    value.ok_or_else(|| not_a_value(json, ty))
}

/// Converts an integer to a decimal, if it fits.
fn whole_decimal(whole: i64, precision: u8, scale: u8) -> Option<Value> {
    let unscaled = 10_i128.checked_pow(scale.into())?.checked_mul(i128::from(whole))?;
    let limit = 10_u128.checked_pow(precision.into())?;
    (unscaled.unsigned_abs() < limit).then_some(Value::Decimal(unscaled))
}

fn struct_from_json(json: &Json, ty: &StructType) -> Result<Value> {
    let object = json.as_object().ok_or_else(|| not_a_value(json, ty))?;
    let value = |(id, ty): (String, &Type)| match object.get(&id) {
        Some(json) => from_json_or_null(json, ty).map_err(|error| error.within(&format!("/{id}"))),
        None => Ok(None),
    };
    let fields = ty.fields.iter().map(|field| (field.id.to_string(), &field.ty));
    fields.map(value).collect::<Result<_>>().map(Value::Struct)
}

fn list_from_json(json: &Json, ty: &ListType) -> Result<Value> {
    optionals_from_json(json, &ty.element.ty).map(Value::List)
}

fn map_from_json(json: &Json, ty: &MapType) -> Result<Value> {
    let parts = json.as_object().and_then(|object| object.get("keys").zip(object.get("values")));
    let (keys, values) =
        parts.ok_or_else(|| not_a_value(json, &format_args!("map<{}, {}>", ty.key.ty, ty.value.ty)))?;
    let values = optionals_from_json(values, &ty.value.ty).map_err(|error| error.within("/values"))?;
    let keys = optionals_from_json(keys, &ty.key.ty).map_err(|error| error.within("/keys"))?;
    if keys.len() != values.len() {
        return Err(Error::corrupt("", format!("a map of {} keys and {} values", keys.len(), values.len())));
    }
    let mut seen = HashSet::with_capacity(keys.len());
    let mut pairs = Vec::with_capacity(keys.len());
    for (key, value) in keys.into_iter().zip(values) {
        let key = key.ok_or_else(|| Error::corrupt("/keys", "a key is null"))?;
        let text = to_json(&key, &ty.key.ty)?.to_string();
        if !seen.insert(text) {
            return Err(Error::corrupt("/keys", "two keys are equal"));
        }
        pairs.push((key, value));
    }
    Ok(Value::Map(pairs))
}

fn optionals_from_json(json: &Json, ty: &Type) -> Result<Vec<Option<Value>>> {
    let values = json.as_array().ok_or_else(|| not_a_value(json, ty))?;
    let value = |(i, json)| from_json_or_null(json, ty).map_err(|error| error.within(&format!("/{i}")));
    values.iter().enumerate().map(value).collect()
}

/// Creates the error for JSON that is not a value of the type; long JSON is cut.
fn not_a_value(json: &Json, ty: &impl std::fmt::Display) -> Error {
    const SHOWN: usize = 60;
    let text = json.to_string();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Error::corrupt("", format!("{shown} is not a value of type {ty}"))
}

/// Parses exactly 8-4-4-4-12 hexadecimal digits.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    uuid::Uuid::try_parse(text).ok().map(uuid::Uuid::into_bytes)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02X}");
        out
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| u8::try_from(digit(high)? * 16 + digit(low)?).ok()).collect()
}
