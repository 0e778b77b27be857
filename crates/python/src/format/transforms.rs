//! Partition transforms ("Partition Transforms"; hashes in Appendix B): of one value, and of Arrow arrays.

use std::hash::{DefaultHasher, Hash, Hasher};

use icefield_format::transform::{Transform, murmur3_32};
use icefield_format::types::PrimitiveType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arguments::type_input::{PyIcebergType, TypeInput};
use crate::capsule::{ArrayInput, ArrowArray};
use crate::entry::detached;
use crate::errors::{BorderError, InvalidArgumentError, Result};
use crate::format::values::{primitive, to_python, to_value};

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTransform>()?;
    module.add_function(wrap_pyfunction!(murmur3_32_of, module)?)
}

/// How partition values, and the keys of sorted files, are made of the values of a column.
#[pyclass(frozen, name = "Transform", module = "icefield._core")]
#[derive(Debug, Clone)]
pub struct PyTransform(pub Transform);

/// A transform as Python hands it over: a [`PyTransform`] or its text (`"bucket[16]"`).
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

#[pymethods]
impl PyTransform {
    #[new]
    #[pyo3(signature = (text, /))]
    fn py_new(text: TransformInput) -> Self {
        Self(text.0)
    }

    /// The results for an array, as a ``pyarrow.Array``.
    #[pyo3(signature = (array, /))]
    fn __call__<'py>(&self, py: Python<'py>, array: ArrayInput) -> Result<Bound<'py, PyAny>> {
        let results = Bound::new(py, self.array(py, array)?)?;
        Ok(results.call_method0("to_pyarrow")?)
    }

    /// The results for an array, for any library that takes Arrow data.
    #[pyo3(signature = (array, /))]
    fn array(&self, py: Python<'_>, array: ArrayInput) -> Result<ArrowArray> {
        let is_uuid = array.field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid");
        let results = detached(py, || array.transformed(&self.0))??;
        if is_uuid && self.0.is_identity() {
            // What the column is called to be by its field is lost without the field.
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

    /// The type of the results for a column of type ``type``; ``None`` where the transform does not take it.
    #[pyo3(signature = (r#type, /))]
    fn result_type(&self, r#type: TypeInput) -> Option<PyIcebergType> {
        self.0.result_type(&r#type.0).map(PyIcebergType)
    }

    /// A result as it stands in a partition path, before escaping.
    #[pyo3(signature = (value, /, r#type))]
    fn to_human_string(&self, value: Option<&Bound<'_, PyAny>>, r#type: TypeInput) -> Result<String> {
        let refused = || InvalidArgumentError::new_err(format!("transform {} does not take type {}", self.0, r#type.0));
        let result_type = self.0.result_type(&r#type.0).ok_or_else(refused)?;
        let value = value.map(|value| to_value(value, &result_type)).transpose()?;
        Ok(self.0.to_human_string(value.as_ref(), &primitive(&r#type.0)?))
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
        (slf.get_type(), (slf.get().0.to_string(),))
    }
}

/// The 32-bit murmur3 hash of bytes, seed 0, as a signed number.
#[pyfunction]
#[pyo3(name = "murmur3_32", signature = (data, /))]
fn murmur3_32_of(data: &[u8]) -> i32 {
    murmur3_32(data) as i32
}
