//! Partition specs ("Partitioning"; JSON form in Appendix C).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use icefield_format::spec::path::partition_path;
use icefield_format::spec::{PartitionField, PartitionSpec, SpecUse};
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::Value;
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDict, PySequence, PyTime};

use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::errors::{InvalidArgumentError, Result};
use crate::format::display::html;
use crate::format::literals::to_literal;
use crate::format::schemas::schema::PySchema;
use crate::format::schemas::type_classes::TypeOutput;
use crate::format::transforms::{TransformInput, TransformOutput};
use crate::format::values::to_value;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPartitionField>()?;
    module.add_class::<PyPartitionSpec>()
}

/// A field of a partition spec: a transform of a column, and the name and id of its values.
#[pyclass(frozen, eq, name = "PartitionField", module = "icefield.partitioning")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PyPartitionField(pub PartitionField);

/// How the files of a table are partitioned.
#[pyclass(frozen, eq, name = "PartitionSpec", module = "icefield.partitioning")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PyPartitionSpec(pub Arc<PartitionSpec>);

/// The source columns of a transform: one or several.
pub(crate) struct SourceIds(Vec<i32>);

impl<'a, 'py> FromPyObject<'a, 'py> for SourceIds {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(ids) = object.cast::<PySequence>() {
            let ids = ids.try_iter()?.map(|id| id?.extract().map(|Int(id)| id));
            return Ok(Self(ids.collect::<PyResult<_>>()?));
        }
        object.extract().map(|Int(id)| Self(vec![id]))
    }
}

impl SourceIds {
    /// The ids; at least one is required.
    pub(crate) fn checked(self) -> Result<Vec<i32>> {
        match self.0.is_empty() {
            true => Err(InvalidArgumentError::new_err("a field has at least one source"))?,
            false => Ok(self.0),
        }
    }
}

#[pymethods]
impl PyPartitionField {
    #[new]
    #[pyo3(signature = (source_id, field_id, transform, name))]
    fn py_new(source_id: SourceIds, field_id: Int<i32>, transform: TransformInput, name: String) -> Result<Self> {
        Ok(Self(PartitionField {
            source_ids: source_id.checked()?,
            field_id: field_id.0,
            name,
            transform: transform.0,
        }))
    }

    /// Id of the column; the first one's for a transform of several.
    #[getter]
    fn source_id(&self) -> Option<i32> {
        self.0.source_ids.first().copied()
    }

    /// Ids of all columns that the transform takes.
    #[getter]
    fn source_ids(&self) -> Vec<i32> {
        self.0.source_ids.clone()
    }

    /// Id of the partition values, from 1000 on.
    #[getter]
    fn field_id(&self) -> i32 {
        self.0.field_id
    }

    /// The transform.
    #[getter]
    fn transform(&self) -> TransformOutput {
        TransformOutput(self.0.transform.clone())
    }

    /// Name of the partition values.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let source = match self.0.source_ids.as_slice() {
            [id] => id.to_string(),
            ids => format!("{ids:?}"),
        };
        let PartitionField { field_id, name, transform, .. } = &self.0;
        format!(
            "PartitionField(source_id={source}, field_id={field_id}, transform={:?}, name={name:?})",
            transform.to_string()
        )
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Vec<i32>, i32, String, String)) {
        let field = &slf.get().0;
        let parts = (field.source_ids.clone(), field.field_id, field.transform.to_string(), field.name.clone());
        (slf.get_type().into_any(), parts)
    }
}

#[pymethods]
impl PyPartitionSpec {
    #[new]
    #[pyo3(signature = (*fields, spec_id=Int(0)), text_signature = "(*fields, spec_id=0)")]
    fn py_new(fields: Vec<Bound<'_, PyPartitionField>>, spec_id: Int<i32>) -> Self {
        let fields = fields.iter().map(|field| field.get().0.clone()).collect();
        Self(Arc::new(PartitionSpec { spec_id: spec_id.0, fields }))
    }

