//! Filters, and whether a row matches them, implemented by the documentation and the specification, independently of
//! the tested code.

use std::cmp::Ordering;

use icefield_format::expr::{Comparison, Expr, Literal, Predicate, Term, Test};
use icefield_format::transform::Transform;
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;

use crate::pruning::draw::Draw;
use crate::pruning::values::{apply, is_nan, neighbour, order, pool, transforms};
use crate::pruning::world::{Column, Row, World};

#[derive(Debug, Clone)]
pub enum Filter {
    Leaf(Leaf),
    Not(Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

#[derive(Debug, Clone)]
pub struct Leaf {
    position: usize,
    name: String,
    /// The type of the column.
    column: PrimitiveType,
    transform: Option<Transform>,
    /// The type of the term.
    ty: PrimitiveType,
    test: Test<Value, Vec<Value>>,
}

impl Filter {
    pub fn draw(draw: &mut Draw, world: &World, depth: usize) -> Self {
        let inner = |draw: &mut Draw| Box::new(Self::draw(draw, world, depth - 1));
        match if depth == 0 { 0 } else { draw.below(6) } {
            0..=2 => Self::Leaf(Leaf::draw(draw, world)),
            3 => Self::Not(inner(draw)),
            4 => Self::And(inner(draw), inner(draw)),
            _ => Self::Or(inner(draw), inner(draw)),
        }
    }

    pub fn expr(&self) -> Expr {
        match self {
            Self::Leaf(leaf) => Expr::Predicate(leaf.predicate()),
            Self::Not(child) => Expr::not(child.expr()),
            Self::And(left, right) => Expr::and(left.expr(), right.expr()),
            Self::Or(left, right) => Expr::or(left.expr(), right.expr()),
        }
    }

    pub fn matches(&self, row: &Row) -> bool {
        self.holds(row, false)
    }

    /// Whether a row matches; `NOT` negates the tests before they are applied to rows.
    fn holds(&self, row: &Row, negated: bool) -> bool {
        match (self, negated) {
            (Self::Leaf(leaf), false) => leaf.holds(row, &leaf.test),
            (Self::Leaf(leaf), true) => leaf.holds(row, &leaf.test.clone().negate()),
            (Self::Not(child), _) => child.holds(row, !negated),
            (Self::And(left, right), false) | (Self::Or(left, right), true) => {
                left.holds(row, negated) && right.holds(row, negated)
            }
            (Self::Or(left, right), false) | (Self::And(left, right), true) => {
                left.holds(row, negated) || right.holds(row, negated)
            }
        }
    }
}

impl Leaf {
    fn draw(draw: &mut Draw, world: &World) -> Self {
        let position = draw.below(world.columns.len());
        let column = &world.columns[position];
        let transform = if draw.chance(45) { Some(Self::transform(draw, column)) } else { None };
        let transform = transform.filter(|transform| !transform.is_void());
        let today = &column.types.1;
        let ty = match &transform {
            Some(transform) => {
                let ty = transform.result_type(&today.clone().into()).unwrap();
                ty.as_primitive().unwrap().clone()
            }
            None => today.clone(),
        };
        let values = world.literals(position);
        let mut literal = |draw: &mut Draw| {
            let drawn = match draw.below(4) {
                0..=2 => draw.pick(&values),
                _ => draw.pick(&column.within(pool(today))),
            };
            let drawn = if drawn.as_ref().is_some_and(is_nan) { None } else { drawn };
            let drawn = drawn.or_else(|| column.within(pool(today)).into_iter().flatten().next()).unwrap();
            let drawn = match &transform {
                Some(transform) => apply(transform, today, Some(&drawn)).unwrap_or(Value::Int(0)),
                None => drawn,
            };
            match draw.below(6) {
                2 | 4 => neighbour(&drawn, true),
                3 | 5 => neighbour(&drawn, false),
                _ => drawn,
            }
        };
        let test = Self::test(draw, &ty, &mut literal);
        Self { position, name: column.name.clone(), column: today.clone(), transform, ty, test }
    }

    /// Selects a transform, often one by which files are partitioned.
    fn transform(draw: &mut Draw, column: &Column) -> Transform {
        let all = column.within_hours(transforms(&(column.types.1.clone(), column.types.1.clone())));
        if column.partitioned.is_empty() || draw.chance(50) { draw.pick(&all) } else { draw.pick(&column.partitioned) }
    }

    fn test(
        draw: &mut Draw,
        ty: &PrimitiveType,
        literal: &mut impl FnMut(&mut Draw) -> Value,
    ) -> Test<Value, Vec<Value>> {
        use Comparison as C;
        let comparisons = [C::Eq, C::NotEq, C::Lt, C::LtEq, C::Gt, C::GtEq];
        let mut several = |draw: &mut Draw| (0..draw.pick(&[1, 1, 2, 3])).map(|_| literal(draw)).collect::<Vec<_>>();
        match draw.below(14) {
            8 => Test::In(several(draw)),
            9 => Test::NotIn(several(draw)),
            10 => Test::IsNull,
            11 => Test::NotNull,
            kind @ (12 | 13) => match ty {
                PrimitiveType::String if kind == 12 => Test::StartsWith(literal(draw)),
                PrimitiveType::String => Test::NotStartsWith(literal(draw)),
                PrimitiveType::Float | PrimitiveType::Double if kind == 12 => Test::IsNan,
                PrimitiveType::Float | PrimitiveType::Double => Test::NotNan,
                _ => Test::Compare(C::Eq, literal(draw)),
            },
            _ => Test::Compare(draw.pick(&comparisons), literal(draw)),
        }
    }

    fn predicate(&self) -> Predicate {
        let term = Term { name: self.name.clone(), transform: self.transform.clone(), extract: None };
        let of = |value: &Value| Literal::new(self.ty.clone(), value.clone()).unwrap();
        let test = match &self.test {
            Test::IsNull => Test::IsNull,
            Test::NotNull => Test::NotNull,
            Test::IsNan => Test::IsNan,
            Test::NotNan => Test::NotNan,
            Test::Compare(comparison, value) => Test::Compare(*comparison, of(value)),
            Test::StartsWith(prefix) => Test::StartsWith(of(prefix)),
            Test::NotStartsWith(prefix) => Test::NotStartsWith(of(prefix)),
            Test::In(values) => Test::In(values.iter().map(of).collect()),
            Test::NotIn(values) => Test::NotIn(values.iter().map(of).collect()),
            Test::Intersects(_) | Test::Disjoint(_) => unreachable!("geometries are not drawn"),
        };
        Predicate { term, test }
    }

    fn holds(&self, row: &Row, test: &Test<Value, Vec<Value>>) -> bool {
        let value = match &self.transform {
            Some(transform) => apply(transform, &self.column, row[self.position].as_ref()),
            None => row[self.position].clone(),
        };
        let nan = value.as_ref().is_some_and(is_nan);
        let to = |literal: &Value| value.as_ref().filter(|_| !nan).map(|value| order(value, literal));
        let begins = |prefix: &Value| match (&value, prefix) {
            (Some(Value::String(text)), Value::String(prefix)) => text.starts_with(prefix.as_str()),
            _ => false,
        };
        match test {
            Test::IsNull => value.is_none(),
            Test::NotNull => value.is_some(),
            Test::IsNan => nan,
            Test::NotNan => !nan,
            Test::Compare(Comparison::Eq, literal) => to(literal) == Some(Ordering::Equal),
            Test::Compare(Comparison::NotEq, literal) => to(literal) != Some(Ordering::Equal),
            Test::Compare(Comparison::Lt, literal) => to(literal).is_some_and(Ordering::is_lt),
            Test::Compare(Comparison::LtEq, literal) => to(literal).is_some_and(Ordering::is_le),
            Test::Compare(Comparison::Gt, literal) => to(literal).is_some_and(Ordering::is_gt),
            Test::Compare(Comparison::GtEq, literal) => to(literal).is_some_and(Ordering::is_ge),
            Test::StartsWith(prefix) => begins(prefix),
            Test::NotStartsWith(prefix) => !begins(prefix),
            Test::In(literals) => literals.iter().any(|literal| to(literal) == Some(Ordering::Equal)),
            Test::NotIn(literals) => literals.iter().all(|literal| to(literal) != Some(Ordering::Equal)),
            Test::Intersects(_) | Test::Disjoint(_) => unreachable!("geometries are not drawn"),
        }
    }
}
