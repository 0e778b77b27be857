//! The plan of a compaction: its groups, as tasks for this process or for workers of an engine, and their commit.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::expr::Expression;
use icefield_format::metadata::{FormatVersion, TableMetadata};
use uuid::Uuid;

use super::super::deletes::{remove_dangling_deletes, require_branch};
use super::groups::{Group, Input, groups};
use super::outcome::{Compacted, Rewritten, made_before};
use super::request::{Compaction, without_key};
use super::settings::Settings;
use super::task::{GroupTask, written};
use crate::commit::{Change, IDEMPOTENCY_KEY, SnapshotOptions, SnapshotProducer, require_same_table};
use crate::error::{Error, Result};
use crate::operation::matching::Matches;
use crate::operation::rewrite_files::RewriteFiles;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::split::SplitOptions;
use crate::plan::{Plan, Scan};
use crate::table::Table;
use crate::write::with_lineage;

/// The plan of a compaction.
#[derive(Debug)]
pub struct CompactionPlan {
    pub(super) request: Compaction,
    pub(super) settings: Settings,
    pub(super) scan: Scan,
    pub(super) groups: Vec<Group>,
    /// The id of the compaction, part of its file names.
    pub(super) operation: Uuid,
    pub(super) plan: Plan,
    wanted: Arc<Wanted>,
}

impl CompactionPlan {
    /// Plans a compaction of a table as loaded. Manifests are read, and nothing is written.
    ///
    /// # Errors
    /// Options that are not allowed, a branch that does not exist, or invalid manifests.
    pub fn new(table: &Table, request: Compaction) -> Result<Self> {
        let (metadata, branch) = (table.metadata(), &request.snapshot.branch);
        let settings = Settings::of(&request, metadata)?;
        require_branch("compaction", metadata, branch)?;
        let scan = Matches::scan(table.storage(), metadata, branch, &request.filter, request.case_sensitive)?;
        let plan = scan.plan()?;
        let groups = groups(&plan, metadata, &settings)?;
        let columns = match metadata.format_version() >= FormatVersion::V3 {
            true => with_lineage(&scan.schema)?,
            false => scan.schema.clone(),
        };
        let wanted = scan.wanted(Some(&[]))?;
        let wanted = Arc::new(Wanted { projection: columns, ..(*wanted).clone() });
        Ok(Self { request, settings, scan, groups, operation: Uuid::new_v4(), plan, wanted })
    }

    pub(super) fn metadata(&self) -> &Arc<TableMetadata> {
        &self.scan.metadata
    }

    /// Numbers of files, their bytes, and the expected number of new files of each group.
    pub fn groups(&self) -> impl Iterator<Item = (usize, i64, i64)> {
        self.groups.iter().map(|group| (group.inputs.len(), group.bytes, group.outputs))
    }

    /// The task that rewrites a group.
    ///
    /// # Errors
    /// A number without group, or a file that its manifest describes wrongly.
    pub fn task(&self, number: usize) -> Result<GroupTask> {
        let group = self.groups.get(number);
        let group = group.ok_or_else(|| Error::invalid(format!("the compaction has no group {number}")))?;
        // Rows of several partitions go to several files anyway.
        let is_of_one = group.partition.is_some() || self.settings.spec.is_unpartitioned();
        let mut counts = group.inputs.iter().map(Input::rows_left);
        let add = |sum: i64, rows: i64| (rows >= 0).then(|| sum.saturating_add(rows));
        let divided = self.settings.strategy.sorts && is_of_one;
        Ok(GroupTask {
            table: self.metadata().clone(),
            operation: self.operation,
            number,
            tasks: self.reads(group)?,
            spec: self.settings.spec.clone(),
            partition: group.partition.clone(),
            order: self.settings.strategy.order.clone(),
            files: divided.then_some(group.outputs.unsigned_abs()),
            file_bytes: self.settings.sizes.file_bytes(),
            rows: counts.try_fold(0, add),
            has_deletes: group.inputs.iter().any(|input| input.has_deletes),
        })
    }

