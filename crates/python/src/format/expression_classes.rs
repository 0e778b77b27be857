//! The class of each kind of expression and term: what Python sees of one is an instance of the class of its kind.

use icefield_format::expr::{Comparison, Expr, Expression, Literal, Term, Test};
use pyo3::prelude::*;

/// What a predicate tests: a column by its name, a transform of one, or a value inside of a variant.
#[pyclass(frozen, subclass, name = "Term", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub struct PyTerm(pub Term);

/// A column by its name; dots lead into structs.
#[pyclass(frozen, extends = PyTerm, name = "Reference", module = "icefield.expressions")]
#[derive(Debug)]
pub struct PyReference;

/// A literal of a predicate; which type it becomes is settled by the column.
#[pyclass(frozen, name = "Literal", module = "icefield.expressions.literals")]
#[derive(Debug, Clone)]
pub struct PyLiteral(pub Literal);

/// A filter on the columns of a table, by their names.
#[pyclass(frozen, subclass, name = "Expression", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub struct PyExpression(pub Expr);

/// A test of one term.
#[pyclass(frozen, subclass, extends = PyExpression, name = "UnboundPredicate", module = "icefield.expressions")]
#[derive(Debug)]
pub struct PyUnboundPredicate;

/// A test without literals.
#[pyclass(frozen, subclass, extends = PyUnboundPredicate, name = "UnaryPredicate", module = "icefield.expressions")]
#[derive(Debug)]
pub struct PyUnaryPredicate;

/// A comparison with one literal.
#[pyclass(frozen, subclass, extends = PyUnboundPredicate, name = "LiteralPredicate", module = "icefield.expressions")]
#[derive(Debug)]
pub struct PyLiteralPredicate;

/// A comparison with several literals.
#[pyclass(frozen, subclass, extends = PyUnboundPredicate, name = "SetPredicate", module = "icefield.expressions")]
#[derive(Debug)]
pub struct PySetPredicate;

/// Defines the classes of expressions.
macro_rules! classes {
    ($($(#[$doc:meta])+ $class:ident $name:tt of $base:ident;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, extends = $base, name = $name, module = "icefield.expressions")]
            #[derive(Debug)]
            pub struct $class;
        )*
        fn register_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

classes! {
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

/// Adds this room's names to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTerm>()?;
    module.add_class::<PyReference>()?;
    module.add_class::<PyLiteral>()?;
    module.add_class::<PyExpression>()?;
    module.add_class::<PyUnboundPredicate>()?;
    module.add_class::<PyUnaryPredicate>()?;
    module.add_class::<PyLiteralPredicate>()?;
    module.add_class::<PySetPredicate>()?;
    register_classes(module)
}

/// An expression on its way to Python.
#[derive(Debug)]
pub(crate) struct ExpressionOutput(pub(crate) Expr);

impl<'py> IntoPyObject<'py> for ExpressionOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        /// An instance of a class above one that is made.
        macro_rules! made {
            ($base:expr, $class:ident) => {
                Bound::new(py, $base.add_subclass($class))?.into_any()
            };
        }
        let base = PyClassInitializer::from(PyExpression(self.0.clone()));
        let predicate = match self.0 {
            Expression::True => return Ok(made!(base, PyAlwaysTrue)),
            Expression::False => return Ok(made!(base, PyAlwaysFalse)),
            Expression::And(..) => return Ok(made!(base, PyAnd)),
            Expression::Or(..) => return Ok(made!(base, PyOr)),
            Expression::Not(_) => return Ok(made!(base, PyNot)),
            Expression::Predicate(predicate) => predicate,
        };
        let base = base.add_subclass(PyUnboundPredicate);
        Ok(match predicate.test {
            Test::IsNull => made!(base.add_subclass(PyUnaryPredicate), PyIsNull),
            Test::NotNull => made!(base.add_subclass(PyUnaryPredicate), PyNotNull),
            Test::IsNan => made!(base.add_subclass(PyUnaryPredicate), PyIsNan),
            Test::NotNan => made!(base.add_subclass(PyUnaryPredicate), PyNotNan),
            Test::Compare(comparison, _) => {
                let base = base.add_subclass(PyLiteralPredicate);
                match comparison {
                    Comparison::Lt => made!(base, PyLessThan),
                    Comparison::LtEq => made!(base, PyLessThanOrEqual),
                    Comparison::Gt => made!(base, PyGreaterThan),
                    Comparison::GtEq => made!(base, PyGreaterThanOrEqual),
                    Comparison::Eq => made!(base, PyEqualTo),
                    Comparison::NotEq => made!(base, PyNotEqualTo),
                }
            }
            Test::StartsWith(_) => made!(base.add_subclass(PyLiteralPredicate), PyStartsWith),
            Test::NotStartsWith(_) => made!(base.add_subclass(PyLiteralPredicate), PyNotStartsWith),
            Test::In(_) => made!(base.add_subclass(PySetPredicate), PyIn),
            Test::NotIn(_) => made!(base.add_subclass(PySetPredicate), PyNotIn),
            Test::Intersects(_) => made!(base, PyStIntersects),
            Test::Disjoint(_) => made!(base, PyStDisjoint),
        })
    }
}

/// A term on its way to Python.
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
