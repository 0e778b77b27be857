//! A class for each kind of bound expression and term: predicates with field ids, whose literals have the types of the
//! columns.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use icefield_format::expr::{
    BoundExpr, BoundPredicate, BoundTerm, Comparison, Expression, Literal, Residuals, Test, project_inclusive,
    project_strict,
};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::Field;
use icefield_format::value::Value;
use pyo3::prelude::*;
use pyo3::types::PySet;

use crate::arguments::json::JsonInput;
use crate::capsule::{ArrowArray, StreamInput, check_batch};
use crate::entry::detached;
use crate::errors::{BorderError, Result};
use crate::format::classes::{bases, classes, made};
use crate::format::literals::LiteralOutput;
use crate::format::partitioning::partition_tuple;
use crate::format::schemas::schema::PySchema;
use crate::format::schemas::type_classes::TypeOutput;
use crate::format::schemas::types::PyField;
use crate::format::transforms::TransformOutput;
use crate::format::values::{primitive, to_python};

/// A predicate on the columns of a schema, by their field ids.
#[pyclass(frozen, subclass, name = "BoundExpression", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub(crate) struct PyBoundExpression(pub BoundExpr);

/// What a bound predicate tests: a column by its field id, a transform of one, or a value inside a variant.
#[pyclass(frozen, subclass, name = "BoundTerm", module = "icefield.expressions")]
#[derive(Debug, Clone)]
pub(crate) struct PyBoundTerm(pub Arc<BoundTerm>);

bases! {
    "icefield.expressions":
    /// A test of one bound term.
    PyBoundPredicate "BoundPredicate" of PyBoundExpression;
    /// A test of a bound term without literals.
    PyBoundUnaryPredicate "BoundUnaryPredicate" of PyBoundPredicate;
    /// A comparison of a bound term with one literal.
    PyBoundLiteralPredicate "BoundLiteralPredicate" of PyBoundPredicate;
    /// A comparison of a bound term with several literals.
    PyBoundSetPredicate "BoundSetPredicate" of PyBoundPredicate;
}

classes! {
    "icefield.expressions":
    /// A column by its field id.
    PyBoundReference "BoundReference" of PyBoundTerm;
    /// `AlwaysTrue`, bound.
    PyBoundAlwaysTrue "BoundAlwaysTrue" of PyBoundExpression;
    /// `AlwaysFalse`, bound.
    PyBoundAlwaysFalse "BoundAlwaysFalse" of PyBoundExpression;
    /// `And`, bound.
    PyBoundAnd "BoundAnd" of PyBoundExpression;
    /// `Or`, bound.
    PyBoundOr "BoundOr" of PyBoundExpression;
    /// `Not`, bound.
    PyBoundNot "BoundNot" of PyBoundExpression;
    /// `IsNull`, bound.
    PyBoundIsNull "BoundIsNull" of PyBoundUnaryPredicate;
    /// `NotNull`, bound.
    PyBoundNotNull "BoundNotNull" of PyBoundUnaryPredicate;
    /// `IsNaN`, bound.
    PyBoundIsNan "BoundIsNaN" of PyBoundUnaryPredicate;
    /// `NotNaN`, bound.
    PyBoundNotNan "BoundNotNaN" of PyBoundUnaryPredicate;
    /// `EqualTo`, bound.
    PyBoundEqualTo "BoundEqualTo" of PyBoundLiteralPredicate;
    /// `NotEqualTo`, bound.
    PyBoundNotEqualTo "BoundNotEqualTo" of PyBoundLiteralPredicate;
    /// `LessThan`, bound.
    PyBoundLessThan "BoundLessThan" of PyBoundLiteralPredicate;
    /// `LessThanOrEqual`, bound.
    PyBoundLessThanOrEqual "BoundLessThanOrEqual" of PyBoundLiteralPredicate;
    /// `GreaterThan`, bound.
    PyBoundGreaterThan "BoundGreaterThan" of PyBoundLiteralPredicate;
    /// `GreaterThanOrEqual`, bound.
    PyBoundGreaterThanOrEqual "BoundGreaterThanOrEqual" of PyBoundLiteralPredicate;
    /// `StartsWith`, bound.
    PyBoundStartsWith "BoundStartsWith" of PyBoundLiteralPredicate;
    /// `NotStartsWith`, bound.
    PyBoundNotStartsWith "BoundNotStartsWith" of PyBoundLiteralPredicate;
    /// `In`, bound.
    PyBoundIn "BoundIn" of PyBoundSetPredicate;
    /// `NotIn`, bound.
    PyBoundNotIn "BoundNotIn" of PyBoundSetPredicate;
    /// `StIntersects`, bound.
    PyBoundStIntersects "BoundStIntersects" of PyBoundPredicate;
    /// `StDisjoint`, bound.
    PyBoundStDisjoint "BoundStDisjoint" of PyBoundPredicate;
}

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBoundExpression>()?;
    module.add_class::<PyBoundTerm>()?;
    register_bases(module)?;
    register_classes(module)
}

