//! Conditions over joined rows: filters in which columns of both sides may be compared.

use std::collections::HashSet;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array};
use arrow_buffer::BooleanBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp::{eq, gt, gt_eq, lt, lt_eq, neq};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use icefield_format::expr::{BoundExpr, ColumnComparison, Comparison, Condition, ConditionPredicate, Expression, Term};

use super::joined::{Joined, Sides, columns_of};
use crate::error::{Error, Result};

/// A condition, bound to the columns of joined rows; `NOT` is in its predicates.
#[derive(Debug)]
pub(crate) struct BoundCondition(Expression<BoundTest>);

/// A test of joined rows.
#[derive(Debug)]
enum BoundTest {
    Filter(BoundExpr),
    Columns(Box<Compared>),
}

/// Two columns that are compared.
#[derive(Debug)]
struct Compared {
    left: Vec<String>,
    comparison: Comparison,
    right: Vec<String>,
    /// What both are compared as.
    ty: DataType,
    /// The comparison, for errors.
    text: String,
}

impl BoundCondition {
    /// # Errors
    /// A column that neither side has, a literal that does not fit one, and columns that cannot be compared.
    pub(crate) fn new(condition: &Condition, sides: &Sides<'_>, case_sensitive: bool) -> Result<Self> {
        if let Some(filter) = condition.as_filter() {
            return Ok(Self(Expression::Predicate(BoundTest::Filter(sides.bind(&filter, case_sensitive)?))));
        }
        let mut leaf = |leaf: &ConditionPredicate| {
            Ok::<_, Error>(Expression::Predicate(match leaf {
                ConditionPredicate::Literals(predicate) => {
                    BoundTest::Filter(sides.bind(&Expression::Predicate(predicate.clone()), case_sensitive)?)
                }
                ConditionPredicate::Columns(columns) => {
                    BoundTest::Columns(Box::new(Compared::new(columns, sides, case_sensitive)?))
                }
            }))
        };
        Ok(Self(condition.rewrite_not().try_map(&mut leaf)?))
    }

    /// The columns that it tests, by the names that they have in joined rows.
    pub(crate) fn columns(&self) -> HashSet<String> {
        let mut columns = HashSet::new();
        for test in self.0.predicates() {
            match test {
                BoundTest::Filter(filter) => columns.extend(columns_of(filter)),
                BoundTest::Columns(compared) => {
                    columns
                        .extend([&compared.left, &compared.right].into_iter().filter_map(|path| path.first().cloned()));
                }
            }
        }
        columns
    }

    /// The rows that it holds for.
    pub(crate) fn matching(&self, rows: &Joined) -> Result<BooleanBuffer> {
        matching(&self.0, rows)
    }
}

fn matching(condition: &Expression<BoundTest>, rows: &Joined) -> Result<BooleanBuffer> {
    Ok(match condition {
        Expression::True => BooleanBuffer::new_set(rows.rows().num_rows()),
        Expression::False => BooleanBuffer::new_unset(rows.rows().num_rows()),
        Expression::Not(child) => !&matching(child, rows)?,
        Expression::And(left, right) => &matching(left, rows)? & &matching(right, rows)?,
        Expression::Or(left, right) => &matching(left, rows)? | &matching(right, rows)?,
        Expression::Predicate(BoundTest::Filter(filter)) => rows.matching(filter)?.values().clone(),
        Expression::Predicate(BoundTest::Columns(compared)) => compared.matching(rows)?,
    })
}

impl Compared {
    fn new(columns: &ColumnComparison, sides: &Sides<'_>, case_sensitive: bool) -> Result<Self> {
        let text = columns.to_string();
        let column = |term: &Term| {
            if term.transform.is_some() || term.extract.is_some() {
                return Err(Error::unsupported(format!(
                    "{text}: of {term} only a comparison with a literal is supported; compare columns themselves, or pass a \
                     function"
                )));
            }
            let (side, name) = term.name.split_once('.').unwrap_or((&term.name, ""));
            let side = if case_sensitive { side.to_owned() } else { side.to_lowercase() };
            sides.column(&format!("{side}.{name}"), case_sensitive).ok_or_else(|| {
                let message = sides.missing(&term.name);
                Error::invalid(format!("{text}: {message}"))
            })
        };
        let (left, right) = (column(&columns.left)?, column(&columns.right)?);
        let types = (sides.type_of(&left)?, sides.type_of(&right)?);
        let ty = common(&types.0, &types.1).ok_or_else(|| {
            Error::invalid(format!("{text}: columns of the types {} and {} cannot be compared", types.0, types.1))
        })?;
        Ok(Self { left, comparison: columns.comparison, right, ty, text })
    }

    fn matching(&self, rows: &Joined) -> Result<BooleanBuffer> {
        let failed = |error: ArrowError| Error::invalid(format!("{}: {error}", self.text));
        let side = |path: &[String]| {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let array = cast_with_options(&rows.column(path)?, &self.ty, &strict).map_err(failed)?;
            Ok::<_, Error>(with_one_zero(array))
        };
        let (left, right) = (side(&self.left)?, side(&self.right)?);
        let found = match self.comparison {
            Comparison::Lt => lt(&left, &right),
            Comparison::LtEq => lt_eq(&left, &right),
            Comparison::Gt => gt(&left, &right),
            Comparison::GtEq => gt_eq(&left, &right),
            Comparison::Eq => eq(&left, &right),
            Comparison::NotEq => neq(&left, &right),
        };
        let found: BooleanArray = found.map_err(failed)?;
        Ok(match found.nulls() {
            Some(nulls) => found.values() & nulls.inner(),
            None => found.values().clone(),
        })
    }
}

