//! Values of partition fields whose type the specification does not give: their transform is unknown, or takes several
//! columns. Only manifests say how they are stored, so each value carries its stored type, as text: `int:5`. It is
//! written back exactly as it was read, and is never computed or compared by order.

use crate::types::{PrimitiveType, Type};
use crate::value::{Value, binary, human};
use crate::{Error, Result};

use super::path::from_partition_string;

/// The text of a value: `type:value`, or `type#bytes` in hexadecimal if the value has no exact text.
///
/// # Errors
/// A value that is not of the type.
pub fn to_text(value: &Value, ty: &PrimitiveType) -> Result<String> {
    let shown = human::to_human_string(Some(value), ty);
    let is_exact = from_partition_string(&shown, ty).is_ok_and(|read| read.as_ref() == Some(value));
    if is_exact && !matches!(ty, PrimitiveType::Binary) {
        return Ok(format!("{ty}:{shown}"));
    }
    let bytes = binary::to_bytes(value, ty)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{ty}#{digits}"))
}

/// The type and the value of a text.
///
/// # Errors
/// Another text.
pub fn from_text(text: &str) -> Result<(PrimitiveType, Value)> {
    let other = || Error::invalid(format!("{text:?} is no value of a partition field without a known type"));
    let place = text.find([':', '#']).ok_or_else(other)?;
    let (name, rest) = text.split_at(place);
    let ty = match Type::parse(name)? {
        Type::Primitive(ty) => ty,
        _ => return Err(other()),
    };
    if let Some(shown) = rest.strip_prefix(':') {
        let value = from_partition_string(shown, &ty)?.ok_or_else(other)?;
        return Ok((ty, value));
    }
    let digits = rest.get(1..).unwrap_or_default();
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let value = binary::from_bytes(&bytes.ok_or_else(other)?, &ty)?;
    Ok((ty, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrimitiveType as P;

    #[test]
    fn every_value_comes_back() {
        let values = [
            (P::Boolean, Value::Boolean(false), "boolean:false"),
            (P::Int, Value::Int(-5), "int:-5"),
            (P::Date, Value::Int(1), "date:1970-01-02"),
            (P::Long, Value::Long(i64::MIN), "long:-9223372036854775808"),
            (P::Float, Value::Float(-0.0), "float:-0.0"),
            (P::Double, Value::Double(f64::from_bits(0x7ff8_0000_0000_0001)), "double#010000000000f87f"),
            (P::Time, Value::Long(1), "time#0100000000000000"),
            (P::TimestamptzNs, Value::Long(-1), "timestamptz_ns#ffffffffffffffff"),
            (P::Decimal { precision: 9, scale: 2 }, Value::Decimal(-128), "decimal(9, 2):-1.28"),
            (P::String, Value::String("a:b#__x".into()), "string:a:b#__x"),
            (P::String, Value::String(String::new()), "string:"),
            (P::String, Value::String("__HIVE_DEFAULT_PARTITION__".into()), "string#"),
            (P::Uuid, Value::Uuid([7; 16]), "uuid:07070707-0707-0707-0707-070707070707"),
            (P::Binary, Value::Binary(vec![0xff, 0]), "binary#ff00"),
            (P::Binary, Value::Binary(Vec::new()), "binary#"),
            (P::Fixed(2), Value::Binary(vec![1, 0xfe]), "fixed[2]#01fe"),
        ];
        for (ty, value, expected) in values {
            let text = to_text(&value, &ty).unwrap();
            assert!(text.starts_with(expected), "{text}");
            assert_eq!(from_text(&text).unwrap(), (ty, value), "{text}");
        }
        for bad in [
            "",
            "int",
            "int:x",
            "int#0",
            "int#zz",
            "int#0100",
            "list<int>:1",
            "void:1",
            "int:__HIVE_DEFAULT_PARTITION__",
        ] {
            assert!(from_text(bad).is_err(), "{bad}");
        }
    }
}
