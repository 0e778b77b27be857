//! Types and fields ("Schemas and Data Types").

use std::sync::Arc;

use icefield_format::Limits;
use icefield_format::types::{Field, ListType, MapType, PrimitiveType, StructType, Type};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::arguments::type_input::{PyIcebergType, TypeInput};
use crate::errors::{InvalidArgumentError, Result};
use crate::format::values::{to_python, to_value};

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyIcebergType>()?;
    module.add_class::<PyField>()
}

/// A column of a schema, a field of a struct, the element of a list, the key or value of a map.
#[pyclass(frozen, name = "NestedField", module = "icefield._core")]
#[derive(Debug, Clone)]
pub struct PyField(pub Field);

/// A type that everything which recurses into types can follow; a schema refuses a deeper one too.
fn shallow(ty: Type) -> Result<PyIcebergType> {
    let deepest = Limits::default().type_depth;
    if is_deeper(&ty, deepest + 1) {
        return Err(InvalidArgumentError::new_err(format!("types nested deeper than {deepest} levels")).into());
    }
    Ok(PyIcebergType(ty))
}

fn is_deeper(ty: &Type, levels: usize) -> bool {
    let deeper = |field: &Field| levels == 0 || is_deeper(&field.ty, levels - 1);
    match ty {
        Type::Primitive(_) | Type::Variant => false,
        Type::Struct(ty) => ty.fields.iter().any(deeper),
        Type::List(ty) => deeper(&ty.element),
        Type::Map(ty) => deeper(&ty.key) || deeper(&ty.value),
    }
}

impl PyIcebergType {
    fn element(&self) -> Option<&Field> {
        match &self.0 {
            Type::List(ty) => Some(&ty.element),
            _ => None,
        }
    }

    fn key(&self) -> Option<&Field> {
        match &self.0 {
            Type::Map(ty) => Some(&ty.key),
            _ => None,
        }
    }

    fn value(&self) -> Option<&Field> {
        match &self.0 {
            Type::Map(ty) => Some(&ty.value),
            _ => None,
        }
    }
}

#[pymethods]
impl PyIcebergType {
    #[new]
    #[pyo3(signature = (text, /))]
    fn py_new(text: TypeInput) -> Self {
        Self(text.0)
    }

    /// A struct of fields.
    #[staticmethod]
    #[pyo3(signature = (*fields))]
    fn struct_of(fields: Vec<Bound<'_, PyField>>) -> Result<Self> {
        let fields = fields.iter().map(|field| field.get().0.clone()).collect();
        shallow(Type::Struct(Arc::new(StructType { fields })))
    }

    /// A list of elements of one type.
    #[staticmethod]
    #[pyo3(signature = (element_id, element, element_required=true))]
    fn list_of(element_id: Int<i32>, element: TypeInput, element_required: bool) -> Result<Self> {
        shallow(Type::List(Arc::new(ListType {
            element: nested(element_id.0, "element", element.0, element_required),
        })))
    }

    /// A map of keys of one type to values of one type.
    #[staticmethod]
    #[pyo3(signature = (key_id, key_type, value_id, value_type, value_required=true))]
    fn map_of(
        key_id: Int<i32>,
        key_type: TypeInput,
        value_id: Int<i32>,
        value_type: TypeInput,
        value_required: bool,
    ) -> Result<Self> {
        let key = nested(key_id.0, "key", key_type.0, true);
        let value = nested(value_id.0, "value", value_type.0, value_required);
        shallow(Type::Map(Arc::new(MapType { key, value })))
    }

    /// Whether the type has no fields inside and is not a variant.
    #[getter]
    fn is_primitive(&self) -> bool {
        self.0.as_primitive().is_some()
    }

    /// Whether the type is a struct.
    #[getter]
    fn is_struct(&self) -> bool {
        matches!(self.0, Type::Struct(_))
    }

    /// The fields inside: of a struct all, of a list the element, of a map key and value, else none.
    #[getter]
    fn fields(&self) -> Vec<PyField> {
        match &self.0 {
            Type::Struct(ty) => ty.fields.iter().cloned().map(PyField).collect(),
            Type::List(ty) => vec![PyField(ty.element.clone())],
            Type::Map(ty) => vec![PyField(ty.key.clone()), PyField(ty.value.clone())],
            Type::Primitive(_) | Type::Variant => Vec::new(),
        }
    }

    /// Whether the type is a list.
    #[getter]
    fn is_list(&self) -> bool {
        matches!(self.0, Type::List(_))
    }

    /// Whether the type is a map.
    #[getter]
    fn is_map(&self) -> bool {
        matches!(self.0, Type::Map(_))
    }

    /// The element of a list, as a field; ``None`` for other types.
    #[getter]
    fn element_field(&self) -> Option<PyField> {
        self.element().cloned().map(PyField)
    }

    /// Id of the element of a list.
    #[getter]
    fn element_id(&self) -> Option<i32> {
        self.element().map(|field| field.id)
    }

