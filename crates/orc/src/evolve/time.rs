//! Conversions to dates and times, and their text: `2019-07-09`, `2019-07-09 13:11:00.5`, and with a zone for instants.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::value::Value;
use crate::calendar::{civil, gregorian_day};
use crate::column::power_of_ten;

const NANOS: i128 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
/// Year limits of `java.time`.
const MOST_YEAR: i64 = 999_999_999;

/// To a time: nanoseconds since 1970. Numbers are seconds; text of instants has a zone.
pub(super) fn nanos(value: Value<'_>, instant: bool) -> Option<i128> {
    match value {
        Value::Double(seconds) => {
            // As `Math.round`: half a millisecond is rounded up.
            let exact = seconds * 1000.0;
            let below = exact.floor();
            let millis = if exact - below >= 0.5 { below + 1.0 } else { below };
            let fits = (-9_223_372_036_854_775_808.0..=9_223_372_036_854_775_807.0).contains(&millis);
            fits.then_some(i128::from(millis as i64) * 1_000_000)
        }
        Value::Decimal(unscaled, scale @ 0..=9) => unscaled.checked_mul(power_of_ten(9 - usize::from(scale))?),
        Value::Decimal(unscaled, scale) => Some(unscaled / power_of_ten(usize::from(scale) - 9)?),
        Value::Text(bytes) => read(std::str::from_utf8(bytes).ok()?, instant),
        Value::Time(nanos, _) => Some(nanos),
        Value::Date(day) => Some(i128::from(day) * i128::from(DAY_SECONDS) * NANOS),
        Value::Boolean(yes) => Some(i128::from(yes) * NANOS),
        Value::Long(seconds) => Some(i128::from(seconds) * NANOS),
        Value::Binary(_) => None,
    }
}

/// To a date: days since 1970.
pub(super) fn date(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Text(bytes) => {
            let mut text = Cursor(bytes);
            let day = text.day(false)?;
            text.0.is_empty().then_some(day)
        }
        Value::Time(nanos, _) => i64::try_from(nanos.div_euclid(i128::from(DAY_SECONDS) * NANOS)).ok(),
        Value::Date(day) => Some(day),
        _ => None,
    }
}

/// Writes a day.
pub(super) fn written_day(day: i64) -> String {
    let (year, month, day) = civil(day);
    let year = match year {
        10_000.. => format!("+{year}"),
        0.. => format!("{year:04}"),
        _ => format!("-{:04}", -year),
    };
    format!("{year}-{month:02}-{day:02}")
}

/// Writes a time; the zone of instants is UTC.
pub(super) fn written(nanos: i128, instant: bool) -> String {
    let (seconds, nanos) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let (day, clock) = (written_day(seconds.div_euclid(DAY_SECONDS)), seconds.rem_euclid(DAY_SECONDS));
    let fraction = format!(".{nanos:09}");
    let fraction = if nanos == 0 { "" } else { fraction.trim_end_matches('0') };
    let zone = if instant { " UTC" } else { "" };
    format!("{day} {:02}:{:02}:{:02}{fraction}{zone}", clock / 3600, clock / 60 % 60, clock % 60)
}

