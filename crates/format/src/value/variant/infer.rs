//! Infers what variants are shredded as from some of them, by the rules of the Java library.
//!
//! A value gets a column if all its observations have one type: integers are those of the widest, decimals get the
//! digits that all need. Fields in less than a tenth of the variants stay in `value`, and so do the rarest of more than
//! 300.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

use super::node::{Node, Variant};
use super::shape::{Kind, Shape, digits};

/// Maximum columns of an object; the most frequent fields get them.
const FIELDS: usize = 300;
/// Maximum fields of an object that are counted.
const COUNTED: usize = 1000;
/// Levels that are looked at.
const LEVELS: usize = 50;
/// A field gets a column if it is in one of this many variants.
const ONE_IN: usize = 10;
/// Maximum digits of a decimal.
const DIGITS: u32 = 38;

/// What is known of the values at one place.
#[derive(Debug, Default)]
pub struct Observed {
    count: usize,
    types: Types,
    fields: BTreeMap<String, Observed>,
    element: Option<Box<Observed>>,
}

/// The types of the values at one place.
#[derive(Debug, Default)]
enum Types {
    #[default]
    None,
    Primitive(Kind),
    /// Digits before and after the point.
    Decimal(u32, u32),
    Object,
    Array,
    /// Types that do not share a column.
    Mixed,
}

impl Observed {
    /// Looks at one more variant.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be read.
    pub fn add(&mut self, variant: Variant<'_>) -> Result<()> {
        self.see(variant, 0)
    }

    /// What to shred as; `None` if the variants are better left whole.
    #[must_use]
    pub fn shape(mut self) -> Option<Shape> {
        let variants = self.count;
        if matches!(self.types, Types::None | Types::Mixed) {
            return None;
        }
        self.drop_rare(variants);
        self.build()
    }

