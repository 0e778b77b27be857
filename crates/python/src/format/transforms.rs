//! Partition transforms ("Partition Transforms"; hashes in Appendix B), applied to single values and Arrow arrays.

use std::hash::{DefaultHasher, Hash, Hasher};

use icefield_format::transform::{Transform, murmur3_32};
use icefield_format::types::{PrimitiveType, Type};
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::arguments::integer::Int;
use crate::arguments::type_input::TypeInput;
use crate::capsule::{ArrayInput, ArrowArray};
use crate::entry::detached;
use crate::errors::{ArgumentTypeError, BorderError, InvalidArgumentError, Result};
use crate::format::classes::{bases, classes, made};
use crate::format::schemas::type_classes::TypeOutput;
use crate::format::values::{primitive, to_python, to_value};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTransform>()?;
    register_bases(module)?;
    register_classes(module)?;
    register_times(module)?;
    module.add_function(wrap_pyfunction!(murmur3_32_of, module)?)
}

/// How partition values, and the keys of sorted files, are made of the values of a column.
#[pyclass(frozen, subclass, name = "Transform", module = "icefield.transforms")]
#[derive(Debug, Clone)]
pub struct PyTransform(pub Transform);

/// A transform as an argument from Python: a [`PyTransform`] or its text (`"bucket[16]"`).
#[derive(Debug)]
pub(crate) struct TransformInput(pub Transform);

impl<'a, 'py> FromPyObject<'a, 'py> for TransformInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(ours) = object.cast::<PyTransform>() {
            return Ok(Self(ours.get().0.clone()));
        }
        match object.cast::<PyString>() {
            Ok(text) => Ok(Self(Transform::parse(text.to_str()?).map_err(BorderError::from)?)),
            Err(_) => {
                let found = object.get_type().name()?;
                Err(PyTypeError::new_err(format!("expected a transform or its text, not {found}")))
            }
        }
    }
}

impl PyTransform {
    /// The result type for a source type; an error if the transform does not accept it.
    fn require(&self, source: &Type) -> Result<Type> {
        let refused = || InvalidArgumentError::new_err(format!("transform {} does not take type {source}", self.0));
        Ok(self.0.result_type(source).ok_or_else(refused)?)
    }
}

#[pymethods]
impl PyTransform {
    #[new]
    #[pyo3(signature = (text, /))]
    fn py_new(text: TransformInput) -> TransformOutput {
        TransformOutput(text.0)
    }

