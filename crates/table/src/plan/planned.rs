//! A plan: the data files of a scan in columns, manifest by manifest, and their delete files.

use std::sync::Arc;

use arrow_schema::Fields;
use icefield_format::expr::BoundExpr;
use icefield_format::manifest::{Entries, Metrics};
use icefield_format::spec::PartitionSpec;

use super::changes::{Change, FileChanges};
use super::deletes::Deletes;
use super::deletes::links::{DeleteLinks, Linked};
use super::report::ScanReport;
use crate::error::{Error, Result};

/// The files that a scan reads.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Data files, manifest by manifest.
    pub manifests: Vec<PlannedManifest>,
    /// Delete files that may apply; data files refer to them by index.
    pub deletes: Arc<Deletes>,
    /// Partition fields of all specs in the plan.
    pub partition: Fields,
    /// Metrics that the scan requested; `manifests` may have more.
    pub metrics: Metrics,
    /// Counts of scanned and skipped files.
    pub report: ScanReport,
    /// Whether the data files are changes of a changelog.
    pub is_changelog: bool,
}

/// The files of one manifest that a scan reads; all vectors have one item per file.
#[derive(Debug, Clone)]
pub struct PlannedManifest {
    /// The manifest's partition spec.
    pub spec: Arc<PartitionSpec>,
    /// The files.
    pub entries: Arc<Entries>,
    /// For each file the index of its residual in `residuals`.
    pub residual_places: Vec<u32>,
    /// Filters still to be tested on rows, by partition.
    pub residuals: Vec<BoundExpr>,
    /// Deletes of each file; `None` if no file has any.
    pub deletes: Option<DeleteLinks>,
    /// In a changelog: the change of each file.
    pub changes: Option<FileChanges>,
}

impl PlannedManifest {
    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.entries.memory()
            + size_of_val(self.residual_places.as_slice())
            + size_of_val(self.residuals.as_slice())
            + self.deletes.as_ref().map_or(0, DeleteLinks::memory)
    }
}

impl PlannedManifest {
    /// The partition spec of the files.
    pub fn spec(&self) -> &Arc<PartitionSpec> {
        &self.spec
    }

    /// The id of the partition spec of the files.
    pub fn spec_id(&self) -> i32 {
        self.spec.spec_id
    }

    /// The deletes of a file, as indices into the plan's list of deletes.
    pub fn deletes(&self, row: usize) -> Linked<'_> {
        self.deletes.as_ref().map(|links| links.of(row)).unwrap_or_default()
    }

    /// Number of links to deletes, including those in `deleted_by` of a changelog.
    pub(super) fn links(&self) -> usize {
        let deleted_by = self.changes.as_ref().and_then(|changes| changes.deleted_by.as_ref());
        let both = self.deletes.iter().chain(deleted_by);
        both.map(DeleteLinks::len).fold(0, usize::saturating_add)
    }

    /// These links, file by file.
    pub(super) fn linked(&self) -> impl Iterator<Item = Linked<'_>> {
        (0..self.entries.len()).flat_map(|row| [self.deletes(row), self.deleted_by(row)])
    }

    /// The part of the filter still to be tested on the rows of a file.
    pub fn residual(&self, row: usize) -> Result<&BoundExpr> {
        let place = self.residual_places.get(row).copied().unwrap_or(u32::MAX);
        let residual = self.residuals.get(place as usize);
        residual.ok_or_else(|| Error::Internal("a planned file without its residual".to_owned()))
    }
}

impl Plan {
    /// Number of data files.
    pub fn len(&self) -> usize {
        self.manifests.iter().map(|manifest| manifest.entries.len()).sum()
    }

    /// Whether there are no data files.
    pub fn is_empty(&self) -> bool {
        self.manifests.is_empty()
    }
}

impl PlannedManifest {
    /// In a changelog: the change that a planned file represents.
    pub fn change(&self, row: usize) -> Result<Change> {
        let change = self.changes.as_ref().and_then(|changes| changes.changes.get(row)).copied();
        change.ok_or_else(|| Error::Internal("a file without its change".to_owned()))
    }

    /// In a changelog: indices into the plan's list of deletes. A row is read only if one of these has deleted it;
    /// without any, all rows are read.
    pub fn deleted_by(&self, row: usize) -> Linked<'_> {
        let links = self.changes.as_ref().and_then(|changes| changes.deleted_by.as_ref());
        links.map(|links| links.of(row)).unwrap_or_default()
    }
}
