//! Converts a table's filter to a predicate with which the ORC reader skips stripes and row groups.
//!
//! Skipped rows must not match; rows that are read may or may not. So a test without an ORC equivalent, or on a
//! column that the file lacks or stores as another type, becomes "true". Iceberg's negative tests match null and NaN,
//! ORC's do not.

use std::collections::HashMap;

use arrow_schema::{DataType, Fields};
use icefield_format::expr::{BoundExpr, BoundPredicate, Comparison, Expression, Test};
use icefield_format::types::PrimitiveType;
use icefield_format::types::arrow::field_id;
use icefield_format::value::Value;
use icefield_orc::Test as OrcTest;
use icefield_orc::{Kind, Literal, Predicate, TypeDescription};

/// The first day with the same date in both calendars.
pub(super) const FIRST_GREGORIAN_DAY: i64 = -141_427;
const SECONDS_OF_DAY: i64 = 86_400;
/// Maximum nanoseconds below a microsecond.
const BELOW_MICROSECOND: u32 = 999;

/// A column of the file, outside lists and maps, that can be tested.
#[derive(Debug, Clone)]
pub struct TestedColumn {
    id: u32,
    kind: Kind,
    /// Whether the file stores the field id; then an Iceberg writer made it, with the type's own values.
    own: bool,
}

/// The columns of a file by field id: `fields` are the file's, with the ids they are read by.
pub fn columns(fields: &Fields, root: &TypeDescription, own: bool) -> HashMap<i32, TestedColumn> {
    fn visit(fields: &Fields, node: &TypeDescription, own: bool, out: &mut HashMap<i32, TestedColumn>) {
        for (field, child) in fields.iter().zip(&node.children) {
            if let Some(id) = field_id(field) {
                out.insert(id, TestedColumn { id: child.column, kind: child.kind.clone(), own });
            }
            if let DataType::Struct(inner) = field.data_type()
                && child.kind == Kind::Struct
            {
                visit(inner, child, own, out);
            }
        }
    }
    let mut out = HashMap::new();
    if root.kind == Kind::Struct {
        visit(fields, root, own, &mut out);
    }
    out
}

/// The predicate of a filter; `None` if it could not skip anything.
pub fn predicate(filter: &BoundExpr, columns: &HashMap<i32, TestedColumn>) -> Option<Predicate> {
    convert(&filter.rewrite_not(), columns)
}

fn convert(filter: &BoundExpr, columns: &HashMap<i32, TestedColumn>) -> Option<Predicate> {
    match filter {
        Expression::False => Some(Predicate::Or(Vec::new())),
        Expression::And(left, right) => match (convert(left, columns), convert(right, columns)) {
            (Some(left), Some(right)) => Some(Predicate::And(vec![left, right])),
            (one, other) => one.or(other),
        },
        Expression::Or(left, right) => Some(Predicate::Or(vec![convert(left, columns)?, convert(right, columns)?])),
        Expression::Predicate(predicate) => leaf(predicate, columns),
        Expression::True | Expression::Not(_) => None,
    }
}

fn not(inner: Predicate) -> Predicate {
    Predicate::Not(Box::new(inner))
}