    fn see(&mut self, variant: Variant<'_>, level: usize) -> Result<()> {
        let node = match variant.node() {
            Ok(Node::Null) => return Ok(()),
            Ok(node) => node,
            // A type that this version does not know.
            Err(Error::Unsupported(_)) => {
                (self.count, self.types) = (self.count + 1, Types::Mixed);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.count += 1;
        self.types.add(&node);
        match node {
            Node::Object(object) if level < LEVELS => {
                for field in object.fields() {
                    let (name, value) = field?;
                    let has_room = self.fields.len() < COUNTED;
                    if let Some(field) = self.fields.get_mut(name) {
                        field.see(value, level + 1)?;
                    } else if has_room {
                        self.fields.entry(name.to_owned()).or_default().see(value, level + 1)?;
                    }
                }
            }
            Node::Array(elements) if level < LEVELS => {
                let seen = self.element.get_or_insert_default();
                elements.iter().try_for_each(|element| seen.see(element?, level + 1))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Leaves out rare fields, at all levels; counts of fields in arrays are those of elements, as in the library.
    fn drop_rare(&mut self, variants: usize) {
        self.fields.retain(|_, field| field.count.saturating_mul(ONE_IN) >= variants);
        if self.fields.len() > FIELDS {
            let mut ranked: Vec<(usize, String)> =
                self.fields.iter().map(|(name, field)| (field.count, name.clone())).collect();
            ranked.sort_by(|(a, first), (b, second)| b.cmp(a).then_with(|| first.cmp(second)));
            for (_, name) in ranked.drain(FIELDS..) {
                self.fields.remove(&name);
            }
        }
        self.fields.values_mut().for_each(|field| field.drop_rare(variants));
        if let Some(element) = &mut self.element {
            element.drop_rare(variants);
        }
    }

    fn build(self) -> Option<Shape> {
        Some(match self.types {
            Types::None | Types::Mixed => return None,
            Types::Primitive(kind) => Shape::Primitive(kind),
            Types::Decimal(before, after) => {
                let number = |digits: u32| u8::try_from(digits.min(DIGITS)).unwrap_or_default();
                let scale = after.min(DIGITS.saturating_sub(before));
                Shape::Primitive(Kind::Decimal { precision: number(before + after), scale: number(scale) })
            }
            Types::Array => Shape::Array(Box::new((*self.element?).build()?)),
            Types::Object => {
                let fields: Vec<(String, Shape)> =
                    self.fields.into_iter().filter_map(|(name, field)| Some((name, field.build()?))).collect();
                if fields.is_empty() {
                    return None;
                }
                Shape::Object(fields)
            }
        })
    }
}

impl Types {
    fn add(&mut self, node: &Node<'_>) {
        let own = Self::of(node);
        *self = match (std::mem::take(self), own) {
            (Self::None, own) => own,
            (Self::Decimal(before, after), Self::Decimal(more, behind)) => {
                Self::Decimal(before.max(more), after.max(behind))
            }
            (Self::Primitive(seen), Self::Primitive(kind)) => match (integer(seen), integer(kind)) {
                (Some(a), Some(b)) => Self::Primitive(if a < b { kind } else { seen }),
                _ if seen == kind => Self::Primitive(kind),
                _ => Self::Mixed,
            },
            (Self::Object, Self::Object) => Self::Object,
            (Self::Array, Self::Array) => Self::Array,
            _ => Self::Mixed,
        };
    }

    fn of(node: &Node<'_>) -> Self {
        Self::Primitive(match node {
            Node::Null => return Self::None,
            Node::Object(_) => return Self::Object,
            Node::Array(_) => return Self::Array,
            Node::Decimal { unscaled, scale, .. } => {
                let scale = u32::from(*scale);
                return Self::Decimal(digits(*unscaled).saturating_sub(scale), scale);
            }
            Node::Boolean(_) => Kind::Boolean,
            Node::Int8(_) => Kind::Int8,
            Node::Int16(_) => Kind::Int16,
            Node::Int32(_) => Kind::Int32,
            Node::Int64(_) => Kind::Int64,
            Node::Float(_) => Kind::Float,
            Node::Double(_) => Kind::Double,
            Node::Date(_) => Kind::Date,
            Node::Time(_) => Kind::Time,
            Node::Timestamp { is_utc, .. } => Kind::Timestamp { is_utc: *is_utc },
            Node::TimestampNanos { is_utc, .. } => Kind::TimestampNanos { is_utc: *is_utc },
            Node::String(_) => Kind::String,
            Node::Binary(_) => Kind::Binary,
            Node::Uuid(_) => Kind::Uuid,
        })
    }
}

/// Rank of an integer type.
fn integer(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Int8 => Some(0),
        Kind::Int16 => Some(1),
        Kind::Int32 => Some(2),
        Kind::Int64 => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::variant::Tree;

    fn object<const N: usize>(fields: [(&str, Tree); N]) -> Tree {
        Tree::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn text(text: &str) -> Tree {
        Tree::Primitive(crate::value::variant::tree::Primitive::String(text.to_owned()))
    }

    fn inferred(values: &[Tree]) -> Option<String> {
        let mut observed = Observed::default();
        for value in values {
            let (metadata, value) = value.encode().unwrap();
            observed.add(Variant::new(&metadata, &value).unwrap()).unwrap();
        }
        observed.shape().map(|shape| shape.to_string())
    }

    #[test]
    fn shapes_follow_the_rules_of_java() {
        let int = Tree::integer;
        let null = || Tree::fixed(Node::Null);
        let decimal = |unscaled, scale| Tree::decimal(unscaled, scale).unwrap();
        let array = |elements: Vec<Tree>| Tree::Array(elements);
        let rare = |count: usize| -> Vec<Tree> {
            (0..20)
                .map(|row| if row < count { object([("a", int(1)), ("r", int(1))]) } else { object([("a", int(1))]) })
                .collect()
        };
        for (values, shape) in [
            (vec![], None),
            (vec![null()], None),
            (vec![int(1), null(), int(1000)], Some("int16")),
            (vec![int(1 << 40), int(1)], Some("long")),
            (vec![int(1), text("x")], None),
            (vec![decimal(15, 1), decimal(12345, 2)], Some("decimal(5, 2)")),
            (vec![decimal(5, 3)], Some("decimal(3, 3)")),
            (vec![decimal(10_i128.pow(37), 0), decimal(1, 5)], Some("decimal(38, 0)")),
            (vec![decimal(1, 0), int(1)], None),
            (vec![Tree::fixed(Node::Float(1.0)), Tree::fixed(Node::Double(1.0))], None),
            (
                vec![object([("a", int(1)), ("b", text("x"))]), object([("b", null())])],
                Some("struct<a: int8, b: string>"),
            ),
            (vec![object([("a", int(1)), ("b", text("x"))]), object([("a", text("y"))])], Some("struct<b: string>")),
            (vec![object([("a", null())])], None),
            (vec![object([])], None),
            (vec![object([("a", int(1))]), array(vec![])], None),
            (vec![array(vec![int(1), null(), int(2)])], Some("list<int8>")),
            (vec![array(vec![int(1), text("x")])], None),
            (vec![array(vec![])], None),
            (
                vec![array(vec![object([("x", int(1))]), object([("y", array(vec![text("z")]))])])],
                Some("list<struct<x: int8, y: list<string>>>"),
            ),
            (rare(2), Some("struct<a: int8, r: int8>")),
            (rare(1), Some("struct<a: int8>")),
        ] {
            assert_eq!(inferred(&values).as_deref(), shape, "{values:?}");
        }
    }

    #[test]
    fn wide_and_deep_values_are_limited() {
        let wide =
            |fields: usize| Tree::Object((0..fields).map(|at| (format!("f{at:04}"), Tree::integer(1))).collect());
        let shape = inferred(&[wide(400), wide(200)]).unwrap();
        assert_eq!(shape.matches("int8").count(), 300);
        assert!(shape.contains("f0299") && !shape.contains("f0300"));
        let deep = (0..60).fold(Tree::integer(1), |inner, _| Tree::Array(vec![inner]));
        assert_eq!(inferred(&[deep]), None);
        let least = (0..50).fold(Tree::integer(1), |inner, _| Tree::Array(vec![inner]));
        assert!(inferred(&[least]).is_some());
    }
}
