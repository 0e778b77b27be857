//! Terms inside variants: `v:a.b::long`, the Java library's `extract("v", "$.a.b", "long")`.
//!
//! A term is null where the variant has no value at the path, and where the value cannot be converted to the type
//! without changing its meaning: text never becomes a number, nor a number text. [`cast`] defines the conversions,
//! which are those of Java's `VariantExpressionUtil`.

use std::fmt;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::types::PrimitiveType;
use crate::value::Value;
use crate::value::calendar::{MICROS_PER_DAY, NANOS_PER_DAY};
use crate::value::variant::column::at;
use crate::value::variant::{Column, Node, Path, Variant};

use super::lexer;
use super::literal::write_quoted;
use crate::value::variant::path::Step;

/// Extracts the value at a path in a variant, as a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Extract {
    path: Path,
    ty: PrimitiveType,
}

impl Extract {
    /// Creates a term from a path and a type.
    ///
    /// # Errors
    /// `Invalid` for a type that no value of a variant has: `unknown`, `geometry`, `geography`.
    pub fn new(path: Path, ty: PrimitiveType) -> Result<Self> {
        use PrimitiveType as T;
        match ty {
            T::Unknown | T::Geometry { .. } | T::Geography { .. } | T::Unrecognized(_) => {
                Err(Error::invalid(format!("no value of a variant has the type {ty}")))
            }
            ty => Ok(Self { path, ty }),
        }
    }

    /// The path to the value.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The type that the value is converted to.
    #[must_use]
    pub fn ty(&self) -> &PrimitiveType {
        &self.ty
    }

    /// Extracts the value from one variant.
    ///
    /// # Errors
    /// `Corrupt` if the variant cannot be read.
    pub fn of(&self, variant: Variant<'_>) -> Result<Option<Value>> {
        match self.path.find(variant)? {
            Some(found) => read(found, &self.ty),
            None => Ok(None),
        }
    }

    /// Extracts a bound of the term: the bounds of a variant column are an object whose keys are normalized paths.
    pub(super) fn bound(&self, bytes: &[u8]) -> Option<Value> {
        let bounds = Variant::concatenated(bytes).ok()?;
        let Node::Object(bounds) = bounds.node().ok()? else { return None };
        read(bounds.get(&self.path.to_string()).ok()??, &self.ty).ok()?
    }

    /// Extracts the values from a column of variants.
    pub(super) fn column(&self, variants: &dyn Array) -> Result<ArrayRef> {
        use PrimitiveType as T;
        let column = Column::new(variants)?;
        let term = |row| match column.get(row)? {
            Some(variant) => self.of(variant).map_err(at(row)),
            None => Ok(None),
        };
        let values = (0..column.len()).map(term).collect::<Result<Vec<_>>>()?;
        let int = |value: &Option<Value>| match value {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        };
        let long = |value: &Option<Value>| match value {
            Some(Value::Long(value)) => Some(*value),
            _ => None,
        };
        let bytes = |value: &Option<Value>| match value {
            Some(Value::Binary(value)) => Some(value.clone()),
            Some(Value::Uuid(value)) => Some(value.to_vec()),
            _ => None,
        };
        let fixed = |length: i32| -> Result<ArrayRef> {
            let mut out = FixedSizeBinaryBuilder::with_capacity(values.len(), length);
            for value in values.iter().map(bytes) {
                match value {
                    Some(value) => out.append_value(value).map_err(|error| Error::invalid(error.to_string()))?,
                    None => out.append_null(),
                }
            }
            Ok(Arc::new(out.finish()))
        };
        Ok(match &self.ty {
            T::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
                Some(Value::Boolean(value)) => Some(*value),
                _ => None,
            }))),
            T::Int => primitive::<Int32Type>(values.iter().map(int)),
            T::Date => primitive::<Date32Type>(values.iter().map(int)),
            T::Long => primitive::<Int64Type>(values.iter().map(long)),
            T::Time => primitive::<Time64MicrosecondType>(values.iter().map(long)),
            T::Timestamp => primitive::<TimestampMicrosecondType>(values.iter().map(long)),
            T::TimestampNs => primitive::<TimestampNanosecondType>(values.iter().map(long)),
            T::Timestamptz => {
                let moments = PrimitiveArray::<TimestampMicrosecondType>::from_iter(values.iter().map(long));
                Arc::new(moments.with_timezone("UTC"))
            }
            T::TimestamptzNs => {
                let moments = PrimitiveArray::<TimestampNanosecondType>::from_iter(values.iter().map(long));
                Arc::new(moments.with_timezone("UTC"))
            }
            T::Float => primitive::<Float32Type>(values.iter().map(|value| match value {
                Some(Value::Float(value)) => Some(*value),
                _ => None,
            })),
            T::Double => primitive::<Float64Type>(values.iter().map(|value| match value {
                Some(Value::Double(value)) => Some(*value),
                _ => None,
            })),
            T::Decimal { precision, scale } => {
                let unscaled = values.iter().map(|value| match value {
                    Some(Value::Decimal(value)) => Some(*value),
                    _ => None,
                });
                let scale = i8::try_from(*scale).map_err(|error| Error::invalid(error.to_string()))?;
                let decimals = PrimitiveArray::<Decimal128Type>::from_iter(unscaled);
                let decimals = decimals.with_precision_and_scale(*precision, scale);
                Arc::new(decimals.map_err(|error| Error::invalid(error.to_string()))?)
            }
            T::String => Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
                Some(Value::String(value)) => Some(value),
                _ => None,
            }))),
            T::Uuid => fixed(16)?,
            T::Fixed(length) => fixed(i32::try_from(*length).map_err(|error| Error::invalid(error.to_string()))?)?,
            _ => {
                let mut out = BinaryBuilder::new();
                values.iter().map(bytes).for_each(|value| out.append_option(value));
                Arc::new(out.finish())
            }
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(values: impl Iterator<Item = Option<T::Native>>) -> ArrayRef {
    Arc::new(values.collect::<Vec<_>>().into_iter().collect::<PrimitiveArray<T>>())
}

