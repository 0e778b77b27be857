//! A class for each kind of expression and term, as seen in Python.

use icefield_format::expr::{Comparison, Expr, Expression, Term, Test};
use pyo3::prelude::*;

use crate::format::classes::{bases, classes, made};

/// What a predicate tests: a column by its name, a transform of one, or a value inside a variant.
#[pyclass(frozen, subclass, name = "Term", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub struct PyTerm(pub Term);

/// A column by its name; dots lead into structs.
#[pyclass(frozen, extends = PyTerm, name = "Reference", module = "icefield.expressions")]
#[derive(Debug)]
pub struct PyReference;

/// A filter on the columns of a table, by their names.
#[pyclass(frozen, subclass, name = "Expression", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub struct PyExpression(pub Expr);

bases! {
    "icefield.expressions":
    /// A test of one term.
    PyUnboundPredicate "UnboundPredicate" of PyExpression;
    /// A test without literals.
    PyUnaryPredicate "UnaryPredicate" of PyUnboundPredicate;
    /// A comparison with one literal.
    PyLiteralPredicate "LiteralPredicate" of PyUnboundPredicate;
    /// A comparison with several literals.
    PySetPredicate "SetPredicate" of PyUnboundPredicate;
}

classes! {
    "icefield.expressions":
    /// Match every row.
    PyAlwaysTrue "AlwaysTrue" of PyExpression;
    /// Match no row.
    PyAlwaysFalse "AlwaysFalse" of PyExpression;
    /// Match rows that all match.
    PyAnd "And" of PyExpression;
    /// Match rows that any matches.
    PyOr "Or" of PyExpression;
    /// Match rows that the child does not match.
    PyNot "Not" of PyExpression;
    /// Match null.
    PyIsNull "IsNull" of PyUnaryPredicate;
    /// Match values that are not null.
    PyNotNull "NotNull" of PyUnaryPredicate;
    /// Match NaN.
    PyIsNan "IsNaN" of PyUnaryPredicate;
    /// Match values that are not NaN.
    PyNotNan "NotNaN" of PyUnaryPredicate;
    /// Match what equals the literal.
    PyEqualTo "EqualTo" of PyLiteralPredicate;
    /// Match what does not equal the literal, null included.
    PyNotEqualTo "NotEqualTo" of PyLiteralPredicate;
    /// Match values less than the literal.
    PyLessThan "LessThan" of PyLiteralPredicate;
    /// Match values less than or equal to the literal.
    PyLessThanOrEqual "LessThanOrEqual" of PyLiteralPredicate;
    /// Match values greater than the literal.
    PyGreaterThan "GreaterThan" of PyLiteralPredicate;
    /// Match values greater than or equal to the literal.
    PyGreaterThanOrEqual "GreaterThanOrEqual" of PyLiteralPredicate;
    /// Match strings that start with the literal.
    PyStartsWith "StartsWith" of PyLiteralPredicate;
    /// Match strings that do not start with the literal, and null.
    PyNotStartsWith "NotStartsWith" of PyLiteralPredicate;
    /// Match values equal to one of the literals.
    PyIn "In" of PySetPredicate;
    /// Match values equal to none of the literals, including null.
    PyNotIn "NotIn" of PySetPredicate;
    /// Match geometries that have a point in a box, given as ``(xmin, ymin, xmax, ymax)``; its edges belong to it.
    PyStIntersects "StIntersects" of PyUnboundPredicate;
    /// Match geometries that have no point in a box, given as ``(xmin, ymin, xmax, ymax)``, empty ones too.
    PyStDisjoint "StDisjoint" of PyUnboundPredicate;
}

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTerm>()?;
    module.add_class::<PyReference>()?;
    module.add_class::<PyExpression>()?;
    register_bases(module)?;
    register_classes(module)
}

/// An expression to return to Python.
#[derive(Debug)]
pub(crate) struct ExpressionOutput(pub(crate) Expr);

impl<'py> IntoPyObject<'py> for ExpressionOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let base = PyClassInitializer::from(PyExpression(self.0.clone()));
        let predicate = match self.0 {
            Expression::True => return Ok(made!(py, base, PyAlwaysTrue)),
            Expression::False => return Ok(made!(py, base, PyAlwaysFalse)),
            Expression::And(..) => return Ok(made!(py, base, PyAnd)),
            Expression::Or(..) => return Ok(made!(py, base, PyOr)),
            Expression::Not(_) => return Ok(made!(py, base, PyNot)),
            Expression::Predicate(predicate) => predicate,
        };
        let base = base.add_subclass(PyUnboundPredicate);
        Ok(match predicate.test {
            Test::IsNull => made!(py, base.add_subclass(PyUnaryPredicate), PyIsNull),
            Test::NotNull => made!(py, base.add_subclass(PyUnaryPredicate), PyNotNull),
            Test::IsNan => made!(py, base.add_subclass(PyUnaryPredicate), PyIsNan),
            Test::NotNan => made!(py, base.add_subclass(PyUnaryPredicate), PyNotNan),
            Test::Compare(comparison, _) => {
                let base = base.add_subclass(PyLiteralPredicate);
                match comparison {
                    Comparison::Lt => made!(py, base, PyLessThan),
                    Comparison::LtEq => made!(py, base, PyLessThanOrEqual),
                    Comparison::Gt => made!(py, base, PyGreaterThan),
                    Comparison::GtEq => made!(py, base, PyGreaterThanOrEqual),
                    Comparison::Eq => made!(py, base, PyEqualTo),
                    Comparison::NotEq => made!(py, base, PyNotEqualTo),
                }
            }
            Test::StartsWith(_) => made!(py, base.add_subclass(PyLiteralPredicate), PyStartsWith),
            Test::NotStartsWith(_) => made!(py, base.add_subclass(PyLiteralPredicate), PyNotStartsWith),
            Test::In(_) => made!(py, base.add_subclass(PySetPredicate), PyIn),
            Test::NotIn(_) => made!(py, base.add_subclass(PySetPredicate), PyNotIn),
            Test::Intersects(_) => made!(py, base, PyStIntersects),
            Test::Disjoint(_) => made!(py, base, PyStDisjoint),
        })
    }
}

/// A term to return to Python.
#[derive(Debug)]
pub(crate) struct TermOutput(pub(crate) Term);

impl<'py> IntoPyObject<'py> for TermOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let is_column = self.0.transform.is_none() && self.0.extract.is_none();
        let base = PyClassInitializer::from(PyTerm(self.0));
        match is_column {
            true => Ok(Bound::new(py, base.add_subclass(PyReference))?.into_any()),
            false => Ok(Bound::new(py, base)?.into_any()),
        }
    }
}
