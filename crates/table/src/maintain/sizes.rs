//! Chooses files to rewrite by their sizes and packs them into groups: the rules of Java's
//! `SizeBasedFileRewritePlanner`.

use super::options::{Given, wrong};
use crate::error::{Error, Result};

/// Target size of the new files.
pub(super) const TARGET_FILE_SIZE: &str = "target-file-size-bytes";
const MIN_FILE_SIZE: &str = "min-file-size-bytes";
const MAX_FILE_SIZE: &str = "max-file-size-bytes";
/// Bytes that a new file may have beyond its share.
const SPLIT_OVERHEAD: i64 = 5 << 10;

/// Sizes of files and groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sizes {
    target: i64,
    min: i64,
    max: i64,
    min_input_files: i64,
    /// Whether all files are rewritten.
    pub(super) rewrite_all: bool,
    group_bytes: i64,
    group_files: i64,
}

/// The order in which groups are rewritten (`rewrite-job-order`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobOrder {
    AsFound,
    BytesAscending,
    BytesDescending,
    FilesAscending,
    FilesDescending,
}

impl Sizes {
    /// Reads the options.
    ///
    /// # Errors
    /// A value that is not allowed, or sizes that contradict each other.
    pub(super) fn of(given: &mut Given<'_>, default_target: i64) -> Result<Self> {
        let target = given.integer(TARGET_FILE_SIZE, default_target, 1)?;
        let share = |ratio: f64| (target as f64 * ratio) as i64;
        let min = given.integer(MIN_FILE_SIZE, share(0.75), 0)?;
        let max = given.integer(MAX_FILE_SIZE, share(1.8), 0)?;
        if target <= min {
            return Err(Error::invalid(format!(
                "option '{TARGET_FILE_SIZE}' ({target}) must be greater than '{MIN_FILE_SIZE}' ({min}): all new files would be \
                 too small"
            )));
        }
        if target >= max {
            return Err(Error::invalid(format!(
                "option '{TARGET_FILE_SIZE}' ({target}) must be less than '{MAX_FILE_SIZE}' ({max}): all new files would be too \
                 large"
            )));
        }
        Self::rest(given, (target, min, max))
    }

    fn rest(given: &mut Given<'_>, (target, min, max): (i64, i64, i64)) -> Result<Self> {
        Ok(Self {
            target,
            min,
            max,
            min_input_files: given.integer("min-input-files", 5, 1)?,
            rewrite_all: given.flag("rewrite-all", false)?,
            group_bytes: given.integer("max-file-group-size-bytes", 100 << 30, 1)?,
            group_files: given.integer("max-file-group-input-files", i64::MAX, 1)?,
        })
    }

    /// Rejects options that contradict each other for every table. Without a target size, that is the table's.
    ///
    /// # Errors
    /// A value that is not allowed, or sizes that contradict each other.
    pub(super) fn check(given: &mut Given<'_>) -> Result<()> {
        if given.text(TARGET_FILE_SIZE).is_some() {
            return Self::of(given, 1).map(drop);
        }
        let (min, max) = (given.integer(MIN_FILE_SIZE, 0, 0)?, given.integer(MAX_FILE_SIZE, i64::MAX, 0)?);
        if max.saturating_sub(min) < 2 {
            return Err(Error::invalid(format!(
                "option '{MIN_FILE_SIZE}' ({min}) and option '{MAX_FILE_SIZE}' ({max}) leave no target size between them"
            )));
        }
        Self::rest(given, (0, min, max)).map(drop)
    }

    /// Whether a file is too small or too large.
    pub(super) fn is_outside(&self, bytes: i64) -> bool {
        bytes < self.min || bytes > self.max
    }

    /// Whether to rewrite a group of this many files and bytes for its sizes alone.
    pub(super) fn is_worthwhile(&self, files: usize, bytes: i64) -> bool {
        let is_enough = i64::try_from(files).unwrap_or(i64::MAX) >= self.min_input_files || bytes > self.target;
        (files > 1 && is_enough) || bytes > self.max
    }

