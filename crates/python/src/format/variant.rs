//! Variants (Parquet's `VariantEncoding.md`), and their conversion from and to Python objects.

use std::collections::BTreeMap;

use icefield_format::value::variant::tree::Primitive;
use icefield_format::value::variant::{Column, DEPTH, Node, Path, Tree, Variant, column, human, json, parse};
use icefield_format::value::{calendar, decimal};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyString, PyTime, PyTuple, PyType, PyTzInfo,
};

use super::values::{bytes, days, instant, micros_of_day, shown};
use crate::capsule::{ArrayInput, ArrowArray};
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyVariant>()?;
    module.add_function(wrap_pyfunction!(variants_from_json, module)?)?;
    module.add_function(wrap_pyfunction!(variants_from_python, module)?)?;
    module.add_function(wrap_pyfunction!(variants_to_json, module)?)?;
    module.add_function(wrap_pyfunction!(variants_to_python, module)?)
}

/// A value of any type, in its two parts.
#[pyclass(frozen, name = "Variant", module = "icefield.variant")]
#[derive(Debug)]
pub struct PyVariant {
    metadata: Vec<u8>,
    value: Vec<u8>,
}

impl PyVariant {
    fn variant(&self) -> Result<Variant<'_>> {
        Ok(Variant::new(&self.metadata, &self.value)?)
    }

    /// The bytes of the variant in a normal form, which is the same for all encodings of a value; for equality and
    /// hashes.
    fn normal(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        Ok(Tree::read(self.variant()?)?.encode()?)
    }
}

#[pymethods]
impl PyVariant {
    #[new]
    fn py_new(py: Python<'_>, metadata: &[u8], value: &[u8]) -> Result<Self> {
        let made = Self { metadata: metadata.to_vec(), value: value.to_vec() };
        detached(py, || Variant::new(metadata, value).and_then(|variant| variant.check()))??;
        Ok(made)
    }

    /// The variant of a Python object.
    #[staticmethod]
    #[pyo3(signature = (object, /))]
    fn from_python(py: Python<'_>, object: &Bound<'_, PyAny>) -> Result<Self> {
        let tree = from_python(object, 0)?;
        let (metadata, value) = detached(py, || tree.encode())??;
        Ok(Self { metadata, value })
    }

    /// The variant of a JSON text.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self> {
        let (metadata, value) = detached(py, || parse::from_json(text)?.encode())??;
        Ok(Self { metadata, value })
    }

    /// The dictionary of field names.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.metadata)
    }

    /// The encoded value.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.value)
    }

    /// The Python object that stands for the value.
    fn to_python<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        to_python(py, self.variant()?, 0)
    }

    /// The JSON text of the value.
    fn to_json(&self, py: Python<'_>) -> Result<String> {
        Ok(detached(py, || json::to_json(&Variant::new(&self.metadata, &self.value)?))??)
    }

    /// The value at a path, or `None` if the path has no value.
    #[pyo3(signature = (path, /))]
    fn get(&self, path: &str) -> Result<Option<Self>> {
        let found = Path::parse(path)?.find(self.variant()?)?;
        let found = found.map(|found| {
            Ok::<_, icefield_format::Error>(Self { metadata: self.metadata.clone(), value: found.exact()?.to_vec() })
        });
        Ok(found.transpose()?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        Ok(self.normal()? == other.get().normal()?)
    }

    fn __hash__(&self, py: Python<'_>) -> Result<isize> {
        let (metadata, value) = self.normal()?;
        Ok(PyTuple::new(py, [PyBytes::new(py, &metadata), PyBytes::new(py, &value)])?.hash()?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let (own, py) = (slf.get(), slf.py());
        Ok((slf.get_type(), PyTuple::new(py, [own.metadata(py), own.value(py)])?))
    }

    fn __repr__(&self) -> Result<String> {
        Ok(human::to_human_string(&self.variant()?)?)
    }
}

/// A column of the variants of JSON texts.
#[pyfunction]
#[pyo3(signature = (texts, /))]
fn variants_from_json<'py>(py: Python<'py>, texts: ArrayInput) -> Result<Bound<'py, PyAny>> {
    let texts = texts.checked(py)?;
    let variants = detached(py, || column::from_json(&texts))??;
    Ok(Bound::new(py, ArrowArray::new(std::sync::Arc::new(variants)))?.call_method0("to_pyarrow")?)
}

/// A column of the variants of Python objects; `None` is a row without a variant.
#[pyfunction]
#[pyo3(signature = (objects, /))]
fn variants_from_python<'py>(py: Python<'py>, objects: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let mut rows = Vec::new();
    for (row, object) in objects.try_iter()?.enumerate() {
        let object = object?;
        rows.push(match object.is_none() {
            true => None,
            false => Some(from_python(&object, 0).map_err(|error| {
                let error = PyErr::from(error);
                if error.is_instance_of::<InvalidArgumentError>(py) {
                    return InvalidArgumentError::new_err(format!("row {row}: {}", error.value(py)));
                }
                error
            })?),
        });
    }
    let variants = detached(py, || column::build(rows.into_iter().map(Ok)))??;
    Ok(Bound::new(py, ArrowArray::new(std::sync::Arc::new(variants)))?.call_method0("to_pyarrow")?)
}

