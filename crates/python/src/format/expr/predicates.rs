//! Creates expressions from their parts, and returns the parts of expressions.

use std::collections::HashSet;

use icefield_format::expr::{Comparison, Converted, Expr, Expression, Literal, Predicate, Term, Test};
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;
use icefield_format::value::envelope::Envelope;
use pyo3::prelude::*;

use super::expression_classes::*;
use super::expressions::{ExpressionInput, TermInput, flat};
use crate::errors::{InvalidArgumentError, Result};
use crate::format::literals::{LiteralOutput, to_literal};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(joined_expression, module)?)
}

/// All of the expressions joined by AND, or by OR, as flat a tree as can be.
#[pyfunction]
#[pyo3(signature = (expressions, *, conjunction))]
fn joined_expression(expressions: Vec<ExpressionInput>, conjunction: bool) -> Result<ExpressionOutput> {
    let expressions = expressions.into_iter().map(|expression| expression.0);
    let pair = if conjunction { Expr::and } else { Expr::or };
    let expr = match expressions.len() {
        // A few expressions are grouped to the left, as the operators do.
        ..=32 => expressions.reduce(pair).unwrap_or(Expression::True),
        _ if conjunction => Expr::all(expressions.collect()),
        _ => Expr::any(expressions.collect()),
    };
    Ok(ExpressionOutput(flat(expr)?))
}

/// Creates a box from its coordinates.
fn envelope(literals: &[Literal]) -> Result<Envelope> {
    let double = |literal: &Literal| match literal.convert(&PrimitiveType::Double.into()) {
        Ok(Converted::Value(Value::Double(number))) => Some(number),
        _ => None,
    };
    let corners =
        literals.iter().map(double).collect::<Option<Vec<_>>>().and_then(|all| <[f64; 4]>::try_from(all).ok());
    let wrong = || InvalidArgumentError::new_err("a box has four coordinates: xmin, ymin, xmax, ymax");
    Ok(Envelope::new(corners.ok_or_else(wrong)?)?)
}

fn predicate(term: TermInput, test: Test<Literal, Vec<Literal>>) -> ExpressionOutput {
    ExpressionOutput(Expression::Predicate(Predicate { term: term.0, test }))
}

fn literals_of(values: &Bound<'_, PyAny>) -> Result<Vec<Literal>> {
    values.try_iter()?.map(|value| to_literal(&value?)).collect()
}

fn term_of(expr: &Expr) -> Option<TermOutput> {
    match expr {
        Expression::Predicate(predicate) => Some(TermOutput(predicate.term.clone())),
        _ => None,
    }
}

fn literals_in(expr: &Expr) -> &[Literal] {
    let Expression::Predicate(predicate) = expr else { return &[] };
    match &predicate.test {
        Test::Compare(_, literal) | Test::StartsWith(literal) | Test::NotStartsWith(literal) => {
            std::slice::from_ref(literal)
        }
        Test::In(literals) | Test::NotIn(literals) => literals,
        _ => &[],
    }
}

/// Constructors and getters of the classes, by the parts that they have.
macro_rules! constructors {
    (constants { $($constant:ident $value:ident;)* }
     joins { $($join:ident $pair:literal;)* }
     unary { $($unary:ident $test:ident;)* }
     literal { $($literal:ident $compare:expr;)* }
     sets { $($set:ident $contains:ident;)* }
     boxes { $($boxed:ident $spatial:ident;)* }) => {
        $(#[pymethods]
        impl $constant {
            #[new]
            fn py_new() -> ExpressionOutput {
                ExpressionOutput(Expression::$value)
            }
        })*
        $(#[pymethods]
        impl $join {
            #[new]
            #[pyo3(signature = (left, right, *rest))]
            fn py_new(left: ExpressionInput, right: ExpressionInput, rest: Vec<ExpressionInput>) -> Result<ExpressionOutput> {
                joined_expression([left, right].into_iter().chain(rest).collect(), $pair)
            }

            /// The first side.
            #[getter]
            fn left(slf: PyRef<'_, Self>) -> ExpressionOutput {
                ExpressionOutput(sides(&slf.as_super().0).0)
            }

            /// The other side.
            #[getter]
            fn right(slf: PyRef<'_, Self>) -> ExpressionOutput {
                ExpressionOutput(sides(&slf.as_super().0).1)
            }
        })*
        $(#[pymethods]
        impl $unary {
            #[new]
            fn py_new(term: TermInput) -> ExpressionOutput {
                predicate(term, Test::$test)
            }
        })*
        $(#[pymethods]
        impl $literal {
            #[new]
            fn py_new(term: TermInput, literal: &Bound<'_, PyAny>) -> Result<ExpressionOutput> {
                Ok(predicate(term, to_literal(literal).map($compare)?))
            }
        })*
        $(#[pymethods]
        impl $set {
            #[new]
            fn py_new(term: TermInput, literals: &Bound<'_, PyAny>) -> Result<ExpressionOutput> {
                Ok(predicate(term, Test::$contains(literals_of(literals)?)))
            }
        })*
        $(#[pymethods]
        impl $boxed {
            #[new]
            #[pyo3(signature = (term, envelope))]
            fn py_new(term: TermInput, envelope: &Bound<'_, PyAny>) -> Result<ExpressionOutput> {
                Ok(predicate(term, Test::$spatial(self::envelope(&literals_of(envelope)?)?)))
            }

            /// The box, as ``(xmin, ymin, xmax, ymax)``.
            #[getter]
            fn envelope(slf: PyRef<'_, Self>) -> Option<(f64, f64, f64, f64)> {
                match &slf.as_super().as_super().0 {
                    Expression::Predicate(Predicate { test: Test::$spatial(corners), .. }) => {
                        let [xmin, ymin, xmax, ymax] = corners.coordinates();
                        Some((xmin, ymin, xmax, ymax))
                    }
                    _ => None,
                }
            }
        })*
    };
}