fn leaf(predicate: &BoundPredicate, columns: &HashMap<i32, TestedColumn>) -> Option<Predicate> {
    let term = &predicate.term;
    if term.extract.is_some() || term.transform.as_ref().is_some_and(|transform| !transform.is_identity()) {
        return None;
    }
    let column = columns.get(&term.reference.id).filter(|_| term.reference.path.is_some())?;
    let is = |test: OrcTest| Predicate::Leaf(column.id, test);
    let or_null = |test: Predicate| Predicate::Or(vec![test, is(OrcTest::IsNull)]);
    Some(match &predicate.test {
        Test::IsNull => is(OrcTest::IsNull),
        Test::NotNull | Test::IsNan => not(is(OrcTest::IsNull)),
        Test::NotNan | Test::NotStartsWith(_) | Test::Intersects(_) | Test::Disjoint(_) => return None,
        Test::StartsWith(Value::String(prefix)) if matches!(column.kind, Kind::String | Kind::Varchar { .. }) => {
            let low = not(is(OrcTest::LessThan(Literal::Text(prefix.clone().into_bytes()))));
            match after(prefix.as_bytes()) {
                Some(end) => Predicate::And(vec![low, is(OrcTest::LessThan(Literal::Text(end)))]),
                None => low,
            }
        }
        Test::StartsWith(_) => return None,
        Test::Compare(comparison, value) => {
            let range = column.range(term.reference.primitive()?, value)?;
            match comparison {
                Comparison::Eq => is(range.equals()),
                // -0.0 and 0.0 are two values in Iceberg, and one number in statistics.
                Comparison::NotEq if range.is_zero() => return None,
                Comparison::NotEq => or_null(not(is(range.equals()))),
                // -0.0 is less than 0.0 in Iceberg's order, and equal in statistics.
                Comparison::Lt if range.is_zero() => is(OrcTest::LessThanEquals(range.high)),
                Comparison::Gt if range.is_zero() => not(is(OrcTest::LessThan(range.low))),
                Comparison::Lt => is(OrcTest::LessThan(range.low)),
                Comparison::LtEq => is(OrcTest::LessThanEquals(range.high)),
                Comparison::Gt => not(is(OrcTest::LessThanEquals(range.high))),
                Comparison::GtEq => not(is(OrcTest::LessThan(range.low))),
            }
        }
        Test::In(values) => {
            let ty = term.reference.primitive()?;
            let ranges = values.values().iter().map(|value| column.range(ty, value)).collect::<Option<Vec<_>>>()?;
            match ranges.iter().all(|range| range.low == range.high) {
                true => is(OrcTest::In(ranges.into_iter().map(|range| range.low).collect())),
                false => Predicate::Or(ranges.into_iter().map(|range| is(range.equals())).collect()),
            }
        }
        // A group is skipped only if every row has one of the values; in practice only if all rows have the same one.
        Test::NotIn(values) => match values
            .values()
            .iter()
            .map(|value| column.range(term.reference.primitive()?, value))
            .collect::<Option<Vec<_>>>()?
            .as_slice()
        {
            [only] if !only.is_zero() => or_null(not(is(only.equals()))),
            _ => return None,
        },
    })
}

/// The smallest bytes above all that start with a prefix.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

/// The stored values that read as one table value: several, if the file is more precise.
struct Range {
    low: Literal,
    high: Literal,
}

impl Range {
    fn one(value: Literal) -> Self {
        Self { low: value.clone(), high: value }
    }

    fn equals(&self) -> OrcTest {
        match self.low == self.high {
            true => OrcTest::Equals(self.low.clone()),
            false => OrcTest::Between(self.low.clone(), self.high.clone()),
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self.low, Literal::Double(value) if value == 0.0)
    }
}

impl TestedColumn {
    fn is_text(&self) -> bool {
        matches!(self.kind, Kind::String | Kind::Char { .. } | Kind::Varchar { .. })
    }

    fn is_moment(&self) -> bool {
        matches!(self.kind, Kind::Timestamp | Kind::TimestampInstant)
    }

