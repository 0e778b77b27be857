//! Replaces data files with others ("Snapshots", operation `overwrite`; copy-on-write).

use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{Operation, Snapshot, TableMetadata};

use crate::commit::validate::Scope;
use crate::commit::{Content, FileChanges, History};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// The content of a snapshot that removes data files, by filter or by file, and adds others.
///
/// Snapshot isolation requires `validate_no_conflicting_deletes`; serializable isolation also requires
/// `validate_no_conflicting_data`. Both check the commits after the snapshot of `validate_from_snapshot`.
#[derive(Debug, Default)]
pub struct Overwrite {
    changes: FileChanges,
    from: Option<i64>,
    conflicts: Option<Expr>,
    added_match: bool,
    no_new_data: bool,
    no_new_deletes: bool,
}

impl Overwrite {
    /// An empty content, to which changes are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether filters match column names case-sensitively.
    pub fn set_case_sensitive(&mut self, case_sensitive: bool) {
        self.changes.set_case_sensitive(case_sensitive);
    }

    /// Removes all files whose rows all match a filter of this or an earlier call. A data file in which only some rows
    /// match ends the commit.
    pub fn overwrite_by_filter(&mut self, filter: Expr) {
        self.changes.remove_rows(filter);
    }

    /// Adds a data file.
    ///
    /// # Errors
    /// A delete file.
    pub fn add_file(&mut self, file: DataFile) -> Result<()> {
        self.changes.add(file)
    }

    /// Removes a data file.
    ///
    /// # Errors
    /// A delete file.
    pub fn delete_file(&mut self, file: DataFile) -> Result<()> {
        self.changes.remove(file)
    }

    /// Removes a delete file that applied only to removed data files.
    ///
    /// # Errors
    /// A data file.
    pub fn remove_deletes(&mut self, file: DataFile) -> Result<()> {
        self.changes.remove_deletes(file)
    }

    /// Requires that every row of the added files matches the filter, as far as their partitions and metrics show.
    pub fn validate_added_files_match_overwrite_filter(&mut self) {
        self.added_match = true;
    }

    /// Sets the snapshot that the change was planned on; without it, the whole history is checked for conflicts.
    pub fn validate_from_snapshot(&mut self, snapshot_id: i64) {
        self.from = Some(snapshot_id);
    }

    /// Limits conflicts to files that may have rows of this filter. By default this is the filter of the overwrite if
    /// there is one and no file is removed individually; otherwise all files conflict.
    pub fn conflict_detection_filter(&mut self, filter: Expr) {
        self.conflicts = Some(filter);
    }

    /// Requires that no data file was added since, and that the table has every file that is removed individually.
    pub fn validate_no_conflicting_data(&mut self) {
        self.no_new_data = true;
        self.changes.require_removed_to_exist();
    }

    /// Requires that no overwritten row was deleted since, and that the table has every file that is removed
    /// individually.
    pub fn validate_no_conflicting_deletes(&mut self) {
        self.no_new_deletes = true;
        self.changes.require_removed_to_exist();
    }

    fn check_added(&self, history: &History<'_>) -> Result<()> {
        let columns = history.columns(self.changes.added(), 0)?;
        let [written] = columns.as_slice() else {
            return Err(Error::invalid(format!(
                "overwrite: expected added data files of one partition spec to compare with the filter, got {} specs",
                columns.len()
            )));
        };
        let rows = history.selection(self.changes.rows(), self.changes.is_case_sensitive())?;
        let matching = rows.must_match(&written.spec, &written.entries)?;
        match matching.iter().position(|matches| !matches) {
            None => Ok(()),
            Some(row) => Err(Error::Validation(format!(
                "overwrite: the added data file {} may have rows that do not match {}",
                written.entries.file_path.value(row),
                rows.text()
            ))),
        }
    }
}

impl Content for Overwrite {
    fn operation(&self) -> Operation {
        match (self.changes.adds_data(), self.changes.removes_data()) {
            (false, true) => Operation::Delete,
            (true, false) => Operation::Append,
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
        let history = History::new("overwrite", storage, base, parent, self.from)?;
        if self.added_match {
            self.check_added(&history)?;
        }
        let selection = |filter: &Expr| history.selection(filter, self.changes.is_case_sensitive());
        let of_conflicts = |filter| history.selection_of_conflicts(filter, self.changes.is_case_sensitive());
        let conflicts = self.conflicts.as_ref().map(of_conflicts).transpose()?.flatten();
        let by_filter = *self.changes.rows() != Expression::False;
        let rows = if by_filter { Some(selection(self.changes.rows())?) } else { None };
        let given = conflicts.as_ref().map(Scope::Rows);
        let of_rows = given.or(rows.as_ref().map(Scope::Rows));
        if self.no_new_data {
            let alone = self.changes.removed().is_empty();
            history.no_added_data(given.or(of_rows.filter(|_| alone)).unwrap_or(Scope::All))?;
        }
        if self.no_new_deletes {
            if let Some(scope) = of_rows.filter(|_| by_filter) {
                history.no_added_deletes(scope)?;
                history.no_removed_data(scope)?;
            }
            let scope = given.unwrap_or(Scope::All);
            history.no_added_deletes_of(self.changes.removed(), scope, self.changes.fate())?;
        }
        Ok(())
    }
}
