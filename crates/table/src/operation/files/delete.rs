//! Deletes whole data files ("Snapshots", operation `delete`): by filter, by file or by path.

use icefield_format::expr::Expr;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::Operation;

use crate::commit::{Content, FileChanges};
use crate::error::Result;

/// The content of a snapshot that removes data files.
#[derive(Debug, Default)]
pub struct Delete(FileChanges);

impl Delete {
    /// An empty content, to which removed files are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether filters match column names case-sensitively.
    pub fn set_case_sensitive(&mut self, case_sensitive: bool) {
        self.0.set_case_sensitive(case_sensitive);
    }

    /// Removes all files whose rows all match a filter of this or an earlier call. A data file in which only some rows
    /// match ends the commit; delete files that also apply to other rows are kept.
    pub fn delete_by_filter(&mut self, filter: Expr) {
        self.0.remove_rows(filter);
    }

    /// Removes a data file.
    ///
    /// # Errors
    /// A delete file.
    pub fn delete_file(&mut self, file: DataFile) -> Result<()> {
        self.0.remove(file)
    }

    /// Removes the data file with this path. This reads all manifests.
    pub fn delete_path(&mut self, path: impl Into<String>) {
        self.0.remove_path(path);
    }

    /// Requires that the table has every file that is removed by file or path.
    pub fn validate_files_exist(&mut self) {
        self.0.require_removed_to_exist();
    }
}

impl Content for Delete {
    fn operation(&self) -> Operation {
        Operation::Delete
    }

    fn changes(&self) -> &FileChanges {
        &self.0
    }

    fn changes_mut(&mut self) -> &mut FileChanges {
        &mut self.0
    }
}
