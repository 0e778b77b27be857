//! Converts values without children, with the rules of orc-core's `ConvertTreeReaderFactory`.
//!
//! A value of the file is first a [`Value`], then one of the type asked for: there is one function for each of them.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

use super::value::{Overflow, Rules, Value};
use super::{number, text, time};
use crate::error::{Error, Result};
use crate::types::{Kind, StringForm};

/// Most spaces that a value of `char` is padded with, as the length of a type is only what the file claims.
const MOST_PADDING: usize = 1 << 16;

/// Converts a column. `column` is its name for errors.
pub(super) fn leaf(
    array: &ArrayRef,
    from: &Kind,
    to: &Kind,
    data_type: &DataType,
    column: &str,
    rules: &Rules,
) -> Result<ArrayRef> {
    let values = Values::new(array, from)?;
    let context = Context { values: &values, from, to, column, rules };
    match to {
        Kind::Boolean => {
            let found = context.all(number::boolean)?;
            Ok(Arc::new(BooleanArray::from(found)))
        }
        Kind::Byte => context.primitive::<Int8Type>(|value| number::long(value)?.try_into().ok()),
        Kind::Short => context.primitive::<Int16Type>(|value| number::long(value)?.try_into().ok()),
        Kind::Int => context.primitive::<Int32Type>(|value| number::long(value)?.try_into().ok()),
        Kind::Long => context.primitive::<Int64Type>(number::long),
        Kind::Float => context.primitive::<Float32Type>(|value| number::float(value, rules.overflow)),
        Kind::Double => context.primitive::<Float64Type>(number::double),
        Kind::Decimal { precision, scale } => {
            let found = context.all(|value| number::decimal(value, *precision, *scale))?;
            let made = PrimitiveArray::<Decimal128Type>::from(found);
            Ok(Arc::new(made.with_precision_and_scale(*precision, *scale as i8)?))
        }
        Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => context.texts(),
        Kind::Binary => {
            let mut made = BinaryBuilder::new();
            for row in 0..values.len() {
                match values.get(row) {
                    // orc-core takes the bytes of the file, where `char` is padded with spaces.
                    Some(Value::Text(bytes)) if matches!(from, Kind::Char { .. }) => {
                        let characters = bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
                        let length = if let Kind::Char { length } = from { *length as usize } else { 0 };
                        let mut padded = bytes.to_vec();
                        padded.resize(bytes.len() + length.saturating_sub(characters).min(MOST_PADDING), b' ');
                        made.append_value(padded);
                    }
                    Some(Value::Text(bytes) | Value::Binary(bytes)) => made.append_value(bytes),
                    _ => made.append_null(),
                }
            }
            Ok(Arc::new(made.finish()))
        }
        Kind::Date => context.primitive::<Date32Type>(|value| time::date(value)?.try_into().ok()),
        Kind::Timestamp | Kind::TimestampInstant => {
            let DataType::Timestamp(unit, _) = data_type else { return Err(unread(column)) };
            let instant = *to == Kind::TimestampInstant;
            let zone = instant.then_some("UTC");
            match unit {
                TimeUnit::Second => context.times::<TimestampSecondType>(1_000_000_000, zone),
                TimeUnit::Millisecond => context.times::<TimestampMillisecondType>(1_000_000, zone),
                TimeUnit::Microsecond => context.times::<TimestampMicrosecondType>(1_000, zone),
                TimeUnit::Nanosecond => context.times::<TimestampNanosecondType>(1, zone),
            }
        }
        _ => Err(unread(column)),
    }
}

fn unread(column: &str) -> Error {
    Error::invalid(format!("column {column} was not read in the expected form"))
}

/// The conversion of one column.
struct Context<'a> {
    values: &'a Values<'a>,
    from: &'a Kind,
    to: &'a Kind,
    column: &'a str,
    rules: &'a Rules,
}

