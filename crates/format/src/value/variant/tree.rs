//! Trees of values, to be encoded as variants.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::primitive::PrimitiveType;
use crate::value::Value;

use super::encode::{finish_array, finish_object, metadata, primitive};
use super::node::{Node, Variant};
use super::{DEPTH, Metadata};

/// A value to be encoded.
#[derive(Debug, Clone)]
pub enum Tree {
    /// A primitive value.
    Primitive(Primitive),
    /// An object, whose names are distinct.
    Object(BTreeMap<String, Tree>),
    /// An array.
    Array(Vec<Tree>),
}

/// A primitive value that owns its bytes, if it has any.
#[derive(Debug, Clone)]
pub enum Primitive {
    /// `string`
    String(String),
    /// `binary`
    Binary(Vec<u8>),
    /// Any other primitive value.
    Fixed(Node<'static>),
}

impl Tree {
    /// The smallest integer type that holds a number, as Spark writes it.
    #[must_use]
    pub fn integer(number: i64) -> Self {
        let node = match (i8::try_from(number), i16::try_from(number), i32::try_from(number)) {
            (Ok(small), _, _) => Node::Int8(small),
            (_, Ok(small), _) => Node::Int16(small),
            (_, _, Ok(small)) => Node::Int32(small),
            _ => Node::Int64(number),
        };
        Self::fixed(node)
    }

    /// The smallest decimal type that holds a number.
    ///
    /// # Errors
    /// `Invalid` for more than 38 digits, before or after the point.
    pub fn decimal(unscaled: i128, scale: u8) -> Result<Self> {
        let bytes = match unscaled.unsigned_abs().checked_ilog10().unwrap_or(0) {
            0..=8 => 4,
            9..=17 => 8,
            18..=37 => 16,
            _ => return Err(Error::invalid("a decimal in a variant has at most 38 digits")),
        };
        if scale > 38 {
            return Err(Error::invalid(format!(
                "a decimal in a variant has at most 38 digits after the decimal point, got {scale}"
            )));
        }
        Ok(Self::fixed(Node::Decimal { unscaled, scale, bytes }))
    }

    /// Reads all values of a variant.
    ///
    /// # Errors
    /// `Corrupt` as [`Variant::check`]; `Unsupported` for an unknown primitive type.
    pub fn read(variant: Variant<'_>) -> Result<Self> {
        variant.check()?;
        Self::of(variant)
    }

    fn of(variant: Variant<'_>) -> Result<Self> {
        Ok(match variant.node()? {
            Node::Object(object) => {
                let fields = object
                    .fields()
                    .map(|field| field.and_then(|(name, value)| Ok((name.to_owned(), Self::of(value)?))));
                Self::Object(fields.collect::<Result<_>>()?)
            }
            Node::Array(elements) => {
                Self::Array(elements.iter().map(|element| Self::of(element?)).collect::<Result<_>>()?)
            }
            Node::String(text) => Self::Primitive(Primitive::String(text.to_owned())),
            Node::Binary(bytes) => Self::Primitive(Primitive::Binary(bytes.to_vec())),
            Node::Null => Self::fixed(Node::Null),
            Node::Boolean(value) => Self::fixed(Node::Boolean(value)),
            Node::Int8(value) => Self::fixed(Node::Int8(value)),
            Node::Int16(value) => Self::fixed(Node::Int16(value)),
            Node::Int32(value) => Self::fixed(Node::Int32(value)),
            Node::Int64(value) => Self::fixed(Node::Int64(value)),
            Node::Float(value) => Self::fixed(Node::Float(value)),
            Node::Double(value) => Self::fixed(Node::Double(value)),
            Node::Decimal { unscaled, scale, bytes } => Self::fixed(Node::Decimal { unscaled, scale, bytes }),
            Node::Date(value) => Self::fixed(Node::Date(value)),
            Node::Time(value) => Self::fixed(Node::Time(value)),
            Node::Timestamp { micros, is_utc } => Self::fixed(Node::Timestamp { micros, is_utc }),
            Node::TimestampNanos { nanos, is_utc } => Self::fixed(Node::TimestampNanos { nanos, is_utc }),
            Node::Uuid(value) => Self::fixed(Node::Uuid(value)),
        })
    }

