//! Changes rows by adding delete files and data files (merge-on-read; "Row-level Deletes").

use std::collections::{BTreeSet, HashSet};

use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::{DataFile, ManifestContent};
use icefield_format::metadata::{Operation, Snapshot, TableMetadata};

use crate::commit::rule::{self, Rule};
use crate::commit::validate::{Scope, removed_and_referenced};
use crate::commit::{Content, FileChanges, History};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::of_snapshot;
use crate::storage::Storage;

/// The content of a snapshot that adds data files and delete files.
///
/// Checks: `validate_data_files_exist` for data files that new delete files apply to; `validate_deleted_files` and
/// `validate_no_conflicting_delete_files` for updates of rows; `validate_no_conflicting_data_files` for serializable
/// isolation. All check the commits after the snapshot of `validate_from_snapshot`.
#[derive(Debug)]
pub struct RowDelta {
    changes: FileChanges,
    from: Option<i64>,
    conflicts: Expr,
    referenced: HashSet<String>,
    no_new_data: bool,
    no_new_deletes: bool,
    /// The only partition specs with which the table may have data files.
    specs: Option<BTreeSet<i32>>,
}

impl Default for RowDelta {
    fn default() -> Self {
        Self {
            changes: FileChanges::new(),
            from: None,
            conflicts: Expression::True,
            referenced: HashSet::new(),
            no_new_data: false,
            no_new_deletes: false,
            specs: None,
        }
    }
}

impl RowDelta {
    /// An empty content, to which changes are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether filters match column names case-sensitively.
    pub fn set_case_sensitive(&mut self, case_sensitive: bool) {
        self.changes.set_case_sensitive(case_sensitive);
    }

    /// Adds a data file.
    ///
    /// # Errors
    /// A delete file.
    pub fn add_rows(&mut self, file: DataFile) -> Result<()> {
        self.changes.add(file)
    }

    /// Adds a delete file.
    ///
    /// # Errors
    /// A data file, or a second deletion vector for a data file.
    pub fn add_deletes(&mut self, file: DataFile) -> Result<()> {
        self.changes.add_deletes(file, None)
    }

    /// Removes a data file and its rows.
    ///
    /// # Errors
    /// A delete file.
    pub fn remove_rows(&mut self, file: DataFile) -> Result<()> {
        self.changes.remove(file)
    }

    /// Removes a delete file that added ones replace.
    ///
    /// # Errors
    /// A data file.
    pub fn remove_deletes(&mut self, file: DataFile) -> Result<()> {
        self.changes.remove_deletes(file)
    }

    /// Sets the snapshot that the change was planned on; without it, the whole history is checked for conflicts.
    pub fn validate_from_snapshot(&mut self, snapshot_id: i64) {
        self.from = Some(snapshot_id);
    }

    /// Limits conflicts to files that may have rows of this filter; by default all files conflict.
    pub fn conflict_detection_filter(&mut self, filter: Expr) {
        self.conflicts = filter;
    }

    /// Requires that these data files, to which new delete files apply, were not removed since.
    pub fn validate_data_files_exist(&mut self, paths: impl IntoIterator<Item = String>) {
        self.referenced.extend(paths);
    }

    /// Requires that the table has every file that is removed.
    pub fn validate_deleted_files(&mut self) {
        self.changes.require_removed_to_exist();
    }

    /// Requires that all data files have one of these partition specs, for which the new equality deletes are written.
    pub fn validate_data_files_of_specs(&mut self, specs: impl IntoIterator<Item = i32>) {
        self.specs = Some(specs.into_iter().collect());
    }

    /// Requires that no data file was added since.
    pub fn validate_no_conflicting_data_files(&mut self) {
        self.no_new_data = true;
    }

    /// Requires that no delete file was added since.
    pub fn validate_no_conflicting_delete_files(&mut self) {
        self.no_new_deletes = true;
    }
}

impl Content for RowDelta {
    fn operation(&self) -> Operation {
        let changes = &self.changes;
        match (changes.adds_data(), changes.adds_deletes()) {
            (true, false) if !changes.removes_data() => Operation::Append,
            (false, true) => Operation::Delete,
            _ => Operation::Overwrite,
        }
    }

    fn changes(&self) -> &FileChanges {
        &self.changes
    }

    fn changes_mut(&mut self) -> &mut FileChanges {
        &mut self.changes
    }

    fn start(&self) -> Option<i64> {
        self.from
    }

    fn validate(&self, storage: &Storage, base: &TableMetadata, parent: Option<&Snapshot>) -> Result<()> {
        let history = History::new("row delta", storage, base, parent, self.from)?;
        history.check_start()?;
        if let Some(specs) = &self.specs
            && rule::holds(Rule::OtherSpecs)
            && let Some(spec) = live_specs(storage, base, parent)?.difference(specs).next()
        {
            return Err(Error::Validation(format!(
                "another commit has added data files of the partition spec {spec}, which this commit's equality deletes do not \
                 cover: send the changes again"
            )));
        }
        let selection = match &self.conflicts {
            Expression::True => None,
            filter => history.selection_of_conflicts(filter, self.changes.is_case_sensitive())?,
        };
        let scope = selection.as_ref().map_or(Scope::All, Scope::Rows);
        if !self.referenced.is_empty() {
            history.data_files_exist(&self.referenced, scope)?;
        }
        if self.no_new_data {
            history.no_added_data(scope)?;
        }
        if self.no_new_deletes {
            history.no_added_deletes_of(self.changes.removed(), scope, self.changes.fate())?;
            history.no_added_deletes(scope)?;
        }
        if let Some(path) = removed_and_referenced(self.changes.removed(), &self.referenced)
            && rule::holds(Rule::RemovedAndReferenced)
        {
            return Err(Error::Validation(format!(
                "row delta: the data file {path} is removed, and new delete files are for it"
            )));
        }
        history.no_added_vectors(self.changes.with_vector(), scope)
    }
}

/// The partition specs of the data files in a snapshot.
pub(in crate::operation) fn live_specs(
    storage: &Storage,
    metadata: &TableMetadata,
    snapshot: Option<&Snapshot>,
) -> Result<BTreeSet<i32>> {
    let Some(snapshot) = snapshot else { return Ok(BTreeSet::new()) };
    let manifests = of_snapshot(storage, metadata, snapshot, &limits()?)?;
    let of_data =
        manifests.iter().filter(|manifest| manifest.content == ManifestContent::Data && manifest.has_live_files());
    Ok(of_data.map(|manifest| manifest.partition_spec_id).collect())
}
