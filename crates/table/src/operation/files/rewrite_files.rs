//! Replaces files with others that have the same rows ("Snapshots", operation `replace`): compaction.

use std::collections::HashSet;

use icefield_format::manifest::DataFile;
use icefield_format::metadata::{FormatVersion, Operation, Snapshot, TableMetadata};

use crate::commit::validate::{Fate, Scope, Successors};
use crate::commit::{Content, FileChanges, History, Partitions, SummaryBuilder};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// The content of a snapshot that replaces files without changing rows.
///
/// Rows of a replaced data file must not have been deleted after the snapshot of `validate_from_snapshot`. Equality
/// deletes added since are not a conflict if they still apply to the new files: these must keep the data sequence
/// number of the old ones, and their partition spec unless the deletes apply to all partitions. Nor may equality deletes
/// have been added that apply to the new files and did not apply to the old ones, which have another spec.
#[derive(Debug)]
pub struct RewriteFiles {
    changes: FileChanges,
    from: Option<i64>,
    version: Option<FormatVersion>,
}

impl Default for RewriteFiles {
    fn default() -> Self {
        let mut changes = FileChanges::new();
        changes.require_removed_to_exist();
        Self { changes, from: None, version: None }
    }
}

impl RewriteFiles {
    /// An empty content, to which changes are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes a data file.
    ///
    /// # Errors
    /// A delete file.
    pub fn delete_data_file(&mut self, file: DataFile) -> Result<()> {
        self.changes.remove(file)
    }

    /// Removes a delete file.
    ///
    /// # Errors
    /// A data file.
    pub fn delete_delete_file(&mut self, file: DataFile) -> Result<()> {
        self.changes.remove_deletes(file)
    }

    /// Adds a data file.
    ///
    /// # Errors
    /// A delete file.
    pub fn add_data_file(&mut self, file: DataFile) -> Result<()> {
        self.changes.add(file)
    }

    /// Adds a delete file, by default with the sequence number of the snapshot. It may then apply to newer data files
    /// than the delete file it replaces.
    ///
    /// # Errors
    /// A data file, or a second deletion vector for a data file.
    pub fn add_delete_file(&mut self, file: DataFile, sequence_number: Option<i64>) -> Result<()> {
        self.changes.add_deletes(file, sequence_number)
    }

    /// Sets the format version of the table that was read: rows of a table that is upgraded meanwhile get ids, which the
    /// added files lack.
    pub fn validate_format_version(&mut self, version: FormatVersion) {
        self.version = Some(version);
    }

    /// The partitions of added data files whose rows may come from files of other specs.
    fn entered(&self) -> Partitions {
        let specs: HashSet<i32> = self.changes.removed().iter().map(|file| file.partition_spec_id).collect();
        let mut entered = Partitions::default();
        let moved = |file: &&DataFile| specs.iter().any(|id| *id != file.partition_spec_id);
        self.changes
            .added()
            .iter()
            .filter(moved)
            .for_each(|file| entered.insert(file.partition_spec_id, &file.partition));
        entered
    }

    /// Sets the data sequence number of the added data files.
    pub fn data_sequence_number(&mut self, number: i64) {
        self.changes.set_sequence_number(number);
    }

    /// Sets the snapshot at which the files were read; without it, the whole history is checked for conflicts.
    pub fn validate_from_snapshot(&mut self, snapshot_id: i64) {
        self.from = Some(snapshot_id);
    }
}

impl Content for RewriteFiles {
    fn operation(&self) -> Operation {
        Operation::Replace
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
        let changes = &self.changes;
        if let Some(version) = self.version.filter(|version| *version != base.format_version()) {
            return Err(Error::Validation(format!(
                "rewrite of files: the table was upgraded from version {version} to {} since its rows were read",
                base.format_version()
            )));
        }
        // With a number that no commit had, readers could not determine which deletes apply.
        if let Some(number) = changes.sequence_number().filter(|n| !(0..=base.last_sequence_number()).contains(n)) {
            let last = base.last_sequence_number();
            return Err(Error::invalid(format!(
                "rewrite of files: the data sequence number must be one of the table's, from 0 to {last}, got {number}"
            )));
        }
        let wrong = match () {
            () if !changes.removes_data() && !changes.removes_deletes() => "no file is removed",
            () if changes.adds_data() && !changes.removes_data() => "data files are added, and none is removed",
            () if changes.adds_deletes() && !changes.removes_deletes() => "delete files are added, and none is removed",
            () => {
                let history = History::new("rewrite of files", storage, base, parent, self.from)?;
                let successors = changes.sequence_number().map(|sequence_number| Successors {
                    sequence_number,
                    specs: changes.added().iter().map(|file| file.partition_spec_id).collect(),
                });
                let fate = successors.as_ref().map_or(Fate::Changed, Fate::Moved);
                history.no_added_deletes_of(changes.removed(), Scope::All, fate)?;
                let Some(successors) = &successors else { return Ok(()) };
                return history.no_added_deletes_of_partitions(&self.entered(), successors.sequence_number);
            }
        };
        Err(Error::invalid(format!("rewrite of files: {wrong}")))
    }

    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        let summary = self.changes.summary();
        let (added, removed) = (summary.count("added-records"), summary.count("deleted-records"));
        // Fewer rows are allowed: delete files may have deleted some of the replaced files' rows.
        if added > removed {
            return Err(Error::invalid(format!(
                "rewrite of files: {added} rows are added, and the replaced files have only {removed}"
            )));
        }
        Ok(summary)
    }
}