    /// A primitive value without bytes.
    #[must_use]
    pub fn fixed(node: Node<'static>) -> Self {
        Self::Primitive(Primitive::Fixed(node))
    }

    /// Converts a value of a primitive type; `None` if variants have no such type.
    #[must_use]
    pub fn of_value(value: &Value, ty: &PrimitiveType) -> Option<Self> {
        use PrimitiveType as T;
        let is_utc = matches!(ty, T::Timestamptz | T::TimestamptzNs);
        Some(Self::fixed(match (ty, value) {
            (_, Value::Boolean(value)) => Node::Boolean(*value),
            (T::Date, Value::Int(days)) => Node::Date(*days),
            (_, Value::Int(value)) => Node::Int32(*value),
            (T::Time, Value::Long(micros)) => Node::Time(*micros),
            (T::Timestamp | T::Timestamptz, Value::Long(micros)) => Node::Timestamp { micros: *micros, is_utc },
            (T::TimestampNs | T::TimestamptzNs, Value::Long(nanos)) => Node::TimestampNanos { nanos: *nanos, is_utc },
            (_, Value::Long(value)) => Node::Int64(*value),
            (_, Value::Float(value)) => Node::Float(*value),
            (_, Value::Double(value)) => Node::Double(*value),
            (T::Decimal { scale, .. }, Value::Decimal(unscaled)) => return Self::decimal(*unscaled, *scale).ok(),
            (_, Value::Uuid(bytes)) => Node::Uuid(*bytes),
            (T::String, Value::String(text)) => return Some(Self::Primitive(Primitive::String(text.clone()))),
            (T::Binary | T::Fixed(_), Value::Binary(bytes)) => {
                return Some(Self::Primitive(Primitive::Binary(bytes.clone())));
            }
            _ => return None,
        }))
    }

    /// Encodes as metadata and value.
    ///
    /// # Errors
    /// `Invalid` if nested deeper than [`DEPTH`]; `Unsupported` for 4 GiB and more.
    pub fn encode(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut names = BTreeMap::new();
        let mut open = vec![(self, 0)];
        while let Some((tree, depth)) = open.pop() {
            if depth > DEPTH {
                return Err(Error::invalid(format!("a variant can be nested at most {DEPTH} levels deep")));
            }
            match tree {
                Self::Primitive(_) => {}
                Self::Object(fields) => {
                    for (name, value) in fields {
                        names.insert(name.as_str(), 0);
                        open.push((value, depth + 1));
                    }
                }
                Self::Array(elements) => open.extend(elements.iter().map(|element| (element, depth + 1))),
            }
        }
        for (id, number) in names.values_mut().enumerate() {
            *number = id;
        }
        let mut value = Vec::new();
        self.write(&mut value, &names)?;
        if names.is_empty() {
            return Ok((Metadata::EMPTY.to_vec(), value));
        }
        let sorted: Vec<&str> = names.keys().copied().collect();
        Ok((metadata(sorted.into_iter())?, value))
    }

    fn write(&self, out: &mut Vec<u8>, names: &BTreeMap<&str, usize>) -> Result<()> {
        let start = out.len();
        match self {
            Self::Primitive(Primitive::String(text)) => primitive(out, &Node::String(text)),
            Self::Primitive(Primitive::Binary(bytes)) => primitive(out, &Node::Binary(bytes)),
            Self::Primitive(Primitive::Fixed(node)) => primitive(out, node),
            Self::Object(fields) => {
                let mut places = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    places.push((names.get(name.as_str()).copied().unwrap_or_default(), out.len()));
                    value.write(out, names)?;
                }
                finish_object(out, start, &places, names.len())
            }
            Self::Array(elements) => {
                let mut places = Vec::with_capacity(elements.len());
                for element in elements {
                    places.push(out.len());
                    element.write(out, names)?;
                }
                finish_array(out, start, &places)
            }
        }
    }
}