    /// The parts of a group's files that each writer gets: one for all rows that are sorted together, otherwise about as
    /// many as files are to be written, cut as in Java.
    fn reads(&self, group: &Group) -> Result<Vec<ReadTask>> {
        let places: Vec<(usize, usize)> = group.inputs.iter().map(|input| input.place).collect();
        let table = SplitOptions::of_table(self.metadata())?;
        let split_size = if self.settings.strategy.sorts { i64::MAX } else { group.split_bytes };
        let options = SplitOptions { split_size, open_file_cost: 0, parallelism: None, ..table };
        let mut tasks = self.scan.tasks_of_files(&self.plan, &self.wanted, &options, &places)?;
        let mut paths = HashSet::new();
        for part in tasks.iter_mut().flat_map(|task| &mut task.parts) {
            // The filter chooses files, and all of their rows are rewritten.
            part.residual = Expression::True;
            paths.insert(part.path.clone());
        }
        let lost = group.inputs.iter().find(|input| !paths.contains(&input.file.file_path));
        match lost {
            Some(lost) => Err(Error::corrupt_file(
                &*lost.file.file_path,
                format!(
                    "its manifest says that it has {} bytes, so its rows cannot be read",
                    lost.file.file_size_in_bytes
                ),
            )),
            None => Ok(tasks),
        }
    }

    /// Commits groups in one snapshot; returns the table and the snapshot. With `owns`, new files are deleted if the commit
    /// certainly fails.
    pub(super) fn commit_groups(
        &self,
        table: &Table,
        rewritten: &[Rewritten<'_>],
        options: SnapshotOptions,
        owns: bool,
    ) -> Result<(Table, Option<i64>)> {
        let mut content = RewriteFiles::new();
        content.validate_format_version(self.metadata().format_version());
        if let Some(start) = &self.scan.snapshot {
            content.validate_from_snapshot(start.snapshot_id);
            if self.settings.rules.starting_number {
                content.data_sequence_number(start.sequence_number);
            }
        }
        for Rewritten { group, files } in rewritten {
            for input in &group.inputs {
                content.delete_data_file(input.file.clone())?;
                input.vectors.iter().cloned().try_for_each(|vector| content.delete_delete_file(vector))?;
            }
            files.iter().cloned().try_for_each(|file| content.add_data_file(file))?;
        }
        let producer = SnapshotProducer::new(table.storage().clone(), content, options).on_existing_branch();
        let mut change = if owns { producer.that_owns_its_files() } else { producer };
        let committed = table.make(&mut change)?;
        Ok((committed, change.made_snapshot_id()))
    }

    /// Commits what workers wrote, in one snapshot: results of any of the groups, each once. If it fails, the caller keeps
    /// the files.
    ///
    /// # Errors
    /// Results of another compaction, or two of one group; with an idempotency key, not the results of all groups;
    /// [`crate::Error::TableReplaced`] if it was planned for another table; errors of the commit.
    pub fn commit(&self, table: &Table, results: &[Vec<u8>]) -> Result<Compacted> {
        let metadata = self.metadata();
        require_same_table(metadata.table_uuid(), table.metadata(), &table.committed().location)?;
        if let Some(done) = made_before(table, &self.request.snapshot)? {
            return Ok(done);
        }
        let (mut rewritten, mut known) = (Vec::with_capacity(results.len()), HashSet::new());
        for result in results {
            let (number, files) = written(result, self.operation, metadata, &self.settings.spec)?;
            let group = self.groups.get(number).ok_or_else(|| {
                let groups = self.groups.len();
                Error::invalid(format!("a result is of group {number}, and the compaction has only {groups} groups"))
            })?;
            if !known.insert(number) {
                return Err(Error::invalid(format!(
                    "two results are of group {number}: one of them is of an attempt that lost"
                )));
            }
            rewritten.push(Rewritten { group, files });
        }
        if self.request.snapshot.properties.contains_key(IDEMPOTENCY_KEY) && rewritten.len() < self.groups.len() {
            return Err(Error::invalid(format!(
                "compaction: a commit with an idempotency key needs the results of all {} groups, got {}: without the others, a \
                 further commit would do nothing",
                self.groups.len(),
                rewritten.len()
            )));
        }
        let mut done = Compacted { groups: self.groups.len(), ..Compacted::default() };
        if rewritten.is_empty() {
            return Ok(done);
        }
        let (table, snapshot_id) = self.commit_groups(table, &rewritten, self.request.snapshot.clone(), false)?;
        rewritten.iter().for_each(|one| done.add(one.group, one.files.len()));
        done.snapshot_ids.extend(snapshot_id);
        done.table = Some(table.clone());
        self.without_dangling_deletes(&table, done)
    }

    /// Removes the delete files that no longer apply, if that is asked for.
    pub(super) fn without_dangling_deletes(&self, table: &Table, mut done: Compacted) -> Result<Compacted> {
        if self.settings.rules.dangling {
            let after = done.table.as_ref().unwrap_or(table);
            let removed = remove_dangling_deletes(after, without_key(&self.request.snapshot))?;
            done.removed_delete_files += removed.files.len();
            done.snapshot_ids.extend(removed.snapshot_id);
            done.table = removed.table.or(done.table);
        }
        Ok(done)
    }
}
