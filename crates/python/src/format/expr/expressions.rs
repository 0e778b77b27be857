//! Unbound expressions and terms: text, JSON, binding, projection, residuals, rows.

use std::sync::Arc;

use icefield_format::Limits;
use icefield_format::expr::{Condition, Expr, Expression, Extract, Term};
use icefield_format::types::Schema;
use icefield_format::types::arrow::{FromArrow, Nanoseconds};
use icefield_format::value::variant::Path;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyType};

use super::bound_classes::{BoundOutput, BoundTermOutput, SpecInput, evaluate, projected, residual};
use super::expression_classes::{ExpressionOutput, PyExpression, PyTerm, TermOutput};
use crate::arguments::json::JsonInput;
use crate::arguments::type_input::TypeInput;
use crate::capsule::{StreamInput, mend};
use crate::errors::{ArgumentTypeError, BorderError, InvalidArgumentError, Result};
use crate::format::literals::hash;
use crate::format::schemas::schema::PySchema;
use crate::format::transforms::{TransformInput, TransformOutput};
use crate::format::values::primitive;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_expression, module)?)?;
    module.add_function(wrap_pyfunction!(filter_expression, module)?)?;
    module.add_function(wrap_pyfunction!(expression_from_json, module)?)
}

/// An expression as an argument from Python: a [`PyExpression`] or its text.
#[derive(Debug)]
pub(crate) struct ExpressionInput(pub Expr);

/// A row filter as an argument from Python: a [`PyExpression`], or text with the semantics of SQL.
#[derive(Debug)]
pub(crate) struct FilterInput(pub Expr);

/// A row condition as an argument from Python: a [`FilterInput`], or text that may also compare two columns.
#[derive(Debug)]
pub(crate) struct ConditionInput(pub Condition);

/// The parts of a term: column name, transform, and path and type of an extracted value.
type TermParts = (String, Option<String>, Option<(String, String)>);

/// A term: the name of a column or a [`PyTerm`].
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

impl<'a, 'py> FromPyObject<'a, 'py> for FilterInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) => Ok(Self(flat(Expr::parse(text.to_str()?).map_err(BorderError::from)?.as_sql())?)),
            Err(_) => object.extract().map(|ExpressionInput(expr)| Self(expr)),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for ConditionInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) => Ok(Self(flat(Condition::parse(text.to_str()?).map_err(BorderError::from)?.as_sql())?)),
            Err(_) => object.extract().map(|ExpressionInput(expr)| Self(Condition::from(&expr))),
        }
    }
}

/// Applies an operator to an expression or its text. The text is parsed here, because PyO3 would hide what is wrong
/// with it.
fn combined<'py>(other: &Bound<'py, PyAny>, join: impl FnOnce(Expr) -> Expr) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    if !other.is_instance_of::<PyExpression>() && !other.is_instance_of::<PyString>() {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let ExpressionInput(other) = other.extract()?;
    ExpressionOutput(flat(join(other))?).into_pyobject(py)
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

/// The expression of a filter of rows: text means what SQL means, where null passes neither `!=` nor `NOT`.
#[pyfunction]
fn filter_expression(filter: FilterInput) -> ExpressionOutput {
    ExpressionOutput(filter.0)
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

    /// The term over a schema's field ids.
    #[pyo3(signature = (schema, case_sensitive=true))]
    fn bind(&self, schema: &Bound<'_, PySchema>, case_sensitive: bool) -> Result<BoundTermOutput> {
        Ok(BoundTermOutput(Arc::new(self.0.bind(&schema.get().0, case_sensitive)?)))
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
    fn bind(&self, schema: &Bound<'_, PySchema>, case_sensitive: bool) -> Result<BoundOutput> {
        Ok(BoundOutput(self.0.bind(&schema.get().0, case_sensitive)?))
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
    ) -> Result<BoundOutput> {
        Ok(BoundOutput(projected(&self.bind(schema, case_sensitive)?.0, &spec.0, inclusive)))
    }

    /// What is left of the expression in a partition.
    #[pyo3(signature = (spec, schema, partition, *, case_sensitive=true))]
    fn residual(
        &self,
        spec: SpecInput,
        schema: &Bound<'_, PySchema>,
        partition: &Bound<'_, PyAny>,
        case_sensitive: bool,
    ) -> Result<BoundOutput> {
        residual(&self.bind(schema, case_sensitive)?.0, &spec.0, schema, partition)
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

/// Limits the depth of an expression, for all code that recurses into it: balances chains of one operator, and rejects
/// expressions that are still too deep. The limit is half the depth of text, because the text of one level may need
/// two.
pub(crate) fn flat<P>(expr: Expression<P>) -> Result<Expression<P>> {
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
