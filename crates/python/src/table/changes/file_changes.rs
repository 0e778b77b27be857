//! Changes of existing files: converts what Python's builders have collected to an operation of the core.

use icefield_format::manifest::DataFile;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::replace_partitions::ReplacePartitions;
use icefield_table::operation::rewrite_files::RewriteFiles;
use icefield_table::operation::row_delta::RowDelta;
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::errors::Result;
use crate::format::expr::expressions::FilterInput;
use crate::format::files::data_file::PyContentFile;

/// The files and arguments of all operations; each operation uses those that apply to it.
#[derive(FromPyObject)]
pub(crate) struct FileChangesInput<'py> {
    #[pyo3(item)]
    added: Vec<Bound<'py, PyContentFile>>,
    /// Delete files, with their data sequence numbers.
    #[pyo3(item)]
    added_deletes: Vec<(Bound<'py, PyContentFile>, Option<Int<i64>>)>,
    #[pyo3(item)]
    removed: Vec<Bound<'py, PyContentFile>>,
    #[pyo3(item)]
    removed_deletes: Vec<Bound<'py, PyContentFile>>,
    #[pyo3(item)]
    removed_paths: Vec<String>,
    #[pyo3(item)]
    filters: Vec<FilterInput>,
    #[pyo3(item)]
    case_sensitive: bool,
    #[pyo3(item)]
    from_snapshot: Option<Int<i64>>,
    #[pyo3(item)]
    conflict_filter: Option<FilterInput>,
    #[pyo3(item)]
    data_sequence_number: Option<Int<i64>>,
    #[pyo3(item)]
    referenced: Vec<String>,
    /// Names of the requested validations.
    #[pyo3(item)]
    checks: Vec<String>,
}

/// The files of an operation, with partition values converted to the types of the table.
pub(crate) struct Files {
    added: Vec<DataFile>,
    added_deletes: Vec<DataFile>,
    removed: Vec<DataFile>,
    removed_deletes: Vec<DataFile>,
}

impl FileChangesInput<'_> {
    /// The files, converted from their Python classes by `of_table`.
    pub(crate) fn files(
        &self,
        of_table: impl Fn(&[Bound<'_, PyContentFile>]) -> Result<Vec<DataFile>>,
    ) -> Result<Files> {
        let added_deletes: Vec<_> = self.added_deletes.iter().map(|(file, _)| file.clone()).collect();
        Ok(Files {
            added: of_table(&self.added)?,
            added_deletes: of_table(&added_deletes)?,
            removed: of_table(&self.removed)?,
            removed_deletes: of_table(&self.removed_deletes)?,
        })
    }

    fn asks_for(&self, check: &str) -> bool {
        self.checks.iter().any(|known| known == check)
    }

    /// Creates an overwrite with these files.
    pub(crate) fn overwrite(self, files: Files) -> Result<Overwrite> {
        let mut content = Overwrite::new();
        content.set_case_sensitive(self.case_sensitive);
        files.added.into_iter().try_for_each(|file| content.add_file(file))?;
        files.removed.into_iter().try_for_each(|file| content.delete_file(file))?;
        files.removed_deletes.into_iter().try_for_each(|file| content.remove_deletes(file))?;
        if self.asks_for("added_files_match_overwrite_filter") {
            content.validate_added_files_match_overwrite_filter();
        }
        if self.asks_for("no_conflicting_data") {
            content.validate_no_conflicting_data();
        }
        if self.asks_for("no_conflicting_deletes") {
            content.validate_no_conflicting_deletes();
        }
        self.filters.into_iter().for_each(|filter| content.overwrite_by_filter(filter.0));
        self.from_snapshot.into_iter().for_each(|id| content.validate_from_snapshot(id.0));
        self.conflict_filter.into_iter().for_each(|filter| content.conflict_detection_filter(filter.0));
        Ok(content)
    }

    /// Creates a delete of these files.
    pub(crate) fn delete(self, files: Files) -> Result<Delete> {
        let mut content = Delete::new();
        content.set_case_sensitive(self.case_sensitive);
        files.removed.into_iter().try_for_each(|file| content.delete_file(file))?;
        if self.asks_for("files_exist") {
            content.validate_files_exist();
        }
        self.filters.into_iter().for_each(|filter| content.delete_by_filter(filter.0));
        self.removed_paths.into_iter().for_each(|path| content.delete_path(path));
        Ok(content)
    }

    /// Creates a row delta with these files.
    pub(crate) fn row_delta(self, files: Files) -> Result<RowDelta> {
        let mut content = RowDelta::new();
        content.set_case_sensitive(self.case_sensitive);
        files.added.into_iter().try_for_each(|file| content.add_rows(file))?;
        files.added_deletes.into_iter().try_for_each(|file| content.add_deletes(file))?;
        files.removed.into_iter().try_for_each(|file| content.remove_rows(file))?;
        files.removed_deletes.into_iter().try_for_each(|file| content.remove_deletes(file))?;
        if self.asks_for("deleted_files") {
            content.validate_deleted_files();
        }
        if self.asks_for("no_conflicting_data_files") {
            content.validate_no_conflicting_data_files();
        }
        if self.asks_for("no_conflicting_delete_files") {
            content.validate_no_conflicting_delete_files();
        }
        content.validate_data_files_exist(self.referenced);
        self.from_snapshot.into_iter().for_each(|id| content.validate_from_snapshot(id.0));
        self.conflict_filter.into_iter().for_each(|filter| content.conflict_detection_filter(filter.0));
        Ok(content)
    }

    /// Creates a rewrite of these files.
    pub(crate) fn rewrite_files(self, files: Files) -> Result<RewriteFiles> {
        let mut content = RewriteFiles::new();
        let numbers: Vec<_> =
            self.added_deletes.iter().map(|(_, number)| number.as_ref().map(|number| number.0)).collect();
        files.removed.into_iter().try_for_each(|file| content.delete_data_file(file))?;
        files.removed_deletes.into_iter().try_for_each(|file| content.delete_delete_file(file))?;
        files.added.into_iter().try_for_each(|file| content.add_data_file(file))?;
        let mut added = files.added_deletes.into_iter().zip(numbers);
        added.try_for_each(|(file, number)| content.add_delete_file(file, number))?;
        self.data_sequence_number.into_iter().for_each(|number| content.data_sequence_number(number.0));
        self.from_snapshot.into_iter().for_each(|id| content.validate_from_snapshot(id.0));
        Ok(content)
    }

    /// Creates a replacement of partitions with these files.
    pub(crate) fn replace_partitions(self, files: Files) -> Result<ReplacePartitions> {
        let mut content = ReplacePartitions::new();
        files.added.into_iter().try_for_each(|file| content.add_file(file))?;
        if self.asks_for("append_only") {
            content.validate_append_only();
        }
        if self.asks_for("no_conflicting_data") {
            content.validate_no_conflicting_data();
        }
        if self.asks_for("no_conflicting_deletes") {
            content.validate_no_conflicting_deletes();
        }
        self.from_snapshot.into_iter().for_each(|id| content.validate_from_snapshot(id.0));
        Ok(content)
    }
}
