//! Binds predicates to a schema: column names become field ids, literals become values of the column's type.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::transform::Transform;
use crate::types::{Field, PrimitiveType, Schema, Type};
use crate::value::Value;

use super::convert::Converted;
use super::datum::Datum;
use super::expression::{Expression, Leaf};
use super::extract::Extract;
use super::literal::Literal;
use super::predicate::{Comparison, Expr, Predicate, Term, Test};

/// An expression bound to a schema: field ids, and literals of the columns' types.
pub type BoundExpr = Expression<Arc<BoundPredicate>>;

impl Leaf for Arc<BoundPredicate> {
    fn negate(&self) -> Self {
        Arc::new(BoundPredicate { term: Arc::clone(&self.term), test: self.test.clone().negate() })
    }
}

/// A bound reference to a column.
#[derive(Debug, Clone)]
pub struct BoundReference {
    /// Name as written in the predicate; ignored when references are compared.
    pub name: String,
    /// Field id.
    pub id: i32,
    /// Type of the column.
    pub ty: Type,
    /// Path from the row to the column through structs; `None` inside lists and maps.
    pub path: Option<Vec<PathStep>>,
    /// Whether its values can be null: the field itself or one of the structs around it is optional.
    pub nullable: bool,
}

impl PartialEq for BoundReference {
    fn eq(&self, other: &Self) -> bool {
        let of = |reference: &Self| (reference.id, reference.nullable);
        of(self) == of(other) && self.ty == other.ty && self.path == other.path
    }
}

/// One step from a struct to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    /// Index of the field in its struct.
    pub position: usize,
    /// Field id.
    pub id: i32,
    /// Name of the field in the schema.
    pub name: String,
}

/// A bound term: a column, a transform of it, or a value inside its variants.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundTerm {
    /// Column of the term.
    pub reference: BoundReference,
    /// Transform applied to its values.
    pub transform: Option<Transform>,
    /// Value extracted from its variants.
    pub extract: Option<Extract>,
    /// Type of the result.
    pub ty: Type,
}

/// A bound predicate: a test of a bound term.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundPredicate {
    /// Tested term.
    pub term: Arc<BoundTerm>,
    /// The test.
    pub test: Test<Value, Arc<ValueSet>>,
}

/// Distinct values of one type in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSet(Vec<Value>);

impl BoundReference {
    fn new(schema: &Schema, field: &Field, name: &str) -> Self {
        let path = schema.accessor(field.id).map(|positions| {
            let mut fields = schema.fields();
            let mut steps = Vec::with_capacity(positions.len());
            for position in positions {
                let Some(step) = fields.get(*position) else { break };
                steps.push(PathStep { position: *position, id: step.id, name: step.name.clone() });
                fields = step.ty.as_struct().map_or(&[], |inner| &inner.fields);
            }
            steps
        });
        let nullable = schema.is_nullable(field.id).unwrap_or(true);
        Self { name: name.to_owned(), id: field.id, ty: field.ty.clone(), path, nullable }
    }

    /// Whether the column is inside a struct, list or map.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.path.as_ref().is_none_or(|steps| steps.len() > 1)
    }

    /// Type of the column, if it is primitive.
    #[must_use]
    pub fn primitive(&self) -> Option<&PrimitiveType> {
        self.ty.as_primitive()
    }
}

impl BoundTerm {
    /// Whether the term is null exactly where the column is null.
    #[must_use]
    pub fn keeps_values(&self) -> bool {
        self.extract.is_none() && self.transform.as_ref().is_none_or(Transform::preserves_order)
    }

    /// Whether the term is the column itself.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.extract.is_none() && self.transform.is_none()
    }

    fn nullable(&self) -> bool {
        self.reference.nullable || !self.keeps_values()
    }
}

