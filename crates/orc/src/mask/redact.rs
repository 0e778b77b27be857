//! The mask `redact`, which replaces characters by their Unicode class, digits, and parts of dates and times.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, TimeUnit};
use unicode_general_category::{GeneralCategory as Class, get_general_category};

use super::leaf::{bytes, unexpected};
use crate::error::{Error, Result};
use crate::predicate::decimal_text;
use crate::types::{Kind, TypeDescription};

/// In a parameter: keep the original character or part.
const KEEP: char = '_';
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The replacements.
#[derive(Debug, Clone, PartialEq)]
pub struct Redact {
    parameters: Vec<String>,
    /// The replacements of upper case, lower case, digits, symbols, punctuation, separators, other letters, marks,
    /// other numbers, and all other characters.
    characters: [char; 10],
    /// The digit that replaces those of numbers.
    digit: i64,
    /// The replacements of year, month, day, hour, minute and second; `None` keeps the original.
    time: [Option<i64>; 6],
    /// The powers of ten from 10^-308 to 10^307.
    powers: Arc<[f64]>,
}

impl Redact {
    /// Creates the mask from up to two parameters: up to ten characters, and up to six numbers; `_` keeps the original.
    pub fn new(parameters: &[String]) -> Result<Self> {
        let mut characters = ['X', 'x', '9', '$', '.', KEEP, '\u{aa}', '\u{903}', '\u{b2}', '\u{6dd}'];
        let mut time = [None, Some(1), Some(1), Some(0), Some(0), Some(0)];
        if parameters.len() > 2 {
            return Err(Error::unsupported("the mask redact does not support unmasked ranges"));
        }
        if let Some(own) = parameters.first() {
            characters.iter_mut().zip(own.chars()).for_each(|(slot, own)| *slot = own);
        }
        let parts = parameters.get(1).map_or("", String::as_str);
        let parts = parts.split(|part: char| !part.is_ascii_alphanumeric() && part != KEEP);
        let limits = [4000, 12, 31, 23, 59, 59];
        for ((slot, part), most) in time.iter_mut().zip(parts.filter(|part| !part.is_empty())).zip(limits) {
            *slot = match part.parse::<i64>() {
                _ if part.starts_with(KEEP) => None,
                Ok(number) if number <= most => Some(number),
                _ => return Err(Error::invalid(format!("the mask redact with {part}: expected 0 to {most}"))),
            };
        }
        let digit = characters[2].to_digit(10).map_or(9, i64::from);
        let powers = (-308..=307).filter_map(|power| format!("1e{power}").parse().ok()).collect();
        Ok(Self { parameters: parameters.to_vec(), characters, digit, time, powers })
    }

