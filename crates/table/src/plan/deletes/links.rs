//! Links data files to the delete files that apply to them, as runs of one shared list.
//!
//! The list keeps delete files with the same lookup key (a partition, a path) together, ordered by sequence number.
//! So the deletes of a data file are the newer ends of a few groups, minus those excluded by bounds. n data files
//! with n delete files in one partition take n runs, where one index per pair would take n².

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};

/// A half-open range of list indices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl Run {
    /// Length.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The items of a list in this range.
    pub fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Appends this run; extends the last one if they are adjacent.
    pub(crate) fn add_to(self, runs: &mut Vec<Self>) {
        match runs.last_mut() {
            _ if self.is_empty() => {}
            Some(last) if last.end == self.start => last.end = self.end,
            _ => runs.push(self),
        }
    }
}

/// The deletes of each file of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteLinks {
    /// Indices into the plan's list of deletes.
    list: Arc<[u32]>,
    /// For each file the end of its runs, where the next file's begin.
    ends: Vec<usize>,
    runs: Vec<Run>,
    len: usize,
}

/// The deletes of one file, as indices into the plan's list of deletes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Linked<'a> {
    list: &'a [u32],
    runs: &'a [Run],
}

impl DeleteLinks {
    /// Links into a list, without files yet.
    pub(super) fn new(list: Arc<[u32]>, files: usize) -> Self {
        Self { list, ends: Vec::with_capacity(files), runs: Vec::new(), len: 0 }
    }

    /// Links of files that share nothing; `None` if no file has any.
    pub(in crate::plan) fn of_files<'p>(files: impl Iterator<Item = &'p [u32]>) -> Result<Option<Self>> {
        let mut list = Vec::new();
        let mut links = Self::new(Arc::default(), 0);
        for places in files {
            let rank = |len: usize| u32::try_from(len).map_err(|_| Error::unsupported("more than 2^32 links"));
            let start = rank(list.len())?;
            list.extend(places);
            links.next_file(&[Run { start, end: rank(list.len())? }]);
        }
        links.list = list.into();
        Ok(links.some())
    }

    /// Adds a file.
    pub(super) fn next_file(&mut self, runs: &[Run]) {
        self.runs.extend(runs.iter().filter(|run| !run.is_empty()));
        self.len = runs.iter().fold(self.len, |sum, run| sum.saturating_add(run.len()));
        self.ends.push(self.runs.len());
    }

    /// The links; `None` if there are none.
    pub(super) fn some(self) -> Option<Self> {
        (self.len > 0).then_some(self)
    }

    /// The deletes that apply to a file.
    pub fn of(&self, row: usize) -> Linked<'_> {
        let bound = |at: Option<usize>| at.and_then(|at| self.ends.get(at)).copied();
        let end = bound(Some(row)).unwrap_or(0);
        let runs = self.runs.get(bound(row.checked_sub(1)).unwrap_or(0)..end);
        Linked { list: &self.list, runs: runs.unwrap_or_default() }
    }

    /// Number of links: a delete file counts once for each data file it applies to.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The sum over all links of something that each delete has; `sums` has it for the first deletes of the list,
    /// by their number.
    pub(super) fn sum(&self, sums: &[i64]) -> i64 {
        let until = |at: u32| sums.get(at as usize).copied().unwrap_or(0);
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(until(run.end).saturating_sub(until(run.start))))
    }

    /// Bytes of memory, without the shared list.
    pub(in crate::plan) fn memory(&self) -> usize {
        size_of_val(self.ends.as_slice()) + size_of_val(self.runs.as_slice())
    }
}

impl<'a> Linked<'a> {
    /// Number of deletes.
    pub fn len(self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    /// Whether there are no deletes.
    pub fn is_empty(self) -> bool {
        self.runs.is_empty()
    }

    /// The indices.
    pub fn iter(self) -> Places<'a> {
        Places { list: self.list, runs: self.runs.iter(), run: [].iter() }
    }

    /// The list that the runs refer to: indices into the plan's list of deletes.
    pub(in crate::plan) fn list(self) -> &'a [u32] {
        self.list
    }

    /// The runs.
    pub(in crate::plan) fn runs(self) -> &'a [Run] {
        self.runs
    }

    /// Identifies the list while the plan exists.
    pub(in crate::plan) fn list_id(self) -> usize {
        self.list.as_ptr().addr()
    }
}