    /// A table value as the file may store it; `None` if the types are not comparable.
    fn range(&self, ty: &PrimitiveType, value: &Value) -> Option<Range> {
        use PrimitiveType as P;
        let whole = matches!(self.kind, Kind::Byte | Kind::Short | Kind::Int | Kind::Long);
        Some(Range::one(match (ty, value) {
            (P::Boolean, Value::Boolean(value)) if self.kind == Kind::Boolean => Literal::Boolean(*value),
            (P::Int | P::Date, Value::Int(value)) if whole => Literal::Long(i64::from(*value)),
            (
                P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs,
                Value::Long(value),
            ) if whole => Literal::Long(*value),
            (P::Float, Value::Float(value)) if self.kind == Kind::Float && !value.is_nan() => {
                Literal::Double(f64::from(*value))
            }
            (P::Double, Value::Double(value)) if matches!(self.kind, Kind::Float | Kind::Double) && !value.is_nan() => {
                Literal::Double(*value)
            }
            (P::Decimal { scale, .. }, Value::Decimal(unscaled)) => match self.kind {
                Kind::Decimal { scale: stored, .. } if stored == *scale => {
                    Literal::Decimal { unscaled: *unscaled, scale: stored }
                }
                _ => return None,
            },
            (P::String, Value::String(text)) if self.is_text() => Literal::Text(text.clone().into_bytes()),
            (P::Date, Value::Int(day)) if self.kind == Kind::Date => {
                return self.is_of_one_calendar(i64::from(*day)).then(|| Range::one(Literal::Date(i64::from(*day))));
            }
            // With or without a zone, the numbers of a timestamp are the wall clock in UTC.
            (P::Timestamp | P::Timestamptz, Value::Long(value)) if self.is_moment() => return self.micros(*value),
            (P::TimestampNs | P::TimestamptzNs, Value::Long(value)) if self.is_moment() => return self.nanos(*value),
            _ => return None,
        }))
    }

    /// Statistics of older days may use the Julian calendar, unless Iceberg wrote them.
    fn is_of_one_calendar(&self, day: i64) -> bool {
        self.own || day >= FIRST_GREGORIAN_DAY
    }

    /// Files of other writers may store nanoseconds, which are truncated on reading.
    fn micros(&self, value: i64) -> Option<Range> {
        let seconds = value.div_euclid(1_000_000);
        let nanos = u32::try_from(value.rem_euclid(1_000_000)).ok()? * 1000;
        let at = |nanos: u32| Literal::Timestamp { seconds, nanos };
        let last = if self.own { nanos } else { nanos + BELOW_MICROSECOND };
        let known = self.is_of_one_calendar(seconds.div_euclid(SECONDS_OF_DAY));
        known.then(|| Range { low: at(nanos), high: at(last) })
    }

    fn nanos(&self, value: i64) -> Option<Range> {
        let seconds = value.div_euclid(1_000_000_000);
        let nanos = u32::try_from(value.rem_euclid(1_000_000_000)).ok()?;
        let known = self.is_of_one_calendar(seconds.div_euclid(SECONDS_OF_DAY));
        known.then(|| Range::one(Literal::Timestamp { seconds, nanos }))
    }
}

#[cfg(test)]
mod tests {
    use icefield_format::expr::Expr;
    use icefield_format::types::arrow::ToArrow;
    use icefield_format::types::{Field, Schema};

    use super::*;