/// The JSON text of each variant of a column.
#[pyfunction]
#[pyo3(signature = (array, /))]
fn variants_to_json<'py>(py: Python<'py>, array: ArrayInput) -> Result<Bound<'py, PyAny>> {
    let array = array.checked(py)?;
    let texts = detached(py, || column::to_json(Column::new(&array)?))??;
    Ok(Bound::new(py, ArrowArray::new(std::sync::Arc::new(texts)))?.call_method0("to_pyarrow")?)
}

/// The Python object of each variant of a column.
#[pyfunction]
#[pyo3(signature = (array, /))]
fn variants_to_python<'py>(py: Python<'py>, array: ArrayInput) -> Result<Bound<'py, PyList>> {
    let array = array.checked(py)?;
    let column = Column::new(&array)?;
    let list = PyList::empty(py);
    for row in 0..column.len() {
        let object = match column.get(row)? {
            Some(variant) => {
                variant.check().map_err(|error| error.within(&format!("row {row}")))?;
                to_python(py, variant, 0)?
            }
            None => py.None().into_bound(py),
        };
        list.append(object)?;
    }
    Ok(list)
}

/// The range of Python's dates in microseconds: the years 1 to 9999.
const FIRST_MICRO: i64 = -62_135_596_800_000_000;
const LAST_MICRO: i64 = 253_402_300_799_999_999;

