//! Types and fields ("Schemas and Data Types").

use std::sync::Arc;

use icefield_format::Limits;
use icefield_format::types::{DEFAULT_CRS, Field, ListType, MapType, PrimitiveType, StructType, Type};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::type_classes::{PyListType, PyMapType, PyStructType, TypeOutput};
use crate::arguments::integer::{Id, Int};
use crate::arguments::json::JsonInput;
use crate::arguments::type_input::{PyIcebergType, TypeInput};
use crate::errors::{ArgumentTypeError, InvalidArgumentError, Result};
use crate::format::values::{to_python, to_value};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyIcebergType>()?;
    module.add_class::<PyField>()
}

/// A column of a schema, a field of a struct, the element of a list, the key or value of a map.
#[pyclass(frozen, name = "NestedField", module = "icefield.types")]
#[derive(Debug, Clone)]
pub struct PyField(pub Field);

/// Rejects a type that is too deep for code that recurses into it. Schemas have the same limit.
fn shallow(ty: Type) -> Result<Type> {
    let deepest = Limits::default().type_depth;
    if is_deeper(&ty, deepest + 1) {
        return Err(InvalidArgumentError::new_err(format!("types nested deeper than {deepest} levels")).into());
    }
    Ok(ty)
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
    fn py_new(text: TypeInput) -> TypeOutput {
        TypeOutput(text.0)
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
    fn element_type(&self) -> Option<TypeOutput> {
        self.element().map(|field| TypeOutput(field.ty.clone()))
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
    fn key_type(&self) -> Option<TypeOutput> {
        self.key().map(|field| TypeOutput(field.ty.clone()))
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
    fn value_type(&self) -> Option<TypeOutput> {
        self.value().map(|field| TypeOutput(field.ty.clone()))
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

    /// Coordinate reference system of a geometry or geography.
    #[getter]
    fn crs(&self) -> Option<String> {
        match self.0.as_primitive() {
            Some(PrimitiveType::Geometry { crs } | PrimitiveType::Geography { crs, .. }) => {
                Some(crs.as_deref().unwrap_or(DEFAULT_CRS).to_owned())
            }
            _ => None,
        }
    }

    /// How the edges of a geography run.
    #[getter]
    fn algorithm(&self) -> Option<String> {
        match self.0.as_primitive() {
            Some(PrimitiveType::Geography { algorithm, .. }) => Some(algorithm.unwrap_or_default().to_string()),
            _ => None,
        }
    }

    /// The first version of the table format that has the type.
    fn minimum_format_version(&self) -> Option<u8> {
        self.0.first_format_version()
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
        // The base class of all types creates an instance of the right class.
        (slf.py().get_type::<PyIcebergType>().into_any(), (slf.get().to_json(),))
    }
}

#[pymethods]
impl PyStructType {
    #[new]
    #[pyo3(signature = (*fields))]
    fn py_new(fields: Vec<Bound<'_, PyField>>) -> Result<PyClassInitializer<Self>> {
        let fields = fields.iter().map(|field| field.get().0.clone()).collect();
        let ty = shallow(Type::Struct(Arc::new(StructType { fields })))?;
        Ok(PyClassInitializer::from(PyIcebergType(ty)).add_subclass(Self))
    }

    /// The field with this id, not looking inside the fields.
    fn field(slf: PyRef<'_, Self>, field_id: Id<i32>) -> Option<PyField> {
        let id = field_id.0?;
        members(&slf.as_super().0).iter().find(|field| field.id == id).cloned().map(PyField)
    }

    /// The field with this name, not looking inside the fields.
    #[pyo3(signature = (name, case_sensitive=true))]
    fn field_by_name(slf: PyRef<'_, Self>, name: &str, case_sensitive: bool) -> Option<PyField> {
        let lower = name.to_lowercase();
        let same =
            |field: &&Field| if case_sensitive { field.name == name } else { field.name.to_lowercase() == lower };
        members(&slf.as_super().0).iter().find(same).cloned().map(PyField)
    }

    fn __len__(slf: PyRef<'_, Self>) -> usize {
        members(&slf.as_super().0).len()
    }
}

/// The fields of a struct.
fn members(ty: &Type) -> &[Field] {
    match ty {
        Type::Struct(ty) => &ty.fields,
        _ => &[],
    }
}

#[pymethods]
impl PyListType {
    #[new]
    #[pyo3(
        signature = (element_id, element=None, element_required=true, *, element_type=None),
        text_signature = "(element_id, element=None, element_required=True, *, element_type=None)"
    )]
    fn py_new(
        element_id: Int<i32>,
        element: Option<TypeInput>,
        element_required: bool,
        element_type: Option<TypeInput>,
    ) -> Result<PyClassInitializer<Self>> {
        let ((Some(element), None) | (None, Some(element))) = (element, element_type) else {
            return Err(
                ArgumentTypeError::new_err("a list has one element type: pass either element or element_type").into()
            );
        };
        let ty = shallow(Type::List(Arc::new(ListType {
            element: nested(element_id.0, "element", element.0, element_required),
        })))?;
        Ok(PyClassInitializer::from(PyIcebergType(ty)).add_subclass(Self))
    }
}

#[pymethods]
impl PyMapType {
    #[new]
    #[pyo3(signature = (key_id, key_type, value_id, value_type, value_required=true))]
    fn py_new(
        key_id: Int<i32>,
        key_type: TypeInput,
        value_id: Int<i32>,
        value_type: TypeInput,
        value_required: bool,
    ) -> Result<PyClassInitializer<Self>> {
        let key = nested(key_id.0, "key", key_type.0, true);
        let value = nested(value_id.0, "value", value_type.0, value_required);
        let ty = shallow(Type::Map(Arc::new(MapType { key, value })))?;
        Ok(PyClassInitializer::from(PyIcebergType(ty)).add_subclass(Self))
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
    fn field_type(&self) -> TypeOutput {
        TypeOutput(self.0.ty.clone())
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
        // Equal fields have equal ids, and other fields rarely have the same id.
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
