//! Time zones by the rules of java.util.TimeZone, which most writers used, from the tz database.
//!
//! Before 1900, a zone has its present standard offset, without local mean time. From 1900 the table applies, and after
//! its last entry the last rule, forever (docs/orc-pitfalls.md, "Time zone rules").

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::{Error, Result};

/// 1900-01-01 00:00:00 UTC, the start of the table of java.util.TimeZone.
const TABLE_START: i64 = -2_208_988_800;
/// 2101-01-01 00:00:00 UTC, the start of the 400 years that repeat from then on.
const CYCLE_START: i64 = 4_133_980_800;
/// Seconds in 400 Gregorian years, after which rules fall on the same dates again.
const CYCLE: i64 = 12_622_780_800;

/// The offsets of one zone from UTC.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Instants at which the offset changes, ascending.
    changes: Vec<i64>,
    /// The offset before the first change, then the offset from each change on, in seconds.
    offsets: Vec<i64>,
}

impl Zone {
    /// A zone that never changes.
    pub fn fixed(offset: i64) -> Self {
        Self { changes: Vec::new(), offsets: vec![offset] }
    }

    /// The zone with an id, as interpreted by Java: tz names and links, `GMT-03:00`, `PST`.
    pub fn named(id: &str) -> Result<Self> {
        let id = id.trim();
        if let Some(offset) = custom_offset(id) {
            return Ok(Self::fixed(offset));
        }
        let name = OLD_IDS.iter().find(|(old, _)| *old == id).map_or(id, |(_, name)| *name);
        let zone = TimeZone::get(name).map_err(|_| Error::unsupported(format!("unknown time zone {id:?}")))?;
        Ok(Self::from_rules(&zone))
    }

    fn from_rules(zone: &TimeZone) -> Self {
        let at = |second: i64| Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        let offset_at = |second: i64| i64::from(zone.to_offset(at(second)).seconds());
        let (mut changes, mut offsets) = (vec![TABLE_START], vec![0, offset_at(TABLE_START)]);
        for change in zone.following(at(TABLE_START)) {
            let second = change.timestamp().as_second();
            if second >= CYCLE_START + CYCLE {
                break;
            }
            changes.push(second);
            offsets.push(i64::from(change.offset().seconds()));
        }
        // The standard offset is the smallest offset of the last year: where tz data has winter time as the exception,
        // Java has summer time.
        let year_ago = changes.last().copied().unwrap_or(TABLE_START) - 366 * 86_400;
        let late = changes.iter().zip(offsets.iter().skip(1)).filter(|(change, _)| **change >= year_ago);
        let standard = late.map(|(_, offset)| *offset).min();
        if let (Some(first), Some(standard)) = (offsets.first_mut(), standard) {
            *first = standard;
        }
        Self { changes, offsets }
    }

    /// A cursor, which finds the offsets of nearby instants fast.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { zone: self, from: i64::MAX, until: i64::MIN, offset: 0 }
    }

    /// A cursor for local times.
    pub fn walls(&self) -> Walls<'_> {
        Walls([self.cursor(), self.cursor(), self.cursor()])
    }

    /// The offset at an instant.
    pub fn offset(&self, instant: i64) -> i64 {
        self.cursor().offset(instant)
    }

    /// The last instant at which the offset changes; `None` if it never does, or changes forever by a rule. After it,
    /// the times in files of writers with other tz data may differ.
    pub fn last_change(&self) -> Option<i64> {
        self.changes.last().copied().filter(|last| *last < CYCLE_START && self.changes.len() > 1)
    }

    /// The offset of a local time (the earlier offset if the time occurs twice).
    pub fn offset_of_wall(&self, wall: i64) -> i64 {
        self.walls().offset(wall)
    }
}

/// Finds the offsets of local times, fast for nearby ones.
#[derive(Debug)]
pub struct Walls<'a>([Cursor<'a>; 3]);

impl Walls<'_> {
    /// The offset of a local time (the earlier offset if the time occurs twice), in seconds.
    #[inline]
    pub fn offset(&mut self, wall: i64) -> i64 {
        let [guess, first, last] = &mut self.0;
        let near = first.offset(wall - guess.offset(wall));
        last.offset(wall - near)
    }
}

/// Finds the offsets of instants. It keeps the span of the last offset found.
#[derive(Debug)]
pub struct Cursor<'a> {
    zone: &'a Zone,
    from: i64,
    until: i64,
    offset: i64,
}

impl Cursor<'_> {
    /// The offset at an instant, in seconds.
    #[inline]
    pub fn offset(&mut self, instant: i64) -> i64 {
        if instant < self.from || instant >= self.until {
            self.find(instant);
        }
        self.offset
    }

    #[cold]
    fn find(&mut self, instant: i64) {
        let Zone { changes, offsets } = self.zone;
        if changes.is_empty() {
            (self.from, self.until) = (i64::MIN, i64::MAX);
            self.offset = offsets.first().copied().unwrap_or(0);
            return;
        }
        let far = instant >= CYCLE_START + CYCLE;
        let place = if far { (instant - CYCLE_START) % CYCLE + CYCLE_START } else { instant };
        let index = changes.partition_point(|change| *change <= place);
        self.offset = offsets.get(index).copied().unwrap_or(0);
        if far {
            (self.from, self.until) = (instant, instant.saturating_add(1));
        } else {
            self.from = index.checked_sub(1).and_then(|before| changes.get(before)).copied().unwrap_or(i64::MIN);
            self.until = changes.get(index).copied().unwrap_or(CYCLE_START + CYCLE);
        }
    }
}

/// The offset of ids that need no table: `GMT+8`, `GMT-03:00`, `GMT-0300`, `UTC`, `Z`.
fn custom_offset(id: &str) -> Option<i64> {
    if matches!(id, "GMT" | "UTC" | "Z" | "Etc/UTC" | "Etc/GMT" | "UCT" | "Zulu" | "Universal" | "Greenwich") {
        return Some(0);
    }
    let rest = id.strip_prefix("GMT").or_else(|| id.strip_prefix("UTC")).unwrap_or(id);
    let (sign, digits) = match rest.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(pair) => pair,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    (hours <= 23 && minutes <= 59).then(|| sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}

/// The three-letter ids of Java.
const OLD_IDS: &[(&str, &str)] = &[
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_ids() {
        for (id, instant, offset) in [
            ("GMT-03:00", 0, -10_800),
            ("GMT+8", 0, 28_800),
            ("PST", 1_420_070_400, -28_800),
            ("US/Pacific", 1_435_708_800, -25_200),
            ("Asia/Kolkata", -3_000_000_000, 19_800),
            ("Europe/Berlin", -3_000_000_000, 3_600),
            ("America/Los_Angeles", 4_118_000_000 + 12_622_780_800 * 3, -25_200),
            ("Z", 5, 0),
        ] {
            assert_eq!(Zone::named(id).unwrap().offset(instant), offset, "{id} at {instant}");
        }
        assert!(Zone::named("Mars/Olympus").is_err());
    }
}
