//! Compacts a table by this process: group by group, several at a time, in one commit or several.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use icefield_format::manifest::DataFile;

use super::groups::Group;
use super::outcome::{Compacted, Rewritten, made_before};
use super::plan::CompactionPlan;
use super::progress::Progress;
use super::request::{Compaction, without_key};
use super::task::Share;
use crate::error::{Error, Result};
use crate::operation::matching::MEMORY_LIMIT;
use crate::operation::rewrite_groups::{Names, discard};
use crate::table::Table;
use crate::{interrupt, runtime};

/// Compacts a branch of the catalog's current table.
///
/// New files have the data sequence number of the snapshot that was read (`use-starting-sequence-number`), so that
/// equality deletes which other commits add meanwhile apply to them. Deletes by position of replaced files end the
/// compaction with an error. With partial progress, groups are committed in several snapshots, and a group or commit
/// that fails does not undo the others; a further call rewrites what is left. Then only the last snapshot has the
/// idempotency key, and only if nothing failed: a call that was interrupted continues.
///
/// # Errors
/// Options that are not allowed, a branch that does not exist, errors of files, and those of the commits. Files that
/// were written for a commit that certainly failed are deleted.
pub fn compact(table: &Table, request: &Compaction, progress: &Progress<'_>) -> Result<Compacted> {
    if let Some(done) = made_before(table, &request.snapshot)? {
        return Ok(done);
    }
    let plan = CompactionPlan::new(table, request.clone())?;
    let mut done = Compacted { groups: plan.groups.len(), ..Compacted::default() };
    if request.dry_run {
        return plan.preview(done);
    }
    if !plan.groups.is_empty() {
        progress.expect(&plan.groups);
        done = Run { plan: &plan, progress }.all(table, done)?;
    }
    plan.without_dangling_deletes(table, done)
}

/// One run of a compaction by this process.
struct Run<'a> {
    plan: &'a CompactionPlan,
    progress: &'a Progress<'a>,
}

impl<'a> Run<'a> {
    /// Rewrites and commits all groups.
    fn all(&self, table: &Table, mut done: Compacted) -> Result<Compacted> {
        let groups = &self.plan.groups;
        let per_commit = match self.plan.settings.rules.partial {
            Some((commits, _)) => groups.len().div_ceil(commits),
            None => groups.len(),
        };
        let (mut failed, mut first, batches) = (0, 0, groups.len().div_ceil(per_commit));
        for (number, batch) in groups.chunks(per_commit).enumerate() {
            interrupt::check()?;
            let rewritten = self.batch(first, batch, &mut done)?;
            first += batch.len();
            if rewritten.is_empty() {
                failed += 1;
                continue;
            }
            // With the key, a further call would not rewrite what failed.
            let options = match number + 1 == batches && done.failures.is_empty() {
                true => self.plan.request.snapshot.clone(),
                false => without_key(&self.plan.request.snapshot),
            };
            let current = done.table.clone();
            match self.plan.commit_groups(current.as_ref().unwrap_or(table), &rewritten, options, true) {
                Ok((table, snapshot_id)) => {
                    rewritten.iter().for_each(|one| done.add(one.group, one.files.len()));
                    done.snapshot_ids.extend(snapshot_id);
                    done.table = Some(table);
                }
                Err(error @ (Error::Validation(_) | Error::CommitFailed(_)))
                    if self.plan.settings.rules.partial.is_some() =>
                {
                    failed += 1;
                    done.failures.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        match self.plan.settings.rules.partial {
            Some((_, most)) if failed > most => Err(Error::Validation(format!(
                "compaction: {failed} of {batches} commits failed, and at most {most} may \
                 (partial-progress.max-failed-commits); the others were made. The first error: {}",
                done.failures.first().map_or("", String::as_str)
            ))),
            _ => Ok(done),
        }
    }

    /// Rewrites the groups of one commit. With partial progress, groups that fail are counted and left out.
    fn batch(&self, first: usize, batch: &'a [Group], done: &mut Compacted) -> Result<Vec<Rewritten<'a>>> {
        let storage = &self.plan.scan.storage;
        let memory = self.plan.request.memory.unwrap_or(MEMORY_LIMIT);
        let width = self.plan.settings.rules.concurrent.min(runtime::threads()).min(batch.len());
        let (share, stopped) = (Share::new(width, memory), AtomicBool::new(false));
        let results: Mutex<Vec<(usize, Result<Vec<DataFile>>)>> = Mutex::new(Vec::new());
        let outcome = runtime::for_each(batch, width, |place, group| {
            let names = Names::Alone(self.plan.operation);
            let task = self.plan.task(first + place);
            let result = task.and_then(|task| task.run(storage, names, &share, &stopped));
            let reported = match &result {
                Ok(files) if !stopped.load(Ordering::Relaxed) => self.progress.group(first + place, group, files),
                _ => Ok(()),
            };
            let failed = result.as_ref().is_err_and(|error| !self.outlives(error)) || reported.is_err();
            results.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
            if failed {
                stopped.store(true, Ordering::Relaxed);
                return Err(reported.err());
            }
            Ok(())
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(place, _)| *place);
        let (mut rewritten, mut error) = (Vec::new(), None);
        for (place, result) in results {
            let Some(group) = batch.get(place) else { continue };
            match result {
                Ok(files) => rewritten.push(Rewritten { group, files }),
                Err(failure) if self.outlives(&failure) => {
                    done.failed_data_files += group.inputs.len();
                    done.failures.push(format!("group {}: {failure}", first + place));
                }
                Err(failure) => error = error.or(Some(failure)),
            }
        }
        if let Err(reported) = outcome {
            rewritten.iter().for_each(|one| discard(storage, &one.files));
            let lost = || Error::Internal("a group failed without an error".to_owned());
            return Err(error.or(reported).unwrap_or_else(lost));
        }
        Ok(rewritten)
    }

    /// Whether the other groups are rewritten after this error.
    fn outlives(&self, error: &Error) -> bool {
        self.plan.settings.rules.partial.is_some() && !matches!(error, Error::Interrupted(_))
    }
}
