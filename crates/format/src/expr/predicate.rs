//! Unbound predicates: a term, an operation and literals.

use crate::transform::Transform;
use crate::value::envelope::Envelope;

use super::expression::{Expression, Leaf};
use super::extract::Extract;
use super::literal::Literal;

/// A predicate by column names, not bound to a schema.
pub type Expr = Expression<Predicate>;

impl Leaf for Predicate {
    fn negate(&self) -> Self {
        Self { term: self.term.clone(), test: self.test.clone().negate() }
    }
}

/// The test that a predicate applies to its term.
#[derive(Debug, Clone, PartialEq)]
pub enum Test<L, S> {
    /// The term is null.
    IsNull,
    /// The term is not null.
    NotNull,
    /// The term is NaN.
    IsNan,
    /// The term is not NaN; null matches.
    NotNan,
    /// The comparison of the term with a literal is true.
    Compare(Comparison, L),
    /// The term starts with a text.
    StartsWith(L),
    /// The term does not start with a text.
    NotStartsWith(L),
    /// The term equals one of these.
    In(S),
    /// The term equals none of these.
    NotIn(S),
    /// The term is a geometry with a point in a box.
    Intersects(Envelope),
    /// The term is a geometry without a point in a box.
    Disjoint(Envelope),
}

/// How a term compares with a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Less.
    Lt,
    /// Less or equal.
    LtEq,
    /// Greater.
    Gt,
    /// Greater or equal.
    GtEq,
    /// Equal.
    Eq,
    /// Not equal; null is not equal to any literal.
    NotEq,
}

/// The operation of a predicate, without literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Operation {
    IsNull,
    NotNull,
    IsNan,
    NotNan,
    Lt,
    LtEq,
    Gt,
    GtEq,
    Eq,
    NotEq,
    StartsWith,
    NotStartsWith,
    In,
    NotIn,
    StIntersects,
    StDisjoint,
}

/// A term: a column, a transform of it, or a value inside its variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Full name of the column, with dots between the levels of structs.
    pub name: String,
    /// Transform applied to the column's values.
    pub transform: Option<Transform>,
    /// Value extracted from the column's variants; excludes a transform.
    pub extract: Option<Extract>,
}

/// A predicate: a test of a term.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    /// Tested term.
    pub term: Term,
    /// The test.
    pub test: Test<Literal, Vec<Literal>>,
}

impl Comparison {
    /// Returns the comparison that is true where this one is false.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Lt => Self::GtEq,
            Self::LtEq => Self::Gt,
            Self::Gt => Self::LtEq,
            Self::GtEq => Self::Lt,
            Self::Eq => Self::NotEq,
            Self::NotEq => Self::Eq,
        }
    }

    /// Swaps the sides of the comparison: `5 < id` becomes `id > 5`.
    #[must_use]
    pub fn flip(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            same @ (Self::Eq | Self::NotEq) => same,
        }
    }
}

impl<L, S> Test<L, S> {
    /// Returns the test that is true where this one is false.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::IsNull => Self::NotNull,
            Self::NotNull => Self::IsNull,
            Self::IsNan => Self::NotNan,
            Self::NotNan => Self::IsNan,
            Self::Compare(comparison, literal) => Self::Compare(comparison.negate(), literal),
            Self::StartsWith(prefix) => Self::NotStartsWith(prefix),
            Self::NotStartsWith(prefix) => Self::StartsWith(prefix),
            Self::In(set) => Self::NotIn(set),
            Self::NotIn(set) => Self::In(set),
            Self::Intersects(envelope) => Self::Disjoint(envelope),
            Self::Disjoint(envelope) => Self::Intersects(envelope),
        }
    }

    /// Returns the operation without its literals.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::IsNull => Operation::IsNull,
            Self::NotNull => Operation::NotNull,
            Self::IsNan => Operation::IsNan,
            Self::NotNan => Operation::NotNan,
            Self::Compare(Comparison::Lt, _) => Operation::Lt,
            Self::Compare(Comparison::LtEq, _) => Operation::LtEq,
            Self::Compare(Comparison::Gt, _) => Operation::Gt,
            Self::Compare(Comparison::GtEq, _) => Operation::GtEq,
            Self::Compare(Comparison::Eq, _) => Operation::Eq,
            Self::Compare(Comparison::NotEq, _) => Operation::NotEq,
            Self::StartsWith(_) => Operation::StartsWith,
            Self::NotStartsWith(_) => Operation::NotStartsWith,
            Self::In(_) => Operation::In,
            Self::NotIn(_) => Operation::NotIn,
            Self::Intersects(_) => Operation::StIntersects,
            Self::Disjoint(_) => Operation::StDisjoint,
        }
    }
}

impl Operation {
    /// All operations with their names in JSON.
    const NAMES: [(Self, &'static str); 16] = [
        (Self::IsNull, "is-null"),
        (Self::NotNull, "not-null"),
        (Self::IsNan, "is-nan"),
        (Self::NotNan, "not-nan"),
        (Self::Lt, "lt"),
        (Self::LtEq, "lt-eq"),
        (Self::Gt, "gt"),
        (Self::GtEq, "gt-eq"),
        (Self::Eq, "eq"),
        (Self::NotEq, "not-eq"),
        (Self::StartsWith, "starts-with"),
        (Self::NotStartsWith, "not-starts-with"),
        (Self::In, "in"),
        (Self::NotIn, "not-in"),
        (Self::StIntersects, "st-intersects"),
        (Self::StDisjoint, "st-disjoint"),
    ];

    /// Name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(operation, _)| *operation == self).map_or("", |(_, name)| name)
    }

    /// Parses a name in JSON, in any case and with `_` for `-`, as the Java library does.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(operation, _)| *operation)
    }
}

impl Term {
    /// A plain column.
    pub fn column(name: impl Into<String>) -> Self {
        Self { name: name.into(), transform: None, extract: None }
    }

    /// A transform of a column.
    pub fn transform(transform: Transform, name: impl Into<String>) -> Self {
        Self { name: name.into(), transform: Some(transform), extract: None }
    }

    /// A value inside a variant column.
    pub fn extract(extract: Extract, name: impl Into<String>) -> Self {
        Self { name: name.into(), transform: None, extract: Some(extract) }
    }
}
