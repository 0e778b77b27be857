//! Replaces all files in the partitions of new data files ("Snapshots", operation `overwrite`).

use icefield_format::expr::Expression;
use icefield_format::manifest::DataFile;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{Operation, Snapshot, TableMetadata};

use crate::commit::validate::Scope;
use crate::commit::{Arranged, Content, FileChanges, History, Manifests, Partitions, SummaryBuilder};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// The content of a snapshot that adds data files and removes all others in their partitions. If the files are
/// unpartitioned, it removes all files of the table.
#[derive(Debug, Default)]
pub struct ReplacePartitions {
    changes: FileChanges,
    from: Option<i64>,
    no_new_data: bool,
    no_new_deletes: bool,
    /// Whether the files are known to replace the whole table.
    whole: bool,
}

/// Summary entry by which a cherry-pick knows that it has to replace partitions again.
pub(super) const REPLACE_PARTITIONS: &str = "replace-partitions";

impl ReplacePartitions {
    /// An empty content, to which files are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the content of these files' partitions as of the snapshot `from`. Rows of it must not have been deleted
    /// since; if `serializable`, none may have been added either.
    ///
    /// # Errors
    /// A delete file.
    pub(in crate::operation) fn of_files(files: Vec<DataFile>, from: Option<i64>, serializable: bool) -> Result<Self> {
        let mut content = Self::new();
        if let Some(found) = from {
            content.validate_from_snapshot(found);
        }
        content.validate_no_conflicting_deletes();
        if serializable {
            content.validate_no_conflicting_data();
        }
        files.into_iter().try_for_each(|file| content.add_file(file))?;
        Ok(content)
    }

    /// Adds a data file; all other files in its partition are removed.
    ///
    /// # Errors
    /// A delete file.
    pub fn add_file(&mut self, file: DataFile) -> Result<()> {
        let partition = file.partition.clone();
        let spec_id = file.partition_spec_id;
        self.changes.add(file)?;
        self.changes.drop_partition(spec_id, partition);
        Ok(())
    }

    /// Requires that the partitions have no files yet.
    pub fn validate_append_only(&mut self) {
        self.changes.require_append_only();
    }

    /// Sets the snapshot that the change was planned on; without it, the whole history is checked for conflicts.
    pub fn validate_from_snapshot(&mut self, snapshot_id: i64) {
        self.from = Some(snapshot_id);
    }

    /// Requires that no data file was added to the partitions since.
    pub fn validate_no_conflicting_data(&mut self) {
        self.no_new_data = true;
    }

    /// Requires that no row in the partitions was deleted since.
    pub fn validate_no_conflicting_deletes(&mut self) {
        self.no_new_deletes = true;
    }

    /// Whether the files are unpartitioned. All must have the same spec.
    fn is_unpartitioned(&self, base: &TableMetadata) -> Result<bool> {
        let Some(id) = self.changes.added().first().map(|file| file.partition_spec_id) else {
            return Err(Error::invalid("replacement of partitions: no data file is added"));
        };
        if self.changes.added().iter().any(|file| file.partition_spec_id != id) {
            return Err(Error::invalid(
                "replacement of partitions: the added data files are of several partition specs",
            ));
        }
        let spec = base.partition_spec(id);
        let spec = spec.ok_or_else(|| Error::invalid(format!("the table has no partition spec {id}")))?;
        Ok(spec.is_unpartitioned())
    }
}

impl Content for ReplacePartitions {
    fn operation(&self) -> Operation {
        Operation::Overwrite
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
        let mut partitions = Partitions::default();
        self.changes.dropped().iter().for_each(|(spec_id, partition)| partitions.insert(*spec_id, partition));
        let whole = self.is_unpartitioned(base)?;
        let scope = if whole { Scope::All } else { Scope::Partitions(&partitions) };
        let history = History::new("replacement of partitions", storage, base, parent, self.from)?;
        if self.no_new_data {
            history.no_added_data(scope)?;
        }
        if self.no_new_deletes {
            history.no_removed_data(scope)?;
            history.no_added_deletes(scope)?;
        }
        Ok(())
    }

    fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        merge: bool,
    ) -> Result<Arranged> {
        if !self.whole && self.is_unpartitioned(base)? {
            self.changes.remove_rows(Expression::True);
            self.whole = true;
        }
        self.changes.manifests(base, older, manifests, merge)
    }

    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        let mut summary = self.changes.summary();
        summary.set(REPLACE_PARTITIONS, "true");
        Ok(summary)
    }
}
