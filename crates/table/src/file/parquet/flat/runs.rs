//! The selected rows or values of a page, as runs.

use std::ops::Range;

/// Selected rows or values of a page: the parts of ascending ranges that lie in a window of numbers.
#[derive(Clone)]
pub(in crate::file::parquet) struct Runs<'a> {
    ranges: &'a [Range<usize>],
    window: Range<usize>,
}

impl Runs<'static> {
    /// All of `count` rows or values.
    pub(super) fn all(count: usize) -> Self {
        Self { ranges: &[const { 0..usize::MAX }], window: 0..count }
    }
}

impl<'a> Runs<'a> {
    /// The parts of some non-empty ranges in a window.
    pub(in crate::file::parquet) fn new(ranges: &'a [Range<usize>], window: Range<usize>) -> Self {
        Self { ranges, window }
    }

    /// The ranges and the window.
    pub(super) fn parts(&self) -> (&'a [Range<usize>], Range<usize>) {
        (self.ranges, self.window.clone())
    }

    /// Length of the window, selected or not.
    pub(super) fn passed(&self) -> usize {
        self.window.len()
    }

    /// The first number of the window.
    pub(super) fn start(&self) -> usize {
        self.window.start
    }

    /// Splits the window at gaps of at least `least` unselected numbers, and trims each part to its selection.
    pub(super) fn without_gaps(&self, least: usize) -> impl Iterator<Item = Runs<'a>> + use<'a> {
        let (mut left, window) = (self.ranges, self.window.clone());
        std::iter::from_fn(move || {
            let start = left.first()?.start.max(window.start);
            let is_far = |pair: &[Range<usize>]| matches!(pair, [one, next] if next.start - one.end >= least);
            let (ranges, behind) = left.split_at(left.windows(2).position(is_far).map_or(left.len(), |last| last + 1));
            left = behind;
            Some(Runs { ranges, window: start..ranges.last()?.end.min(window.end) })
        })
    }

    /// Number of selected rows or values.
    pub(in crate::file::parquet) fn count(&self) -> usize {
        let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) else { return 0 };
        let all = self.ranges.iter().map(|range| range.end - range.start).sum::<usize>();
        let outside = self.window.start.saturating_sub(first.start) + last.end.saturating_sub(self.window.end);
        all - outside
    }

    /// The selected numbers.
    pub(in crate::file::parquet) fn numbers(&self) -> impl Iterator<Item = Range<usize>> + Clone + use<'a> {
        let Range { start, end } = self.window;
        self.ranges.iter().map(move |range| range.start.max(start)..range.end.min(end))
    }

    /// The selected numbers, counted from the start of the window.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> + Clone + use<'a> {
        let start = self.window.start;
        self.numbers().map(move |run| run.start - start..run.end - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_window_is_wanted() {
        let ranges = [0..4, 6..7, 100..110, 112..120];
        let runs = Runs::new(&ranges, 2..115);
        assert_eq!((runs.start(), runs.passed(), runs.count()), (2, 113, 2 + 1 + 10 + 3));
        assert_eq!(runs.numbers().collect::<Vec<_>>(), [2..4, 6..7, 100..110, 112..115]);
        assert_eq!(runs.iter().collect::<Vec<_>>(), [0..2, 4..5, 98..108, 110..113]);
        let parts = |least| runs.without_gaps(least).map(|part| part.numbers().collect()).collect::<Vec<Vec<_>>>();
        assert_eq!(parts(93), [vec![2..4, 6..7], vec![100..110, 112..115]]);
        assert_eq!(parts(94), [vec![2..4, 6..7, 100..110, 112..115]]);
        assert_eq!(parts(2).len(), 4);
    }

    #[test]
    fn all_and_none() {
        let all = Runs::all(5);
        assert_eq!((all.count(), all.iter().next(), all.iter().count()), (5, Some(0..5), 1));
        assert_eq!(Runs::all(0).count(), 0);
        let none = Runs::new(&[], 3..9);
        assert_eq!((none.count(), none.iter().count(), none.without_gaps(1).count()), (0, 0, 0));
    }
}
