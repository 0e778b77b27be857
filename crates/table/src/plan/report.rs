//! What a plan looked at and what it could skip, as Java's scan metrics report counts it.

use std::collections::BTreeSet;
use std::fmt;

use icefield_format::manifest::FileContent;

use super::PlannedManifest;
use super::deletes::DeleteFile;

/// Counts of one plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// Manifests of data files in the snapshot.
    pub total_data_manifests: usize,
    /// Manifests of delete files in the snapshot.
    pub total_delete_manifests: usize,
    /// Data manifests that were read.
    pub scanned_data_manifests: usize,
    /// Data manifests that were not.
    pub skipped_data_manifests: usize,
    /// Delete manifests that were read.
    pub scanned_delete_manifests: usize,
    /// Delete manifests that were not.
    pub skipped_delete_manifests: usize,
    /// Data files of the plan.
    pub result_data_files: usize,
    /// Data files of the manifests that were read which the plan leaves out.
    pub skipped_data_files: usize,
    /// Delete files that apply to a data file of the plan.
    pub result_delete_files: usize,
    /// Delete files that were read.
    pub indexed_delete_files: usize,
    /// Equality delete files among those that apply.
    pub equality_delete_files: usize,
    /// Position delete files among those that apply.
    pub positional_delete_files: usize,
    /// Deletion vectors among those that apply.
    pub deletion_vectors: usize,
    /// Bytes of the data files of the plan.
    pub total_file_size_in_bytes: i64,
}

/// Counts of one manifest.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileCounts {
    /// Data files kept.
    pub data_files: usize,
    /// Live files left out.
    pub skipped: usize,
}

impl ScanReport {
    pub(super) fn data_manifests(&mut self, scanned: usize, skipped: usize) {
        self.total_data_manifests = scanned + skipped;
        self.scanned_data_manifests = scanned;
        self.skipped_data_manifests = skipped;
    }

    pub(super) fn delete_manifests(&mut self, scanned: usize, skipped: usize) {
        self.total_delete_manifests = scanned + skipped;
        self.scanned_delete_manifests = scanned;
        self.skipped_delete_manifests = skipped;
    }

    pub(super) fn add(&mut self, counts: &FileCounts) {
        self.result_data_files += counts.data_files;
        self.skipped_data_files += counts.skipped;
    }

    pub(super) fn count_deletes(&mut self, manifests: &[PlannedManifest], deletes: &[DeleteFile]) {
        self.indexed_delete_files = deletes.len();
        let links = manifests.iter().filter_map(|manifest| manifest.deletes.as_ref());
        let used: BTreeSet<u32> = links.flat_map(|links| links.places().iter().copied()).collect();
        self.result_delete_files = used.len();
        for delete in used.iter().filter_map(|place| deletes.get(*place as usize)) {
            match delete.file.content {
                FileContent::EqualityDeletes => self.equality_delete_files += 1,
                _ if delete.is_vector() => self.deletion_vectors += 1,
                _ => self.positional_delete_files += 1,
            }
        }
        let sizes = manifests.iter().flat_map(|manifest| manifest.entries.file_size_in_bytes.values());
        self.total_file_size_in_bytes = sizes.fold(0i64, |sum, size| sum.saturating_add(*size));
    }
}

impl ScanReport {
    /// Every count by its name.
    pub fn counts(&self) -> [(&'static str, i64); 14] {
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
            ("equality_delete_files", count(self.equality_delete_files)),
            ("positional_delete_files", count(self.positional_delete_files)),
            ("deletion_vectors", count(self.deletion_vectors)),
            ("total_file_size_in_bytes", self.total_file_size_in_bytes),
        ]
    }
}

/// The report as a person reads it.
impl fmt::Display for ScanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |part: usize, other: usize, what: &str| format!("{part} of {} {what}", part + other);
        writeln!(
            f,
            "manifests read: {}",
            of(self.scanned_data_manifests, self.skipped_data_manifests, "of data files")
        )?;
        if self.total_delete_manifests > 0 {
            let deletes = of(self.scanned_delete_manifests, self.skipped_delete_manifests, "of delete files");
            writeln!(f, "                {deletes}")?;
        }
        let files = of(self.result_data_files, self.skipped_data_files, "in these manifests");
        write!(f, "data files:     {files}, {} bytes to read at the most", self.total_file_size_in_bytes)?;
        if self.indexed_delete_files > 0 {
            write!(
                f,
                "\ndelete files:   {} of {} apply: {} deletion vectors, {} by position, {} by equality",
                self.result_delete_files,
                self.indexed_delete_files,
                self.deletion_vectors,
                self.positional_delete_files,
                self.equality_delete_files
            )?;
        }
        Ok(())
    }
}