    /// Tests of columns that the file has by id are converted to ORC; others are left out.
    #[test]
    fn tests_by_field_id() {
        use PrimitiveType as P;
        let types = [
            ("i", P::Int),
            ("l", P::Long),
            ("f", P::Float),
            ("d", P::Double),
            ("s", P::String),
            ("day", P::Date),
            ("ts", P::Timestamp),
            ("tz", P::Timestamptz),
            ("b", P::Binary),
            ("absent", P::Int),
        ];
        let fields = types.into_iter().zip(1..).map(|((name, ty), id)| Field::optional(id, name, ty));
        let schema = Schema::new(0, fields.collect()).unwrap();
        let names = ["i", "l", "f", "d", "s", "day", "ts", "tz", "b"];
        let kinds = [
            Kind::Int,
            Kind::Int, // promoted
            Kind::Float,
            Kind::Float, // promoted
            Kind::String,
            Kind::Date,
            Kind::Timestamp,
            Kind::Timestamp, // another kind than the table's
            Kind::Binary,
        ];
        let columns_of = |own: bool| {
            let nodes = names.iter().zip(&kinds);
            let mut root = TypeDescription::structure(
                nodes.map(|(name, kind)| ((*name).to_owned(), TypeDescription::leaf(kind.clone()))),
            );
            root.number();
            let arrow = schema.to_arrow(&ToArrow::default()).unwrap();
            columns(arrow.fields(), &root, own)
        };
        for (filter, own, expected) in [
            ("i > 5", true, "not(1 <= 5)"),
            ("l >= 5 and absent = 1", true, "not(2 < 5)"),
            ("l = 5 or absent = 1", true, "all"),
            ("not (l = 5)", true, "or(not(2 = 5), 2 is null)"),
            ("i in (1, 2)", true, "1 in 1 2"),
            ("i not in (1, 2)", true, "all"),
            ("i not in (1)", true, "or(not(1 = 1), 1 is null)"),
            ("d < 0", true, "4 <= 0"),
            ("d > 0", true, "not(4 < 0)"),
            ("d != 0", true, "all"),
            ("d not in (0)", true, "all"),
            ("f != -0.0", true, "all"),
            ("d != 1.5", true, "or(not(4 = 1.5), 4 is null)"),
            ("d < 1.5", true, "4 < 1.5"),
            ("f is nan", true, "not(3 is null)"),
            ("f is not nan", true, "all"),
            ("b is null", true, "9 is null"),
            ("s like 'ab%'", true, "and(not(5 < ab), 5 < ac)"),
            ("s not like 'ab%'", true, "all"),
            ("day < '1500-01-01'", true, "6 < -171664"),
            ("day < '1500-01-01'", false, "all"),
            ("day < '2000-01-01'", false, "6 < 10957"),
            ("ts = '1970-01-01T00:00:01.000002'", true, "7 = 1.000002000"),
            ("ts = '1970-01-01T00:00:01.000002'", false, "7 in 1.000002000..1.000002999"),
            ("ts > '1970-01-01T00:00:01.000002'", false, "not(7 <= 1.000002999)"),
            ("ts < '1970-01-01T00:00:01.000002'", false, "7 < 1.000002000"),
            ("tz = '1970-01-01T00:00:01+00:00'", true, "8 = 1.000000000"),
            ("absent is null", true, "all"),
        ] {
            let bound = Expr::parse(filter).unwrap().bind(&schema, true).unwrap();
            let found = predicate(&bound, &columns_of(own)).map_or_else(|| "all".to_owned(), |found| text(&found));
            assert_eq!(found, expected, "{filter}");
        }
    }

    fn text(predicate: &Predicate) -> String {
        let list = |parts: &[Predicate]| parts.iter().map(text).collect::<Vec<_>>().join(", ");
        match predicate {
            Predicate::And(parts) => format!("and({})", list(parts)),
            Predicate::Or(parts) => format!("or({})", list(parts)),
            Predicate::Not(inner) => format!("not({})", text(inner)),
            Predicate::Leaf(column, test) => format!("{column} {}", test_text(test)),
        }
    }

    fn test_text(test: &OrcTest) -> String {
        let one = |literal: &Literal| match literal {
            Literal::Long(value) | Literal::Date(value) => value.to_string(),
            Literal::Double(value) => value.to_string(),
            Literal::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Literal::Timestamp { seconds, nanos } => format!("{seconds}.{nanos:09}"),
            other => format!("{other:?}"),
        };
        match test {
            OrcTest::Equals(value) | OrcTest::NullSafeEquals(value) => format!("= {}", one(value)),
            OrcTest::LessThan(value) => format!("< {}", one(value)),
            OrcTest::LessThanEquals(value) => format!("<= {}", one(value)),
            OrcTest::In(values) => format!("in {}", values.iter().map(one).collect::<Vec<_>>().join(" ")),
            OrcTest::Between(low, high) => format!("in {}..{}", one(low), one(high)),
            OrcTest::IsNull => "is null".to_owned(),
        }
    }
}
