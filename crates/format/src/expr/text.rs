//! Writes expressions as SQL text that the parser in [`super::sql`] reads back.

use std::fmt;

use crate::transform::Transform;
use crate::types::PrimitiveType;
use crate::value::Value;

use super::bind::{BoundPredicate, BoundTerm};
use super::condition::{ColumnComparison, ConditionPredicate};
use super::extract::Extract;
use super::literal::{Literal, write_quoted, write_sql};
use super::predicate::{Comparison, Predicate, Term, Test};
use super::sql::periods::write_ordinal;
use super::{Expression, lexer};

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
            Self::Eq => "=",
            Self::NotEq => "!=",
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_term(f, &self.name, self.transform.as_ref(), self.extract.as_ref())
    }
}

impl fmt::Display for BoundTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_term(f, &self.reference.name, self.transform.as_ref(), self.extract.as_ref())
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transform = self.term.transform.as_ref();
        let write = |f: &mut fmt::Formatter<'_>, literal: &Literal| {
            write_ordinal(f, transform, literal.ty(), literal.value()).unwrap_or_else(|| literal.fmt(f))
        };
        write_test(f, &self.term, &self.test, |literal: &Literal| literal, write, Vec::as_slice)
    }
}

impl fmt::Display for ConditionPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literals(predicate) => predicate.fmt(f),
            Self::Columns(columns) => columns.fmt(f),
        }
    }
}

impl fmt::Display for ColumnComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.comparison, self.right)
    }
}

impl fmt::Display for BoundPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Always primitive, or binding would have failed.
        let ty = self.term.ty.as_primitive().unwrap_or(&PrimitiveType::Unknown);
        let write = |f: &mut fmt::Formatter<'_>, value: &Value| match value {
            Value::Int(number) if *ty == PrimitiveType::Int => {
                let ordinal = Value::Long(i64::from(*number));
                let written = write_ordinal(f, self.term.transform.as_ref(), &PrimitiveType::Long, &ordinal);
                written.unwrap_or_else(|| write!(f, "{number}"))
            }
            value => write_sql(f, ty, value),
        };
        write_test(f, &self.term, &self.test, |value: &Value| value, write, |set| set.values())
    }
}

impl<P: fmt::Display> fmt::Display for Expression<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => f.write_str("TRUE"),
            Self::False => f.write_str("FALSE"),
            Self::Not(child) => write!(f, "NOT ({child})"),
            // `AND` and `OR` group to the left, so only a right operand of the same kind needs parentheses.
            Self::And(left, right) => {
                write_operand(f, left, matches!(**left, Self::Or(..)))?;
                f.write_str(" AND ")?;
                write_operand(f, right, matches!(**right, Self::Or(..) | Self::And(..)))
            }
            Self::Or(left, right) => {
                write!(f, "{left} OR ")?;
                write_operand(f, right, matches!(**right, Self::Or(..)))
            }
            Self::Predicate(predicate) => predicate.fmt(f),
        }
    }
}

fn write_operand<P: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    operand: &Expression<P>,
    parentheses: bool,
) -> fmt::Result {
    if parentheses { write!(f, "({operand})") } else { write!(f, "{operand}") }
}

fn write_term(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    transform: Option<&Transform>,
    extract: Option<&Extract>,
) -> fmt::Result {
    if let Some(extract) = extract {
        write_name(f, name)?;
        return write!(f, "{extract}");
    }
    match transform {
        None => write_name(f, name),
        Some(Transform::Bucket(parameter)) => write_call(f, "bucket", Some(*parameter), name),
        Some(Transform::Truncate(parameter)) => write_call(f, "truncate", Some(*parameter), name),
        Some(transform) => write_call(f, &transform.to_string(), None, name),
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, function: &str, parameter: Option<u32>, name: &str) -> fmt::Result {
    write!(f, "{function}(")?;
    if let Some(parameter) = parameter {
        write!(f, "{parameter}, ")?;
    }
    write_name(f, name)?;
    f.write_str(")")
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = name.split('.').all(lexer::is_plain_name);
    if plain { f.write_str(name) } else { write_quoted(f, name, '"') }
}

fn write_test<L, S>(
    f: &mut fmt::Formatter<'_>,
    term: &impl fmt::Display,
    test: &Test<L, S>,
    value: impl Fn(&L) -> &L,
    write: impl Fn(&mut fmt::Formatter<'_>, &L) -> fmt::Result,
    values: impl Fn(&S) -> &[L],
) -> fmt::Result
where
    L: PrefixText,
{
    if let Test::Intersects(envelope) | Test::Disjoint(envelope) = test {
        let function = if matches!(test, Test::Intersects(_)) { "st_intersects" } else { "st_disjoint" };
        let [xmin, ymin, xmax, ymax] = envelope.coordinates();
        return write!(f, "{function}({term}, st_makeenvelope({xmin:?}, {ymin:?}, {xmax:?}, {ymax:?}))");
    }
    term.fmt(f)?;
    match test {
        Test::IsNull => f.write_str(" IS NULL"),
        Test::NotNull => f.write_str(" IS NOT NULL"),
        Test::IsNan => f.write_str(" IS NAN"),
        Test::NotNan => f.write_str(" IS NOT NAN"),
        Test::Compare(comparison, literal) => {
            write!(f, " {comparison} ")?;
            write(f, value(literal))
        }
        Test::StartsWith(prefix) => write_prefix(f, " LIKE ", prefix.prefix()),
        Test::NotStartsWith(prefix) => write_prefix(f, " NOT LIKE ", prefix.prefix()),
        Test::In(set) => write_list(f, " IN (", values(set), write),
        Test::NotIn(set) => write_list(f, " NOT IN (", values(set), write),
        Test::Intersects(_) | Test::Disjoint(_) => Ok(()),
    }
}

/// The text of a prefix, in bound and unbound predicates.
trait PrefixText {
    fn prefix(&self) -> &str;
}

impl PrefixText for Literal {
    fn prefix(&self) -> &str {
        self.value().prefix()
    }
}

impl PrefixText for Value {
    fn prefix(&self) -> &str {
        match self {
            Self::String(text) => text,
            _ => "",
        }
    }
}

/// Writes a prefix as a pattern, with wildcard characters escaped by a backslash.
fn write_prefix(f: &mut fmt::Formatter<'_>, operator: &str, prefix: &str) -> fmt::Result {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for c in prefix.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    f.write_str(operator)?;
    write_quoted(f, &pattern, '\'')
}

fn write_list<L>(
    f: &mut fmt::Formatter<'_>,
    opening: &str,
    values: &[L],
    write: impl Fn(&mut fmt::Formatter<'_>, &L) -> fmt::Result,
) -> fmt::Result {
    f.write_str(opening)?;
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        write(f, value)?;
    }
    f.write_str(")")
}
