//! Bounds of uuids under two orders.
//!
//! The specification ("Bounds") and Parquet compare uuids as unsigned bytes. The Java library compares them as two
//! signed numbers, both for pruning and for the partition bounds that it writes. The orders agree if the first bits of
//! both halves agree. So pruning uses what holds in both orders, and written bounds hold in both.

/// The first bit of a half, which Java takes for a sign.
const SIGN: u64 = 1 << 63;

/// Splits a uuid into halves.
#[expect(clippy::cast_possible_truncation, reason = "the halves of 128 bits are 64")]
fn halves(uuid: u128) -> (u64, u64) {
    ((uuid >> 64) as u64, uuid as u64)
}

fn joined(first: u64, second: u64) -> u128 {
    u128::from(first) << 64 | u128::from(second)
}

fn is_signed(half: u64) -> bool {
    half & SIGN != 0
}

/// Returns a number whose unsigned order is Java's order of uuids.
#[must_use]
pub fn signed_key(uuid: u128) -> u128 {
    uuid ^ joined(SIGN, SIGN)
}

/// Returns unsigned bounds of all values that are between two bounds in either of the orders.
#[must_use]
pub fn of_either_order(lower: Option<u128>, upper: Option<u128>) -> (Option<u128>, Option<u128>) {
    if lower.is_some() && lower == upper {
        return (lower, upper);
    }
    let first_is_signed = |bound: Option<u128>| bound.map(|bound| is_signed(halves(bound).0));
    let widened = |lower: u128| match halves(lower) {
        // In Java's order, second halves without the first bit come after those with it.
        (first, second) if is_signed(second) => joined(first, 0),
        _ => lower,
    };
    let raised = |upper: u128| match halves(upper) {
        (first, second) if !is_signed(second) => joined(first, u64::MAX),
        _ => upper,
    };
    match (first_is_signed(lower), first_is_signed(upper)) {
        // The lower bound is below the upper one in unsigned order only.
        (Some(false), Some(true)) => (lower, upper),
        (low, high) => (
            lower.filter(|_| low == Some(false) || high == Some(true)).map(widened),
            upper.filter(|_| high == Some(true) || low == Some(false)).map(raised),
        ),
    }
}

/// Returns bounds that hold in both orders, for values with this smallest and largest unsigned number; `None` if no
/// such bound exists.
#[must_use]
pub fn in_both_orders(lower: u128, upper: u128) -> (Option<u128>, Option<u128>) {
    let ((low, low_second), (high, high_second)) = (halves(lower), halves(upper));
    if is_signed(low) != is_signed(high) {
        return (None, None);
    }
    if low == high && is_signed(low_second) == is_signed(high_second) {
        return (Some(lower), Some(upper));
    }
    // Another value may share the first half of a bound, and have a second half that Java orders differently.
    let below = (low & !SIGN != 0).then(|| joined(low - 1, u64::MAX));
    let above = (high | SIGN != u64::MAX).then(|| joined(high + 1, 0));
    let lower = if is_signed(low_second) { Some(lower) } else { below };
    let upper = if is_signed(high_second) { above } else { Some(upper) };
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from every region: halves at the ends and in the middle of their range.
    fn values() -> Vec<u128> {
        let halves = [0, 1, 5, SIGN - 1, SIGN, SIGN + 1, SIGN + 5, u64::MAX];
        halves.iter().flat_map(|first| halves.iter().map(|second| joined(*first, *second))).collect()
    }

    fn is_within(value: u128, (lower, upper): (Option<u128>, Option<u128>), key: fn(u128) -> u128) -> bool {
        lower.is_none_or(|lower| key(lower) <= key(value)) && upper.is_none_or(|upper| key(value) <= key(upper))
    }

    #[test]
    fn what_is_read_holds_in_either_order() {
        let values = values();
        for key in [|value| value, signed_key as fn(u128) -> u128] {
            for low in &values {
                for high in values.iter().filter(|high| key(*low) <= key(**high)) {
                    let between: Vec<u128> = values
                        .iter()
                        .copied()
                        .filter(|value| is_within(*value, (Some(*low), Some(*high)), key))
                        .collect();
                    for known in [(Some(*low), Some(*high)), (Some(*low), None), (None, Some(*high))] {
                        let read = of_either_order(known.0, known.1);
                        let lost = between.iter().find(|value| !is_within(**value, read, |value| value));
                        assert_eq!(lost, None, "{low:032x} {high:032x}");
                    }
                }
            }
        }
        let version_7 = |first: u64| joined(first, SIGN + 7);
        let read = of_either_order(Some(version_7(5)), Some(version_7(9)));
        assert_eq!(read, (Some(joined(5, 0)), Some(version_7(9))), "of one kind they still bound");
        assert_eq!(of_either_order(Some(3), Some(u128::MAX)), (Some(3), Some(u128::MAX)), "a pair in unsigned order");
    }

    #[test]
    fn what_is_written_holds_in_both_orders() {
        let values = values();
        for low in &values {
            for high in values.iter().filter(|high| low <= *high) {
                let written = in_both_orders(*low, *high);
                let between = values.iter().filter(|value| low <= *value && *value <= high);
                for value in between {
                    assert!(is_within(*value, written, |value| value), "{low:032x} {value:032x} {high:032x}");
                    assert!(is_within(*value, written, signed_key), "{low:032x} {value:032x} {high:032x}");
                }
                if let (Some(lower), Some(upper)) = written {
                    assert_eq!(in_both_orders(lower, upper), written, "once is enough");
                }
            }
        }
        let version_7 = |first: u64| joined(first, SIGN + 7);
        assert_eq!(in_both_orders(version_7(5), version_7(9)), (Some(version_7(5)), Some(joined(10, 0))));
        assert_eq!(in_both_orders(7, 7), (Some(7), Some(7)));
    }
}
