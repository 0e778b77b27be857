//! Predicates that skip files, stripes and row groups that cannot match, by statistics and Bloom filters.
//!
//! An answer is the set of truth values that the rows may have. Rows are skipped only if none of them can be true; what
//! is unknown or cannot be trusted is read.

mod bloom;
mod statistics;

pub use bloom::{BloomBuilder, BloomView, hash_bytes, hash_long, hash_of};
pub(crate) use bloom::{decimal_text, is_usable as bloom_is_usable, may_match as bloom_may_match};
pub(crate) use statistics::{Trust, evaluate};

use std::cmp::Ordering;

use crate::column::power_of_ten;
use crate::error::{Error, Result};
use crate::types::{Kind, TypeDescription};

/// A value that a column is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// For `boolean`.
    Boolean(bool),
    /// For `tinyint` to `bigint`.
    Long(i64),
    /// For `float` and `double`.
    Double(f64),
    /// For `string`, `char` and `varchar`: UTF-8.
    Text(Vec<u8>),
    /// For `decimal`.
    Decimal {
        /// The digits as an integer.
        unscaled: i128,
        /// The number of digits after the decimal point.
        scale: u8,
    },
    /// For `date`: days since 1970-01-01.
    Date(i64),
    /// For both kinds of timestamps: the local time as if it were UTC, or the instant.
    Timestamp {
        /// Seconds since 1970-01-01 00:00:00.
        seconds: i64,
        /// Nanoseconds, 0 to 999,999,999.
        nanos: u32,
    },
}

/// A test of a column, with SQL's rules for null.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Equal; null for a null.
    Equals(Literal),
    /// Equal; false for a null.
    NullSafeEquals(Literal),
    /// Less; null for a null.
    LessThan(Literal),
    /// Less or equal; null for a null.
    LessThanEquals(Literal),
    /// Equal to one of them; null for a null.
    In(Vec<Literal>),
    /// Between the two, both included; null for a null.
    Between(Literal, Literal),
    /// Whether the value is null; never null itself.
    IsNull,
}

/// A condition on the columns of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// All of these are true; true for an empty list.
    And(Vec<Predicate>),
    /// Any of these is true; false for an empty list.
    Or(Vec<Predicate>),
    /// The negation; null stays null.
    Not(Box<Predicate>),
    /// A test of the column with this id.
    Leaf(u32, Test),
}

/// The truth values that some rows may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth(u8);

impl Truth {
    /// Some row may be true.
    pub const TRUE: Self = Self(1);
    /// Some row may be false.
    pub const FALSE: Self = Self(2);
    /// Some row may be null.
    pub const NULL: Self = Self(4);
    /// Nothing is known.
    pub const ANY: Self = Self(7);

    /// Whether a row may be true; otherwise it need not be read.
    pub fn may_be_true(self) -> bool {
        self.0 & 1 != 0
    }

    /// The union of two sets.
    #[must_use]
    pub fn or_also(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The possible values of the negation.
    #[must_use]
    pub fn negate(self) -> Self {
        Self(self.0 & 4 | (self.0 & 1) << 1 | (self.0 & 2) >> 1)
    }

    fn combine(self, other: Self, join: impl Fn(u8, u8) -> u8) -> Self {
        let values = [1u8, 2, 4];
        let mut out = 0;
        for left in values.into_iter().filter(|value| self.0 & value != 0) {
            for right in values.into_iter().filter(|value| other.0 & value != 0) {
                out |= join(left, right);
            }
        }
        Self(out)
    }

    /// The possible values of the conjunction.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.combine(other, |left, right| if left == 2 || right == 2 { 2 } else { left.max(right) })
    }

    /// The possible values of the disjunction.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.combine(other, |left, right| match (left, right) {
            (1, _) | (_, 1) => 1,
            (4, _) | (_, 4) => 4,
            _ => 2,
        })
    }
}