/// Writes SQL text without the column: `:a.b[0]::long`.
impl fmt::Display for Extract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.path.steps().iter().enumerate() {
            match step {
                Step::Field(name) => {
                    f.write_str(if place == 0 { ":" } else { "." })?;
                    if lexer::is_plain_name(name) { f.write_str(name)? } else { write_quoted(f, name, '"')? }
                }
                Step::Element(at) => write!(f, "{}[{at}]", if place == 0 { ":" } else { "" })?,
            }
        }
        write!(f, "::{}", self.ty)
    }
}

/// Reads a variant as a type.
fn read(variant: Variant<'_>, ty: &PrimitiveType) -> Result<Option<Value>> {
    match variant.node() {
        Ok(node) => Ok(cast(&node, ty)),
        // A type that is not supported here.
        Err(Error::Unsupported(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Converts a value to a type like the Java library; `None` if it does not. A date becomes the timestamp of its
/// midnight, a timestamp becomes its day.
#[must_use]
pub fn cast(node: &Node<'_>, ty: &PrimitiveType) -> Option<Value> {
    use PrimitiveType as T;
    let micros_to_days = |micros: i64| i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok().map(Value::Int);
    Some(match (ty, node) {
        (T::Boolean, Node::Boolean(value)) => Value::Boolean(*value),
        (T::Int, Node::Int8(value)) => Value::Int((*value).into()),
        (T::Int, Node::Int16(value)) => Value::Int((*value).into()),
        (T::Int, Node::Int32(value)) | (T::Date, Node::Date(value)) => Value::Int(*value),
        (T::Long, Node::Int8(value)) => Value::Long((*value).into()),
        (T::Long, Node::Int16(value)) => Value::Long((*value).into()),
        (T::Long, Node::Int32(value)) => Value::Long((*value).into()),
        (T::Long, Node::Int64(value)) | (T::Time, Node::Time(value)) => Value::Long(*value),
        (T::Float, Node::Float(value)) => Value::Float(*value),
        (T::Double, Node::Float(value)) => Value::Double((*value).into()),
        (T::Double, Node::Double(value)) => Value::Double(*value),
        (T::Decimal { precision, scale }, Node::Decimal { unscaled, scale: own, .. }) => {
            let limit = 10_i128.checked_pow(u32::from(*precision))?;
            (scale == own && unscaled.unsigned_abs() < limit.unsigned_abs()).then_some(Value::Decimal(*unscaled))?
        }
        (T::Date, Node::Timestamp { micros, .. }) => micros_to_days(*micros)?,
        (T::Date, Node::TimestampNanos { nanos, .. }) => micros_to_days(nanos.div_euclid(1000))?,
        (T::Timestamp, Node::Timestamp { micros, is_utc: false })
        | (T::Timestamptz, Node::Timestamp { micros, is_utc: true }) => Value::Long(*micros),
        (T::TimestampNs, Node::TimestampNanos { nanos, is_utc: false })
        | (T::TimestamptzNs, Node::TimestampNanos { nanos, is_utc: true }) => Value::Long(*nanos),
        (T::Timestamp | T::Timestamptz, Node::TimestampNanos { nanos, .. }) => Value::Long(nanos.div_euclid(1000)),
        (T::TimestampNs | T::TimestamptzNs, Node::Timestamp { micros, .. }) => Value::Long(micros.checked_mul(1000)?),
        (T::Timestamp | T::Timestamptz, Node::Date(days)) => Value::Long(i64::from(*days).checked_mul(MICROS_PER_DAY)?),
        (T::TimestampNs | T::TimestamptzNs, Node::Date(days)) => {
            Value::Long(i64::from(*days).checked_mul(NANOS_PER_DAY)?)
        }
        (T::String, Node::String(text)) => Value::String((*text).to_owned()),
        (T::Uuid, Node::Uuid(bytes)) => Value::Uuid(*bytes),
        (T::Binary, Node::Binary(bytes)) => Value::Binary(bytes.to_vec()),
        (T::Fixed(length), Node::Binary(bytes)) => {
            (usize::try_from(*length) == Ok(bytes.len())).then(|| Value::Binary(bytes.to_vec()))?
        }
        _ => return None,
    })
}
