//! The end of a file, which was read for its footer: of a small file it is all there is to read.

use std::ops::Range;

use bytes::Bytes;

/// Bytes up to the end of a file.
#[derive(Clone)]
pub(super) struct Tail {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl Tail {
    /// Some ranges of the file, if all of them lie in the tail.
    pub(super) fn ranges(&self, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        ranges.iter().map(|range| self.range(range)).collect()
    }

    /// A range of the file, if it lies in the tail.
    pub(super) fn range(&self, range: &Range<u64>) -> Option<Bytes> {
        let place = |offset: u64| usize::try_from(offset.checked_sub(self.start)?).ok();
        let (start, end) = (place(range.start)?, place(range.end)?);
        (start <= end && end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}