impl Predicate {
    /// The ids of the columns that are tested.
    pub fn columns(&self) -> Vec<u32> {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Not(inner) => inner.columns(),
            Self::Leaf(column, _) => vec![*column],
        }
    }

    /// Rejects tests that the schema does not allow: unknown columns, columns inside lists, maps and unions, values
    /// whose kind does not match the column.
    pub fn check(&self, schema: &TypeDescription) -> Result<()> {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().try_for_each(|part| part.check(schema)),
            Self::Not(inner) => inner.check(schema),
            Self::Leaf(column, test) => {
                let mut node = schema;
                while node.column != *column {
                    let next = node.children.iter().find(|child| (child.column..child.end).contains(column));
                    node = match next {
                        Some(next) if node.kind == Kind::Struct => next,
                        Some(_) => {
                            return Err(Error::invalid(format!("column {column} is inside a {}", node.kind.name())));
                        }
                        None => return Err(Error::invalid(format!("column {column} does not exist"))),
                    };
                }
                let fits = test.literals().iter().all(|literal| literal.fits(&node.kind));
                let refuse =
                    || Error::invalid(format!("column {column} of type {} cannot be compared: {test:?}", node.kind));
                if fits { Ok(()) } else { Err(refuse()) }
            }
        }
    }

    /// The possible values of the predicate, given those of its tests by `leaf`.
    pub fn truth(&self, leaf: &mut impl FnMut(u32, &Test) -> Truth) -> Truth {
        match self {
            Self::And(parts) => parts.iter().fold(Truth::TRUE, |truth, part| truth.and(part.truth(leaf))),
            Self::Or(parts) => parts.iter().fold(Truth::FALSE, |truth, part| truth.or(part.truth(leaf))),
            Self::Not(inner) => inner.truth(leaf).negate(),
            Self::Leaf(column, test) => leaf(*column, test),
        }
    }
}

impl Test {
    /// The values to compare with.
    pub fn literals(&self) -> Vec<&Literal> {
        match self {
            Self::Equals(one) | Self::NullSafeEquals(one) | Self::LessThan(one) | Self::LessThanEquals(one) => {
                vec![one]
            }
            Self::In(list) => list.iter().collect(),
            Self::Between(low, high) => vec![low, high],
            Self::IsNull => Vec::new(),
        }
    }
}

impl Literal {
    fn fits(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Boolean => matches!(self, Self::Boolean(_)),
            Kind::Byte | Kind::Short | Kind::Int | Kind::Long => matches!(self, Self::Long(_)),
            Kind::Float | Kind::Double => matches!(self, Self::Double(_)),
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => matches!(self, Self::Text(_)),
            Kind::Decimal { .. } => matches!(self, Self::Decimal { .. }),
            Kind::Date => matches!(self, Self::Date(_)),
            Kind::Timestamp | Kind::TimestampInstant => matches!(self, Self::Timestamp { .. }),
            _ => false,
        }
    }

    /// Compares two values of one kind; `None` for NaN, different kinds, and decimals that overflow 128 bits.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => Some(left.cmp(right)),
            (Self::Long(left), Self::Long(right)) | (Self::Date(left), Self::Date(right)) => Some(left.cmp(right)),
            (Self::Double(left), Self::Double(right)) => left.partial_cmp(right),
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            (
                Self::Decimal { unscaled: left, scale: left_scale },
                Self::Decimal { unscaled: right, scale: right_scale },
            ) => {
                let up = |value: i128, scale: &u8, other: &u8| {
                    value.checked_mul(power_of_ten(usize::from(other.saturating_sub(*scale)))?)
                };
                Some(up(*left, left_scale, right_scale)?.cmp(&up(*right, right_scale, left_scale)?))
            }
            (
                Self::Timestamp { seconds: left, nanos: left_nanos },
                Self::Timestamp { seconds: right, nanos: right_nanos },
            ) => Some((left, left_nanos).cmp(&(right, right_nanos))),
            _ => None,
        }
    }
}
