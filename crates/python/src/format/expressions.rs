//! Expressions: text, JSON, binding, projection, residuals, rows.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expr, Extract, Literal, Residuals, Term, project_inclusive, project_strict};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::arrow::{FromArrow, Nanoseconds};
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::decimal;
use icefield_format::value::variant::Path;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyFloat, PyInt, PyString, PyTime, PyType, PyTzInfoAccess as _};

use crate::arguments::json::JsonInput;
use crate::arguments::type_input::TypeInput;
use crate::capsule::{ArrowArray, StreamInput, check_batch, mend};
use crate::entry::detached;
use crate::errors::{ArgumentTypeError, BorderError, InvalidArgumentError, Result};
use crate::format::expression_classes::{ExpressionOutput, PyExpression, PyLiteral, PyTerm, TermOutput};
use crate::format::partitioning::partition_tuple;
use crate::format::schema::PySchema;
use crate::format::transforms::{TransformInput, TransformOutput};
use crate::format::values::{primitive, to_value};

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBoundExpression>()?;
    module.add_function(wrap_pyfunction!(parse_expression, module)?)?;
    module.add_function(wrap_pyfunction!(expression_from_json, module)?)
}

/// A predicate on the columns of a schema, by their field ids.
#[pyclass(frozen, name = "BoundExpression", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub struct PyBoundExpression(pub BoundExpr);

/// An expression as Python hands it over: a [`PyExpression`] or its text.
#[derive(Debug)]
pub(crate) struct ExpressionInput(pub Expr);

/// A partition spec: JSON, or an object with `to_json()`.
struct SpecInput(PartitionSpec);

/// Name, transform, and path and type of what is extracted.
type TermParts = (String, Option<String>, Option<(String, String)>);

/// A term: a column's name or a [`PyTerm`].
pub(crate) struct TermInput(pub Term);

impl<'a, 'py> FromPyObject<'a, 'py> for ExpressionInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(ours) = object.cast::<PyExpression>() {
            return Ok(Self(ours.get().0.clone()));
        }
        match object.cast::<PyString>() {
            Ok(text) => Ok(Self(flat(Expr::parse(text.to_str()?).map_err(BorderError::from)?)?)),
            Err(_) => {
                let found = object.get_type().name()?;
                let hint = mend(object, "for_filter");
                Err(ArgumentTypeError::new_err(format!("expected an expression or its text, not {found}{hint}")))
            }
        }
    }
}

/// What an operator makes of an expression or its text; PyO3 would hide what is wrong with the text.
fn combined<'py>(other: &Bound<'py, PyAny>, join: impl FnOnce(Expr) -> Expr) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    if !other.is_instance_of::<PyExpression>() && !other.is_instance_of::<PyString>() {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let ExpressionInput(other) = other.extract()?;
    ExpressionOutput(flat(join(other))?).into_pyobject(py)
}

impl<'a, 'py> FromPyObject<'a, 'py> for SpecInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let json: JsonInput = match object.hasattr("to_json")? {
            true => object.call_method0("to_json")?.extract()?,
            false => object.extract()?,
        };
        Ok(Self(PartitionSpec::from_json(&json.0).map_err(BorderError::from)?))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for TermInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyTerm>() {
            Ok(term) => Ok(Self(term.get().0.clone())),
            Err(_) => Ok(Self(Term::column(object.extract::<String>()?))),
        }
    }
}

/// Read an expression of SQL-like text.
#[pyfunction]
fn parse_expression(text: &str) -> Result<ExpressionOutput> {
    Ok(ExpressionOutput(flat(Expr::parse(text)?)?))
}

/// Read an expression of the REST protocol's JSON; with a schema, literals are single values of their columns' types.
#[pyfunction]
#[pyo3(signature = (json, schema=None))]
fn expression_from_json(json: &Bound<'_, PyAny>, schema: Option<&Bound<'_, PySchema>>) -> Result<ExpressionOutput> {
    let json = match json.cast::<PyBool>() {
        Ok(constant) => constant.is_true().into(),
        Err(_) => json.extract::<JsonInput>()?.0,
    };
    Ok(ExpressionOutput(flat(match schema {
        Some(schema) => Expr::from_json_typed(&json, &schema.get().0)?,
        None => Expr::from_json(&json)?,
    })?))
}

