//! Combines the results of all workers of a change into one snapshot.

use std::collections::{HashMap, HashSet};

use icefield_format::manifest::DataFile;
use uuid::Uuid;

use super::plan::RowChangePlan;
use super::removed::{FateForm, RemovedRows};
use crate::commit::{Change, Content, SnapshotOptions, SnapshotProducer, Updates, WithUpdates};
use crate::error::{Error, Result};
use crate::operation::matching::Matches;
use crate::operation::replace_rows::RowsReplaced;
use crate::operation::row_change::{ChangedFiles, FileCounts, Names, Removals};
use crate::plan::{At, Scan};
use crate::storage::Storage;

/// The combined results of all workers of a change.
#[derive(Debug)]
pub struct Collected<'a> {
    plan: &'a RowChangePlan,
    changed: ChangedFiles,
    /// Numbers of removed and added rows, and what happens to files.
    pub done: RowsReplaced,
}

impl RowChangePlan {
    /// Combines the results of workers: removed rows, and files of new rows by worker. Files in which all rows match
    /// have no worker; they are dropped here.
    ///
    /// # Errors
    /// Two results of one task or for one data file, or delete files of dropped data files that cannot be read.
    pub fn collect(
        &self,
        storage: &Storage,
        removed: Vec<RemovedRows>,
        added: Vec<Vec<DataFile>>,
    ) -> Result<Collected<'_>> {
        check_removed(&removed)?;
        check_added(&added, self.write().operation)?;
        let (mut changed, mut done) = (ChangedFiles::default(), RowsReplaced::default());
        for one in removed {
            done.rows_removed = done.rows_removed.saturating_add(one.rows());
            collect(self, one, &mut changed, &mut done.files)?;
        }
        if self.candidates().has_whole() {
            let scan = Scan::new(storage.clone(), self.table().clone(), &At::default())?;
            let matches = Matches::of_files(scan, self.candidates().whole()?, None)?;
            let removals = Removals::plan(&matches, self.mode(), self.table().format_version())?;
            let whole = removals.write(storage, self.table(), Names::Alone(self.write().operation))?;
            changed.removed.extend(whole.removed);
            changed.removed_deletes.extend(whole.removed_deletes);
            let counts = removals.counts();
            done.files.dropped += counts.dropped;
            done.files.dropped_bytes = done.files.dropped_bytes.saturating_add(counts.dropped_bytes);
            done.rows_removed = done.rows_removed.saturating_add(removals.rows());
        }
        let added: Vec<DataFile> = added.into_iter().flatten().collect();
        done.rows_added = added.iter().map(|file| file.record_count).fold(0, i64::saturating_add);
        done.files = done.files.with_added(&added);
        changed.added.extend(added);
        Ok(Collected { plan: self, changed, done })
    }
}

impl Collected<'_> {
    /// The change of the table: a snapshot on the plan's branch, preceded by the schema changes that new rows need.
    /// `None` if nothing changes. The workers' files are not deleted if the commit fails.
    ///
    /// # Errors
    /// Files that do not fit together.
    pub fn change(self, storage: Storage, options: SnapshotOptions) -> Result<Option<Box<dyn Change>>> {
        if self.changed.is_empty() {
            return Ok(None);
        }
        let checks = self.plan.checks();
        Ok(Some(match self.changed.added_deletes.is_empty() {
            true => self.plan.snapshot(storage, checks.overwrite(self.changed)?, options)?,
            false => self.plan.snapshot(storage, checks.row_delta(self.changed)?, options)?,
        }))
    }
}

impl RowChangePlan {
    fn snapshot(
        &self,
        storage: Storage,
        content: impl Content + 'static,
        options: SnapshotOptions,
    ) -> Result<Box<dyn Change>> {
        let (requirements, updates) = self.write().widening();
        let updates = match updates.is_empty() {
            true => None,
            false => Some(Updates::new(requirements.clone(), updates.clone())?),
        };
        Ok(Box::new(WithUpdates::new(updates, SnapshotProducer::new(storage, content, options))))
    }
}

