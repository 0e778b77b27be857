//! Single values ("Appendix D: Single-value serialization"), and their conversion from and to Python objects.
//!
//! Two forms of a value are accepted: the physical one of the specification (days, micro- or nanoseconds as `int`), and
//! that of Python (`date`, `time`, `datetime`, ISO-8601 text). Values are returned as in PyIceberg: dates and times in
//! their physical form, and `Decimal`, `UUID`, `bytes`, `str`.

use icefield_format::types::value_json;
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::{Value, binary, bounds, calendar, decimal};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDeltaAccess as _, PyDict};
use pyo3::types::{PyFloat, PyInt, PyList, PyString, PyTime, PyTimeAccess as _, PyTuple, PyTzInfoAccess as _};

use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::arguments::type_input::TypeInput;
use crate::errors::{InvalidArgumentError, Result};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(value_to_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(value_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(value_to_json, module)?)?;
    module.add_function(wrap_pyfunction!(value_from_json, module)?)?;
    module.add_function(wrap_pyfunction!(truncate_bound, module)?)
}

/// The binary form of a value.
#[pyfunction]
fn value_to_bytes<'py>(py: Python<'py>, value: &Bound<'py, PyAny>, r#type: TypeInput) -> Result<Bound<'py, PyBytes>> {
    let value = to_value(value, &r#type.0)?;
    Ok(PyBytes::new(py, &binary::to_bytes(&value, &primitive(&r#type.0)?)?))
}

/// The value of its binary form.
#[pyfunction]
fn value_from_bytes<'py>(py: Python<'py>, data: &[u8], r#type: TypeInput) -> Result<Bound<'py, PyAny>> {
    to_python(py, &binary::from_bytes(data, &primitive(&r#type.0)?)?, &r#type.0)
}

/// The JSON form of a value, as text; ``null`` for none.
#[pyfunction]
fn value_to_json(value: Option<&Bound<'_, PyAny>>, r#type: TypeInput) -> Result<String> {
    let Some(value) = value else { return Ok("null".to_owned()) };
    Ok(value_json::to_json(&to_value(value, &r#type.0)?, &r#type.0)?.to_string())
}

/// The value of its JSON form.
#[pyfunction]
fn value_from_json<'py>(py: Python<'py>, text: JsonInput, r#type: TypeInput) -> Result<Option<Bound<'py, PyAny>>> {
    let value = value_json::from_json_or_null(&text.0, &r#type.0)?;
    value.map(|value| to_python(py, &value, &r#type.0)).transpose()
}

/// A bound of at most ``length`` code points or bytes.
#[pyfunction]
#[pyo3(signature = (value, r#type, length, *, upper=false))]
fn truncate_bound<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    r#type: TypeInput,
    length: Int<usize>,
    upper: bool,
) -> Result<Option<Bound<'py, PyAny>>> {
    let (value, ty) = (to_value(value, &r#type.0)?, primitive(&r#type.0)?);
    let bound = match upper {
        true => bounds::upper_bound(value, &ty, length.0),
        false => Some(bounds::lower_bound(value, &ty, length.0)),
    };
    bound.map(|bound| to_python(py, &bound, &r#type.0)).transpose()
}

/// The primitive type; an error for other types.
pub(crate) fn primitive(ty: &Type) -> Result<PrimitiveType> {
    let primitive = ty.as_primitive().cloned();
    Ok(primitive.ok_or_else(|| InvalidArgumentError::new_err(format!("{ty} is not a primitive type")))?)
}

/// Converts a Python object to a value of type `ty`.
///
/// # Errors
/// `InvalidArgumentError`, which names object and type, if it is not such a value.
pub(crate) fn to_value(object: &Bound<'_, PyAny>, ty: &Type) -> Result<Value> {
    let refused = || InvalidArgumentError::new_err(format!("{} is not a value of type {ty}", shown(object)));
    let optional = |item: &Bound<'_, PyAny>, ty: &Type| {
        if item.is_none() { Ok(None) } else { to_value(item, ty).map(Some) }
    };
    let value = match ty {
        Type::Primitive(ty) => primitive_value(object, ty)?,
        Type::Struct(ty) => match object.cast::<PyDict>() {
            Ok(dict) => {
                let member = |name: &str| dict.get_item(name).transpose().transpose();
                let field = |field: &icefield_format::types::Field| match member(&field.name)? {
                    Some(item) => optional(&item, &field.ty),
                    None => Ok(None),
                };
                Some(Value::Struct(ty.fields.iter().map(field).collect::<Result<_>>()?))
            }
            Err(_) => None,
        },
        Type::List(ty) => match object.cast::<PyList>() {
            Ok(list) => {
                Some(Value::List(list.iter().map(|item| optional(&item, &ty.element.ty)).collect::<Result<_>>()?))
            }
            Err(_) => None,
        },
        Type::Map(ty) => match pairs(object) {
            Some(pairs) => {
                let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                    Ok((to_value(&key, &ty.key.ty)?, optional(&value, &ty.value.ty)?))
                };
                Some(Value::Map(pairs.into_iter().map(pair).collect::<Result<_>>()?))
            }
            None => None,
        },
        Type::Variant => None,
    };
    Ok(value.ok_or_else(refused)?)
}

/// The pairs of a dict, or of a list of pairs.
fn pairs<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    match object.cast::<PyDict>() {
        Ok(dict) => Some(dict.iter().collect()),
        Err(_) => object.cast::<PyList>().ok()?.extract().ok(),
    }
}

/// Converts a value of a primitive type; `None` if the object has another kind.
fn primitive_value(object: &Bound<'_, PyAny>, ty: &PrimitiveType) -> Result<Option<Value>> {
    use PrimitiveType as T;
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text_value(text.to_str()?, ty));
    }
    Ok(match ty {
        T::Boolean => object.cast::<PyBool>().ok().map(|value| Value::Boolean(value.is_true())),
        T::Int => int(object).and_then(|value| value.try_into().ok()).map(Value::Int),
        T::Long => int(object).map(Value::Long),
        // A finite value must not become infinite.
        T::Float => float(object)
            .filter(|value| !value.is_finite() || (*value as f32).is_finite())
            .map(|value| Value::Float(value as f32)),
        T::Double => float(object).map(Value::Double),
        T::Decimal { precision, scale } => decimal_value(object, *precision, *scale)?,
        T::Date => match days(object)? {
            Some(days) => Some(Value::Int(days)),
            None => int(object).and_then(|value| value.try_into().ok()).map(Value::Int),
        },
        T::Time => {
            let number = || int(object).filter(|micros| (0..calendar::MICROS_PER_DAY).contains(micros));
            micros_of_day(object).or_else(number).map(Value::Long)
        }
        T::Timestamp => instant(object, false)?.or_else(|| int(object)).map(Value::Long),
        T::Timestamptz => instant(object, true)?.or_else(|| int(object)).map(Value::Long),
        T::TimestampNs | T::TimestamptzNs => match instant(object, *ty == T::TimestamptzNs)? {
            Some(micros) => micros.checked_mul(1000).map(Value::Long),
            None => int(object).map(Value::Long),
        },
        T::Uuid => match object.getattr("bytes") {
            Ok(bytes) => bytes.extract().ok().map(Value::Uuid),
            Err(_) => object.extract().ok().map(Value::Uuid),
        },
        T::Fixed(length) => bytes(object).filter(|bytes| bytes.len() == *length as usize).map(Value::Binary),
        T::Binary | T::Geometry { .. } | T::Geography { .. } => bytes(object).map(Value::Binary),
        T::String | T::Unknown | T::Unrecognized(_) => None,
    })
}

/// Converts text: strings as they are, and types that are strings in JSON from ISO-8601, decimal or UUID text.
fn text_value(text: &str, ty: &PrimitiveType) -> Option<Value> {
    use PrimitiveType as T;
    match ty {
        T::String => Some(Value::String(text.to_owned())),
        T::Decimal { precision, scale } => {
            decimal::parse(text)?.rescaled(*scale).filter(|number| has_digits(*number, *precision)).map(Value::Decimal)
        }
        T::Date | T::Time | T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs | T::Uuid => {
            value_json::from_json(&text.into(), &ty.clone().into()).ok()
        }
        _ => None,
    }
}

/// Converts an `int`, or an object with `__index__`, but not a `bool`.
fn int(object: &Bound<'_, PyAny>) -> Option<i64> {
    if object.is_instance_of::<PyBool>() || object.is_instance_of::<PyFloat>() {
        return None;
    }
    object.extract().ok()
}

fn float(object: &Bound<'_, PyAny>) -> Option<f64> {
    if object.is_instance_of::<PyBool>() {
        return None;
    }
    let number = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>();
    let number = number || object.hasattr("__float__").unwrap_or(false);
    if number { object.extract().ok() } else { None }
}

/// Converts `bytes`, `bytearray` and `memoryview`.
pub(super) fn bytes(object: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return None;
    }
    match object.cast::<PyBytes>() {
        Ok(bytes) => Some(bytes.as_bytes().to_vec()),
        Err(_) => object.call_method0("__bytes__").or_else(|_| object.call_method0("tobytes")).map_or_else(
            |_| object.extract().ok(),
            |bytes| bytes.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()),
        ),
    }
}

/// Converts a `Decimal` or an `int` exactly: digits beyond the scale are errors, not rounded.
fn decimal_value(object: &Bound<'_, PyAny>, precision: u8, scale: u8) -> Result<Option<Value>> {
    if object.is_instance_of::<PyBool>() || object.is_instance_of::<PyFloat>() {
        return Ok(None);
    }
    let text = object.str()?;
    let number = decimal::parse(text.to_str()?).and_then(|parsed| parsed.rescaled(scale));
    Ok(number.filter(|number| has_digits(*number, precision)).map(Value::Decimal))
}

/// Whether a number has no more digits than a precision allows.
fn has_digits(number: i128, precision: u8) -> bool {
    10_u128.checked_pow(u32::from(precision)).is_none_or(|limit| number.unsigned_abs() < limit)
}

/// The days of a `date`, unless it is a `datetime`.
pub(super) fn days(object: &Bound<'_, PyAny>) -> Result<Option<i32>> {
    if object.is_instance_of::<PyDateTime>() || !object.is_instance_of::<PyDate>() {
        return Ok(None);
    }
    Ok(Some(object.call_method0("toordinal")?.extract::<i32>()? - EPOCH_ORDINAL))
}

/// Python's ordinal of 1970-01-01.
const EPOCH_ORDINAL: i32 = 719_163;

pub(super) fn micros_of_day(object: &Bound<'_, PyAny>) -> Option<i64> {
    let time = object.cast::<PyTime>().ok()?;
    if time.get_tzinfo().is_some() {
        return None;
    }
    let minutes = i64::from(time.get_hour()) * 60 + i64::from(time.get_minute());
    Some((minutes * 60 + i64::from(time.get_second())) * 1_000_000 + i64::from(time.get_microsecond()))
}

/// The microseconds of a `datetime`, which must have a time zone exactly if the type has one.
pub(super) fn instant(object: &Bound<'_, PyAny>, zoned: bool) -> Result<Option<i64>> {
    let Ok(datetime) = object.cast::<PyDateTime>() else { return Ok(None) };
    let offset = datetime.call_method0("utcoffset")?;
    if offset.is_none() == zoned {
        let (wanted, found) = if zoned { ("a zone", "without") } else { ("no zone", "with one") };
        let message = format!("the type has {wanted}, the datetime {} is {found}", shown(object));
        return Err(InvalidArgumentError::new_err(message).into());
    }
    let day = datetime.call_method0("toordinal")?.extract::<i64>()? - i64::from(EPOCH_ORDINAL);
    let minutes = (day * 24 + i64::from(datetime.get_hour())) * 60 + i64::from(datetime.get_minute());
    let micros = (minutes * 60 + i64::from(datetime.get_second())) * 1_000_000 + i64::from(datetime.get_microsecond());
    let offset = offset.cast::<PyDelta>().map_or(0, |offset| {
        let seconds = i64::from(offset.get_days()) * 86_400 + i64::from(offset.get_seconds());
        seconds * 1_000_000 + i64::from(offset.get_microseconds())
    });
    Ok(Some(micros - offset))
}

/// Converts a value of type `ty` to a Python object.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value, ty: &Type) -> Result<Bound<'py, PyAny>> {
    let optional = |value: &Option<Value>, ty: &Type| match value {
        Some(value) => to_python(py, value, ty),
        None => Ok(py.None().into_bound(py)),
    };
    Ok(match (value, ty) {
        (Value::Boolean(v), _) => PyBool::new(py, *v).to_owned().into_any(),
        (Value::Int(v), _) => v.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        (Value::Long(v), _) => v.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        (Value::Float(v), _) => PyFloat::new(py, f64::from(*v)).into_any(),
        (Value::Double(v), _) => PyFloat::new(py, *v).into_any(),
        (Value::Decimal(v), Type::Primitive(PrimitiveType::Decimal { scale, .. })) => {
            let text = decimal::to_plain_string(*v, *scale);
            py.import("decimal")?.getattr("Decimal")?.call1((text,))?
        }
        (Value::String(v), _) => PyString::new(py, v).into_any(),
        (Value::Uuid(v), _) => {
            let bytes = PyDict::new(py);
            bytes.set_item("bytes", PyBytes::new(py, v))?;
            py.import("uuid")?.getattr("UUID")?.call((), Some(&bytes))?
        }
        (Value::Binary(v), _) => PyBytes::new(py, v).into_any(),
        (Value::Struct(values), Type::Struct(ty)) => {
            let dict = PyDict::new(py);
            for (field, value) in ty.fields.iter().zip(values) {
                dict.set_item(&field.name, optional(value, &field.ty)?)?;
            }
            dict.into_any()
        }
        (Value::List(values), Type::List(ty)) => {
            let items = values.iter().map(|value| optional(value, &ty.element.ty)).collect::<Result<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        (Value::Map(pairs), Type::Map(ty)) => {
            let item = |(key, value): &(Value, Option<Value>)| {
                Ok((to_python(py, key, &ty.key.ty)?, optional(value, &ty.value.ty)?))
            };
            let items = PyList::new(py, pairs.iter().map(item).collect::<Result<Vec<_>>>()?)?;
            // Dicts and lists cannot be keys of a dict, so such a map becomes a list of pairs.
            if ty.key.ty.as_primitive().is_some() {
                PyDict::from_sequence(&items)?.into_any()
            } else {
                items.into_any()
            }
        }
        _ => return Err(InvalidArgumentError::new_err(format!("no Python value for type {ty}")).into()),
    })
}

/// The `repr` of an object for a message, limited to a short line.
pub(super) fn shown(object: &Bound<'_, PyAny>) -> String {
    const SHOWN: usize = 60;
    let text = object.repr().map_or_else(|_| "the object".to_owned(), |text| text.to_string());
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
