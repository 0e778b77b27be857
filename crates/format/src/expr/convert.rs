//! Converts literals to the type of the column they are compared with, like the Java library's `Literal.to`.
//!
//! A literal outside the range of the type is not an error: the predicate then matches all values or none.

use crate::error::{Error, Result};
use crate::types::{PrimitiveType, Type};
use crate::value::{Value, calendar, decimal};

use super::literal::Literal;

/// A converted literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Converted {
    /// A value of the type.
    Value(Value),
    /// Above every value of the type.
    AboveMax,
    /// Below every value of the type.
    BelowMin,
    /// Between this value and the next one of the type.
    JustAbove(Value),
}

impl Literal {
    /// Converts the literal to `ty`.
    pub fn convert(&self, ty: &Type) -> Result<Converted> {
        let converted = match ty {
            Type::Primitive(to) => convert(self, to),
            _ => None,
        };
        converted.ok_or_else(|| Error::invalid(format!("{self} is not a value of type {ty}{}", form(self, ty))))
    }
}

/// Returns a hint about the text form of a type, for the error about an invalid text.
fn form(literal: &Literal, ty: &Type) -> &'static str {
    use PrimitiveType as P;
    let (Value::String(_), Type::Primitive(ty)) = (literal.value(), ty) else { return "" };
    match ty {
        P::Date => ": write it as YYYY-MM-DD",
        P::Time => ": write it as HH:MM:SS, with a fraction if there is one",
        P::Timestamp | P::TimestampNs => ": write it as YYYY-MM-DDTHH:MM:SS, without an offset",
        P::Timestamptz | P::TimestamptzNs => ": write it as YYYY-MM-DDTHH:MM:SS+00:00, with an offset or Z",
        P::Uuid => ": write it as 8-4-4-4-12 hexadecimal digits",
        _ => "",
    }
}

fn convert(literal: &Literal, to: &PrimitiveType) -> Option<Converted> {
    use PrimitiveType as P;
    if literal.ty() == to {
        return Some(Converted::Value(literal.value().clone()));
    }
    match (literal.ty(), literal.value()) {
        (P::Int, Value::Int(value)) => from_long(i64::from(*value), to),
        (P::Long, Value::Long(value)) => from_long(*value, to),
        (P::Float, Value::Float(value)) => from_double(f64::from(*value), to),
        (P::Double, Value::Double(value)) => from_double(*value, to),
        (P::Decimal { scale, .. }, Value::Decimal(unscaled)) => from_decimal(*unscaled, *scale, to),
        (P::String, Value::String(text)) => from_string(text, literal.is_strict(), to),
        (P::Fixed(_) | P::Binary, Value::Binary(bytes)) => from_bytes(bytes, to),
        (from, value) => from_temporal(from, value, to),
    }
}

fn value(value: Value) -> Option<Converted> {
    Some(Converted::Value(value))
}

/// Converts to 32 bits, or says on which side the number is out of range.
fn narrow(number: i64) -> Converted {
    match i32::try_from(number) {
        Ok(number) => Converted::Value(Value::Int(number)),
        Err(_) if number > 0 => Converted::AboveMax,
        Err(_) => Converted::BelowMin,
    }
}

fn from_long(number: i64, to: &PrimitiveType) -> Option<Converted> {
    use PrimitiveType as P;
    match to {
        P::Int | P::Date => Some(narrow(number)),
        P::Long | P::Time | P::Timestamp | P::Timestamptz => value(Value::Long(number)),
        // A plain number compared with a timestamp counts microseconds, whatever the column's unit.
        P::TimestampNs | P::TimestamptzNs => value(Value::Long(number.checked_mul(1000)?)),
        P::Float => value(Value::Float(number as f32)),
        P::Double => value(Value::Double(number as f64)),
        P::Decimal { .. } => from_decimal(i128::from(number), 0, to),
        _ => None,
    }
}

