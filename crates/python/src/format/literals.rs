//! Literals of predicates: a class for each kind, and the conversion of Python values to literals.

use std::hash::{DefaultHasher, Hash, Hasher};

use icefield_format::expr::{Converted, Literal};
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::decimal;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyFloat, PyInt, PyString, PyTime, PyType, PyTzInfoAccess as _};

use crate::arguments::type_input::TypeInput;
use crate::errors::{InvalidArgumentError, Result};
use crate::format::classes::{classes, made};
use crate::format::schemas::type_classes::TypeOutput;
use crate::format::values::{primitive, to_python, to_value};

/// A literal of a predicate; which type it becomes is settled by the column.
#[pyclass(frozen, subclass, name = "Literal", module = "icefield.expressions.literals")]
#[derive(Debug, Clone)]
pub(crate) struct PyLiteral(pub Literal);

classes! {
    "icefield.expressions.literals":
    /// A literal that is true or false.
    PyBooleanLiteral "BooleanLiteral" of PyLiteral;
    /// A literal of type ``long`` or ``int``.
    PyLongLiteral "LongLiteral" of PyLiteral;
    /// A literal of type ``float``.
    PyFloatLiteral "FloatLiteral" of PyLiteral;
    /// A literal of type ``double``.
    PyDoubleLiteral "DoubleLiteral" of PyLiteral;
    /// A literal of a decimal type; its scale is that of the value.
    PyDecimalLiteral "DecimalLiteral" of PyLiteral;
    /// A literal of type ``date``: its days from 1970-01-01.
    PyDateLiteral "DateLiteral" of PyLiteral;
    /// A literal of type ``time``: its microseconds from midnight.
    PyTimeLiteral "TimeLiteral" of PyLiteral;
    /// A literal of a type of timestamps: its microseconds from 1970, or nanoseconds of such a type.
    PyTimestampLiteral "TimestampLiteral" of PyLiteral;
    /// A literal of type ``string``.
    PyStringLiteral "StringLiteral" of PyLiteral;
    /// A literal of type ``uuid``.
    PyUuidLiteral "UUIDLiteral" of PyLiteral;
    /// A literal of a type ``fixed``; its length is that of the value.
    PyFixedLiteral "FixedLiteral" of PyLiteral;
    /// A literal of type ``binary``.
    PyBinaryLiteral "BinaryLiteral" of PyLiteral;
}

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLiteral>()?;
    register_classes(module)
}

/// A literal to return to Python.
#[derive(Debug)]
pub(crate) struct LiteralOutput(pub(crate) Literal);

impl<'py> IntoPyObject<'py> for LiteralOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        use PrimitiveType as P;
        let ty = self.0.ty().clone();
        let base = PyClassInitializer::from(PyLiteral(self.0));
        Ok(match ty {
            P::Boolean => made!(py, base, PyBooleanLiteral),
            P::Int | P::Long => made!(py, base, PyLongLiteral),
            P::Float => made!(py, base, PyFloatLiteral),
            P::Double => made!(py, base, PyDoubleLiteral),
            P::Decimal { .. } => made!(py, base, PyDecimalLiteral),
            P::Date => made!(py, base, PyDateLiteral),
            P::Time => made!(py, base, PyTimeLiteral),
            P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs => made!(py, base, PyTimestampLiteral),
            P::String => made!(py, base, PyStringLiteral),
            P::Uuid => made!(py, base, PyUuidLiteral),
            P::Fixed(_) => made!(py, base, PyFixedLiteral),
            P::Binary => made!(py, base, PyBinaryLiteral),
            _ => Bound::new(py, base)?.into_any(),
        })
    }
}

impl PartialEq for LiteralOutput {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for LiteralOutput {}

impl Hash for LiteralOutput {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_string().hash(state);
    }
}

/// Constructors of the classes with a fixed type.
macro_rules! constructors {
    ($($class:ident $primitive:ident;)*) => {
        $(#[pymethods]
        impl $class {
            #[new]
            fn py_new(value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
                Ok(of(PrimitiveType::$primitive, value)?.add_subclass(Self))
            }
        })*
    };
}

constructors! {
    PyBooleanLiteral Boolean;
    PyLongLiteral Long;
    PyFloatLiteral Float;
    PyDoubleLiteral Double;
    PyDateLiteral Date;
    PyTimeLiteral Time;
    PyTimestampLiteral Timestamp;
    PyStringLiteral String;
    PyUuidLiteral Uuid;
    PyBinaryLiteral Binary;
}