/// The literal that a Python object stands for; which type it becomes is settled by the column.
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

/// A number, of NumPy too; an integer beyond 64 bits is a decimal.
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

#[pymethods]
impl PyTerm {
    #[new]
    #[pyo3(signature = (name, transform=None, extract=None))]
    fn py_new(
        name: String,
        transform: Option<TransformInput>,
        extract: Option<(String, TypeInput)>,
    ) -> Result<TermOutput> {
        let extract = match extract {
            Some((path, TypeInput(ty))) => Some(Extract::new(Path::parse(&path)?, primitive(&ty)?)?),
            None => None,
        };
        if extract.is_some() && transform.is_some() {
            return Err(InvalidArgumentError::new_err("a term has a transform or extracts, not both").into());
        }
        Ok(TermOutput(Term { name, transform: transform.map(|transform| transform.0), extract }))
    }

    /// The column's name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The transform of the column, if the term is not the column itself.
    #[getter]
    fn transform(&self) -> Option<TransformOutput> {
        self.0.transform.clone().map(TransformOutput)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, TermParts) {
        let Term { name, transform, extract } = &slf.get().0;
        let extract = extract.as_ref().map(|extract| (extract.path().to_string(), extract.ty().to_string()));
        (slf.py().get_type::<PyTerm>(), (name.clone(), transform.as_ref().map(ToString::to_string), extract))
    }

    fn __repr__(&self) -> String {
        format!("Term({:?})", self.0.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.0.to_string())
    }
}

#[pymethods]
impl PyExpression {
    /// The REST protocol's JSON.
    fn to_json(&self) -> Result<String> {
        Ok(self.0.to_json()?.to_string())
    }

    /// The expression over a schema's field ids.
    #[pyo3(signature = (schema, case_sensitive=true))]
    fn bind(&self, schema: &Bound<'_, PySchema>, case_sensitive: bool) -> Result<PyBoundExpression> {
        Ok(PyBoundExpression(self.0.bind(&schema.get().0, case_sensitive)?))
    }

    /// The expression without ``NOT``.
    fn rewrite_not(&self) -> ExpressionOutput {
        ExpressionOutput(self.0.rewrite_not())
    }

    /// The partitions that may hold matching rows, or those all of whose rows match.
    #[pyo3(signature = (spec, schema, inclusive=true, *, case_sensitive=true))]
    fn project(
        &self,
        spec: SpecInput,
        schema: &Bound<'_, PySchema>,
        inclusive: bool,
        case_sensitive: bool,
    ) -> Result<PyBoundExpression> {
        self.bind(schema, case_sensitive)?.project(spec, inclusive)
    }

    /// What is left of the expression in a partition.
    #[pyo3(signature = (spec, schema, partition, *, case_sensitive=true))]
    fn residual(
        &self,
        spec: SpecInput,
        schema: &Bound<'_, PySchema>,
        partition: &Bound<'_, PyAny>,
        case_sensitive: bool,
    ) -> Result<PyBoundExpression> {
        self.bind(schema, case_sensitive)?.residual(spec, schema, partition)
    }

