//! Ranges of rows by number in a file: ascending, without overlaps.

use std::ops::Range;

/// Wanted rows that lie closer than this are decoded together: to skip few rows costs more, in every column.
const CLOSE: u64 = 512;

/// What to decode for some wanted ranges: those that lie close in one.
pub fn decoded_for(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut decoded: Vec<Range<u64>> = Vec::new();
    for range in wanted.iter().filter(|range| range.start < range.end) {
        match decoded.last_mut() {
            Some(last) if range.start.saturating_sub(last.end) < CLOSE => last.end = range.end,
            _ => decoded.push(range.clone()),
        }
    }
    decoded
}

/// Those of some ranges that have rows of another.
pub fn overlapping<'r>(rows: &'r [Range<u64>], of: &Range<u64>) -> impl Iterator<Item = &'r Range<u64>> {
    let first = rows.partition_point(|range| range.end <= of.start);
    let end = of.end;
    rows.iter().skip(first).take_while(move |range| range.start < end).filter(|range| range.start < range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_close_is_decoded_together() {
        let wanted = [0..10, 11..20, 531..540, 1052..1060, 1060..1060, 5000..6000];
        assert_eq!(decoded_for(&wanted), [0..540, 1052..1060, 5000..6000]);
        assert!(decoded_for(&[]).is_empty());
    }
}