fn from_double(number: f64, to: &PrimitiveType) -> Option<Converted> {
    match to {
        // Infinity is a value of both types.
        PrimitiveType::Float if number.is_finite() && number > f64::from(f32::MAX) => Some(Converted::AboveMax),
        PrimitiveType::Float if number.is_finite() && number < f64::from(f32::MIN) => Some(Converted::BelowMin),
        PrimitiveType::Float => value(Value::Float(number as f32)),
        PrimitiveType::Double => value(Value::Double(number)),
        PrimitiveType::Decimal { scale, .. } => {
            // Use the decimal nearest to the shortest text of the double, rounded half away from zero: 14.2 becomes
            // 14.20, not 14.1999….
            let parsed = decimal::parse(&format!("{number:e}"))?;
            let shift = parsed.scale - i64::from(*scale);
            if shift <= 0 {
                return Some(
                    parsed.rescaled(*scale).map_or(beyond(number > 0.0), |v| Converted::Value(Value::Decimal(v))),
                );
            }
            let Some(power) = u32::try_from(shift).ok().and_then(|shift| 10_i128.checked_pow(shift)) else {
                return value(Value::Decimal(0));
            };
            let half = if parsed.unscaled < 0 { -(power / 2) } else { power / 2 };
            value(Value::Decimal((parsed.unscaled + half) / power))
        }
        _ => None,
    }
}

/// The result for numbers beyond 128 bits.
fn beyond(above: bool) -> Converted {
    if above { Converted::AboveMax } else { Converted::BelowMin }
}

/// Converts a decimal to the column's scale; digits that the column cannot hold place it between two values. The Java
/// library keeps the scale of the literal instead, and hashes and truncates it at that scale.
fn from_decimal(unscaled: i128, scale: u8, to: &PrimitiveType) -> Option<Converted> {
    match to {
        PrimitiveType::Decimal { scale: wanted, .. } if *wanted >= scale => {
            let wide = 10_i128.checked_pow(u32::from(wanted - scale)).and_then(|power| unscaled.checked_mul(power));
            Some(wide.map_or(beyond(unscaled > 0), |v| Converted::Value(Value::Decimal(v))))
        }
        PrimitiveType::Decimal { scale: wanted, .. } => {
            let power = 10_i128.checked_pow(u32::from(scale - wanted))?;
            let (whole, rest) = (unscaled.div_euclid(power), unscaled.rem_euclid(power));
            Some(if rest == 0 {
                Converted::Value(Value::Decimal(whole))
            } else {
                Converted::JustAbove(Value::Decimal(whole))
            })
        }
        PrimitiveType::Float | PrimitiveType::Double => {
            from_double(decimal::to_plain_string(unscaled, scale).parse().ok()?, to)
        }
        // Integers beyond 64 bits can only be written as decimals.
        PrimitiveType::Int | PrimitiveType::Long if scale == 0 => match i64::try_from(unscaled) {
            Ok(number) => from_long(number, to),
            Err(_) => Some(beyond(unscaled > 0)),
        },
        _ => None,
    }
}

fn from_string(text: &str, strict: bool, to: &PrimitiveType) -> Option<Converted> {
    use PrimitiveType as P;
    match to {
        P::Date => Some(narrow(calendar::parse_date(text)?)),
        P::Time => value(Value::Long(calendar::parse_time(text)? / 1000)),
        P::Timestamp => value(Value::Long(calendar::to_micros(moment(text, strict, calendar::parse_timestamp)?)?)),
        P::TimestampNs => value(Value::Long(calendar::to_nanos(moment(text, strict, calendar::parse_timestamp)?)?)),
        P::Timestamptz => value(Value::Long(calendar::to_micros(instant(text, strict)?)?)),
        P::TimestamptzNs => value(Value::Long(calendar::to_nanos(instant(text, strict)?)?)),
        P::Uuid => value(Value::Uuid(parse_uuid(text)?)),
        P::Decimal { .. } => {
            let parsed = decimal::parse(text)?;
            match u8::try_from(parsed.scale) {
                Ok(scale) => from_decimal(parsed.unscaled, scale, to),
                Err(_) if parsed.scale < 0 => from_decimal(parsed.rescaled(0)?, 0, to),
                Err(_) => None,
            }
        }
        P::Fixed(_) | P::Binary => from_bytes(&parse_hex(text)?, to),
        P::Float | P::Double => value(infinity(text, to)?),
        _ => None,
    }
}

/// Parses a timestamp as people write it: a date alone means its midnight (in UTC for a column with a zone), and a
/// space may replace the `T`. The Java library's JSON accepts neither, which is what `strict` means.
fn moment(text: &str, strict: bool, parse: impl Fn(&str) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (calendar::parse_date(text), text.split_once(' ')) {
        (Some(days), _) if !strict => Some((days, 0)),
        (_, Some((date, time))) if !strict => parse(&format!("{date}T{time}")),
        _ => parse(text),
    }
}

