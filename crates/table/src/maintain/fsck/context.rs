//! A check under way: what it compares, and what it has found.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::limits::Held;
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::puffin::Footer;

use crate::commit::Committed;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::maintain::export::exported_snapshots;
use crate::snapshot::parallel::locked;
use crate::storage::Storage;

/// Memory of a hash in a set.
pub(super) const OF_A_HASH: usize = 2 * size_of::<u64>();

/// How much of a table is read. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// The metadata file only.
    Metadata,
    /// Manifest lists and manifests.
    #[default]
    Manifests,
    /// Whether the listed files exist, and their sizes: one request a file.
    Files,
    /// Footers of data files, delete files and statistics files.
    Footers,
    /// All rows and all deletion vectors.
    Rows,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Reads may fail or return wrong rows.
    Error,
    /// Reads return the right rows, but figures are wrong, or something is unused.
    Warning,
}

/// A difference between two parts of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The name of the check, such as `file-size`.
    pub check: &'static str,
    /// The file that is wrong, or whose description is.
    pub file: String,
    /// The field of the metadata, the manifest list or the manifest; empty if the file itself is wrong.
    pub field: String,
    /// What it should be; empty if that has no value.
    pub expected: String,
    /// What it is.
    pub found: String,
    /// The file that describes it: a metadata file, a manifest list or a manifest.
    pub described_by: String,
}

/// What to check.
#[derive(Debug, Clone, Copy)]
pub struct FsckOptions {
    /// How much to read.
    pub level: Level,
    /// Maximum number of findings that are returned; all are counted.
    pub most: usize,
    /// Whether files are compared with each other in the current snapshot only, and not in each branch and tag.
    pub only_current: bool,
}

impl Default for FsckOptions {
    fn default() -> Self {
        Self { level: Level::default(), most: 10_000, only_current: false }
    }
}

/// The result of a check.
#[derive(Debug, Default, Clone)]
pub struct FsckReport {
    /// The findings: errors first, then by check and file.
    pub findings: Vec<Finding>,
    /// Number of all errors.
    pub errors: u64,
    /// Number of all warnings.
    pub warnings: u64,
    /// Snapshots that were checked.
    pub snapshots: u64,
    /// Manifests that were read.
    pub manifests: u64,
    /// Data and delete files that were checked.
    pub files: u64,
    /// Rows that were read.
    pub rows: u64,
}

/// A check under way.
pub(super) struct Check<'a> {
    pub(super) storage: &'a Storage,
    pub(super) metadata: &'a TableMetadata,
    /// The metadata file.
    pub(super) location: &'a str,
    pub(super) limits: &'a Limits,
    pub(super) options: FsckOptions,
    /// If the table is an export, the snapshots whose manifests are in it.
    pub(super) exported: Option<HashSet<i64>>,
    pub(super) hash: RandomState,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) report: FsckReport,
    pub(super) held: Held,
    /// Hashes of the files that were checked.
    pub(super) seen: HashSet<u64>,
    /// Puffin files with several deletion vectors, by hashes of their paths.
    pub(super) puffins: HashMap<u64, Arc<Puffin>>,
    /// Why the check cannot go on.
    pub(super) failed: Option<Error>,
}

/// A Puffin file whose deletion vectors are checked, by several threads: the first one reads, the others wait.
#[derive(Debug, Default)]
pub(super) struct Puffin {
    /// Its size as it is stored.
    size: Mutex<Option<u64>>,
    /// Its footer, from the level on that reads them.
    footer: Mutex<Option<Arc<PuffinFooter>>>,
}

impl Puffin {
    /// The size, which `ask` finds out.
    pub(super) fn size(&self, ask: impl FnOnce() -> Result<u64>) -> Result<u64> {
        let known = &mut *locked(&self.size);
        match known {
            Some(size) => Ok(*size),
            None => Ok(*known.insert(ask()?)),
        }
    }

    /// The footer, which `read` reads.
    pub(super) fn footer(&self, read: impl FnOnce() -> Result<Footer>) -> Result<Arc<PuffinFooter>> {
        let known = &mut *locked(&self.footer);
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let footer = read()?;
        let places = footer.blobs.iter().enumerate().map(|(at, blob)| ((blob.offset, blob.length), at));
        let blobs = places.collect();
        Ok(known.insert(Arc::new(PuffinFooter { footer, blobs })).clone())
    }
}

/// The footer of a Puffin file, and which blob is where.
#[derive(Debug)]
pub(super) struct PuffinFooter {
    pub(super) footer: Footer,
    /// The blobs by offset and length.
    pub(super) blobs: HashMap<(u64, u64), usize>,
}

/// As many Puffin files are remembered: manifests list the vectors of one together.
const MOST_PUFFINS: usize = 64;

/// A place in a table that findings are about.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) check: &'a Check<'a>,
    pub(super) file: &'a str,
    pub(super) described_by: &'a str,
}

impl std::fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check").field("location", &self.location).finish_non_exhaustive()
    }
}