/// The indices of the deletes of one file.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    list: &'a [u32],
    runs: std::slice::Iter<'a, Run>,
    run: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Places<'a> {
    type Item = &'a u32;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(place) = self.run.next() {
                return Some(place);
            }
            self.run = self.runs.next()?.of(self.list).iter();
        }
    }
}

impl<'a> IntoIterator for Linked<'a> {
    type Item = &'a u32;
    type IntoIter = Places<'a>;

    fn into_iter(self) -> Places<'a> {
        self.iter()
    }
}

/// Sums a number over the delete files of each data file. A list is summed once with prefix sums, so a run is the
/// difference of two.
pub(in crate::plan) struct Sums<F> {
    number: F,
    of_list: HashMap<usize, Vec<i128>>,
}

impl<F: Fn(u32) -> Result<i64>> Sums<F> {
    /// Up to this many are summed one by one.
    const FEW: usize = 8;

    pub(in crate::plan) fn new(number: F) -> Self {
        Self { number, of_list: HashMap::new() }
    }

    /// The sum over some deletes, saturating.
    pub(in crate::plan) fn of(&mut self, linked: Linked<'_>) -> Result<i64> {
        if linked.len() <= Self::FEW {
            return linked.iter().try_fold(0i64, |sum, place| Ok(sum.saturating_add((self.number)(*place)?)));
        }
        let sums = match self.of_list.entry(linked.list_id()) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(slot) => {
                let mut sums = Vec::with_capacity(linked.list.len() + 1);
                sums.push(0i128);
                let mut sum = 0i128;
                for place in linked.list {
                    sum += i128::from((self.number)(*place)?);
                    sums.push(sum);
                }
                slot.insert(sums)
            }
        };
        let upto = |rank: u32| sums.get(rank as usize).copied().unwrap_or_default();
        let sum: i128 = linked.runs.iter().map(|run| upto(run.end) - upto(run.start)).sum();
        Ok(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_share_a_list() {
        let mut links = DeleteLinks::new([7, 5, 6, 9].into(), 3);
        links.next_file(&[Run { start: 1, end: 3 }, Run { start: 3, end: 4 }]);
        links.next_file(&[]);
        links.next_file(&[Run { start: 2, end: 2 }, Run { start: 0, end: 4 }]);
        let of = |row| links.of(row).iter().copied().collect::<Vec<u32>>();
        assert_eq!([of(0), of(1), of(2), of(3)], [vec![5, 6, 9], vec![], vec![7, 5, 6, 9], vec![]]);
        assert_eq!((links.len(), links.of(2).len(), links.of(1).is_empty()), (7, 4, true));
        assert_eq!(DeleteLinks::new([1].into(), 0).some(), None);
    }

    #[test]
    fn files_that_share_nothing_have_a_list_all_the_same() {
        let files: [&[u32]; 3] = [&[3, 4], &[], &[4]];
        let links = DeleteLinks::of_files(files.into_iter()).unwrap().unwrap();
        for (row, places) in files.iter().enumerate() {
            assert!(links.of(row).iter().eq(*places));
        }
        assert_eq!(DeleteLinks::of_files([&[][..], &[]].into_iter()).unwrap(), None);
    }

    #[test]
    fn sums_of_runs_are_those_of_their_places() {
        let numbers: Vec<i64> = (0..40).map(|n| n * n - 50).collect();
        let mut links = DeleteLinks::new((0..40).rev().collect(), 3);
        links.next_file(&[Run { start: 3, end: 30 }]);
        links.next_file(&[Run { start: 0, end: 2 }]);
        links.next_file(&[Run { start: 0, end: 11 }, Run { start: 20, end: 40 }]);
        let mut sums = Sums::new(|place| Ok(numbers[place as usize]));
        for row in 0..3 {
            let one_by_one: i64 = links.of(row).iter().map(|place| numbers[*place as usize]).sum();
            assert_eq!(sums.of(links.of(row)).unwrap(), one_by_one);
        }
        let mut large = Sums::new(|_| Ok(i64::MAX));
        assert_eq!((large.of(links.of(0)).unwrap(), large.of(links.of(1)).unwrap()), (i64::MAX, i64::MAX));
    }

    #[test]
    fn runs_that_go_on_are_one() {
        let mut runs = Vec::new();
        for (start, end) in [(2, 4), (4, 4), (4, 5), (9, 10), (0, 2)] {
            Run { start, end }.add_to(&mut runs);
        }
        assert_eq!(runs, [Run { start: 2, end: 5 }, Run { start: 9, end: 10 }, Run { start: 0, end: 2 }]);
    }
}