    /// Read a spec of its JSON form; fields of old tables without ids count from 1000.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        Ok(Self(Arc::new(PartitionSpec::from_json(&json.0)?)))
    }

    /// The JSON form.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// Id within the table.
    #[getter]
    fn spec_id(&self) -> i32 {
        self.0.spec_id
    }

    /// The fields, in the order of the partition values.
    #[getter]
    fn fields(&self) -> Vec<PyPartitionField> {
        self.0.fields.iter().cloned().map(PyPartitionField).collect()
    }

    /// The highest id of a field; 999 without fields.
    #[getter]
    fn last_assigned_field_id(&self) -> i32 {
        self.0.last_assigned_field_id()
    }

    /// Whether no field has values.
    fn is_unpartitioned(&self) -> bool {
        self.0.is_unpartitioned()
    }

    /// The fields made of this column.
    fn fields_by_source_id(&self, field_id: Int<i32>) -> Vec<PyPartitionField> {
        self.0.fields_of_source(field_id.0).cloned().map(PyPartitionField).collect()
    }

    /// Whether both partition alike, whatever their ids.
    fn compatible_with(&self, other: &Bound<'_, Self>) -> bool {
        self.0.compatible_with(&other.get().0)
    }

    /// The type of the partition values of a table with this schema.
    fn partition_type(&self, schema: &Bound<'_, PySchema>) -> TypeOutput {
        TypeOutput(Type::Struct(Arc::new(self.0.partition_type(&schema.get().0))))
    }

    /// The fields by the ids of the columns that they are made of.
    #[getter]
    fn source_id_to_fields_map(&self) -> BTreeMap<i32, Vec<PyPartitionField>> {
        let mut fields = BTreeMap::<i32, Vec<_>>::new();
        for field in &self.0.fields {
            for id in &field.source_ids {
                fields.entry(*id).or_default().push(PyPartitionField(field.clone()));
            }
        }
        fields
    }

    /// The folders of a partition: ``"day=2020-01-01/id_bucket=3"``.
    fn partition_to_path(&self, data: &Bound<'_, PyAny>, schema: &Bound<'_, PySchema>) -> Result<String> {
        let schema = &schema.get().0;
        let values = partition_tuple(&self.0, schema, data)?;
        // The type of a dropped column is unknown, and its values are not used.
        let source = |field: &PartitionField| {
            let ty = field.source_ids.first().and_then(|id| schema.find_type(*id)).and_then(Type::as_primitive);
            ty.cloned().unwrap_or(PrimitiveType::Unknown)
        };
        let sources: Vec<_> = self.0.fields.iter().map(source).collect();
        Ok(partition_path(&self.0, &sources, &values)?)
    }

    /// Refuse a spec that cannot partition new files of a table with this schema; with ``allow_missing_fields``, its
    /// columns may have been dropped.
    #[pyo3(signature = (schema, allow_missing_fields=false))]
    fn check_compatible(&self, schema: &Bound<'_, PySchema>, allow_missing_fields: bool) -> Result<()> {
        let usage = if allow_missing_fields { SpecUse::Historical } else { SpecUse::Default };
        Ok(self.0.check(&schema.get().0, usage)?)
    }

    /// Refuse a spec that cannot partition new files of a table with this schema.
    fn check(&self, schema: &Bound<'_, PySchema>) -> Result<()> {
        Ok(self.0.check(&schema.get().0, SpecUse::Default)?)
    }

    fn __len__(&self) -> usize {
        self.0.fields.len()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "spec_html")
    }

    fn __repr__(&self) -> String {
        let fields = self.fields().iter().map(|field| field.__repr__() + ", ").collect::<String>();
        format!("PartitionSpec({fields}spec_id={})", self.0.spec_id)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.to_json())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }
}

/// A hash of a text.
pub(crate) fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Converts a value of a field whose source column was dropped. The type of the column is unknown, so the Python type
/// decides.
fn untyped(item: &Bound<'_, PyAny>) -> Result<Value> {
    let text = |item: &Bound<'_, PyAny>| Ok(Value::String(item.str()?.to_string()));
    match to_literal(item).map(|literal| literal.value().clone()) {
        Ok(Value::Long(number)) => Ok(i32::try_from(number).map_or(Value::Long(number), Value::Int)),
        Ok(Value::Decimal(_)) => text(item),
        Ok(_) if item.is_instance_of::<PyDate>() || item.is_instance_of::<PyTime>() => text(item),
        Ok(value) => Ok(value),
        Err(_) => text(item),
    }
}

/// Converts partition values: a sequence in the order of the spec, or a dict by field name.
pub(crate) fn partition_tuple(
    spec: &PartitionSpec,
    schema: &Schema,
    partition: &Bound<'_, PyAny>,
) -> Result<Vec<Option<Value>>> {
    let tuple = spec.partition_type(schema);
    let items: Vec<Bound<'_, PyAny>> = match partition.cast::<PyDict>() {
        Ok(dict) => {
            let none = || partition.py().None().into_bound(partition.py());
            let item = |name: &str| Ok(dict.get_item(name)?.unwrap_or_else(none));
            tuple.fields.iter().map(|field| item(&field.name)).collect::<PyResult<_>>()?
        }
        Err(_) => partition.try_iter()?.collect::<PyResult<_>>()?,
    };
    if items.len() != tuple.fields.len() {
        let message = format!("{} values for a partition of {} fields", items.len(), tuple.fields.len());
        return Err(InvalidArgumentError::new_err(message).into());
    }
    let value = |(item, ty): (&Bound<'_, PyAny>, &Type)| match ty {
        _ if item.is_none() => Ok(None),
        Type::Primitive(PrimitiveType::Unknown) => untyped(item).map(Some),
        ty => to_value(item, ty).map(Some),
    };
    items.iter().zip(tuple.fields.iter().map(|field| &field.ty)).map(value).collect()
}