    /// The results for an array, as a ``pyarrow.Array``.
    #[pyo3(signature = (array, /))]
    fn __call__<'py>(&self, py: Python<'py>, array: ArrayInput) -> Result<Bound<'py, PyAny>> {
        let results = Bound::new(py, self.array(py, array)?)?;
        Ok(results.call_method0("to_pyarrow")?)
    }

    /// The results for an array, as a ``pyarrow.Array``: the same as calling the transform.
    #[pyo3(signature = (array, /))]
    fn apply<'py>(&self, py: Python<'py>, array: ArrayInput) -> Result<Bound<'py, PyAny>> {
        self.__call__(py, array)
    }

    /// The results for an array, for any library that takes Arrow data.
    #[pyo3(signature = (array, /))]
    fn array(&self, py: Python<'_>, array: ArrayInput) -> Result<ArrowArray> {
        let is_uuid = array.field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid");
        let results = detached(py, || array.transformed(&self.0))??;
        if is_uuid && self.0.is_identity() {
            // Only the field says that the column contains UUIDs.
            return Ok(ArrowArray { field: array.field, array: results });
        }
        Ok(ArrowArray::new(results))
    }

    /// The result for one value of a column of type ``type``.
    #[pyo3(signature = (value, /, r#type))]
    fn scalar<'py>(
        &self,
        py: Python<'py>,
        value: Option<&Bound<'py, PyAny>>,
        r#type: TypeInput,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let value = value.map(|value| to_value(value, &r#type.0)).transpose()?;
        let result = self.0.apply(&r#type.0, value.as_ref())?;
        let result_type = self.0.result_type(&r#type.0).unwrap_or_else(|| PrimitiveType::String.into());
        result.map(|result| to_python(py, &result, &result_type)).transpose()
    }

    /// The type of the results for a column of type ``source``; ``None`` where the transform does not take it.
    fn result_type(&self, source: TypeInput) -> Option<TypeOutput> {
        self.0.result_type(&source.0).map(TypeOutput)
    }

    /// Whether the transform takes columns of type ``source``.
    fn can_transform(&self, source: TypeInput) -> bool {
        self.0.result_type(&source.0).is_some()
    }

    /// A function from a value of a column of type ``source`` to its result.
    #[pyo3(name = "transform")]
    fn function<'py>(slf: &Bound<'py, Self>, source: TypeInput) -> Result<Bound<'py, PyAny>> {
        slf.get().require(&source.0)?;
        let ty = PyDict::new(slf.py());
        ty.set_item("type", TypeOutput(source.0))?;
        let partial = slf.py().import("functools")?.getattr("partial")?;
        Ok(partial.call((slf.getattr("scalar")?,), Some(&ty))?)
    }

    /// A function from an array of a column of type ``source`` to the array of results.
    fn pyarrow_transform<'py>(slf: &Bound<'py, Self>, source: TypeInput) -> Result<Bound<'py, Self>> {
        slf.get().require(&source.0)?;
        Ok(slf.clone())
    }

    /// A result as it stands in a partition path, before escaping.
    ///
    /// The value and then the type, as before: ``to_human_string(574, "date")``, is deprecated.
    #[pyo3(signature = (source_type=None, value=None, /, **kwargs), text_signature = "($self, source_type, value, /)")]
    fn to_human_string(
        &self,
        py: Python<'_>,
        source_type: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Result<String> {
        let named = kwargs.map(|kwargs| kwargs.get_item("type")).transpose()?.flatten();
        if kwargs.is_some_and(|kwargs| kwargs.len() != usize::from(named.is_some())) {
            return Err(ArgumentTypeError::new_err("to_human_string takes source_type and value").into());
        }
        let (ty, value) = match (source_type, value, &named) {
            (value, None, Some(ty)) => (swapped(py, ty)?, value),
            (Some(ty), value, None) => match ty.extract::<TypeInput>() {
                Ok(ty) => (ty, value),
                Err(error) => match value.map(|ty| swapped(py, ty)) {
                    Some(Ok(of)) => (of, Some(ty)),
                    _ => return Err(error.into()),
                },
            },
            (None, Some(ty), None) => (swapped(py, ty)?, None),
            _ => return Err(ArgumentTypeError::new_err("to_human_string takes source_type and value").into()),
        };
        let result_type = self.require(&ty.0)?;
        // A truncated decimal may have one more digit than the type of its column.
        let wide = match result_type {
            Type::Primitive(PrimitiveType::Decimal { scale, .. }) => {
                PrimitiveType::Decimal { precision: 39, scale }.into()
            }
            other => other,
        };
        let value = value.map(|value| to_value(value, &wide)).transpose()?;
        Ok(self.0.to_human_string(value.as_ref(), &primitive(&ty.0)?))
    }

    /// Whether data sorted by this transform is sorted by ``other`` too.
    #[pyo3(signature = (other, /))]
    fn satisfies_order_of(&self, other: TransformInput) -> bool {
        self.0.satisfies_order_of(&other.0)
    }

    /// Whether smaller values never have greater results.
    #[getter]
    fn preserves_order(&self) -> bool {
        self.0.preserves_order()
    }

    /// Two fields of one column with the same name cannot stand in one partition spec.
    #[getter]
    fn dedup_name(&self) -> String {
        self.0.dedup_name()
    }

    /// The name without a number: ``"bucket"`` of ``bucket[16]``. What is not known has its whole text as a name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Number of buckets of ``bucket``; ``None`` for other transforms.
    #[getter]
    fn num_buckets(&self) -> Option<u32> {
        match self.0 {
            Transform::Bucket(number) => Some(number),
            _ => None,
        }
    }

    /// Width of ``truncate``; ``None`` for other transforms.
    #[getter]
    fn width(&self) -> Option<u32> {
        match self.0 {
            Transform::Truncate(width) => Some(width),
            _ => None,
        }
    }

    /// Whether the results are the values themselves.
    #[getter]
    fn is_identity(&self) -> bool {
        self.0.is_identity()
    }

    /// Whether all results are null.
    #[getter]
    fn is_void(&self) -> bool {
        self.0.is_void()
    }

    /// Whether the transform is one of this specification; others are kept, but give no results.
    #[getter]
    fn is_known(&self) -> bool {
        !matches!(self.0, Transform::Unknown(_))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Transform({:?})", self.0.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, pyo3::types::PyType>, (String,)) {
        // The base class of all transforms creates an instance of the right class.
        (slf.py().get_type::<PyTransform>(), (slf.get().0.to_string(),))
    }
}

/// The type from a deprecated call that passes it after the value.
fn swapped(py: Python<'_>, ty: &Bound<'_, PyAny>) -> PyResult<TypeInput> {
    let ty = ty.extract()?;
    let message = c"to_human_string(value, type) is deprecated: pass the type first, to_human_string(type, value)";
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), message, 1)?;
    Ok(ty)
}