/// Adds the result of one worker.
fn collect(
    plan: &RowChangePlan,
    removed: RemovedRows,
    changed: &mut ChangedFiles,
    counts: &mut FileCounts,
) -> Result<()> {
    for of_file in removed.files() {
        let candidate = plan.candidates().get(of_file.number)?;
        if candidate.whole {
            let path = &candidate.file.part.path;
            return Err(Error::invalid(format!("{path}: a worker has changed it, and the commit would drop it")));
        }
        let file = &candidate.file;
        match of_file.fate {
            FateForm::Dropped => {
                counts.dropped += 1;
                counts.dropped_bytes = counts.dropped_bytes.saturating_add(file.file.file_size_in_bytes);
            }
            FateForm::Rewritten => {
                counts.rewritten += 1;
                counts.rewritten_bytes = counts.rewritten_bytes.saturating_add(file.file.file_size_in_bytes);
            }
            FateForm::Marked => counts.marked += 1,
        }
        match of_file.fate {
            FateForm::Marked => changed.referenced.push(file.part.path.clone()),
            FateForm::Dropped | FateForm::Rewritten => changed.removed.push(file.file.clone()),
        }
        if of_file.deletes {
            changed.removed_deletes.extend(file.own_deletes.iter().cloned());
        }
    }
    let (added, added_deletes) = removed.into_new_files();
    changed.added.extend(added);
    changed.added_deletes.extend(added_deletes);
    Ok(())
}

/// Rejects two results of one task or for one file. Either one is from a failed attempt, or the positions of a file
/// were sent to more than one worker.
fn check_removed(removed: &[RemovedRows]) -> Result<()> {
    let mut tasks = HashMap::new();
    let mut files = HashMap::new();
    for one in removed {
        let (task, attempt) = one.worker();
        if let Some(other) = tasks.insert(task, attempt) {
            return Err(twice("RowRemover", task, attempt, other));
        }
        for file in one.files() {
            if let Some(other) = files.insert(file.number, task) {
                return Err(Error::invalid(format!(
                    "the results of the tasks {other} and {task} have both taken rows out of one data file: give all rows \
                     of a file to one RowRemover; nothing was committed"
                )));
            }
        }
    }
    Ok(())
}

/// Rejects files of another change, files in two results, and two results of one task.
pub(super) fn check_added(added: &[Vec<DataFile>], operation: Uuid) -> Result<()> {
    let mut tasks: HashMap<u32, u64> = HashMap::new();
    let mut paths = HashSet::new();
    for files in added {
        let mut own = None;
        for file in files {
            let path = &file.file_path;
            let Some((task, attempt)) = worker_of(path, operation) else {
                return Err(Error::invalid(format!(
                    "{path}: is no file of the change {operation}: write new rows by the plan's own write"
                )));
            };
            if !paths.insert(path) {
                return Err(Error::invalid(format!("{path}: is in two results; nothing was committed")));
            }
            own.get_or_insert((task, attempt));
        }
        if let Some((task, attempt)) = own
            && let Some(other) = tasks.insert(task, attempt)
        {
            return Err(twice("TaskWriter", task, attempt, other));
        }
    }
    Ok(())
}

fn twice(what: &str, task: u32, attempt: u64, other: u64) -> Error {
    Error::invalid(format!(
        "two results of the {what} of task {task} (attempts {other} and {attempt}): commit one of them and discard the other; \
         give different tasks different numbers; nothing was committed"
    ))
}

/// Extracts task and attempt from the name of a file that a task wrote.
fn worker_of(path: &str, operation: Uuid) -> Option<(u32, u64)> {
    let (before, _) = path.rsplit_once(&format!("-{operation}-"))?;
    let (before, attempt) = before.rsplit_once('-')?;
    let task = before.rsplit(['/', '-']).next()?;
    Some((task.parse().ok()?, attempt.parse().ok()?))
}
