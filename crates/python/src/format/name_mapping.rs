//! Name mappings ("Column Projection", "Name Mapping Serialization"; JSON form in Appendix C).

use icefield_format::types::{MappedField, NameMapping};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::errors::Result;
use crate::format::partitioning::hash_of;
use crate::format::schemas::schema::PySchema;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMappedField>()?;
    module.add_class::<PyNameMapping>()
}

/// The names of one field, and of those inside it.
#[pyclass(frozen, eq, name = "MappedField", module = "icefield.name_mapping")]
#[derive(Debug, Clone, PartialEq)]
pub struct PyMappedField(pub MappedField);

/// Which id a field has by its name, for data files without ids.
#[pyclass(frozen, eq, name = "NameMapping", module = "icefield.name_mapping")]
#[derive(Debug, Clone, PartialEq)]
pub struct PyNameMapping(pub NameMapping);

fn entries(fields: Vec<Bound<'_, PyMappedField>>) -> Vec<MappedField> {
    fields.iter().map(|field| field.get().0.clone()).collect()
}

#[pymethods]
impl PyMappedField {
    #[new]
    #[pyo3(signature = (field_id=None, names=Vec::new(), fields=None))]
    fn py_new(field_id: Option<Int<i32>>, names: Vec<String>, fields: Option<Vec<Bound<'_, Self>>>) -> Self {
        Self(MappedField { id: field_id.map(|Int(id)| id), names, fields: fields.map(entries) })
    }

    /// The id; without one, the field and what is inside it are not read.
    #[getter]
    fn field_id(&self) -> Option<i32> {
        self.0.id
    }

    /// The names that the field may have.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.names.clone()
    }

    /// Entries for what is inside: fields of a struct, `element` of a list, `key` and `value` of a map.
    #[getter]
    fn fields(&self) -> Vec<Self> {
        self.0.fields.iter().flatten().cloned().map(Self).collect()
    }

    fn __repr__(&self) -> String {
        let id = self.0.id.map_or_else(|| "None".to_owned(), |id| id.to_string());
        let inside = match self.0.fields {
            Some(_) => {
                let fields: Vec<_> = self.fields().iter().map(Self::__repr__).collect();
                format!(", [{}]", fields.join(", "))
            }
            None => String::new(),
        };
        format!("MappedField({id}, {:?}{inside})", self.0.names)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.__repr__())
    }

    #[expect(clippy::type_complexity, reason = "what pickle asks for")]
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Option<i32>, Vec<String>, Option<Vec<Self>>)) {
        let field = slf.get();
        let inside = field.0.fields.as_ref().map(|_| field.fields());
        (slf.get_type().into_any(), (field.0.id, field.names(), inside))
    }
}

#[pymethods]
impl PyNameMapping {
    #[new]
    #[pyo3(signature = (*fields))]
    fn py_new(fields: Vec<Bound<'_, PyMappedField>>) -> Result<Self> {
        Ok(Self(NameMapping::new(entries(fields))?))
    }

    /// Read a mapping of its JSON form, the text of the property `schema.name-mapping.default`.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        Ok(Self(NameMapping::from_json(&json.0)?))
    }

    /// The mapping of a schema: each field by its name.
    #[staticmethod]
    fn from_schema(schema: &Bound<'_, PySchema>) -> Result<Self> {
        Ok(Self(NameMapping::of_schema(&schema.get().0)?))
    }

    /// The JSON form.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// The entries of the top level.
    #[getter]
    fn fields(&self) -> Vec<PyMappedField> {
        self.0.fields().into_iter().map(PyMappedField).collect()
    }

    /// The entry for a field, by its name and those of its ancestors; `None` if it has no entry.
    #[pyo3(signature = (*names))]
    fn find(&self, names: &Bound<'_, PyTuple>) -> PyResult<Option<PyMappedField>> {
        let names: Vec<String> = names.extract()?;
        Ok(self.0.find(&names.join(".")).map(PyMappedField))
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __repr__(&self) -> String {
        let fields: Vec<_> = self.fields().iter().map(PyMappedField::__repr__).collect();
        format!("NameMapping({})", fields.join(", "))
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.to_json())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }
}
