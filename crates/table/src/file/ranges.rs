//! Ranges of rows by number in a file: ascending, disjoint.

use std::ops::Range;

/// Selected rows with smaller gaps are decoded together, because skipping few rows costs more, in every column.
pub(super) const CLOSE: usize = 512;

/// The ranges to decode for some selected ranges: those close to each other are joined.
pub(super) fn decoded_for(wanted: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut decoded: Vec<Range<usize>> = Vec::new();
    for range in wanted.iter().filter(|range| range.start < range.end) {
        match decoded.last_mut() {
            Some(last) if range.start.saturating_sub(last.end) < CLOSE => last.end = range.end,
            _ => decoded.push(range.clone()),
        }
    }
    decoded
}

/// The ranges that overlap another one.
pub(super) fn overlapping<'r>(rows: &'r [Range<u64>], of: &Range<u64>) -> impl Iterator<Item = &'r Range<u64>> {
    let first = rows.partition_point(|range| range.end <= of.start);
    let end = of.end;
    rows.iter().skip(first).take_while(move |range| range.start < end).filter(|range| range.start < range.end)
}

/// The intersection of two lists.
pub(crate) fn both(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut rest = other;
    for range in one.iter().filter(|range| range.start < range.end) {
        // Ranges before this one are also before the following ones.
        rest = rest.get(rest.partition_point(|next| next.end <= range.start)..).unwrap_or_default();
        let overlapping = rest.get(..rest.partition_point(|next| next.start < range.end)).unwrap_or_default();
        let start = found.len();
        // Those in between lie within the range.
        found.extend_from_slice(overlapping);
        if let Some(first) = found.get_mut(start) {
            first.start = first.start.max(range.start);
        }
        if let Some(last) = found.last_mut().filter(|_| !overlapping.is_empty()) {
            last.end = last.end.min(range.end);
        }
        if overlapping.iter().any(Range::is_empty) {
            found.retain(|range| !range.is_empty());
        }
    }
    found
}

/// The union of two lists.
pub(crate) fn either(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut all: Vec<_> = one.iter().chain(other).filter(|range| range.start < range.end).cloned().collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for range in all {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(ranges: &[Range<u64>]) -> Vec<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_and_either_are_of_the_rows(
            one in prop::collection::vec((0..9u64, 0..9u64), 0..9),
            other in prop::collection::vec((0..9u64, 0..9u64), 0..9),
        ) {
            let ranges = |steps: Vec<(u64, u64)>| {
                let mut next = 0;
                let range = |(skipped, wanted): (u64, u64)| {
                    let start = next + skipped;
                    next = start + wanted;
                    start..next
                };
                steps.into_iter().map(range).filter(|range| !range.is_empty()).collect::<Vec<_>>()
            };
            let (one, other) = (ranges(one), ranges(other));
            let (left, right) = (rows(&one), rows(&other));
            let in_both: Vec<u64> = left.iter().copied().filter(|row| right.contains(row)).collect();
            prop_assert_eq!(rows(&both(&one, &other)), in_both);
            let mut in_either = [left, right].concat();
            in_either.sort_unstable();
            in_either.dedup();
            prop_assert_eq!(rows(&either(&one, &other)), in_either);
        }
    }

    #[test]
    fn what_lies_close_is_decoded_together() {
        let wanted = [0..10, 11..20, 531..540, 1052..1060, 1060..1060, 5000..6000];
        assert_eq!(decoded_for(&wanted), [0..540, 1052..1060, 5000..6000]);
        assert!(decoded_for(&[]).is_empty());
    }
}