    /// Type of the element of a list.
    #[getter]
    fn element_type(&self) -> Option<Self> {
        self.element().map(|field| Self(field.ty.clone()))
    }

    /// Whether the element of a list is never null.
    #[getter]
    fn element_required(&self) -> Option<bool> {
        self.element().map(|field| field.required)
    }

    /// The key of a map, as a field; ``None`` for other types.
    #[getter]
    fn key_field(&self) -> Option<PyField> {
        self.key().cloned().map(PyField)
    }

    /// Id of the key of a map.
    #[getter]
    fn key_id(&self) -> Option<i32> {
        self.key().map(|field| field.id)
    }

    /// Type of the key of a map.
    #[getter]
    fn key_type(&self) -> Option<Self> {
        self.key().map(|field| Self(field.ty.clone()))
    }

    /// The value of a map, as a field; ``None`` for other types.
    #[getter]
    fn value_field(&self) -> Option<PyField> {
        self.value().cloned().map(PyField)
    }

    /// Id of the value of a map.
    #[getter]
    fn value_id(&self) -> Option<i32> {
        self.value().map(|field| field.id)
    }

    /// Type of the value of a map.
    #[getter]
    fn value_type(&self) -> Option<Self> {
        self.value().map(|field| Self(field.ty.clone()))
    }

    /// Whether the value of a map is never null.
    #[getter]
    fn value_required(&self) -> Option<bool> {
        self.value().map(|field| field.required)
    }

    /// Digits of a decimal.
    #[getter]
    fn precision(&self) -> Option<u8> {
        match self.0.as_primitive() {
            Some(PrimitiveType::Decimal { precision, .. }) => Some(*precision),
            _ => None,
        }
    }

    /// Digits of a decimal after the point.
    #[getter]
    fn scale(&self) -> Option<u8> {
        match self.0.as_primitive() {
            Some(PrimitiveType::Decimal { scale, .. }) => Some(*scale),
            _ => None,
        }
    }

    /// Bytes of a fixed.
    #[getter]
    fn length(&self) -> Option<u32> {
        match self.0.as_primitive() {
            Some(PrimitiveType::Fixed(length)) => Some(*length),
            _ => None,
        }
    }

    /// The JSON form (Appendix C).
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Type('{}')", self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        TypeInput::extract(other.as_borrowed()).is_ok_and(|other| self.0 == other.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.0.to_string()).hash()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().to_json(),))
    }
}

#[pymethods]
impl PyField {
    #[new]
    #[pyo3(signature = (field_id, name, field_type, required=false, doc=None, initial_default=None, write_default=None))]
    fn py_new(
        field_id: Int<i32>,
        name: String,
        field_type: TypeInput,
        required: bool,
        doc: Option<String>,
        initial_default: Option<&Bound<'_, PyAny>>,
        write_default: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let ty = field_type.0;
        let value = |given: Option<&Bound<'_, PyAny>>| given.map(|given| to_value(given, &ty)).transpose();
        let (initial_default, write_default) = (value(initial_default)?, value(write_default)?);
        Ok(Self(Field { doc, initial_default, write_default, ..nested(field_id.0, &name, ty, required) }))
    }

    /// Id, unique within the schema.
    #[getter]
    fn field_id(&self) -> i32 {
        self.0.id
    }

    /// Name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Type.
    #[getter]
    fn field_type(&self) -> PyIcebergType {
        PyIcebergType(self.0.ty.clone())
    }

    /// Whether the field is never null.
    #[getter]
    fn required(&self) -> bool {
        self.0.required
    }

    /// Whether the field may be null.
    #[getter]
    fn optional(&self) -> bool {
        !self.0.required
    }

    /// Comment.
    #[getter]
    fn doc(&self) -> Option<&str> {
        self.0.doc.as_deref()
    }

    /// The value in rows of files from before the field was added; as `icefield.values` gives it.
    #[getter]
    fn initial_default<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        self.0.initial_default.as_ref().map(|value| to_python(py, value, &self.0.ty)).transpose()
    }

    /// The value in rows that are written without one; as `icefield.values` gives it.
    #[getter]
    fn write_default<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        self.0.write_default.as_ref().map(|value| to_python(py, value, &self.0.ty)).transpose()
    }

    /// The JSON form (Appendix C).
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("NestedField({})", self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> isize {
        // Equal fields have equal ids; ids are nearly unique.
        isize::try_from(self.0.id).unwrap_or_default()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }

    /// Read a field of its JSON form.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        let json = serde_json::json!({"type": "struct", "fields": [json.0]});
        match Type::from_json(&json)? {
            Type::Struct(ty) if ty.fields.len() == 1 => Ok(Self(ty.fields[0].clone())),
            _ => Err(InvalidArgumentError::new_err("expected one field").into()),
        }
    }
}

fn nested(id: i32, name: &str, ty: Type, required: bool) -> Field {
    Field { required, ..Field::optional(id, name, ty) }
}