constructors! {
    constants {
        PyAlwaysTrue True;
        PyAlwaysFalse False;
    }
    joins {
        PyAnd true;
        PyOr false;
    }
    unary {
        PyIsNull IsNull;
        PyNotNull NotNull;
        PyIsNan IsNan;
        PyNotNan NotNan;
    }
    literal {
        PyEqualTo |literal| Test::Compare(Comparison::Eq, literal);
        PyNotEqualTo |literal| Test::Compare(Comparison::NotEq, literal);
        PyLessThan |literal| Test::Compare(Comparison::Lt, literal);
        PyLessThanOrEqual |literal| Test::Compare(Comparison::LtEq, literal);
        PyGreaterThan |literal| Test::Compare(Comparison::Gt, literal);
        PyGreaterThanOrEqual |literal| Test::Compare(Comparison::GtEq, literal);
        PyStartsWith Test::StartsWith;
        PyNotStartsWith Test::NotStartsWith;
    }
    sets {
        PyIn In;
        PyNotIn NotIn;
    }
    boxes {
        PyStIntersects Intersects;
        PyStDisjoint Disjoint;
    }
}

fn sides(expr: &Expr) -> (Expr, Expr) {
    match expr {
        Expression::And(left, right) | Expression::Or(left, right) => (left.as_ref().clone(), right.as_ref().clone()),
        other => (other.clone(), other.clone()),
    }
}

#[pymethods]
impl PyNot {
    #[new]
    fn py_new(child: ExpressionInput) -> Result<ExpressionOutput> {
        Ok(ExpressionOutput(flat(Expr::not(child.0))?))
    }

    /// What is negated.
    #[getter]
    fn child(slf: PyRef<'_, Self>) -> ExpressionOutput {
        match &slf.as_super().0 {
            Expression::Not(child) => ExpressionOutput(child.as_ref().clone()),
            other => ExpressionOutput(other.clone()),
        }
    }
}

#[pymethods]
impl PyUnboundPredicate {
    /// What is tested.
    #[getter]
    fn term(slf: PyRef<'_, Self>) -> Option<TermOutput> {
        term_of(&slf.as_super().0)
    }
}

#[pymethods]
impl PyLiteralPredicate {
    /// What the term is compared with.
    #[getter]
    fn literal(slf: PyRef<'_, Self>) -> Option<LiteralOutput> {
        literals_in(&slf.as_super().as_super().0).first().cloned().map(LiteralOutput)
    }

    /// What the term is compared with, under PyIceberg's other name.
    #[getter]
    fn value(slf: PyRef<'_, Self>) -> Option<LiteralOutput> {
        Self::literal(slf)
    }
}

#[pymethods]
impl PySetPredicate {
    /// What the term is compared with.
    #[getter]
    fn literals(slf: PyRef<'_, Self>) -> HashSet<LiteralOutput> {
        literals_in(&slf.as_super().as_super().0).iter().cloned().map(LiteralOutput).collect()
    }
}

#[pymethods]
impl PyReference {
    #[new]
    fn py_new(name: String) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyTerm(Term::column(name))).add_subclass(Self)
    }
}