/// Parses a timestamp for a column with a zone. A text without a zone is UTC, like typed literals and dates without
/// one; the Java library's JSON refuses it.
fn instant(text: &str, strict: bool) -> Option<(i64, i64)> {
    let zoned = moment(text, strict, parse_zoned);
    if strict { zoned } else { zoned.or_else(|| moment(text, strict, calendar::parse_timestamp)) }
}

/// Parses the words that JSON uses for infinity, which its numbers cannot express.
pub(super) fn infinity(text: &str, ty: &PrimitiveType) -> Option<Value> {
    let number = match text {
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    };
    match ty {
        PrimitiveType::Float => Some(Value::Float(number as f32)),
        PrimitiveType::Double => Some(Value::Double(number)),
        _ => None,
    }
}

fn from_bytes(bytes: &[u8], to: &PrimitiveType) -> Option<Converted> {
    match to {
        PrimitiveType::Fixed(length) if u32::try_from(bytes.len()) != Ok(*length) => None,
        PrimitiveType::Fixed(_) | PrimitiveType::Binary => value(Value::Binary(bytes.to_vec())),
        _ => None,
    }
}

/// Converts dates and timestamps to each other's types; a timestamp also converts between types with and without a
/// zone.
fn from_temporal(from: &PrimitiveType, literal: &Value, to: &PrimitiveType) -> Option<Converted> {
    use PrimitiveType as P;
    let (days, nanos) = match (from, literal) {
        (P::Date, Value::Int(days)) => (i64::from(*days), 0),
        (P::Timestamp | P::Timestamptz, Value::Long(micros)) => {
            (micros.div_euclid(calendar::MICROS_PER_DAY), micros.rem_euclid(calendar::MICROS_PER_DAY) * 1000)
        }
        (P::TimestampNs | P::TimestamptzNs, Value::Long(nanos)) => {
            (nanos.div_euclid(calendar::NANOS_PER_DAY), nanos.rem_euclid(calendar::NANOS_PER_DAY))
        }
        _ => return None,
    };
    match to {
        P::Date => value(Value::Int(i32::try_from(days).ok()?)),
        P::Timestamp | P::Timestamptz => value(Value::Long(calendar::to_micros((days, nanos))?)),
        P::TimestampNs | P::TimestamptzNs => value(Value::Long(calendar::to_nanos((days, nanos))?)),
        _ => None,
    }
}

/// Parses an ISO timestamp with an offset; returns days and nanoseconds of the day, in UTC.
pub(super) fn parse_zoned(text: &str) -> Option<(i64, i64)> {
    let start = text
        .rfind(['Z', 'z', '+'])
        .or_else(|| text.rfind('-').filter(|at| text.get(..*at).is_some_and(|head| head.contains(['T', 't']))))?;
    let (local, offset) = text.split_at_checked(start)?;
    let (days, nanos) = calendar::parse_timestamp(local)?;
    let shifted = nanos - parse_offset(offset)? * 1_000_000_000;
    Some((days + shifted.div_euclid(calendar::NANOS_PER_DAY), shifted.rem_euclid(calendar::NANOS_PER_DAY)))
}

/// Parses an offset to seconds east of Greenwich: `Z`, `+01`, `+01:00`, `+01:00:30`, at most 18 hours.
fn parse_offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' => return (text.len() == 1).then_some(0),
        b'-' => -1,
        _ => 1,
    };
    let mut seconds = 0;
    let mut unit = 3600;
    for part in text.get(1..)?.split(':') {
        let sound = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()) && unit > 0;
        let number: i64 = sound.then(|| part.parse().ok())??;
        if unit < 3600 && number > 59 {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    (seconds <= 18 * 3600).then_some(sign * seconds)
}

/// Parses five groups of hexadecimal digits; as in Java, a group may have too few.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut bits: u128 = 0;
    let mut groups = text.split('-');
    for width in [8_usize, 4, 4, 4, 12] {
        let group = groups.next()?;
        let sound = (1..=width).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from(sound.then(|| u64::from_str_radix(group, 16).ok())??);
        bits = bits << (width * 4) | number;
    }
    groups.next().is_none().then(|| bits.to_be_bytes())
}

/// Parses bytes from hexadecimal digits of either case.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()).collect()
}