/// A bound expression to return to Python.
#[derive(Debug)]
pub(crate) struct BoundOutput(pub(crate) BoundExpr);

impl<'py> IntoPyObject<'py> for BoundOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let base = PyClassInitializer::from(PyBoundExpression(self.0.clone()));
        let predicate = match self.0 {
            Expression::True => return Ok(made!(py, base, PyBoundAlwaysTrue)),
            Expression::False => return Ok(made!(py, base, PyBoundAlwaysFalse)),
            Expression::And(..) => return Ok(made!(py, base, PyBoundAnd)),
            Expression::Or(..) => return Ok(made!(py, base, PyBoundOr)),
            Expression::Not(_) => return Ok(made!(py, base, PyBoundNot)),
            Expression::Predicate(predicate) => predicate,
        };
        let base = base.add_subclass(PyBoundPredicate);
        Ok(match predicate.test {
            Test::IsNull => made!(py, base.add_subclass(PyBoundUnaryPredicate), PyBoundIsNull),
            Test::NotNull => made!(py, base.add_subclass(PyBoundUnaryPredicate), PyBoundNotNull),
            Test::IsNan => made!(py, base.add_subclass(PyBoundUnaryPredicate), PyBoundIsNan),
            Test::NotNan => made!(py, base.add_subclass(PyBoundUnaryPredicate), PyBoundNotNan),
            Test::Compare(comparison, _) => {
                let base = base.add_subclass(PyBoundLiteralPredicate);
                match comparison {
                    Comparison::Lt => made!(py, base, PyBoundLessThan),
                    Comparison::LtEq => made!(py, base, PyBoundLessThanOrEqual),
                    Comparison::Gt => made!(py, base, PyBoundGreaterThan),
                    Comparison::GtEq => made!(py, base, PyBoundGreaterThanOrEqual),
                    Comparison::Eq => made!(py, base, PyBoundEqualTo),
                    Comparison::NotEq => made!(py, base, PyBoundNotEqualTo),
                }
            }
            Test::StartsWith(_) => made!(py, base.add_subclass(PyBoundLiteralPredicate), PyBoundStartsWith),
            Test::NotStartsWith(_) => made!(py, base.add_subclass(PyBoundLiteralPredicate), PyBoundNotStartsWith),
            Test::In(_) => made!(py, base.add_subclass(PyBoundSetPredicate), PyBoundIn),
            Test::NotIn(_) => made!(py, base.add_subclass(PyBoundSetPredicate), PyBoundNotIn),
            Test::Intersects(_) => made!(py, base, PyBoundStIntersects),
            Test::Disjoint(_) => made!(py, base, PyBoundStDisjoint),
        })
    }
}

/// A bound term to return to Python.
#[derive(Debug)]
pub(crate) struct BoundTermOutput(pub(crate) Arc<BoundTerm>);

impl<'py> IntoPyObject<'py> for BoundTermOutput {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let is_column = self.0.is_plain();
        let base = PyClassInitializer::from(PyBoundTerm(self.0));
        Ok(if is_column { made!(py, base, PyBoundReference) } else { Bound::new(py, base)?.into_any() })
    }
}

/// A partition spec: JSON, or an object with `to_json()`.
pub(crate) struct SpecInput(pub(crate) PartitionSpec);

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