fn of(ty: PrimitiveType, value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<PyLiteral>> {
    let value = to_value(value, &Type::Primitive(ty.clone()))?;
    Ok(PyClassInitializer::from(PyLiteral(Literal::new(ty, value)?)))
}

#[pymethods]
impl PyDecimalLiteral {
    #[new]
    fn py_new(value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        let literal = decimal_literal(&value.str()?.to_string())?;
        Ok(PyClassInitializer::from(PyLiteral(literal)).add_subclass(Self))
    }
}

#[pymethods]
impl PyFixedLiteral {
    #[new]
    fn py_new(value: &Bound<'_, PyBytes>) -> Result<PyClassInitializer<Self>> {
        let length = value.as_bytes().len();
        let length = u32::try_from(length)
            .map_err(|_| InvalidArgumentError::new_err(format!("a value has {length} bytes, too many for a type")))?;
        Ok(of(PrimitiveType::Fixed(length), value)?.add_subclass(Self))
    }
}

/// Converts a Python object to a literal; the column determines its final type.
pub(crate) fn to_literal(object: &Bound<'_, PyAny>) -> Result<Literal> {
    use PrimitiveType as P;
    if let Ok(ours) = object.cast::<PyLiteral>() {
        return Ok(ours.get().0.clone());
    }
    let ty = if object.is_instance_of::<PyBool>() {
        P::Boolean
    } else if object.is_instance_of::<PyString>() {
        P::String
    } else if object.is_instance_of::<PyFloat>() {
        P::Double
    } else if object.is_instance_of::<PyBytes>() {
        P::Binary
    } else if let Ok(moment) = object.cast::<PyDateTime>() {
        if moment.get_tzinfo().is_some() { P::Timestamptz } else { P::Timestamp }
    } else if object.is_instance_of::<PyDate>() {
        P::Date
    } else if object.is_instance_of::<PyTime>() {
        P::Time
    } else {
        match object.get_type().name()?.to_str()? {
            "UUID" => P::Uuid,
            "Decimal" => return decimal_literal(&object.str()?.to_string()),
            _ => return number_literal(object),
        }
    };
    Ok(Literal::new(ty.clone(), to_value(object, &Type::Primitive(ty))?)?)
}

fn decimal_literal(text: &str) -> Result<Literal> {
    let refused = || InvalidArgumentError::new_err(format!("{text} is not a decimal of at most 38 digits"));
    let parsed = decimal::parse(text).ok_or_else(refused)?;
    // `Decimal("1E+3")` has a scale below zero.
    let scale = u8::try_from(parsed.scale.max(0)).map_err(|_| refused())?;
    Ok(Literal::decimal(parsed.rescaled(scale).ok_or_else(refused)?, scale))
}

/// Converts a number, including those of NumPy; an integer of more than 64 bits becomes a decimal.
fn number_literal(object: &Bound<'_, PyAny>) -> Result<Literal> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(Literal::long(number));
    }
    if object.is_instance_of::<PyInt>() {
        return decimal_literal(&object.str()?.to_string());
    }
    if let Ok(number) = object.extract::<f64>() {
        return Ok(Literal::double(number)?);
    }
    let found = object.get_type().name()?;
    Err(InvalidArgumentError::new_err(format!("{found} is not a literal; for None there is IsNull")).into())
}

/// A hash of a text.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[pymethods]
impl PyLiteral {
    #[new]
    #[pyo3(signature = (value, r#type=None, /))]
    fn py_new(value: &Bound<'_, PyAny>, r#type: Option<TypeInput>) -> Result<LiteralOutput> {
        Ok(LiteralOutput(match r#type {
            Some(ty) => Literal::new(primitive(&ty.0)?, to_value(value, &ty.0)?)?,
            None => to_literal(value)?,
        }))
    }

    /// The value, as `icefield.values` converts it.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        to_python(py, self.0.value(), &self.0.ty().clone().into())
    }

    /// The type that it was written as.
    #[getter]
    fn r#type(&self) -> TypeOutput {
        TypeOutput(self.0.ty().clone().into())
    }

    /// The literal as a value of another type.
    #[pyo3(signature = (type_var))]
    fn to(&self, type_var: TypeInput) -> Result<LiteralOutput> {
        let ty = primitive(&type_var.0)?;
        match self.0.convert(&type_var.0)? {
            Converted::Value(value) => Ok(LiteralOutput(Literal::new(ty, value)?)),
            _ => Err(InvalidArgumentError::new_err(format!("{} is out of the range of {ty}", self.0)).into()),
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("{}({})", slf.get_type().name()?, slf.get().0))
    }

    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, how: CompareOp) -> Result<Bound<'py, PyAny>> {
        let py = other.py();
        let ours = other.cast::<Self>().ok().map(Bound::get);
        Ok(match (how, ours) {
            // Literals of any types are equal if neither is less.
            (_, Some(other)) => self.value(py)?.rich_compare(other.value(py)?, how)?,
            (CompareOp::Eq | CompareOp::Ne, None) => {
                PyBool::new(py, matches!(how, CompareOp::Ne)).to_owned().into_any()
            }
            (_, None) => py.NotImplemented().into_bound(py),
        })
    }

    fn __hash__(&self, py: Python<'_>) -> Result<isize> {
        Ok(self.value(py)?.hash()?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyType>, ValueAndType<'py>)> {
        Ok((slf.py().get_type::<PyLiteral>(), (slf.get().value(slf.py())?, slf.get().0.ty().to_string())))
    }
}

/// The value and the type from which a literal is created again.
type ValueAndType<'py> = (Bound<'py, PyAny>, String);