impl Context<'_> {
    fn all<T>(&self, convert: impl Fn(Value<'_>) -> Option<T>) -> Result<Vec<Option<T>>> {
        let one = |row| {
            let Some(value) = self.values.get(row) else { return Ok(None) };
            match convert(value) {
                None if self.rules.overflow == Overflow::Error => Err(self.lost(value)),
                found => Ok(found),
            }
        };
        (0..self.values.len()).map(one).collect()
    }

    fn lost(&self, value: Value<'_>) -> Error {
        let shown = text::shown(value);
        Error::value(format!(
            "column {}: {shown} of type {} cannot be read as {}: read it as another type, or as null (overflow \"null\")",
            self.column, self.from, self.to
        ))
    }

    fn primitive<T: ArrowPrimitiveType>(&self, convert: impl Fn(Value<'_>) -> Option<T::Native>) -> Result<ArrayRef> {
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(self.all(convert)?)))
    }

    fn times<T: arrow_array::types::ArrowTimestampType>(&self, nanos: i128, zone: Option<&str>) -> Result<ArrayRef> {
        let instant = zone.is_some();
        let convert = |value: Value<'_>| i64::try_from(time::nanos(value, instant)?.div_euclid(nanos)).ok();
        let made = PrimitiveArray::<T>::from_iter(self.all(convert)?);
        Ok(Arc::new(made.with_timezone_opt(zone)))
    }

    fn texts(&self) -> Result<ArrayRef> {
        let limit = match self.to {
            Kind::Char { length } | Kind::Varchar { length } => Some(*length),
            _ => None,
        };
        let padded = matches!(self.to, Kind::Char { .. });
        let mut made = Texts::new(self.rules.strings);
        let mut scratch = Vec::new();
        for row in 0..self.values.len() {
            let Some(value) = self.values.get(row) else {
                made.null();
                continue;
            };
            scratch.clear();
            if !text::write(value, &mut scratch) {
                if self.rules.overflow == Overflow::Error {
                    return Err(self.lost(value));
                }
                made.null();
                continue;
            }
            if padded {
                text::cut_spaces(&mut scratch);
            }
            if limit.is_some_and(|limit| text::cut(&mut scratch, limit)) && self.rules.overflow == Overflow::Error {
                return Err(self.lost(value));
            }
            if padded {
                text::cut_spaces(&mut scratch);
            }
            made.push(&scratch, self.column)?;
        }
        Ok(made.finish())
    }
}

/// Text in the form asked for.
enum Texts {
    Utf8(StringBuilder),
    Binary(BinaryBuilder),
    Dictionary(StringDictionaryBuilder<Int32Type>),
}

impl Texts {
    fn new(form: StringForm) -> Self {
        match form {
            StringForm::Utf8 => Self::Utf8(StringBuilder::new()),
            StringForm::Binary => Self::Binary(BinaryBuilder::new()),
            StringForm::Dictionary => Self::Dictionary(StringDictionaryBuilder::new()),
        }
    }

    fn null(&mut self) {
        match self {
            Self::Utf8(made) => made.append_null(),
            Self::Binary(made) => made.append_null(),
            Self::Dictionary(made) => made.append_null(),
        }
    }

    fn push(&mut self, bytes: &[u8], column: &str) -> Result<()> {
        let checked = || {
            let found = std::str::from_utf8(bytes);
            found.map_err(|_| {
                Error::value(format!("column {column}: a text is not UTF-8: read with strings=\"binary\""))
            })
        };
        match self {
            Self::Utf8(made) => made.append_value(checked()?),
            Self::Binary(made) => made.append_value(bytes),
            Self::Dictionary(made) => {
                made.append(checked()?)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Utf8(mut made) => Arc::new(made.finish()),
            Self::Binary(mut made) => Arc::new(made.finish()),
            Self::Dictionary(mut made) => Arc::new(made.finish()),
        }
    }
}

/// The values of a column of the file.
struct Values<'a> {
    array: &'a dyn Array,
    form: Form<'a>,
}

