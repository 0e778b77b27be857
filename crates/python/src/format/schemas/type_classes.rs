//! A class for each kind of type, as seen in Python.

use icefield_format::types::{PrimitiveType, Type};
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::arguments::type_input::{PyIcebergType, TypeInput};
use crate::errors::{BorderError, Result};
use crate::format::classes::{classes, made};

/// A type without fields inside, and not a variant.
#[pyclass(frozen, subclass, extends = PyIcebergType, name = "PrimitiveType", module = "icefield.types")]
#[derive(Debug)]
pub struct PyPrimitiveType;

/// Creates an instance of a primitive type's class.
type Primitive = PyClassInitializer<PyPrimitiveType>;

fn primitive(ty: Type) -> Primitive {
    PyClassInitializer::from(PyIcebergType(ty)).add_subclass(PyPrimitiveType)
}

/// Defines the classes of types without parameters; number types also name the Rust type with the same range.
macro_rules! plain_types {
    ($($(#[$doc:meta])+ $class:ident $name:tt $primitive:ident $([$number:ty])?;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, extends = PyPrimitiveType, name = $name, module = "icefield.types")]
            #[derive(Debug)]
            pub struct $class;

            #[pymethods]
            impl $class {
                #[new]
                fn py_new() -> PyClassInitializer<Self> {
                    primitive(Type::Primitive(PrimitiveType::$primitive)).add_subclass(Self)
                }

                $(
                    /// The least number of the type.
                    #[classattr]
                    fn min() -> $number {
                        <$number>::MIN
                    }

                    /// The greatest number of the type.
                    #[classattr]
                    fn max() -> $number {
                        <$number>::MAX
                    }
                )?
            }
        )*

        /// The instance of a type that has no parameters.
        fn plain<'py>(py: Python<'py>, kind: &PrimitiveType) -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(match kind {
                $(PrimitiveType::$primitive => Some(Bound::new(py, $class::py_new())?.into_any()),)*
                _ => None,
            })
        }

        fn register_plain(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

plain_types! {
    /// Always null: the type of a column whose type is not known yet (v3).
    PyUnknownType "UnknownType" Unknown;
    /// True or false.
    PyBooleanType "BooleanType" Boolean;
    /// 32-bit signed integer.
    PyIntegerType "IntegerType" Int [i32];
    /// 64-bit signed integer.
    PyLongType "LongType" Long [i64];
    /// 32-bit IEEE 754.
    PyFloatType "FloatType" Float [f32];
    /// 64-bit IEEE 754.
    PyDoubleType "DoubleType" Double;
    /// Calendar day.
    PyDateType "DateType" Date;
    /// Time of day in microseconds.
    PyTimeType "TimeType" Time;
    /// Microseconds, no zone.
    PyTimestampType "TimestampType" Timestamp;
    /// Microseconds, UTC.
    PyTimestamptzType "TimestamptzType" Timestamptz;
    /// Nanoseconds, no zone (v3).
    PyTimestampNanoType "TimestampNanoType" TimestampNs;
    /// Nanoseconds, UTC (v3).
    PyTimestamptzNanoType "TimestamptzNanoType" TimestamptzNs;
    /// UTF-8 text.
    PyStringType "StringType" String;
    /// Universally unique identifier.
    PyUuidType "UUIDType" Uuid;
    /// Bytes.
    PyBinaryType "BinaryType" Binary;
}

classes! {
    "icefield.types":
    /// Fixed-point decimal of at most 38 digits.
    PyDecimalType "DecimalType" of PyPrimitiveType;
    /// Bytes of one length.
    PyFixedType "FixedType" of PyPrimitiveType;
    /// Planar shapes (v3); without ``crs`` in ``OGC:CRS84``.
    PyGeometryType "GeometryType" of PyPrimitiveType;
    /// Shapes on the ellipsoid (v3); without ``algorithm`` with spherical edges.
    PyGeographyType "GeographyType" of PyPrimitiveType;
    /// Named fields.
    PyStructType "StructType" of PyIcebergType;
    /// Elements of one type.
    PyListType "ListType" of PyIcebergType;
    /// Pairs of key and value; keys are never null.
    PyMapType "MapType" of PyIcebergType;
    /// Semi-structured value (v3).
    PyVariantType "VariantType" of PyIcebergType;
}

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPrimitiveType>()?;
    register_plain(module)?;
    register_classes(module)
}

/// A type to return to Python.
#[derive(Debug)]
pub(crate) struct TypeOutput(pub(crate) Type);

impl<'py> IntoPyObject<'py> for TypeOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let base = |ty| PyClassInitializer::from(PyIcebergType(ty));
        Ok(match self.0 {
            ty @ Type::Struct(_) => made!(py, base(ty), PyStructType),
            ty @ Type::List(_) => made!(py, base(ty), PyListType),
            ty @ Type::Map(_) => made!(py, base(ty), PyMapType),
            ty @ Type::Variant => made!(py, base(ty), PyVariantType),
            Type::Primitive(kind) => match plain(py, &kind)? {
                Some(made) => made,
                None => match kind {
                    PrimitiveType::Decimal { .. } => made!(py, primitive(kind.into()), PyDecimalType),
                    PrimitiveType::Fixed(_) => made!(py, primitive(kind.into()), PyFixedType),
                    PrimitiveType::Geometry { .. } => made!(py, primitive(kind.into()), PyGeometryType),
                    PrimitiveType::Geography { .. } => made!(py, primitive(kind.into()), PyGeographyType),
                    // A type of a later version of the specification.
                    kind => Bound::new(py, primitive(kind.into()))?.into_any(),
                },
            },
        })
    }
}