#[pymethods]
impl PyBoundExpression {
    /// The REST protocol's JSON; literals are single values of their columns' types.
    fn to_json(&self) -> Result<String> {
        Ok(self.0.to_json()?.to_string())
    }

    /// The expression without ``NOT``.
    fn rewrite_not(&self) -> BoundOutput {
        BoundOutput(self.0.rewrite_not())
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
    fn project(&self, spec: SpecInput, inclusive: bool) -> BoundOutput {
        BoundOutput(projected(&self.0, &spec.0, inclusive))
    }

    /// What is left of the expression in a partition: values in the order of the spec, or a dict by field name.
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn residual(
        &self,
        spec: SpecInput,
        schema: &Bound<'_, PySchema>,
        partition: &Bound<'_, PyAny>,
    ) -> Result<BoundOutput> {
        residual(&self.0, &spec.0, schema, partition)
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

    /// By what does not depend on how names and numbers were written.
    fn __hash__(&self) -> u64 {
        let terms = self.0.predicates().map(|predicate| {
            let transform = predicate.term.transform.as_ref().map(ToString::to_string);
            (predicate.term.reference.id, transform, std::mem::discriminant(&predicate.test))
        });
        let mut hasher = DefaultHasher::new();
        terms.for_each(|term| term.hash(&mut hasher));
        hasher.finish()
    }
}

/// Projects an expression to partitions: those that may contain matching rows (inclusive), or those in which all rows
/// match.
pub(crate) fn projected(expr: &BoundExpr, spec: &PartitionSpec, inclusive: bool) -> BoundExpr {
    if inclusive { project_inclusive(expr, spec) } else { project_strict(expr, spec) }
}

/// The residual of an expression in a partition.
pub(crate) fn residual(
    expr: &BoundExpr,
    spec: &PartitionSpec,
    schema: &Bound<'_, PySchema>,
    partition: &Bound<'_, PyAny>,
) -> Result<BoundOutput> {
    let tuple = partition_tuple(spec, &schema.get().0, partition)?;
    Ok(BoundOutput(Residuals::new(expr, spec).of_partition(&tuple)))
}

fn predicate_in(expr: &BoundExpr) -> Option<&BoundPredicate> {
    match expr {
        Expression::Predicate(predicate) => Some(predicate),
        _ => None,
    }
}

/// The values that the term of a predicate is compared with.
fn values_in(expr: &BoundExpr) -> Vec<(&BoundTerm, &Value)> {
    let Some(predicate) = predicate_in(expr) else { return Vec::new() };
    let values = match &predicate.test {
        Test::Compare(_, value) | Test::StartsWith(value) | Test::NotStartsWith(value) => std::slice::from_ref(value),
        Test::In(values) | Test::NotIn(values) => values.values(),
        _ => &[],
    };
    values.iter().map(|value| (predicate.term.as_ref(), value)).collect()
}

fn literal((term, value): (&BoundTerm, &Value)) -> Result<LiteralOutput> {
    Ok(LiteralOutput(Literal::new(primitive(&term.ty)?, value.clone())?))
}

/// Getters for the two sides of `And` and `Or`.
macro_rules! joins {
    ($($class:ident)*) => {
        $(#[pymethods]
        impl $class {
            /// The first side.
            #[getter]
            fn left(slf: PyRef<'_, Self>) -> Option<BoundOutput> {
                sides(&slf.as_super().0).map(|(left, _)| BoundOutput(left.clone()))
            }

            /// The other side.
            #[getter]
            fn right(slf: PyRef<'_, Self>) -> Option<BoundOutput> {
                sides(&slf.as_super().0).map(|(_, right)| BoundOutput(right.clone()))
            }
        })*
    };
}

joins! { PyBoundAnd PyBoundOr }

fn sides(expr: &BoundExpr) -> Option<(&BoundExpr, &BoundExpr)> {
    match expr {
        Expression::And(left, right) | Expression::Or(left, right) => Some((left, right)),
        _ => None,
    }
}

#[pymethods]
impl PyBoundNot {
    /// What is negated.
    #[getter]
    fn child(slf: PyRef<'_, Self>) -> Option<BoundOutput> {
        match &slf.as_super().0 {
            Expression::Not(child) => Some(BoundOutput(child.as_ref().clone())),
            _ => None,
        }
    }
}

#[pymethods]
impl PyBoundPredicate {
    /// What is tested.
    #[getter]
    fn term(slf: PyRef<'_, Self>) -> Option<BoundTermOutput> {
        predicate_in(&slf.as_super().0).map(|predicate| BoundTermOutput(Arc::clone(&predicate.term)))
    }
}

#[pymethods]
impl PyBoundLiteralPredicate {
    /// What the term is compared with.
    #[getter]
    fn literal(slf: PyRef<'_, Self>) -> Result<Option<LiteralOutput>> {
        values_in(&slf.as_super().as_super().0).into_iter().next().map(literal).transpose()
    }
}

#[pymethods]
impl PyBoundSetPredicate {
    /// What the term is compared with.
    #[getter]
    fn literals(slf: PyRef<'_, Self>) -> Result<HashSet<LiteralOutput>> {
        values_in(&slf.as_super().as_super().0).into_iter().map(literal).collect()
    }

    /// The values of the literals.
    #[getter]
    fn value_set<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PySet>> {
        let borrowed = slf.borrow();
        let values = PySet::empty(slf.py())?;
        for (term, value) in values_in(&borrowed.as_super().as_super().0) {
            values.add(to_python(slf.py(), value, &term.ty)?)?;
        }
        Ok(values)
    }
}

/// Getters for the boxes of spatial predicates.
macro_rules! boxes {
    ($($class:ident $spatial:ident;)*) => {
        $(#[pymethods]
        impl $class {
            /// The box, as ``(xmin, ymin, xmax, ymax)``.
            #[getter]
            fn envelope(slf: PyRef<'_, Self>) -> Option<(f64, f64, f64, f64)> {
                match &predicate_in(&slf.as_super().as_super().0)?.test {
                    Test::$spatial(corners) => {
                        let [xmin, ymin, xmax, ymax] = corners.coordinates();
                        Some((xmin, ymin, xmax, ymax))
                    }
                    _ => None,
                }
            }
        })*
    };
}

boxes! {
    PyBoundStIntersects Intersects;
    PyBoundStDisjoint Disjoint;
}

#[pymethods]
impl PyBoundTerm {
    /// The column that the term is made of.
    #[pyo3(name = "ref")]
    fn reference(&self) -> BoundTermOutput {
        let reference = self.0.reference.clone();
        let ty = reference.ty.clone();
        BoundTermOutput(Arc::new(BoundTerm { reference, transform: None, extract: None, ty }))
    }

    /// The transform of the column, if the term is not the column itself.
    #[getter]
    fn transform(&self) -> Option<TransformOutput> {
        self.0.transform.clone().map(TransformOutput)
    }

    /// The type of what is tested.
    #[getter]
    fn r#type(&self) -> TypeOutput {
        TypeOutput(self.0.ty.clone())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let BoundTerm { reference, transform, .. } = slf.get().0.as_ref();
        let transform = transform.as_ref().map(|transform| format!(", {transform}")).unwrap_or_default();
        Ok(format!("{}({:?}, field_id={}{transform})", slf.get_type().name()?, reference.name, reference.id))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> isize {
        isize::try_from(self.0.reference.id).unwrap_or_default()
    }
}

#[pymethods]
impl PyBoundReference {
    /// The column: its id, name and type; required if neither it nor a struct around it can be null.
    #[getter]
    fn field(slf: PyRef<'_, Self>) -> PyField {
        let reference = &slf.as_super().0.reference;
        let last = reference.path.as_ref().and_then(|path| path.last()).map(|step| step.name.as_str());
        let name = last.or_else(|| reference.name.rsplit('.').next()).unwrap_or_default();
        PyField(Field { required: !reference.nullable, ..Field::optional(reference.id, name, reference.ty.clone()) })
    }
}

/// Evaluates an expression on all batches, and returns the masks as one array.
pub(crate) fn evaluate<'py>(py: Python<'py>, expr: &BoundExpr, rows: StreamInput) -> Result<Bound<'py, PyAny>> {
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