    /// The parameters, as stored in the footer.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Masks the values of a column without children.
    pub(super) fn leaf(&self, node: &TypeDescription, array: &ArrayRef) -> Result<ArrayRef> {
        let numbers = matches!(
            node.kind,
            Kind::Boolean
                | Kind::Byte
                | Kind::Short
                | Kind::Int
                | Kind::Long
                | Kind::Float
                | Kind::Double
                | Kind::Decimal { .. }
        );
        if numbers && self.characters[2] == KEEP {
            return Ok(Arc::clone(array));
        }
        macro_rules! each {
            ($kind:ty, |$value:ident| $masked:expr) => {
                Ok(Arc::new(array.as_primitive::<$kind>().unary::<_, $kind>(|$value| $masked)))
            };
        }
        macro_rules! ticks {
            ($kind:ty, $second:expr, $zone:expr) => {
                Ok(Arc::new(
                    array
                        .as_primitive::<$kind>()
                        .unary::<_, $kind>(|tick| self.instant(tick.div_euclid($second)).saturating_mul($second))
                        .with_timezone_opt($zone.clone()),
                ))
            };
        }
        match (&node.kind, array.data_type()) {
            (Kind::String | Kind::Char { .. } | Kind::Varchar { .. }, _) => {
                let mut out = StringBuilder::with_capacity(array.len(), array.len() * 8);
                for value in bytes(node, array)? {
                    out.append_option(value.map(|value| self.text(&String::from_utf8_lossy(value))));
                }
                Ok(Arc::new(out.finish()))
            }
            (Kind::Boolean, _) => {
                let bits = BooleanBuffer::collect_bool(array.len(), |_| self.digit != 0);
                Ok(Arc::new(BooleanArray::new(bits, array.nulls().cloned())))
            }
            (Kind::Decimal { precision, scale }, kind) => {
                let (precision, scale) = (*precision, *scale);
                let masked = |value: i128| self.decimal(value, precision, scale);
                match kind {
                    DataType::Decimal32(..) => {
                        let own = array.as_primitive::<Decimal32Type>();
                        let own = own.unary::<_, Decimal32Type>(|value| masked(value.into()) as i32);
                        Ok(Arc::new(own.with_data_type(kind.clone())))
                    }
                    DataType::Decimal64(..) => {
                        let own = array.as_primitive::<Decimal64Type>();
                        let own = own.unary::<_, Decimal64Type>(|value| masked(value.into()) as i64);
                        Ok(Arc::new(own.with_data_type(kind.clone())))
                    }
                    DataType::Decimal128(..) => {
                        let own = array.as_primitive::<Decimal128Type>();
                        Ok(Arc::new(own.unary::<_, Decimal128Type>(masked).with_data_type(kind.clone())))
                    }
                    _ => Err(unexpected(node, array)),
                }
            }
            (Kind::Binary | Kind::Geometry { .. } | Kind::Geography { .. }, kind) => {
                Ok(new_null_array(kind, array.len()))
            }
            (_, DataType::Int8) => each!(Int8Type, |value| self.long(value.into()) as i8),
            (_, DataType::Int16) => each!(Int16Type, |value| self.long(value.into()) as i16),
            (_, DataType::Int32) => each!(Int32Type, |value| self.long(value.into()) as i32),
            (_, DataType::Int64) => each!(Int64Type, |value| self.long(value)),
            (_, DataType::UInt8) => each!(UInt8Type, |value| self.long(value.into()) as u8),
            (_, DataType::UInt16) => each!(UInt16Type, |value| self.long(value.into()) as u16),
            (_, DataType::UInt32) => each!(UInt32Type, |value| self.long(value.into()) as u32),
            (_, DataType::UInt64) => each!(UInt64Type, |value| self.long(value as i64).unsigned_abs()),
            (_, DataType::Float32) => each!(Float32Type, |value| self.double(value.into()) as f32),
            (_, DataType::Float64) => each!(Float64Type, |value| self.double(value)),
            (_, DataType::Date32) => each!(Date32Type, |days| self.day(days.into()) as i32),
            (_, DataType::Date64) => {
                each!(Date64Type, |millis| { self.day(millis.div_euclid(DAY * 1000)).saturating_mul(DAY * 1000) })
            }
            (_, DataType::Timestamp(TimeUnit::Second, zone)) => ticks!(TimestampSecondType, 1, zone),
            (_, DataType::Timestamp(TimeUnit::Millisecond, zone)) => ticks!(TimestampMillisecondType, 1000, zone),
            (_, DataType::Timestamp(TimeUnit::Microsecond, zone)) => ticks!(TimestampMicrosecondType, 1_000_000, zone),
            (_, DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                ticks!(TimestampNanosecondType, 1_000_000_000, zone)
            }
            _ => Err(unexpected(node, array)),
        }
    }

    fn text(&self, value: &str) -> String {
        value.chars().map(|character| self.character(character)).collect()
    }

    fn character(&self, character: char) -> char {
        let class = match get_general_category(character) {
            Class::UppercaseLetter => 0,
            Class::LowercaseLetter => 1,
            Class::DecimalNumber => 2,
            Class::MathSymbol | Class::CurrencySymbol | Class::ModifierSymbol | Class::OtherSymbol => 3,
            Class::DashPunctuation
            | Class::OpenPunctuation
            | Class::ClosePunctuation
            | Class::ConnectorPunctuation
            | Class::OtherPunctuation => 4,
            Class::SpaceSeparator | Class::LineSeparator | Class::ParagraphSeparator => 5,
            Class::TitlecaseLetter | Class::ModifierLetter | Class::OtherLetter => 6,
            Class::NonspacingMark | Class::EnclosingMark | Class::SpacingMark => 7,
            Class::LetterNumber | Class::OtherNumber => 8,
            _ => 9,
        };
        let replacement = self.characters.get(class).copied().unwrap_or(KEEP);
        if replacement == KEEP { character } else { replacement }
    }

    /// Replaces every digit. 19 nines overflow 64 bits, so the result has at most 18.
    fn long(&self, value: i64) -> i64 {
        let digits = value.unsigned_abs().min(i64::MAX.unsigned_abs()).checked_ilog10().unwrap_or(0) + 1;
        let digits = if self.digit == 9 { digits.min(18) } else { digits };
        let ones = (0..digits).fold(0i64, |ones, _| ones.wrapping_mul(10).wrapping_add(1));
        // Nineteen digits of 2 or more overflow and wrap, as in orc-core.
        self.digit.wrapping_mul(if value < 0 { -ones } else { ones })
    }

    /// Replaces a value by six equal digits of the same sign and magnitude.
    fn double(&self, value: f64) -> f64 {
        let digit = self.digit as f64;
        if value == 0.0 || self.digit == 0 {
            return digit * 1.11111;
        }
        let base = if value > 0.0 { 1.11111 } else { -1.11111 };
        let place =
            if value.is_nan() { self.powers.len() } else { self.powers.partition_point(|power| *power <= value.abs()) };
        digit * base * self.powers.get(place.saturating_sub(1)).copied().unwrap_or(1.0)
    }