impl ValueSet {
    /// Creates a set of values of one type.
    #[must_use]
    pub fn new(mut values: Vec<Value>) -> Self {
        let order = |a: &Value, b: &Value| match (Datum::of(a), Datum::of(b)) {
            (Some(a), Some(b)) => a.order(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        values.sort_by(order);
        values.dedup_by(|a, b| order(a, b).is_eq());
        Self(values)
    }

    /// The values in ascending order.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.0
    }

    /// Whether the set contains the value.
    #[must_use]
    pub fn contains(&self, datum: Datum<'_>) -> bool {
        self.0.binary_search_by(|value| Datum::of(value).map_or(std::cmp::Ordering::Less, |v| v.order(datum))).is_ok()
    }

    /// Whether any value is within the bounds; an unknown bound excludes nothing.
    #[must_use]
    pub fn any_within(&self, lower: Option<Datum<'_>>, upper: Option<Datum<'_>>) -> bool {
        let below = |value: &Value| match (Datum::of(value), lower) {
            (Some(value), Some(lower)) => value.order(lower).is_lt(),
            _ => false,
        };
        let first = self.0.partition_point(below);
        match (self.0.get(first).and_then(Datum::of), upper) {
            (Some(value), Some(upper)) => value.order(upper).is_le(),
            (first, None) => first.is_some(),
            (None, _) => false,
        }
    }
}

impl Expr {
    /// Binds the expression to a schema.
    ///
    /// Fails if a column does not exist, a transform does not accept its column's type, or a literal is not a value of
    /// the term's type. Literals outside the range of the type make the predicate constant.
    pub fn bind(&self, schema: &Schema, case_sensitive: bool) -> Result<BoundExpr> {
        self.try_map(&mut |predicate| predicate.bind(schema, case_sensitive))
    }
}

impl Term {
    /// Binds the term to a schema.
    pub fn bind(&self, schema: &Schema, case_sensitive: bool) -> Result<BoundTerm> {
        let field = schema.named(&self.name, case_sensitive)?;
        let reference = BoundReference::new(schema, field, &self.name);
        if let Some(extract) = &self.extract {
            if reference.ty != Type::Variant {
                let message = format!("{self}: {} has the type {}, expected variant", self.name, reference.ty);
                return Err(Error::unfit(message));
            }
            let ty = extract.ty().clone().into();
            return Ok(BoundTerm { reference, transform: None, extract: self.extract.clone(), ty });
        }
        let ty = match &self.transform {
            None => reference.ty.clone(),
            Some(unknown @ Transform::Unknown(_)) => {
                return Err(Error::unsupported(format!("a filter cannot use the unknown transform {unknown}")));
            }
            Some(transform) => transform.result_type(&reference.ty).ok_or_else(|| {
                Error::unfit(format!("{transform} does not take {} of type {}", self.name, reference.ty))
            })?,
        };
        Ok(BoundTerm { reference, transform: self.transform.clone(), extract: None, ty })
    }
}

impl Predicate {
    fn bind(&self, schema: &Schema, case_sensitive: bool) -> Result<BoundExpr> {
        let term = self.term.bind(schema, case_sensitive)?;
        let unknown = term.ty == Type::Primitive(PrimitiveType::Unknown);
        let test = match &self.test {
            Test::IsNull if !term.nullable() => return Ok(Expression::False),
            Test::NotNull if !term.nullable() => return Ok(Expression::True),
            Test::IsNull if unknown => return Ok(Expression::True),
            Test::NotNull if unknown => return Ok(Expression::False),
            Test::IsNull => Test::IsNull,
            Test::NotNull => Test::NotNull,
            Test::IsNan | Test::NotNan if !is_floating(&term.ty) => {
                return Err(Error::unfit(format!("{} is {}, which is never NaN", self.term, term.ty)));
            }
            Test::IsNan => Test::IsNan,
            Test::NotNan => Test::NotNan,
            Test::Compare(comparison, literal) => return bind_comparison(term, *comparison, literal),
            Test::StartsWith(prefix) => Test::StartsWith(bind_prefix(&term, prefix)?),
            Test::NotStartsWith(prefix) => Test::NotStartsWith(bind_prefix(&term, prefix)?),
            Test::In(literals) => Test::In(bind_set(&term, literals)?),
            Test::NotIn(literals) => Test::NotIn(bind_set(&term, literals)?),
            Test::Intersects(_) | Test::Disjoint(_) if !is_geometry(&term) => {
                let message =
                    format!("{} is {}: only columns of type geometry are tested with boxes", self.term, term.ty);
                return Err(Error::unfit(message));
            }
            Test::Intersects(envelope) => Test::Intersects(*envelope),
            Test::Disjoint(envelope) => Test::Disjoint(*envelope),
        };
        Ok(bound(Arc::new(term), test))
    }
}

/// Creates a bound predicate; a set of one value becomes a comparison, an empty set a constant.
pub(super) fn bound(term: Arc<BoundTerm>, test: Test<Value, Vec<Value>>) -> BoundExpr {
    let test = match test {
        Test::In(values) => match single(values) {
            Ok(value) => Test::Compare(Comparison::Eq, value),
            Err(set) if set.0.is_empty() => return Expression::False,
            Err(set) => Test::In(Arc::new(set)),
        },
        Test::NotIn(values) => match single(values) {
            Ok(value) => Test::Compare(Comparison::NotEq, value),
            Err(set) if set.0.is_empty() => return Expression::True,
            Err(set) => Test::NotIn(Arc::new(set)),
        },
        Test::IsNull => Test::IsNull,
        Test::NotNull => Test::NotNull,
        Test::IsNan => Test::IsNan,
        Test::NotNan => Test::NotNan,
        Test::Compare(comparison, value) => Test::Compare(comparison, value),
        Test::StartsWith(prefix) => Test::StartsWith(prefix),
        Test::NotStartsWith(prefix) => Test::NotStartsWith(prefix),
        Test::Intersects(envelope) => Test::Intersects(envelope),
        Test::Disjoint(envelope) => Test::Disjoint(envelope),
    };
    Expression::Predicate(Arc::new(BoundPredicate { term, test }))
}

/// Returns the only value, or the set.
fn single(values: Vec<Value>) -> Result<Value, ValueSet> {
    let mut set = ValueSet::new(values);
    match (set.0.len(), set.0.pop()) {
        (1, Some(value)) => Ok(value),
        (_, last) => {
            set.0.extend(last);
            Err(set)
        }
    }
}

fn is_floating(ty: &Type) -> bool {
    matches!(ty, Type::Primitive(PrimitiveType::Float | PrimitiveType::Double))
}

/// Whether the term is a geometry. Geographies are excluded, since their edges are not straight lines in longitude and
/// latitude.
fn is_geometry(term: &BoundTerm) -> bool {
    term.is_plain() && matches!(term.ty, Type::Primitive(PrimitiveType::Geometry { .. }))
}

/// Binds a comparison. A literal outside the type's range decides it; one between two values is replaced by the lower
/// one.
fn bind_comparison(term: BoundTerm, comparison: Comparison, literal: &Literal) -> Result<BoundExpr> {
    use Comparison as C;
    let (comparison, value) = match (converted(&term, literal)?, comparison) {
        (Converted::Value(value), comparison) => (comparison, value),
        (Converted::AboveMax, C::Lt | C::LtEq | C::NotEq) | (Converted::BelowMin, C::Gt | C::GtEq | C::NotEq) => {
            return Ok(Expression::True);
        }
        (Converted::AboveMax | Converted::BelowMin, _) | (Converted::JustAbove(_), C::Eq) => {
            return Ok(Expression::False);
        }
        (Converted::JustAbove(_), C::NotEq) => return Ok(Expression::True),
        (Converted::JustAbove(below), C::Lt | C::LtEq) => (C::LtEq, below),
        (Converted::JustAbove(below), C::Gt | C::GtEq) => (C::Gt, below),
    };
    Ok(bound(Arc::new(term), Test::Compare(comparison, value)))
}

/// Converts the literal to the term's type; an error names the column.
fn converted(term: &BoundTerm, literal: &Literal) -> Result<Converted> {
    literal.convert(&term.ty).map_err(|error| Error::unfit(format!("column {}: {error}", term.reference.name)))
}

/// Converts the literals of a set, and drops those that equal no value of the type.
fn bind_set(term: &BoundTerm, literals: &[Literal]) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(literals.len());
    for literal in literals {
        if let Converted::Value(value) = converted(term, literal)? {
            values.push(value);
        }
    }
    Ok(values)
}

fn bind_prefix(term: &BoundTerm, prefix: &Literal) -> Result<Value> {
    match (&term.ty, prefix.value()) {
        (Type::Primitive(PrimitiveType::String), text @ Value::String(_)) => Ok(text.clone()),
        (Type::Primitive(PrimitiveType::String), _) => {
            Err(Error::unfit(format!("a prefix must be a string, got {prefix}")))
        }
        (ty, _) => Err(Error::unfit(format!("{} is {ty}; only strings have prefixes", term.reference.name))),
    }
}
