//! Dates, times and timestamps as ISO 8601 text, in the proleptic Gregorian calendar ("JSON single-value
//! serialization").

use std::fmt::Write as _;

/// Microseconds per day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Nanoseconds per day.
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A calendar date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilDate {
    /// Year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

impl CivilDate {
    /// Converts days since 1970-01-01. Exact for every count that fits in 48 bits.
    pub fn from_days(days: i64) -> Self {
        // With years starting in March the leap day is the last day; a cycle of 400 such years has 146,097 days.
        let shifted = days + 719_468;
        let (cycle, day_of_cycle) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
        Self { year, month: month as u32, day: day as u32 }
    }

    /// Creates a date; `None` if it does not exist.
    pub fn new(year: i64, month: u32, day: u32) -> Option<Self> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=length).contains(&day).then_some(Self { year, month, day })
    }

    /// Converts to days since 1970-01-01.
    pub fn to_days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted_month = i64::from((self.month + 9) % 12);
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.day) - 1;
        cycle * 146_097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year - 719_468
    }
}

/// Formats as `2017-11-16`; years beyond four digits have a sign (`+10183-09-21`, `-0221-09-04`).
pub fn format_date(days: i64) -> String {
    let CivilDate { year, month, day } = CivilDate::from_days(days);
    let sign = match year {
        ..0 => "-",
        0..=9999 => "",
        10_000.. => "+",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

/// Formats as `22:31:08.123456`: always with seconds, and only as many fractional digits as needed.
pub fn format_time(nanos_of_day: i64) -> String {
    let (seconds, nanos) = (nanos_of_day.div_euclid(NANOS_PER_SECOND), nanos_of_day.rem_euclid(NANOS_PER_SECOND));
    let mut out = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if nanos != 0 {
        let digits = format!("{nanos:09}");
        // Writing to a string cannot fail.
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    out
}

/// Formats microseconds since the epoch as `2017-11-16T22:31:08.123456`.
pub fn format_micros(micros: i64) -> String {
    let (days, rest) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    format!("{}T{}", format_date(days), format_time(rest * 1000))
}

/// Formats nanoseconds since the epoch as `2017-11-16T22:31:08.123456789`.
pub fn format_nanos(nanos: i64) -> String {
    let (days, rest) = (nanos.div_euclid(NANOS_PER_DAY), nanos.rem_euclid(NANOS_PER_DAY));
    format!("{}T{}", format_date(days), format_time(rest))
}

/// Parses an ISO date to days: a year of four digits, or more with a sign.
pub fn parse_date(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => (0, text),
    };
    let (year, rest) = rest.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    // A plus requires a year that needs it; a minus requires a year other than zero.
    let sound = match sign {
        1 => (5..=9).contains(&year.len()),
        -1 => (4..=9).contains(&year.len()),
        _ => year.len() == 4,
    };
    let year = i64::from(sound.then(|| digits(year))??);
    if sign < 0 && year == 0 {
        return None;
    }
    let year = if sign < 0 { -year } else { year };
    Some(CivilDate::new(year, two_digits(month)?, two_digits(day)?)?.to_days())
}

/// Parses an ISO time to nanoseconds: `HH:MM`, `HH:MM:SS`, and up to nine fractional digits.
pub fn parse_time(text: &str) -> Option<i64> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second, fraction) = match rest.split_once(':') {
        None => (rest, "00", None),
        Some((minute, rest)) => match rest.split_once('.') {
            None => (minute, rest, None),
            Some((second, fraction)) => (minute, second, Some(fraction)),
        },
    };
    let (hour, minute, second) = (two_digits(hour)?, two_digits(minute)?, two_digits(second)?);
    let nanos = match fraction {
        None => 0,
        Some(text) if (1..=9).contains(&text.len()) => i64::from(digits(&format!("{text:0<9}"))?),
        Some(_) => return None,
    };
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    (hour < 24 && minute < 60 && second < 60).then_some(seconds * NANOS_PER_SECOND + nanos)
}

/// Parses an ISO timestamp without a zone to days and nanoseconds of the day.
pub fn parse_timestamp(text: &str) -> Option<(i64, i64)> {
    let (date, time) = text.split_once(['T', 't'])?;
    Some((parse_date(date)?, parse_time(time)?))
}

/// Parses an ISO timestamp in UTC to days and nanoseconds of the day: `+00:00` or `Z` is required, `[UTC]` may follow.
pub fn parse_timestamp_utc(text: &str) -> Option<(i64, i64)> {
    let text = ["[UTC]", "[Z]", "[GMT]"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text);
    let local = ["+00:00", "-00:00", "Z", "z"].iter().find_map(|zone| text.strip_suffix(zone))?;
    parse_timestamp(local)
}

/// Converts to microseconds since the epoch, rounded down; `None` if they exceed 64 bits.
pub fn to_micros((days, nanos): (i64, i64)) -> Option<i64> {
    let total = i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(nanos.div_euclid(1000));
    i64::try_from(total).ok()
}

/// Converts to nanoseconds since the epoch; `None` if they exceed 64 bits.
pub fn to_nanos((days, nanos): (i64, i64)) -> Option<i64> {
    i64::try_from(i128::from(days) * i128::from(NANOS_PER_DAY) + i128::from(nanos)).ok()
}

fn two_digits(text: &str) -> Option<u32> {
    if text.len() == 2 { digits(text) } else { None }
}

/// Parses up to nine ASCII digits.
fn digits(text: &str) -> Option<u32> {
    let sound = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}
