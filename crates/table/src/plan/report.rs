//! Counts of what a plan read and skipped, as in Java's scan metrics report.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::deletes::{DeleteKind, Deletes};
use crate::error::Result;

/// Counts of one plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// Manifests of data files in the snapshot.
    pub total_data_manifests: usize,
    /// Manifests of delete files in the snapshot.
    pub total_delete_manifests: usize,
    /// Data manifests that were read.
    pub scanned_data_manifests: usize,
    /// Data manifests that were skipped.
    pub skipped_data_manifests: usize,
    /// Delete manifests that were read.
    pub scanned_delete_manifests: usize,
    /// Delete manifests that were skipped.
    pub skipped_delete_manifests: usize,
    /// Data files of the plan.
    pub result_data_files: usize,
    /// Pruned data files of the scanned manifests.
    pub skipped_data_files: usize,
    /// Links of data files in the plan to delete files: a delete file counts once for each data file it applies to.
    pub result_delete_files: usize,
    /// Delete files that may apply to data files of the plan.
    pub indexed_delete_files: usize,
    /// Delete files of the scanned manifests that cannot apply.
    pub skipped_delete_files: usize,
    /// Equality delete files among those indexed.
    pub equality_delete_files: usize,
    /// Position delete files among those indexed.
    pub positional_delete_files: usize,
    /// Deletion vectors among those indexed.
    pub deletion_vectors: usize,
    /// Bytes of the data files of the plan.
    pub total_file_size_in_bytes: i64,
    /// Bytes to read of delete files; those of one count once for each data file it applies to.
    pub total_delete_file_size_in_bytes: i64,
    /// Scanned manifests that came from the cache, without being read or decoded.
    pub cached_manifests: usize,
    /// Bytes of manifests that were read.
    pub manifest_bytes_read: u64,
}

type Tell = dyn Fn(&ScanReport, Duration) + Send + Sync;

/// Told of each finished plan of a scan, with the time that planning took.
#[derive(Clone)]
pub struct Observer(Arc<Tell>);

impl Observer {
    /// An observer that calls a function.
    pub fn new(tell: impl Fn(&ScanReport, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, report: &ScanReport, took: Duration) {
        (self.0)(report, took);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// Counts of one manifest.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileCounts {
    /// Files kept.
    pub kept: usize,
    /// Live files pruned.
    pub skipped: usize,
    /// Deletes of the data files kept.
    pub links: usize,
    /// Bytes of the data files kept.
    pub size: i64,
    /// Bytes of their deletes.
    pub deletes_size: i64,
    /// 1 if it came from the cache.
    pub cached: usize,
    /// Bytes read of it.
    pub bytes_read: u64,
}

impl ScanReport {
    pub(super) fn data_manifests(&mut self, total: usize, scanned: usize) {
        self.total_data_manifests = total;
        self.scanned_data_manifests = scanned;
        self.skipped_data_manifests = total - scanned;
    }

    pub(super) fn delete_manifests(&mut self, total: usize, scanned: usize) {
        self.total_delete_manifests = total;
        self.scanned_delete_manifests = scanned;
        self.skipped_delete_manifests = total - scanned;
    }

    pub(super) fn add_data(&mut self, counts: &FileCounts) {
        self.result_data_files += counts.kept;
        self.skipped_data_files += counts.skipped;
        self.result_delete_files += counts.links;
        self.total_file_size_in_bytes = self.total_file_size_in_bytes.saturating_add(counts.size);
        self.total_delete_file_size_in_bytes = self.total_delete_file_size_in_bytes.saturating_add(counts.deletes_size);
        self.add_read(counts);
    }

    pub(super) fn add_deletes(&mut self, counts: &FileCounts) {
        self.indexed_delete_files += counts.kept;
        self.skipped_delete_files += counts.skipped;
        self.add_read(counts);
    }

    fn add_read(&mut self, counts: &FileCounts) {
        self.cached_manifests += counts.cached;
        self.manifest_bytes_read += counts.bytes_read;
    }

    pub(super) fn count_kinds(&mut self, deletes: &Deletes) -> Result<()> {
        for place in 0..u32::try_from(deletes.len()).unwrap_or(u32::MAX) {
            match deletes.kind(place)? {
                DeleteKind::Equality => self.equality_delete_files += 1,
                DeleteKind::Vector => self.deletion_vectors += 1,
                DeleteKind::Positions => self.positional_delete_files += 1,
            }
        }
        Ok(())
    }
}

impl ScanReport {
    /// All counts by name.
    pub fn counts(&self) -> [(&'static str, i64); 18] {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        [
            ("total_data_manifests", count(self.total_data_manifests)),
            ("total_delete_manifests", count(self.total_delete_manifests)),
            ("scanned_data_manifests", count(self.scanned_data_manifests)),
            ("skipped_data_manifests", count(self.skipped_data_manifests)),
            ("scanned_delete_manifests", count(self.scanned_delete_manifests)),
            ("skipped_delete_manifests", count(self.skipped_delete_manifests)),
            ("result_data_files", count(self.result_data_files)),
            ("skipped_data_files", count(self.skipped_data_files)),
            ("result_delete_files", count(self.result_delete_files)),
            ("indexed_delete_files", count(self.indexed_delete_files)),
            ("skipped_delete_files", count(self.skipped_delete_files)),
            ("equality_delete_files", count(self.equality_delete_files)),
            ("positional_delete_files", count(self.positional_delete_files)),
            ("deletion_vectors", count(self.deletion_vectors)),
            ("total_file_size_in_bytes", self.total_file_size_in_bytes),
            ("total_delete_file_size_in_bytes", self.total_delete_file_size_in_bytes),
            ("cached_manifests", count(self.cached_manifests)),
            ("manifest_bytes_read", i64::try_from(self.manifest_bytes_read).unwrap_or(i64::MAX)),
        ]
    }
}

/// The report for people.
impl fmt::Display for ScanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scanned, total) = (self.scanned_data_manifests, self.total_data_manifests);
        write!(f, "manifests:    {scanned} of {total} of data files")?;
        if self.total_delete_manifests > 0 {
            write!(f, ", {} of {} of delete files", self.scanned_delete_manifests, self.total_delete_manifests)?;
        }
        let (cached, bytes) = (self.cached_manifests, self.manifest_bytes_read);
        writeln!(f, "; {cached} from the cache, {bytes} bytes read")?;
        let (kept, skipped) = (self.result_data_files, self.skipped_data_files);
        write!(f, "data files:   {kept} to read, {skipped} skipped in the manifests that were read")?;
        if self.indexed_delete_files + self.skipped_delete_files > 0 {
            write!(
                f,
                "\ndelete files: {} deletes of data files, from {} deletion vectors, {} files of positions, {} of values",
                self.result_delete_files,
                self.deletion_vectors,
                self.positional_delete_files,
                self.equality_delete_files
            )?;
        }
        write!(f, "\nbytes:        at most {} in data files", self.total_file_size_in_bytes)
    }
}
