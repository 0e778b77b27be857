//! Sort orders ("Sorting"; JSON form in Appendix C).

use std::sync::Arc;

use icefield_format::spec::{NullOrder, SortDirection, SortField, SortOrder};
use icefield_format::transform::Transform;
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::arguments::python_class::{NULL_ORDER, SORT_DIRECTION};
use crate::errors::{InvalidArgumentError, Result};
use crate::format::display::html;
use crate::format::partitioning::{SourceIds, hash_of};
use crate::format::schemas::schema::PySchema;
use crate::format::transforms::{TransformInput, TransformOutput};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySortField>()?;
    module.add_class::<PySortOrder>()
}

/// A field of a sort order.
#[pyclass(frozen, eq, name = "SortField", module = "icefield.sorting")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PySortField(pub SortField);

/// In which order the rows of a file stand.
#[pyclass(frozen, eq, name = "SortOrder", module = "icefield.sorting")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PySortOrder(pub Arc<SortOrder>);

#[pymethods]
impl PySortField {
    #[new]
    #[pyo3(signature = (source_id, transform=None, direction=None, null_order=None))]
    fn py_new(
        source_id: SourceIds,
        transform: Option<TransformInput>,
        direction: Option<&str>,
        null_order: Option<&str>,
    ) -> Result<Self> {
        let direction = match direction.unwrap_or("asc").to_lowercase().as_str() {
            "asc" => SortDirection::Ascending,
            "desc" => SortDirection::Descending,
            other => Err(InvalidArgumentError::new_err(format!("direction is neither asc nor desc: {other:?}")))?,
        };
        let null_order = match (null_order.map(str::to_lowercase).as_deref(), direction) {
            (Some("nulls-first"), _) | (None, SortDirection::Ascending) => NullOrder::First,
            (Some("nulls-last"), _) | (None, SortDirection::Descending) => NullOrder::Last,
            (Some(other), _) => {
                let message = format!("null_order is neither nulls-first nor nulls-last: {other:?}");
                Err(InvalidArgumentError::new_err(message))?
            }
        };
        let transform = transform.map_or(Transform::Identity, |transform| transform.0);
        Ok(Self(SortField { source_ids: source_id.checked()?, transform, direction, null_order }))
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

    /// The transform.
    #[getter]
    fn transform(&self) -> TransformOutput {
        TransformOutput(self.0.transform.clone())
    }

    /// `asc` or `desc`.
    #[getter]
    fn direction<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        SORT_DIRECTION.get(py)?.call1((self.0.direction.as_str(),))
    }

    /// `nulls-first` or `nulls-last`.
    #[getter]
    fn null_order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        NULL_ORDER.get(py)?.call1((self.0.null_order.as_str(),))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let source = match self.0.source_ids.as_slice() {
            [id] => id.to_string(),
            ids => format!("{ids:?}"),
        };
        format!(
            "SortField(source_id={source}, transform={:?}, direction={:?}, null_order={:?})",
            self.0.transform.to_string(),
            self.0.direction.as_str(),
            self.0.null_order.as_str()
        )
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Vec<i32>, String, &'static str, &'static str)) {
        let field = &slf.get().0;
        let order = (field.direction.as_str(), field.null_order.as_str());
        let parts = (field.source_ids.clone(), field.transform.to_string(), order.0, order.1);
        (slf.get_type().into_any(), parts)
    }
}

#[pymethods]
impl PySortOrder {
    #[new]
    #[pyo3(signature = (*fields, order_id=None))]
    fn py_new(fields: Vec<Bound<'_, PySortField>>, order_id: Option<Int<i32>>) -> Result<Self> {
        let fields: Vec<_> = fields.iter().map(|field| field.get().0.clone()).collect();
        let order_id = order_id.map_or(i32::from(!fields.is_empty()), |Int(id)| id);
        let order = SortOrder { order_id, fields };
        order.check_id()?;
        Ok(Self(Arc::new(order)))
    }

    /// Read an order of its JSON form.
    #[staticmethod]
    fn from_json(json: JsonInput) -> Result<Self> {
        Ok(Self(Arc::new(SortOrder::from_json(&json.0)?)))
    }

    /// The JSON form.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// Id within the table; 0 is the unsorted order.
    #[getter]
    fn order_id(&self) -> i32 {
        self.0.order_id
    }

    /// The fields, most significant first.
    #[getter]
    fn fields(&self) -> Vec<PySortField> {
        self.0.fields.iter().cloned().map(PySortField).collect()
    }

    /// Whether there is nothing to sort by.
    #[getter]
    fn is_unsorted(&self) -> bool {
        self.0.is_unsorted()
    }

    /// Whether rows in this order are in the other one as well.
    fn satisfies(&self, other: &Bound<'_, Self>) -> bool {
        self.0.satisfies(&other.get().0)
    }

    /// Refuse an order that new files of a table with this schema cannot have; the name that PyIceberg has for `check`.
    fn check_compatible(&self, schema: &Bound<'_, PySchema>) -> Result<()> {
        self.check(schema)
    }

    /// Refuse an order that new files of a table with this schema cannot have.
    fn check(&self, schema: &Bound<'_, PySchema>) -> Result<()> {
        Ok(self.0.check(&schema.get().0)?)
    }

    fn __len__(&self) -> usize {
        self.0.fields.len()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "order_html")
    }

    fn __repr__(&self) -> String {
        let fields = self.fields().iter().map(|field| field.__repr__() + ", ").collect::<String>();
        format!("SortOrder({fields}order_id={})", self.0.order_id)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.to_json())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }
}
