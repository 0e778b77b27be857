//! The result of a worker that removed rows, sent to the committer: the number in the plan and the fate of each file,
//! with descriptions of the new files.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use icefield_format::manifest::DataFile;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::envelope::Kind;
use super::files::{files_of_specs, of_specs};
use super::plan::RowChangePlan;
use crate::commit::Specs;
use crate::error::{Error, Result};
use crate::operation::row_change::{ChangedFiles, Fate, Removals};

const KIND: Kind = Kind { magic: *b"ICEGONE\x01", name: "the result of a RowRemover" };

/// The rows that a worker has removed from files, not yet committed.
#[derive(Debug)]
pub struct RemovedRows {
    form: RemovedForm,
    added: Vec<DataFile>,
    added_deletes: Vec<DataFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RemovedForm {
    /// The id of the change.
    operation: Uuid,
    task: u32,
    attempt: u64,
    rows: i64,
    files: Vec<FileForm>,
    /// The partition specs of the new data files; `deletes` has those of the new delete files.
    data: Vec<i32>,
    deletes: Vec<i32>,
}

/// A file from which rows were removed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct FileForm {
    /// The number of the file in the plan.
    pub(super) number: usize,
    pub(super) fate: FateForm,
    /// Whether the delete files that apply to this file alone are removed.
    pub(super) deletes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FateForm {
    #[serde(rename = "d")]
    Dropped,
    #[serde(rename = "r")]
    Rewritten,
    #[serde(rename = "m")]
    Marked,
}

impl RemovedRows {
    /// The result of a worker. `number` returns the number of a file in the plan by its path.
    pub(super) fn new(
        operation: Uuid,
        (task, attempt): (u32, u64),
        removals: &Removals<'_>,
        changed: ChangedFiles,
        number: impl Fn(&str) -> Result<usize>,
    ) -> Result<Self> {
        let gone: HashSet<(&str, Option<i64>)> =
            changed.removed_deletes.iter().map(|delete| (delete.file_path.as_str(), delete.content_offset)).collect();
        let file = |(file, fate): (&crate::operation::matching::MatchedFile, Fate)| {
            let is_gone = |delete: &DataFile| gone.contains(&(delete.file_path.as_str(), delete.content_offset));
            let fate = match fate {
                Fate::Dropped => FateForm::Dropped,
                Fate::Rewritten => FateForm::Rewritten,
                Fate::Marked => FateForm::Marked,
            };
            Ok(FileForm { number: number(&file.part.path)?, fate, deletes: file.own_deletes.iter().any(is_gone) })
        };
        let files = removals.fates().map(file).collect::<Result<_>>()?;
        let ChangedFiles { mut added, mut added_deletes, .. } = changed;
        added.sort_by_key(|file| file.partition_spec_id);
        added_deletes.sort_by_key(|file| file.partition_spec_id);
        let (data, deletes) = (Vec::new(), Vec::new());
        let form = RemovedForm { operation, task, attempt, rows: removals.rows(), files, data, deletes };
        Ok(Self { form, added, added_deletes })
    }

    /// Number of removed rows.
    pub fn rows(&self) -> i64 {
        self.form.rows
    }

    /// New data files: the remaining rows of rewritten files.
    pub fn added(&self) -> &[DataFile] {
        &self.added
    }

    /// New delete files.
    pub fn added_deletes(&self) -> &[DataFile] {
        &self.added_deletes
    }

    /// Number and total bytes of the new files; a file with several deletion vectors counts once.
    pub fn new_files(&self) -> (usize, i64) {
        let files = self.added.iter().chain(&self.added_deletes);
        let sizes: HashMap<&str, i64> = files.map(|file| (&*file.file_path, file.file_size_in_bytes)).collect();
        (sizes.len(), sizes.values().sum())
    }

    /// The worker: a task and the attempt at it.
    pub(super) fn worker(&self) -> (u32, u64) {
        (self.form.task, self.form.attempt)
    }

    /// The files from which rows were removed.
    pub(super) fn files(&self) -> &[FileForm] {
        &self.form.files
    }

    /// The new data files and the new delete files.
    pub(super) fn into_new_files(self) -> (Vec<DataFile>, Vec<DataFile>) {
        (self.added, self.added_deletes)
    }

    /// Whether bytes begin like such a result.
    pub fn claimed(bytes: &[u8]) -> bool {
        KIND.claimed(bytes)
    }

    /// Serializes the result.
    ///
    /// # Errors
    /// More than 4 GiB.
    pub(super) fn to_bytes(&self, specs: &Specs) -> Result<Vec<u8>> {
        let (data, mut sections) = of_specs(&self.added, specs)?;
        let (deletes, more) = of_specs(&self.added_deletes, specs)?;
        sections.extend(more);
        let RemovedForm { operation, task, attempt, rows, ref files, .. } = self.form;
        let form = RemovedForm { operation, task, attempt, rows, files: files.clone(), data, deletes };
        KIND.seal(&form, &sections)
    }

    /// Deserializes a worker's result for a plan.
    ///
    /// # Errors
    /// Bytes that are not a result, or the result of another change.
    pub fn from_bytes(bytes: &[u8], plan: &RowChangePlan) -> Result<Self> {
        let (form, sections): (RemovedForm, Vec<Bytes>) = KIND.open(&Bytes::copy_from_slice(bytes))?;
        if form.operation != plan.write().operation {
            return Err(Error::invalid(format!(
                "this result is of the change {}, not of {}: pass the results of this plan only",
                form.operation,
                plan.write().operation
            )));
        }
        let specs = Specs::of(plan.table());
        let of_data = sections.get(..form.data.len()).unwrap_or_default();
        let of_deletes = sections.get(form.data.len()..).unwrap_or_default();
        let added = files_of_specs(&form.data, of_data, &specs)?;
        let added_deletes = files_of_specs(&form.deletes, of_deletes, &specs)?;
        Ok(Self { form, added, added_deletes })
    }
}