    /// Packs items in order: a group is closed by the first item that it has no room for.
    pub(super) fn packed<T>(&self, items: impl IntoIterator<Item = T>, bytes: impl Fn(&T) -> i64) -> Vec<Vec<T>> {
        let (mut groups, mut room): (Vec<Vec<T>>, i64) = (Vec::new(), 0);
        for item in items {
            let weight = bytes(&item);
            match groups.last_mut() {
                Some(group) if weight <= room && (group.len() as i64) < self.group_files => {
                    room -= weight;
                    group.push(item);
                }
                _ => {
                    room = self.group_bytes.saturating_sub(weight);
                    groups.push(vec![item]);
                }
            }
        }
        groups
    }

    /// The number of files to write for this many bytes. A small rest is divided among the other files if these then grow
    /// by less than a tenth.
    pub(super) fn outputs(&self, bytes: i64) -> i64 {
        if bytes < self.target {
            return 1;
        }
        let (whole, rest) = (bytes / self.target, bytes % self.target);
        let average = (bytes / whole) as f64;
        let fits = average < (1.1 * self.target as f64).min(self.file_bytes() as f64);
        match rest > self.min || !fits {
            true if rest > 0 => whole + 1,
            _ => whole,
        }
    }

    /// Bytes that one writer reads, for this many bytes and files to write.
    pub(super) fn split_bytes(&self, bytes: i64, outputs: i64) -> i64 {
        let share = (bytes / outputs.max(1)).saturating_add(SPLIT_OVERHEAD);
        if share < self.target { self.target } else { share.min(self.file_bytes()) }
    }

    /// The size at which a new file is closed: beyond the target, so that no small rest remains for another one.
    pub(super) fn file_bytes(&self) -> i64 {
        (self.target as f64 + (self.max - self.target) as f64 * 0.5) as i64
    }
}