fn to_python<'py>(py: Python<'py>, variant: Variant<'_>, depth: usize) -> Result<Bound<'py, PyAny>> {
    if depth > DEPTH {
        return Err(icefield_format::Error::corrupt("", "the variant is nested too deeply").into());
    }
    let int = |number: i64| Ok(number.into_pyobject(py).map_err(PyErr::from)?.into_any());
    match variant.node()? {
        Node::Null => Ok(py.None().into_bound(py)),
        Node::Boolean(value) => Ok(PyBool::new(py, value).to_owned().into_any()),
        Node::Int8(value) => int(value.into()),
        Node::Int16(value) => int(value.into()),
        Node::Int32(value) => int(value.into()),
        Node::Int64(value) => int(value),
        Node::Float(value) => Ok(PyFloat::new(py, f64::from(value)).into_any()),
        Node::Double(value) => Ok(PyFloat::new(py, value).into_any()),
        Node::Decimal { unscaled, scale, .. } => {
            let text = decimal::to_plain_string(unscaled, scale);
            Ok(py.import("decimal")?.getattr("Decimal")?.call1((text,))?)
        }
        Node::Date(days) => date(py, days),
        Node::Time(micros) => time(py, micros),
        Node::Timestamp { micros, is_utc } => match moment(py, micros, is_utc)? {
            Some(moment) => Ok(moment),
            None => text(py, calendar::format_micros(micros), is_utc),
        },
        Node::TimestampNanos { nanos, is_utc } => {
            let moment = if nanos % 1000 == 0 { moment(py, nanos / 1000, is_utc)? } else { None };
            match moment {
                Some(moment) => Ok(moment),
                None => text(py, calendar::format_nanos(nanos), is_utc),
            }
        }
        Node::Binary(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Node::String(text) => Ok(PyString::new(py, text).into_any()),
        Node::Uuid(bytes) => {
            let arguments = PyDict::new(py);
            arguments.set_item("bytes", PyBytes::new(py, &bytes))?;
            Ok(py.import("uuid")?.getattr("UUID")?.call((), Some(&arguments))?)
        }
        Node::Object(object) => {
            let dict = PyDict::new(py);
            for field in object.fields() {
                let (name, value) = field?;
                dict.set_item(name, to_python(py, value, depth + 1)?)?;
            }
            Ok(dict.into_any())
        }
        Node::Array(elements) => {
            let list = PyList::empty(py);
            for element in elements.iter() {
                list.append(to_python(py, element?, depth + 1)?)?;
            }
            Ok(list.into_any())
        }
    }
}

fn text(py: Python<'_>, text: String, is_utc: bool) -> Result<Bound<'_, PyAny>> {
    Ok(PyString::new(py, &(text + if is_utc { "+00:00" } else { "" })).into_any())
}

/// Converts a date; to text if Python's range does not include it.
fn date(py: Python<'_>, days: i32) -> Result<Bound<'_, PyAny>> {
    let civil = calendar::CivilDate::from_days(i64::from(days));
    match (i32::try_from(civil.year), u8::try_from(civil.month), u8::try_from(civil.day)) {
        (Ok(year @ 1..=9999), Ok(month), Ok(day)) => Ok(PyDate::new(py, year, month, day)?.into_any()),
        _ => text(py, calendar::format_date(i64::from(days)), false),
    }
}

/// Converts a time of day; to microseconds as an integer if they exceed a day.
fn time(py: Python<'_>, micros: i64) -> Result<Bound<'_, PyAny>> {
    if !(0..calendar::MICROS_PER_DAY).contains(&micros) {
        return Ok(micros.into_pyobject(py).map_err(PyErr::from)?.into_any());
    }
    let (hour, minute, second, micro) = clock(micros);
    Ok(PyTime::new(py, hour, minute, second, micro, None)?.into_any())
}

/// The hour, minute, second and microsecond of a time of day.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "each part is below its modulus")]
fn clock(micros: i64) -> (u8, u8, u8, u32) {
    let seconds = micros / 1_000_000;
    ((seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8, (micros % 1_000_000) as u32)
}

/// Converts an instant; `None` if Python's range does not include it.
fn moment(py: Python<'_>, micros: i64, is_utc: bool) -> Result<Option<Bound<'_, PyAny>>> {
    if !(FIRST_MICRO..=LAST_MICRO).contains(&micros) {
        return Ok(None);
    }
    let civil = calendar::CivilDate::from_days(micros.div_euclid(calendar::MICROS_PER_DAY));
    let (Ok(year), Ok(month), Ok(day)) =
        (i32::try_from(civil.year), u8::try_from(civil.month), u8::try_from(civil.day))
    else {
        return Ok(None);
    };
    let (hour, minute, second, micro) = clock(micros.rem_euclid(calendar::MICROS_PER_DAY));
    let zone = if is_utc { Some(PyTzInfo::utc(py)?) } else { None };
    Ok(Some(PyDateTime::new(py, year, month, day, hour, minute, second, micro, zone.as_deref())?.into_any()))
}

fn from_python(object: &Bound<'_, PyAny>, depth: usize) -> Result<Tree> {
    let refused =
        |why: &str| InvalidArgumentError::new_err(format!("{} is not a value of a variant{why}", shown(object)));
    if depth > DEPTH {
        return Err(
            InvalidArgumentError::new_err(format!("a variant can be nested at most {DEPTH} levels deep")).into()
        );
    }
    if object.is_none() {
        return Ok(Tree::fixed(Node::Null));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Tree::fixed(Node::Boolean(value.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract() {
            Ok(number) => Ok(Tree::integer(number)),
            Err(_) => match object.extract() {
                Ok(number) => Ok(Tree::decimal(number, 0)?),
                Err(_) => Err(refused(": it has more than 38 digits").into()),
            },
        };
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Tree::fixed(Node::Double(value.value())));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Tree::Primitive(Primitive::String(text.to_str()?.to_owned())));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut fields = BTreeMap::new();
        for (name, value) in dict.iter() {
            let Ok(name) = name.cast::<PyString>() else { return Err(refused(": names of fields are str").into()) };
            fields.insert(name.to_str()?.to_owned(), from_python(&value, depth + 1)?);
        }
        return Ok(Tree::Object(fields));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let mut elements = Vec::new();
        for element in object.try_iter()? {
            elements.push(from_python(&element?, depth + 1)?);
        }
        return Ok(Tree::Array(elements));
    }
    if let Ok(other) = object.cast::<PyVariant>() {
        return Ok(Tree::read(other.get().variant()?)?);
    }
    special(object)?.ok_or_else(|| refused("").into())
}

/// Converts dates, times, decimals, UUIDs and bytes from Python.
fn special(object: &Bound<'_, PyAny>) -> Result<Option<Tree>> {
    if object.is_instance_of::<PyDateTime>() {
        let is_utc = !object.call_method0("utcoffset")?.is_none();
        return Ok(instant(object, is_utc)?.map(|micros| Tree::fixed(Node::Timestamp { micros, is_utc })));
    }
    if let Some(days) = days(object)? {
        return Ok(Some(Tree::fixed(Node::Date(days))));
    }
    if let Some(micros) = micros_of_day(object) {
        return Ok(Some(Tree::fixed(Node::Time(micros))));
    }
    let py = object.py();
    if object.is_instance(&py.import("decimal")?.getattr("Decimal")?)? {
        let parsed = decimal::parse(object.str()?.to_str()?);
        let scaled = parsed.and_then(|parsed| {
            let scale = u8::try_from(parsed.scale.max(0)).ok()?;
            Some((parsed.rescaled(scale)?, scale))
        });
        return scaled.map(|(unscaled, scale)| Ok(Tree::decimal(unscaled, scale)?)).transpose();
    }
    if object.is_instance(&py.import("uuid")?.getattr("UUID")?)? {
        return Ok(Some(Tree::fixed(Node::Uuid(object.getattr("bytes")?.extract()?))));
    }
    Ok(bytes(object).map(|bytes| Tree::Primitive(Primitive::Binary(bytes))))
}