enum Form<'a> {
    Boolean(&'a BooleanArray),
    Byte(&'a PrimitiveArray<Int8Type>),
    Short(&'a PrimitiveArray<Int16Type>),
    Int(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Decimal(&'a PrimitiveArray<Decimal128Type>, u8),
    Time(&'a PrimitiveArray<Decimal128Type>, bool),
    Date(&'a PrimitiveArray<Date32Type>),
    Utf8(&'a arrow_array::StringArray),
    Bytes(&'a arrow_array::BinaryArray, bool),
    Dictionary(&'a arrow_array::DictionaryArray<Int32Type>, &'a arrow_array::StringArray),
}

impl<'a> Values<'a> {
    fn new(array: &'a ArrayRef, kind: &Kind) -> Result<Self> {
        let form = match kind {
            Kind::Boolean => array.as_boolean_opt().map(Form::Boolean),
            Kind::Byte => array.as_primitive_opt().map(Form::Byte),
            Kind::Short => array.as_primitive_opt().map(Form::Short),
            Kind::Int => array.as_primitive_opt().map(Form::Int),
            Kind::Long => array.as_primitive_opt().map(Form::Long),
            Kind::Float => array.as_primitive_opt().map(Form::Float),
            Kind::Double => array.as_primitive_opt().map(Form::Double),
            Kind::Decimal { scale, .. } => array.as_primitive_opt().map(|own| Form::Decimal(own, *scale)),
            Kind::Timestamp => array.as_primitive_opt().map(|own| Form::Time(own, false)),
            Kind::TimestampInstant => array.as_primitive_opt().map(|own| Form::Time(own, true)),
            Kind::Date => array.as_primitive_opt().map(Form::Date),
            Kind::Binary => array.as_binary_opt().map(|own| Form::Bytes(own, false)),
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => match array.data_type() {
                DataType::Utf8 => array.as_string_opt().map(Form::Utf8),
                DataType::Binary => array.as_binary_opt().map(|own| Form::Bytes(own, true)),
                _ => array
                    .as_dictionary_opt::<Int32Type>()
                    .and_then(|own| Some(Form::Dictionary(own, own.values().as_string_opt()?))),
            },
            _ => None,
        };
        let form = form.ok_or_else(|| Error::invalid("a column was not read in the expected form"))?;
        Ok(Self { array, form })
    }

    fn len(&self) -> usize {
        self.array.len()
    }

    fn get(&self, row: usize) -> Option<Value<'a>> {
        if self.array.is_null(row) {
            return None;
        }
        Some(match &self.form {
            Form::Boolean(own) => Value::Boolean(own.value(row)),
            Form::Byte(own) => Value::Long(i64::from(own.value(row))),
            Form::Short(own) => Value::Long(i64::from(own.value(row))),
            Form::Int(own) => Value::Long(i64::from(own.value(row))),
            Form::Long(own) => Value::Long(own.value(row)),
            Form::Float(own) => Value::Double(f64::from(own.value(row))),
            Form::Double(own) => Value::Double(own.value(row)),
            Form::Decimal(own, scale) => Value::Decimal(own.value(row), *scale),
            Form::Time(own, instant) => Value::Time(own.value(row), *instant),
            Form::Date(own) => Value::Date(i64::from(own.value(row))),
            Form::Utf8(own) => Value::Text(own.value(row).as_bytes()),
            Form::Bytes(own, true) => Value::Text(own.value(row)),
            Form::Bytes(own, false) => Value::Binary(own.value(row)),
            Form::Dictionary(own, values) => {
                let key = usize::try_from(own.keys().value(row)).ok().filter(|key| *key < values.len())?;
                if values.is_null(key) {
                    return None;
                }
                Value::Text(values.value(key).as_bytes())
            }
        })
    }
}