    /// Replaces the digits of the shortest text of the value. If the result has too many digits for the type, the
    /// digits before the point are kept.
    fn decimal(&self, value: i128, precision: u8, scale: u8) -> i128 {
        let text = decimal_text(value, scale);
        let replace = |from: usize| -> Option<i128> {
            let mut unscaled = 0i128;
            let (mut point, mut decimals) = (false, 0);
            for (index, character) in text.chars().enumerate() {
                match character.to_digit(10) {
                    Some(digit) => {
                        let digit = if index >= from { self.digit } else { digit.into() };
                        unscaled = unscaled.checked_mul(10)?.checked_add(digit.into())?;
                        decimals += u32::from(point);
                    }
                    None => point |= character == '.',
                }
            }
            let unscaled = unscaled.checked_mul(10i128.checked_pow(u32::from(scale).checked_sub(decimals)?)?)?;
            Some(if value < 0 { -unscaled } else { unscaled })
        };
        let bound = 10i128.checked_pow(precision.into()).unwrap_or(i128::MAX);
        let fits = |masked: &i128| masked.unsigned_abs() < bound.unsigned_abs();
        let point = text.find('.').unwrap_or(text.len());
        replace(0).filter(fits).or_else(|| replace(point).filter(fits)).unwrap_or(value)
    }

    fn day(&self, day: i64) -> i64 {
        let [year, month, date, ..] = self.time;
        let own = civil(day);
        let (year, month, date) = (year.unwrap_or(own.0), month.unwrap_or(own.1), date.unwrap_or(own.2));
        // A day past the end of the month falls into the next month.
        days(year, month, 1) + date - 1
    }

    /// Masks seconds since 1970; fractions of a second are dropped.
    fn instant(&self, seconds: i64) -> i64 {
        let [.., hour, minute, second] = self.time;
        let (day, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let hour = hour.unwrap_or(rest / 3600);
        let minute = minute.unwrap_or(rest / 60 % 60);
        let second = second.unwrap_or(rest % 60);
        self.day(day).saturating_mul(DAY).saturating_add(hour * 3600 + minute * 60 + second)
    }
}

/// Converts days since 1970 to year, month and day in the proleptic Gregorian calendar.
fn civil(day: i64) -> (i64, i64, i64) {
    let from = day.saturating_add(719_468);
    let (era, of_era) = (from.div_euclid(146_097), from.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// Converts year, month and day to days since 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(parameters: &[&str]) -> Redact {
        let parameters: Vec<String> = parameters.iter().map(|own| (*own).to_owned()).collect();
        Redact::new(&parameters).unwrap()
    }

    #[test]
    fn characters_go_by_class() {
        let plain = redact(&[]);
        assert_eq!(plain.text("Grace Hopper, 9 Dec 1906 (é) ²ª+$"), "Xxxxx Xxxxxx. 9 Xxx 9999 .x. ²ª$$");
        assert_eq!(redact(&["Yy5_"]).text("Ada 36 +"), "Yyy 55 +");
    }

    #[test]
    fn numbers_keep_sign_and_size() {
        let plain = redact(&[]);
        for (value, masked) in [(0, 9), (7, 9), (-42, -99), (123_456, 999_999), (i64::MIN, -999_999_999_999_999_999)] {
            assert_eq!(plain.long(value), masked, "{value}");
        }
        assert_eq!(redact(&["Xx1"]).long(i64::MAX), 1_111_111_111_111_111_111);
        for (value, masked) in [(0.0, 9.99999), (123.4, 999.999), (-0.02, -0.0999999), (1e300, 9.99999e300)] {
            assert!((plain.double(value) / masked - 1.0).abs() < 1e-12, "{value}: {}", plain.double(value));
        }
        assert_eq!(plain.decimal(12_345, 10, 2), 99_999);
        assert_eq!(plain.decimal(-150, 10, 2), -990);
        // 0.50 as decimal(2, 2) would become 9.90, which has too many digits.
        assert_eq!(plain.decimal(50, 2, 2), 90);
    }

    #[test]
    fn times_lose_their_parts() {
        let plain = redact(&[]);
        for day in [-719_162, -1, 0, 59, 11_016, 20_000, 2_932_896] {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
            assert_eq!(civil(plain.day(day)), (year, 1, 1));
        }
        assert_eq!(plain.instant(1_700_000_000), days(2023, 1, 1) * DAY);
        let own = redact(&["Xx9", "2000 _ 31 10 0 _"]);
        assert_eq!(own.instant(days(2023, 4, 9) * DAY + 3661), days(2000, 5, 1) * DAY + 10 * 3600 + 1);
        assert!(Redact::new(&["X".into(), "2000 13".into()]).is_err());
    }
}