impl JobOrder {
    /// Reads the option.
    ///
    /// # Errors
    /// An unknown order.
    pub(super) fn of(given: &mut Given<'_>) -> Result<Self> {
        const NAME: &str = "rewrite-job-order";
        let Some(text) = given.text(NAME) else { return Ok(Self::AsFound) };
        Ok(match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "none" => Self::AsFound,
            "bytes-asc" => Self::BytesAscending,
            "bytes-desc" => Self::BytesDescending,
            "files-asc" => Self::FilesAscending,
            "files-desc" => Self::FilesDescending,
            _ => return Err(wrong(NAME, "none, bytes-asc, bytes-desc, files-asc or files-desc", text)),
        })
    }

    /// Sorts groups by their bytes and numbers of files; equal ones keep their order.
    pub(super) fn sort<T>(self, groups: &mut [T], of: impl Fn(&T) -> (i64, usize)) {
        match self {
            Self::AsFound => {}
            Self::BytesAscending => groups.sort_by_key(|group| of(group).0),
            Self::BytesDescending => groups.sort_by_key(|group| std::cmp::Reverse(of(group).0)),
            Self::FilesAscending => groups.sort_by_key(|group| of(group).1),
            Self::FilesDescending => groups.sort_by_key(|group| std::cmp::Reverse(of(group).1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use icefield_format::metadata::StringMap;

    use super::*;

    fn sizes(options: &[(&str, &str)]) -> Result<Sizes> {
        let options: StringMap = options.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let mut given = Given::new(&options);
        let sizes = Sizes::of(&mut given, 512 << 20)?;
        given.end("compaction")?;
        Ok(sizes)
    }

    #[test]
    fn defaults_are_shares_of_the_target() {
        let own = sizes(&[]).unwrap();
        assert_eq!((own.target, own.min, own.max), (536_870_912, 402_653_184, 966_367_641));
        assert_eq!((own.min_input_files, own.group_bytes, own.file_bytes()), (5, 107_374_182_400, 751_619_276));
        let own = sizes(&[("target-file-size-bytes", "1000")]).unwrap();
        assert_eq!((own.target, own.min, own.max, own.file_bytes()), (1000, 750, 1800, 1400));
        assert_eq!([749, 750, 1000, 1800, 1801].map(|bytes| own.is_outside(bytes)), [true, false, false, false, true]);
    }

    #[test]
    fn numbers_of_new_files_are_javas() {
        // Java's `TestBinPackRewriteFilePlanner` and `expectedOutputFiles` by hand: bytes, files, bytes of a writer.
        let own = sizes(&[("target-file-size-bytes", "1000")]).unwrap();
        for (bytes, outputs, split) in [
            (0, 1, 1400),
            (999, 1, 1400),
            (1000, 1, 1400),
            (1099, 1, 1400),
            (1100, 2, 1400),
            (1751, 2, 1400),
            (2000, 2, 1400),
            (2100, 2, 1400),
            (2300, 3, 1400),
            (10_500, 10, 1400),
            (10_751, 11, 1400),
        ] {
            assert_eq!((own.outputs(bytes), own.split_bytes(bytes, outputs)), (outputs, split), "{bytes}");
        }
        let own = sizes(&[("target-file-size-bytes", "1000000")]).unwrap();
        assert_eq!(own.split_bytes(3_000_000, 3), 1_005_120);
    }

    #[test]
    fn groups_are_closed_in_order() {
        for (options, lengths, groups) in [
            (&[("max-file-group-size-bytes", "10")][..], &[4, 4, 4, 4][..], &[&[4, 4][..], &[4, 4]][..]),
            (&[("max-file-group-size-bytes", "10")], &[4, 7, 6], &[&[4], &[7], &[6]]),
            (&[("max-file-group-size-bytes", "10")], &[20, 10, 1], &[&[20], &[10], &[1]]),
            (&[("max-file-group-input-files", "2")], &[1, 1, 1], &[&[1, 1], &[1]]),
            (&[], &[1, 1, 1], &[&[1, 1, 1]]),
            (&[], &[], &[]),
        ] {
            let packed = sizes(options).unwrap().packed(lengths.iter().copied(), |length| *length);
            assert_eq!(packed, groups, "{options:?} {lengths:?}");
        }
    }

    #[test]
    fn groups_are_rewritten_for_their_number_of_files_or_their_bytes() {
        let own = sizes(&[("target-file-size-bytes", "1000"), ("min-input-files", "3")]).unwrap();
        for (files, bytes, expected) in
            [(1, 1, false), (1, 1800, false), (1, 1801, true), (2, 1000, false), (2, 1001, true), (3, 3, true)]
        {
            assert_eq!(own.is_worthwhile(files, bytes), expected, "{files} {bytes}");
        }
        assert!(!sizes(&[("min-input-files", "1")]).unwrap().is_worthwhile(1, 1));
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused_by_name() {
        for (options, part) in [
            (
                &[("target-file-size-bytes", "0")][..],
                "option 'target-file-size-bytes': expected an integer of at least 1",
            ),
            (&[("target-file-size-bytes", "9"), ("min-file-size-bytes", "9")], "must be greater than 'min-file-size"),
            (&[("target-file-size-bytes", "9"), ("max-file-size-bytes", "9")], "must be less than 'max-file-size"),
            (&[("min-file-size-bytes", "-1")], "at least 0, got '-1'"),
            (&[("min-input-files", "0")], "option 'min-input-files'"),
            (&[("max-file-group-size-bytes", "x")], "got 'x'"),
            (&[("max-file-group-input-files", "0")], "option 'max-file-group-input-files'"),
            (&[("rewrite-all", "yes")], "expected true or false, got 'yes'"),
            (&[("min-input-file", "2")], "unknown option 'min-input-file'; did you mean"),
        ] {
            let error = sizes(options).unwrap_err().to_string();
            assert!(error.contains(part), "{options:?}: {error}");
        }
    }
}
