//! Schemas ("Schemas and Data Types"; JSON form in Appendix C).

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use icefield_format::FormatVersion;
use icefield_format::types::arrow::{FromArrow, ToArrow};
use icefield_format::types::{Schema, Type};
use icefield_table::file::schema_of_file;
use icefield_table::storage::Storage;
use icefield_table::write::conform::without_nameless_index;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use super::type_classes::TypeOutput;
use super::types::PyField;
use crate::arguments::integer::{Id, Int};
use crate::arguments::json::JsonInput;
use crate::capsule::{ArrowSchema, SchemaInput, mend};
use crate::entry::detached;
use crate::errors::{ArgumentTypeError, InvalidArgumentError, Result};
use crate::format::display::html;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySchema>()
}

/// The columns of a table: what they are called, what they hold, and the ids by which files know them.
#[pyclass(frozen, name = "Schema", module = "icefield.schema")]
#[derive(Debug, Clone)]
pub struct PySchema(pub Schema);

/// A field by its id or its full name.
enum FieldKey {
    Id(i32),
    Name(String),
}

impl<'a, 'py> FromPyObject<'a, 'py> for FieldKey {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.extract::<String>() {
            return Ok(Self::Name(name));
        }
        object.extract::<Int<i32>>().map(|Int(id)| Self::Id(id)).map_err(|error| {
            if error.is_instance_of::<InvalidArgumentError>(object.py()) {
                return error;
            }
            let found = object.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("a field is found by its name or its id, a 32-bit integer, not by {found}"))
        })
    }
}

impl PySchema {
    fn find(&self, key: &FieldKey, case_sensitive: bool) -> Result<PyField> {
        let id = match key {
            FieldKey::Name(name) => return Ok(PyField(self.0.named(name, case_sensitive)?.clone())),
            FieldKey::Id(id) => *id,
        };
        let missing = || InvalidArgumentError::new_err(format!("there is no field with id {id} in the schema"));
        Ok(self.0.find_field(id).cloned().map(PyField).ok_or_else(missing)?)
    }
}

#[pymethods]
impl PySchema {
    #[new]
    #[pyo3(signature = (*fields, schema_id=Int(0), identifier_field_ids=Vec::new()), text_signature = "(*fields, schema_id=0, identifier_field_ids=())")]
    fn py_new(
        fields: Vec<Bound<'_, PyField>>,
        schema_id: Int<i32>,
        identifier_field_ids: Vec<Int<i32>>,
    ) -> Result<Self> {
        let fields = fields.iter().map(|field| field.get().0.clone()).collect();
        Ok(Self(Schema::with_identifiers(schema_id.0, fields, Int::all(identifier_field_ids))?))
    }

