//! Converts days before 1582-10-15 from Java's hybrid calendar to the proleptic Gregorian calendar, keeping year,
//! month and day.

/// 1582-10-15: the first day after the change.
const CHANGE: i64 = -141_427;
const SECONDS_A_DAY: i64 = 86_400;

/// The Gregorian day with the year, month and day that `day` has in the hybrid calendar. Years BC lose their era, as in
/// orc-core: 1 BC becomes the year 1.
pub(crate) fn day_from_julian(day: i64) -> i64 {
    if day >= CHANGE { day } else { julian_name(day).map_or(day, |(year, month, dom)| gregorian_day(year, month, dom)) }
}

/// The same for seconds: the day is converted, the time of day stays.
pub(crate) fn second_from_julian(second: i64) -> i64 {
    let day = second.div_euclid(SECONDS_A_DAY);
    if day >= CHANGE {
        second
    } else {
        day_from_julian(day).saturating_mul(SECONDS_A_DAY) + second.rem_euclid(SECONDS_A_DAY)
    }
}

/// Year, month and day of month in the Julian calendar; `None` on overflow, far beyond any real date.
fn julian_name(day: i64) -> Option<(i64, i64, i64)> {
    /// Days from 0000-03-01 (Julian) to 1970-01-01 (Gregorian).
    const ORIGIN: i64 = 719_470;
    /// Days of four Julian years.
    const CYCLE: i64 = 1461;
    let shifted = day.checked_add(ORIGIN)?;
    let (cycle, of_cycle) = (shifted.div_euclid(CYCLE), shifted.rem_euclid(CYCLE));
    let year_of_cycle = (of_cycle / 365).min(3);
    let of_year = of_cycle - year_of_cycle * 365;
    let march_month = (5 * of_year + 2) / 153;
    let dom = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = cycle * 4 + year_of_cycle + i64::from(month <= 2);
    Some((if year > 0 { year } else { 1 - year }, month, dom))
}

/// The day with this year, month and day of month in the proleptic Gregorian calendar.
pub(crate) fn gregorian_day(year: i64, month: i64, dom: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + dom - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of month of a day in the proleptic Gregorian calendar.
pub(crate) fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let dom = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, dom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_days() {
        // Hybrid days and the proleptic days with the same date: 1582-10-04, 0001-01-01, and 1 BC, which becomes 0001.
        for (hybrid, proleptic) in [(-141_428, -141_438), (-719_164, -719_162), (-719_530, -719_162)] {
            assert_eq!(day_from_julian(hybrid), proleptic, "{hybrid}");
        }
        assert_eq!(day_from_julian(CHANGE), CHANGE);
        assert_eq!(second_from_julian(-141_428 * SECONDS_A_DAY + 5), -141_438 * SECONDS_A_DAY + 5);
    }
}