/// Parses a time: `2019-07-09 13:11`, with seconds and up to nine digits of a fraction if they are there; an instant
/// ends with a space and a zone.
fn read(text: &str, instant: bool) -> Option<i128> {
    let mut rest = Cursor(text.as_bytes());
    let mut day = rest.day(true)?;
    rest.literal(b' ')?;
    let hour = rest.digits(2)?;
    rest.literal(b':')?;
    let minute = rest.digits(2)?;
    let (mut second, mut nano) = (0, 0);
    if let Some((found, after)) = rest.second() {
        (second, rest) = (found, after);
        if rest.literal(b'.').is_some() {
            nano = rest.fraction()?;
        }
    }
    let hour = if hour == 24 && (minute, second, nano) == (0, 0, 0) {
        day += 1;
        0
    } else {
        hour
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let wall = day * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    let seconds = if instant {
        rest.literal(b' ')?;
        wall - offset(std::str::from_utf8(rest.0).ok()?, wall)?
    } else {
        rest.0.is_empty().then_some(wall)?
    };
    Some(i128::from(seconds) * NANOS + i128::from(nano))
}

/// The offset in seconds of a zone, as `java.time.ZoneId` reads it, at a local time: a name of the tz database, `Z`,
/// `+02:00`, `UTC`, `GMT+02:00`.
fn offset(zone: &str, wall: i64) -> Option<i64> {
    let named = zone.strip_prefix("UTC").or_else(|| zone.strip_prefix("GMT")).or_else(|| zone.strip_prefix("UT"));
    match named {
        Some("") => return Some(0),
        Some(rest) if rest.starts_with(['+', '-']) => return fixed(rest),
        _ => {}
    }
    if zone == "Z" {
        return Some(0);
    }
    if zone.starts_with(['+', '-']) {
        return fixed(zone);
    }
    let found = TimeZone::get(zone).ok().filter(|found| found.iana_name() == Some(zone))?;
    let (year, month, day) = civil(wall.div_euclid(DAY_SECONDS));
    let clock = wall.rem_euclid(DAY_SECONDS);
    let part = |number: i64| i8::try_from(number).ok();
    let (hour, minute, second) = (part(clock / 3600)?, part(clock / 60 % 60)?, part(clock % 60)?);
    let local = DateTime::new(i16::try_from(year).ok()?, part(month)?, part(day)?, hour, minute, second, 0).ok()?;
    let instant = found.to_ambiguous_timestamp(local).compatible().ok()?;
    Some(wall - instant.as_second())
}

/// An offset such as `+02:00` or `-03:30:15`.
fn fixed(text: &str) -> Option<i64> {
    let mut rest = Cursor(text.as_bytes());
    let sign = if rest.literal(b'+').is_some() { 1 } else { rest.literal(b'-').map(|()| -1)? };
    let hours = rest.digits(2)?;
    rest.literal(b':')?;
    let minutes = rest.digits(2)?;
    let mut seconds = 0;
    if let Some((found, after)) = rest.second() {
        (seconds, rest) = (found, after);
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    (rest.0.is_empty() && minutes < 60 && seconds < 60 && total <= 18 * 3600).then_some(sign * total)
}

/// The rest of a text.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn literal(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// `:` and two digits, with what follows.
    fn second(mut self) -> Option<(i64, Self)> {
        self.literal(b':')?;
        let second = self.digits(2)?;
        Some((second, self))
    }

    /// Up to nine digits, as nanoseconds.
    fn fraction(&mut self) -> Option<i64> {
        let count = self.0.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        let number = if count == 0 { 0 } else { self.digits(count)? };
        Some(number * i64::try_from(power_of_ten(9 - count)?).ok()?)
    }

    /// A day. A lenient one may exceed its month by up to three days, and is then the last of it.
    fn day(&mut self, lenient: bool) -> Option<i64> {
        let sign = self.0.first().copied().filter(|byte| matches!(byte, b'+' | b'-'));
        if let Some(sign) = sign {
            self.literal(sign)?;
        }
        let count = self.0.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        // More than four digits need a sign, four and fewer cannot have a plus.
        let right = match sign {
            Some(b'+') => count > 4,
            Some(_) => count >= 4,
            None => count == 4,
        };
        let year = right.then(|| self.digits(count)).flatten()?;
        let year = if sign == Some(b'-') { -year } else { year };
        if year.abs() > MOST_YEAR || (year == 0 && sign.is_some()) {
            return None;
        }
        self.literal(b'-')?;
        let month = self.digits(2)?;
        self.literal(b'-')?;
        let day = self.digits(2)?;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let most = match month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + i64::from(leap),
            _ => 31,
        };
        if day > most && !lenient {
            return None;
        }
        Some(gregorian_day(year, month, day.min(most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_their_text() {
        for (text, instant, expected) in [
            ("2019-07-09 13:11:00", false, Some("2019-07-09 13:11:00")),
            ("2019-07-09 13:11", false, Some("2019-07-09 13:11:00")),
            ("2019-07-09 13:11:00.500", false, Some("2019-07-09 13:11:00.5")),
            ("2019-02-31 24:00:00", false, Some("2019-03-01 00:00:00")),
            ("+12019-01-01 00:00:00", false, Some("+12019-01-01 00:00:00")),
            ("-0001-01-01 00:00:00.000000001", false, Some("-0001-01-01 00:00:00.000000001")),
            ("2019-07-09 13:11:00 America/Los_Angeles", true, Some("2019-07-09 20:11:00 UTC")),
            ("2019-07-09 13:11:00 GMT-03:00", true, Some("2019-07-09 16:11:00 UTC")),
            ("2019-07-09 13:11:00 Z", true, Some("2019-07-09 13:11:00 UTC")),
            ("2019-07-09 13:11:00", true, None),
            ("2019-07-09 13:11:00 UTC", false, None),
            ("2019-07-09T13:11:00", false, None),
            ("12019-01-01 00:00:00", false, None),
            ("2019-07-09 25:11:00", false, None),
        ] {
            let found = read(text, instant).map(|nanos| written(nanos, instant));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        for (text, expected) in
            [("1969-12-31", Some(-1)), ("2019-02-29", None), ("2019-1-1", None), ("2019-01-01 ", None)]
        {
            assert_eq!(date(Value::Text(text.as_bytes())), expected, "{text}");
        }
        for day in (-4_000_000..4_000_000).step_by(9_973) {
            assert_eq!(date(Value::Text(written_day(day).as_bytes())), Some(day));
        }
    }
}