/// Parses a primitive type.
fn parsed(text: &str) -> Result<Primitive> {
    Ok(primitive(Type::parse(text).map_err(BorderError::from)?))
}

#[pymethods]
impl PyPrimitiveType {
    #[new]
    #[pyo3(signature = (text, /))]
    fn py_new(text: TypeInput) -> Result<TypeOutput> {
        crate::format::values::primitive(&text.0)?;
        Ok(TypeOutput(text.0))
    }
}

#[pymethods]
impl PyDecimalType {
    #[new]
    #[pyo3(signature = (precision, scale))]
    fn py_new(precision: Int<i64>, scale: Int<i64>) -> Result<PyClassInitializer<Self>> {
        Ok(parsed(&format!("decimal({}, {})", precision.0, scale.0))?.add_subclass(Self))
    }
}

#[pymethods]
impl PyFixedType {
    #[new]
    #[pyo3(signature = (length))]
    fn py_new(length: Int<i64>) -> Result<PyClassInitializer<Self>> {
        Ok(parsed(&format!("fixed[{}]", length.0))?.add_subclass(Self))
    }

    fn __len__(slf: PyRef<'_, Self>) -> usize {
        slf.as_super().as_super().0.as_primitive().map_or(0, |ty| match ty {
            PrimitiveType::Fixed(length) => *length as usize,
            _ => 0,
        })
    }
}

#[pymethods]
impl PyGeometryType {
    #[new]
    #[pyo3(signature = (crs=None))]
    fn py_new(crs: Option<&str>) -> Result<PyClassInitializer<Self>> {
        let text = crs.map_or_else(|| "geometry".to_owned(), |crs| format!("geometry({crs})"));
        Ok(parsed(&text)?.add_subclass(Self))
    }
}

#[pymethods]
impl PyGeographyType {
    #[new]
    #[pyo3(signature = (crs=None, algorithm=None))]
    fn py_new(crs: Option<&str>, algorithm: Option<&str>) -> Result<PyClassInitializer<Self>> {
        let text = match (crs, algorithm) {
            (None, None) => "geography".to_owned(),
            (Some(crs), None) => format!("geography({crs})"),
            (crs, Some(algorithm)) => format!("geography({}, {algorithm})", crs.unwrap_or("OGC:CRS84")),
        };
        Ok(parsed(&text)?.add_subclass(Self))
    }
}

#[pymethods]
impl PyVariantType {
    #[new]
    fn py_new() -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyIcebergType(Type::Variant)).add_subclass(Self)
    }
}
