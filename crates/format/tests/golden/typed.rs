//! The typed values of the vector files ("Common encodings" in their README).

use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::{Value, decimal};
use libtest_mimic::Failed;
use serde_json::Value as Json;

/// The type that a case names.
pub fn ty(json: &Json) -> Result<Type, Failed> {
    Type::from_json(json).map_err(|error| format!("type {json}: {error}").into())
}

/// The primitive type that a case names.
pub fn primitive(json: &Json) -> Result<PrimitiveType, Failed> {
    ty(json)?.as_primitive().cloned().ok_or_else(|| format!("{json} is no primitive type").into())
}

/// The value of a case as type `ty`; `None` for null.
pub fn value(json: &Json, ty: &Type) -> Result<Option<Value>, Failed> {
    if json.is_null() {
        return Ok(None);
    }
    let value = match ty {
        Type::Primitive(ty) => primitive_value(json, ty),
        Type::Struct(ty) => {
            let fields = ty.fields.iter().map(|field| value(json.get(&field.name).unwrap_or(&Json::Null), &field.ty));
            Some(Value::Struct(fields.collect::<Result<_, _>>()?))
        }
        Type::List(ty) => match json.as_array() {
            Some(items) => {
                Some(Value::List(items.iter().map(|item| value(item, &ty.element.ty)).collect::<Result<_, _>>()?))
            }
            None => None,
        },
        Type::Map(ty) => match json.as_array() {
            Some(pairs) => {
                let pair = |pair: &Json| match value(&pair[0], &ty.key.ty)? {
                    Some(key) => Ok((key, value(&pair[1], &ty.value.ty)?)),
                    None => Err(Failed::from("a null key")),
                };
                Some(Value::Map(pairs.iter().map(pair).collect::<Result<_, _>>()?))
            }
            None => None,
        },
        Type::Variant => None,
    };
    value.map(Some).ok_or_else(|| format!("{json} is no value of type {ty}").into())
}

fn primitive_value(json: &Json, ty: &PrimitiveType) -> Option<Value> {
    use PrimitiveType as T;
    let long = || json.as_i64().or_else(|| json.as_str()?.parse().ok());
    Some(match ty {
        T::Boolean => Value::Boolean(json.as_bool()?),
        T::Int | T::Date => Value::Int(long()?.try_into().ok()?),
        T::Long | T::Time | T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs => Value::Long(long()?),
        T::Float => Value::Float(json.as_str()?.parse().ok()?),
        T::Double => Value::Double(json.as_str()?.parse().ok()?),
        T::Decimal { scale, .. } => Value::Decimal(decimal::parse(json.as_str()?)?.rescaled(*scale)?),
        T::String => Value::String(json.as_str()?.to_owned()),
        T::Uuid => Value::Uuid(u128::from_str_radix(&json.as_str()?.replace('-', ""), 16).ok()?.to_be_bytes()),
        T::Fixed(_) | T::Binary | T::Geometry { .. } | T::Geography { .. } => Value::Binary(hex(json.as_str()?)?),
        T::Unknown | T::Unrecognized(_) => return None,
    })
}

/// Bytes from lower-case hex.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Fails unless the two are equal.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), Failed> {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what}: got {got:?}, expected {expected:?}").into())
}

/// Fails unless there is an error.
pub fn refused<T: std::fmt::Debug, E>(what: &str, got: Result<T, E>) -> Result<(), Failed> {
    match got {
        Err(_) => Ok(()),
        Ok(got) => Err(format!("{what}: got {got:?}, expected an error").into()),
    }
}