classes! {
    "icefield.transforms":
    /// Hash of a value, modulo the number of buckets.
    PyBucketTransform "BucketTransform" of PyTransform;
    /// Numbers truncated to multiples of a width, strings and binary values to that many code points or bytes.
    PyTruncateTransform "TruncateTransform" of PyTransform;
    /// The values themselves.
    PyIdentityTransform "IdentityTransform" of PyTransform;
    /// Null for every value.
    PyVoidTransform "VoidTransform" of PyTransform;
    /// A transform that this version does not know: it is kept as written, and has no results.
    PyUnknownTransform "UnknownTransform" of PyTransform;
}

bases! {
    "icefield.transforms":
    /// Years, months, days or hours from 1970, of dates and timestamps.
    PyTimeTransform "TimeTransform" of PyTransform;
}

/// Defines the classes of the time transforms.
macro_rules! times {
    ($($(#[$doc:meta])+ $class:ident $name:tt $transform:ident;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, extends = PyTimeTransform, name = $name, module = "icefield.transforms")]
            #[derive(Debug)]
            pub(crate) struct $class;

            #[pymethods]
            impl $class {
                #[new]
                fn py_new() -> PyClassInitializer<Self> {
                    of(Transform::$transform).add_subclass(PyTimeTransform).add_subclass(Self)
                }
            }
        )*
        fn register_times(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
        fn time<'py>(py: Python<'py>, transform: &Transform) -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(match transform {
                $(Transform::$transform => Some(Bound::new(py, $class::py_new())?.into_any()),)*
                _ => None,
            })
        }
    };
}

times! {
    /// Years from 1970.
    PyYearTransform "YearTransform" Year;
    /// Months from 1970-01.
    PyMonthTransform "MonthTransform" Month;
    /// Days from 1970-01-01.
    PyDayTransform "DayTransform" Day;
    /// Hours from 1970-01-01T00, of timestamps.
    PyHourTransform "HourTransform" Hour;
}

fn of(transform: Transform) -> PyClassInitializer<PyTransform> {
    PyClassInitializer::from(PyTransform(transform))
}

/// A transform to return to Python, as an instance of its class.
#[derive(Debug)]
pub(crate) struct TransformOutput(pub(crate) Transform);

impl<'py> IntoPyObject<'py> for TransformOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(time) = time(py, &self.0)? {
            return Ok(time);
        }
        let base = of(self.0.clone());
        Ok(match self.0 {
            Transform::Bucket(_) => made!(py, base, PyBucketTransform),
            Transform::Truncate(_) => made!(py, base, PyTruncateTransform),
            Transform::Identity => made!(py, base, PyIdentityTransform),
            Transform::Void => made!(py, base, PyVoidTransform),
            _ => made!(py, base, PyUnknownTransform),
        })
    }
}

/// The parameter of a transform. It must be a number that the specification allows, because the text would otherwise be
/// read as an unknown transform.
fn parameter(number: Int<i64>) -> Result<u32> {
    let number = number.0;
    match u32::try_from(number) {
        Ok(found) if found > 0 && i32::try_from(found).is_ok() => Ok(found),
        _ => {
            Err(InvalidArgumentError::new_err(format!("transform parameter must be a positive integer, got {number}"))
                .into())
        }
    }
}

#[pymethods]
impl PyBucketTransform {
    #[new]
    fn py_new(num_buckets: Int<i64>) -> Result<PyClassInitializer<Self>> {
        Ok(of(Transform::Bucket(parameter(num_buckets)?)).add_subclass(Self))
    }
}

#[pymethods]
impl PyTruncateTransform {
    #[new]
    fn py_new(width: Int<i64>) -> Result<PyClassInitializer<Self>> {
        Ok(of(Transform::Truncate(parameter(width)?)).add_subclass(Self))
    }
}

#[pymethods]
impl PyIdentityTransform {
    #[new]
    fn py_new() -> PyClassInitializer<Self> {
        of(Transform::Identity).add_subclass(Self)
    }
}

#[pymethods]
impl PyVoidTransform {
    #[new]
    fn py_new() -> PyClassInitializer<Self> {
        of(Transform::Void).add_subclass(Self)
    }
}

#[pymethods]
impl PyUnknownTransform {
    #[new]
    fn py_new(transform: TransformInput) -> Result<PyClassInitializer<Self>> {
        match transform.0 {
            unknown @ Transform::Unknown(_) => Ok(of(unknown).add_subclass(Self)),
            known => Err(InvalidArgumentError::new_err(format!("{known} is a known transform")).into()),
        }
    }
}

/// The 32-bit murmur3 hash of bytes, seed 0, as a signed number.
#[pyfunction]
#[pyo3(name = "murmur3_32", signature = (data, /))]
fn murmur3_32_of(data: &[u8]) -> i32 {
    murmur3_32(data) as i32
}