    /// Read a schema of its JSON form.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        Ok(Self(Schema::from_json(&json.0)?))
    }

    /// Parse a list of columns: ``id long not null, name string comment 'who', place struct<lat double>``.
    ///
    /// Each is a name, a type of the specification, and then ``not null`` and ``comment '…'`` where wanted. Field ids are
    /// new ones. Raises ``InvalidArgumentError`` with the place of what is wrong.
    #[staticmethod]
    fn from_text(text: &str) -> Result<Self> {
        Ok(Self(Schema::from_text(text)?))
    }

    /// Read the schema of a Parquet, ORC or Avro file, or one that a file holds as JSON or as a list of columns.
    ///
    /// ``properties`` are those of the storage. Field ids are new ones, unless JSON has them.
    #[staticmethod]
    #[pyo3(signature = (location, properties=None))]
    fn of_file(py: Python<'_>, location: &str, properties: Option<BTreeMap<String, String>>) -> Result<Self> {
        let storage = Storage::new(properties.unwrap_or_default());
        Ok(Self(detached(py, || schema_of_file(&storage, location))??))
    }

    /// The schema of Arrow columns: anything with ``__arrow_c_schema__``, or data with ``__arrow_c_stream__``.
    ///
    /// Field ids are those that the columns carry (``PARQUET:field_id``), new ones above them else. ``format_version``
    /// is that of the table: not every version has every type.
    #[staticmethod]
    #[pyo3(signature = (schema, *, format_version=Int(3)), text_signature = "(schema, *, format_version=3)")]
    fn from_arrow(schema: SchemaInput, format_version: Int<i32>) -> Result<Self> {
        let format_version = FormatVersion::try_from(format_version.0)?.number();
        Ok(Self(Schema::from_arrow(&schema.0, &FromArrow::for_version(format_version))?))
    }

    /// This as a ``pyarrow.Schema``.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let schema = ArrowSchema(Arc::new(slf.get().0.to_arrow(&ToArrow::default())?));
        Ok(ArrowSchema::to_pyarrow(&Bound::new(slf.py(), schema)?)?)
    }

    /// This as a ``pyarrow.Schema``, under PyIceberg's name.
    fn as_arrow<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Self::to_arrow(slf)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        let schema = ArrowSchema(Arc::new(self.0.to_arrow(&ToArrow::default())?));
        Ok(schema.__arrow_c_schema__(py)?)
    }

    /// The JSON form.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// Id within the table.
    #[getter]
    fn schema_id(&self) -> i32 {
        self.0.schema_id()
    }

    /// Ids of the fields that identify a row.
    #[getter]
    fn identifier_field_ids(&self) -> Vec<i32> {
        self.0.identifier_field_ids().to_vec()
    }

    /// The columns.
    #[getter]
    fn fields(&self) -> Vec<PyField> {
        self.0.fields().iter().cloned().map(PyField).collect()
    }

    /// The columns, under PyIceberg's other name.
    #[getter]
    fn columns(&self) -> Vec<PyField> {
        self.fields()
    }

    /// Full names of all fields, nested ones included, in the order of their place.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.ids().iter().filter_map(|id| self.0.column_name(*id)).map(ToOwned::to_owned).collect()
    }

    /// Ids of all fields, nested ones included.
    #[getter]
    fn field_ids(&self) -> Vec<i32> {
        self.0.ids().to_vec()
    }

    /// The highest field id; 0 if there is no field.
    #[getter]
    fn highest_field_id(&self) -> i32 {
        self.0.highest_field_id()
    }

    /// Full names of the fields that identify a row.
    fn identifier_field_names(&self) -> HashSet<String> {
        let names = self.0.identifier_field_ids().iter().filter_map(|id| self.0.column_name(*id));
        names.map(ToOwned::to_owned).collect()
    }

    /// Refuse the schema if a version of the table format lacks one of its types or defaults.
    fn check_format_version_compatibility(&self, format_version: Int<u8>) -> Result<()> {
        Ok(self.0.check_compatibility(format_version.0)?)
    }

    /// The schema of the fields with these ids, and of what is around them. A struct that is named has all of its fields,
    /// or without ``full_types`` those only that are named too.
    #[pyo3(signature = (field_ids, *, full_types=true))]
    fn select_ids(&self, field_ids: Vec<Int<i32>>, full_types: bool) -> Result<Self> {
        let ids = Int::all(field_ids).into_iter().collect();
        Ok(Self(if full_types { self.0.select_ids(&ids)? } else { self.0.project(&ids)? }))
    }

    /// The columns as a struct type.
    fn as_struct(&self) -> TypeOutput {
        TypeOutput(Type::Struct(self.0.as_struct().clone()))
    }

    /// The field with this id or full name (``"a.b"``).
    #[pyo3(signature = (name_or_id, case_sensitive=true))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn find_field(&self, name_or_id: FieldKey, case_sensitive: bool) -> Result<PyField> {
        self.find(&name_or_id, case_sensitive)
    }

    /// The type of the field with this id or full name.
    #[pyo3(signature = (name_or_id, case_sensitive=true))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn find_type(&self, name_or_id: FieldKey, case_sensitive: bool) -> Result<TypeOutput> {
        Ok(TypeOutput(self.find(&name_or_id, case_sensitive)?.0.ty))
    }

    /// The full name of the field with this id, if there is one.
    fn find_column_name(&self, column_id: Id<i32>) -> Option<String> {
        self.0.column_name(column_id.0?).map(ToOwned::to_owned)
    }

    /// The schema of some of the fields, ids kept.
    #[pyo3(signature = (*names, case_sensitive=true))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn select(&self, names: Vec<String>, case_sensitive: bool) -> Result<Self> {
        for name in &names {
            self.find(&FieldKey::Name(name.clone()), case_sensitive)?;
        }
        Ok(Self(self.0.select(&names, case_sensitive)?))
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let fields: Vec<_> = self.0.fields().iter().map(|field| format!("NestedField({field})")).collect();
        format!(
            "Schema({}, schema_id={}, identifier_field_ids={:?})",
            fields.join(", "),
            self.0.schema_id(),
            self.0.identifier_field_ids()
        )
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "schema_html")
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        // As in PyIceberg, the schema id in a table does not matter.
        other.cast::<Self>().is_ok_and(|other| self.0.same_schema(&other.get().0))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.as_struct().to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }
}

/// A schema as an argument from Python: a [`PySchema`], its JSON form, or an Arrow schema.
#[derive(Debug)]
pub(crate) enum IcebergSchemaInput {
    /// An Iceberg schema.
    Iceberg(Schema),
    /// An Arrow schema, whose Iceberg types depend on the format version.
    Arrow(SchemaRef),
}

impl IcebergSchemaInput {
    /// Converts the schema for a table with a format version.
    pub(crate) fn for_version(self, format_version: u8) -> Result<Schema> {
        match self {
            Self::Iceberg(schema) => Ok(schema),
            Self::Arrow(arrow) => {
                let columns = without_nameless_index(&arrow);
                Ok(Schema::from_arrow(&columns, &FromArrow::for_version(format_version))?)
            }
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for IcebergSchemaInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(ours) = object.cast::<PySchema>() {
            return Ok(Self::Iceberg(ours.get().0.clone()));
        }
        if let Ok(dict) = object.cast::<PyDict>()
            && !dict.contains("type")?
        {
            let hint = mend(object, "for_schema");
            return Err(ArgumentTypeError::new_err(format!("expected a schema, not a dict without \"type\"{hint}")));
        }
        if let Ok(text) = object.extract::<&str>()
            && !text.trim_start().starts_with('{')
        {
            let hint = mend(object, "for_schema");
            return Err(ArgumentTypeError::new_err(format!(
                "expected a schema, or its JSON, not the text {text:.40?}{hint}"
            )));
        }
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>() {
            return Ok(Self::Iceberg(PySchema::from_json(JsonInput::extract(object)?)?.0));
        }
        SchemaInput::extract(object).map(|schema| Self::Arrow(schema.0))
    }
}