/// The values with one zero: Arrow orders negative zero before it. NaN equals itself and is above all other numbers, as in SQL.
fn with_one_zero(array: ArrayRef) -> ArrayRef {
    match array.as_any().downcast_ref::<Float64Array>() {
        Some(numbers) => {
            std::sync::Arc::new(numbers.unary::<_, arrow_array::types::Float64Type>(|number| number + 0.0))
        }
        None => array,
    }
}

/// The type that values of two types are compared as, without loss but for that of integers beside floating-point numbers.
fn common(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as D;
    let (left, right) = (plain(left), plain(right));
    if left.is_nested() || right.is_nested() {
        return None;
    }
    if left.is_floating() || right.is_floating() {
        return (left.is_numeric() && right.is_numeric()).then_some(D::Float64);
    }
    if let (Some(left), Some(right)) = (digits(left), digits(right)) {
        let scale = left.1.max(right.1);
        let whole = (i16::from(left.0) - i16::from(left.1)).max(i16::from(right.0) - i16::from(right.1));
        let precision = u8::try_from(whole + i16::from(scale)).ok()?;
        return match (scale, precision) {
            (0, ..=19) if left.1 == 0 && right.1 == 0 => Some(D::Int64),
            (_, ..=38) => Some(D::Decimal128(precision, scale)),
            (_, ..=76) => Some(D::Decimal256(precision, scale)),
            _ => None,
        };
    }
    match (left, right) {
        (D::Null, other) | (other, D::Null) => Some(other.clone()),
        (D::LargeUtf8, D::LargeUtf8) | (D::LargeBinary, D::LargeBinary) | (D::Boolean, D::Boolean) => {
            Some(left.clone())
        }
        (D::Date32 | D::Date64, D::Date32 | D::Date64) => Some(D::Date32),
        (D::Date32, D::Timestamp(_, None)) | (D::Timestamp(_, None), D::Date32) => {
            Some(D::Timestamp(TimeUnit::Microsecond, None))
        }
        (D::Timestamp(one, zone), D::Timestamp(other, other_zone)) if zone.is_some() == other_zone.is_some() => {
            let fine = [one, other].contains(&&TimeUnit::Nanosecond);
            Some(D::Timestamp(if fine { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }, zone.clone()))
        }
        (D::Time32(_) | D::Time64(_), D::Time32(_) | D::Time64(_)) => Some(D::Time64(TimeUnit::Nanosecond)),
        _ => None,
    }
}

/// One type for all layouts of text and of bytes.
fn plain(ty: &DataType) -> &DataType {
    use DataType as D;
    match ty {
        D::Dictionary(_, values) => plain(values),
        D::Utf8 | D::LargeUtf8 | D::Utf8View => &D::LargeUtf8,
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => &D::LargeBinary,
        other => other,
    }
}

/// Precision and scale of exact numbers.
fn digits(ty: &DataType) -> Option<(u8, i8)> {
    use DataType as D;
    match ty {
        D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::UInt8 | D::UInt16 | D::UInt32 => Some((19, 0)),
        D::UInt64 => Some((20, 0)),
        D::Decimal32(precision, scale)
        | D::Decimal64(precision, scale)
        | D::Decimal128(precision, scale)
        | D::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_types_are_compared_as() {
        use DataType as D;
        let (us, ns) = (TimeUnit::Microsecond, TimeUnit::Nanosecond);
        let zone = || Some("UTC".into());
        let dictionary = D::Dictionary(Box::new(D::Int8), Box::new(D::Utf8));
        let cases = [
            (D::Int32, D::Int64, Some(D::Int64)),
            (D::UInt64, D::Int64, Some(D::Decimal128(20, 0))),
            (D::Int64, D::Float32, Some(D::Float64)),
            (D::Float64, D::Decimal128(9, 2), Some(D::Float64)),
            (D::Decimal128(9, 2), D::Int32, Some(D::Decimal128(21, 2))),
            (D::Decimal128(38, 0), D::Decimal128(38, 10), Some(D::Decimal256(48, 10))),
            (D::Decimal128(5, 0), D::Int32, Some(D::Int64)),
            (dictionary, D::Utf8View, Some(D::LargeUtf8)),
            (D::FixedSizeBinary(16), D::Binary, Some(D::LargeBinary)),
            (D::Date32, D::Timestamp(us, None), Some(D::Timestamp(us, None))),
            (D::Timestamp(ns, zone()), D::Timestamp(us, zone()), Some(D::Timestamp(ns, zone()))),
            (D::Timestamp(us, zone()), D::Timestamp(us, None), None),
            (D::Date32, D::Int32, None),
            (D::Utf8, D::Int32, None),
            (D::Boolean, D::Boolean, Some(D::Boolean)),
            (D::Null, D::Utf8, Some(D::LargeUtf8)),
        ];
        for (left, right, expected) in cases {
            assert_eq!(common(&left, &right), expected, "{left} and {right}");
            let same = common(&right, &left).map(|ty| ty.to_string());
            assert_eq!(same, expected.map(|ty| ty.to_string()), "{right} and {left}");
        }
    }
}