    /// Which rows match, as a ``pyarrow.BooleanArray`` without nulls.
    #[pyo3(signature = (rows, schema=None, *, case_sensitive=true))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        rows: StreamInput,
        schema: Option<&Bound<'py, PySchema>>,
        case_sensitive: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let bound = match schema {
            Some(schema) => self.0.bind(&schema.get().0, case_sensitive)?,
            None => {
                let options = FromArrow { nanoseconds: Nanoseconds::Truncate, ..FromArrow::for_version(3) };
                self.0.bind(&Schema::from_arrow(&rows.0.schema(), &options)?, case_sensitive)?
            }
        };
        evaluate(py, &bound, rows)
    }

    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        combined(other, |other| Expr::and(self.0.clone(), other))
    }

    fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        combined(other, |other| Expr::and(other, self.0.clone()))
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        combined(other, |other| Expr::or(self.0.clone(), other))
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        combined(other, |other| Expr::or(other, self.0.clone()))
    }

    fn __invert__(&self) -> Result<ExpressionOutput> {
        Ok(ExpressionOutput(flat(Expr::not(self.0.clone()))?))
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("an expression is neither true nor false: use & for and, | for or, ~ for not"))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Expression({:?})", self.0.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.0.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let parse = slf.py().import("icefield._core")?.getattr("parse_expression")?;
        Ok((parse, (slf.get().0.to_string(),)))
    }
}

#[pymethods]
impl PyBoundExpression {
    /// The REST protocol's JSON; literals are single values of their columns' types.
    fn to_json(&self) -> Result<String> {
        Ok(self.0.to_json()?.to_string())
    }

    /// The expression without ``NOT``.
    fn rewrite_not(&self) -> Self {
        Self(self.0.rewrite_not())
    }

    /// Ids of the fields that it refers to, ascending.
    #[getter]
    fn field_ids(&self) -> Vec<i32> {
        let mut ids: Vec<_> = self.0.predicates().map(|predicate| predicate.term.reference.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The partitions that may hold matching rows, or those all of whose rows match.
    #[pyo3(signature = (spec, inclusive=true))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn project(&self, spec: SpecInput, inclusive: bool) -> Result<Self> {
        Ok(Self(if inclusive { project_inclusive(&self.0, &spec.0) } else { project_strict(&self.0, &spec.0) }))
    }

    /// What is left of the expression in a partition: values in the order of the spec, or a dict by field name.
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn residual(&self, spec: SpecInput, schema: &Bound<'_, PySchema>, partition: &Bound<'_, PyAny>) -> Result<Self> {
        let tuple = partition_tuple(&spec.0, &schema.get().0, partition)?;
        Ok(Self(Residuals::new(&self.0, &spec.0).of_partition(&tuple)))
    }

    /// Which rows match, as a ``pyarrow.BooleanArray`` without nulls.
    fn evaluate<'py>(&self, py: Python<'py>, rows: StreamInput) -> Result<Bound<'py, PyAny>> {
        evaluate(py, &self.0, rows)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("BoundExpression({:?})", self.0.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.0.to_string())
    }
}

pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The expression, no deeper than everything that recurses can follow: chains of one operator are balanced, and what is
/// deeper still is refused. Half the depth that text may have, for the text of a level takes up to two.
pub(crate) fn flat(expr: Expr) -> Result<Expr> {
    let deepest = Limits::default().depth / 2;
    if expr.depth() <= deepest {
        return Ok(expr);
    }
    let expr = expr.balanced();
    if expr.depth() <= deepest {
        return Ok(expr);
    }
    let message =
        format!("the expression is nested deeper than {deepest} levels: AND, OR and NOT that alternate so often");
    Err(InvalidArgumentError::new_err(message).into())
}

/// The masks of all batches in one array.
fn evaluate<'py>(py: Python<'py>, expr: &BoundExpr, rows: StreamInput) -> Result<Bound<'py, PyAny>> {
    let mask = detached(py, || -> Result<ArrayRef> {
        let mut masks: Vec<BooleanArray> = Vec::new();
        for batch in rows.0 {
            let batch = batch?;
            check_batch(&batch)?;
            masks.push(expr.evaluate(&batch)?);
        }
        let masks: Vec<&dyn Array> = masks.iter().map(|mask| mask as &dyn Array).collect();
        match masks.as_slice() {
            [] => Ok(Arc::new(BooleanArray::from(Vec::<bool>::new()))),
            masks => Ok(arrow_select::concat::concat(masks)?),
        }
    })??;
    Ok(Bound::new(py, ArrowArray::new(mask))?.call_method0("to_pyarrow")?)
}