impl<'a> Check<'a> {
    pub(super) fn new(storage: &'a Storage, table: &'a Committed, limits: &'a Limits, options: FsckOptions) -> Self {
        let state = State {
            report: FsckReport::default(),
            held: limits.held(),
            seen: HashSet::new(),
            puffins: HashMap::new(),
            failed: None,
        };
        Self {
            storage,
            metadata: &table.metadata,
            location: &table.location,
            limits,
            options,
            exported: exported_snapshots(&table.metadata),
            hash: RandomState::new(),
            state: Mutex::new(state),
        }
    }

    /// Whether the manifests of a snapshot should exist; exports have those of some only.
    pub(super) fn has_manifests(&self, snapshot: &Snapshot) -> bool {
        self.exported.as_ref().is_none_or(|exported| exported.contains(&snapshot.snapshot_id))
    }

    /// What was found.
    pub(super) fn finish(self) -> Result<FsckReport> {
        let State { mut report, failed, .. } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failed {
            return Err(error);
        }
        report.findings.sort();
        Ok(report)
    }

    /// Findings about a file that `described_by` describes.
    pub(super) fn at(&'a self, file: &'a str, described_by: &'a str) -> At<'a> {
        At { check: self, file, described_by }
    }

    pub(super) fn add(&self, finding: Finding) {
        // Two lists may describe a manifest differently; it is then read twice.
        if !self.is_new(&finding) {
            return;
        }
        let report = &mut locked(&self.state).report;
        match finding.severity {
            Severity::Error => report.errors += 1,
            Severity::Warning => report.warnings += 1,
        }
        if report.findings.len() < self.options.most {
            report.findings.push(finding);
        } else if finding.severity == Severity::Error
            && let Some(warning) = report.findings.iter_mut().find(|known| known.severity == Severity::Warning)
        {
            *warning = finding;
        }
    }

    /// Whether something was not met before: a file, a manifest as a list describes it, a finding.
    pub(super) fn is_new(&self, met: impl Hash) -> bool {
        let hash = self.hash.hash_one(met);
        let state = &mut *locked(&self.state);
        if !state.seen.insert(hash) {
            return false;
        }
        if let Err(error) = state.held.keep(OF_A_HASH) {
            state.failed.get_or_insert(error.into());
            return false;
        }
        true
    }

    /// The Puffin file with this path.
    pub(super) fn puffin(&self, path: &str) -> Arc<Puffin> {
        let hash = self.hash.hash_one(path);
        let puffins = &mut locked(&self.state).puffins;
        if puffins.len() >= MOST_PUFFINS && !puffins.contains_key(&hash) {
            puffins.clear();
        }
        puffins.entry(hash).or_default().clone()
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut FsckReport)) {
        add(&mut locked(&self.state).report);
    }

    /// Whether to go on.
    pub(super) fn goes_on(&self) -> bool {
        let state = &mut *locked(&self.state);
        if state.failed.is_none() {
            state.failed = interrupt::check().err();
        }
        state.failed.is_none()
    }

    /// Returns what a path has instead of a file after a failed read; `None` if it may have the file.
    pub(super) fn in_its_place(&self, path: &str, error: &Error) -> Option<&'static str> {
        let other = self.storage.other_than_file(path);
        other.or_else(|| matches!(error, Error::NotFound { .. }).then_some("nothing"))
    }

    /// Notes a failed read: a finding if the file is to blame, otherwise the end of the check.
    pub(super) fn unread(&'a self, at: At<'a>, missing: &'static str, unreadable: &'static str, error: Error) {
        match error {
            error if let Some(found) = self.in_its_place(at.file, &error) => at.error(missing, "", "a file", found),
            // A store that does not answer says nothing about its files.
            Error::Storage { .. }
            | Error::Refused(_)
            | Error::Interrupted(_)
            | Error::Callback(_)
            | Error::Internal(_) => {
                locked(&self.state).failed.get_or_insert(error);
            }
            error => at.error(unreadable, "", "", error),
        }
    }
}

impl At<'_> {
    pub(super) fn error(&self, check: &'static str, field: &str, expected: impl ToString, found: impl ToString) {
        self.add(Severity::Error, check, field, expected, found);
    }

    pub(super) fn warning(&self, check: &'static str, field: &str, expected: impl ToString, found: impl ToString) {
        self.add(Severity::Warning, check, field, expected, found);
    }

    pub(super) fn add(
        &self,
        severity: Severity,
        check: &'static str,
        field: &str,
        expected: impl ToString,
        found: impl ToString,
    ) {
        self.check.add(Finding {
            severity,
            check,
            file: self.file.to_owned(),
            field: field.to_owned(),
            expected: expected.to_string(),
            found: found.to_string(),
            described_by: self.described_by.to_owned(),
        });
    }

    /// An error if two values differ.
    pub(super) fn same<T: PartialEq + ToString>(&self, check: &'static str, field: &str, expected: T, found: T) {
        if expected != found {
            self.error(check, field, expected, found);
        }
    }
}
