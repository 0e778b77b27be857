//! Removes delete files that apply to no data file any more: Java's `RemoveDanglingDeleteFiles`.

use std::collections::{HashMap, HashSet};

use arrow_array::Array;
use icefield_format::expr::Expression;
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::TableMetadata;

use super::require_branch;
use crate::commit::{Change, SnapshotOptions, SnapshotProducer};
use crate::error::Result;
use crate::operation::matching::Matches;
use crate::operation::rewrite_files::RewriteFiles;
use crate::plan::Plan;
use crate::plan::deletes::partition_key;
use crate::table::Table;

/// The removed delete files.
#[derive(Debug, Clone, Default)]
pub struct RemovedDeletes {
    /// The table after the removal; `None` if nothing was removed.
    pub table: Option<Table>,
    /// The new snapshot.
    pub snapshot_id: Option<i64>,
    /// The files.
    pub files: Vec<DataFile>,
}

/// Removes the delete files of a branch that apply to no data file: those that are older than all data files of their
/// partition, and deletion vectors of files that are gone.
///
/// # Errors
/// Invalid manifests, and errors of the commit.
pub fn remove_dangling_deletes(table: &Table, options: SnapshotOptions) -> Result<RemovedDeletes> {
    let files = dangling_deletes(table, &options.branch)?;
    if files.is_empty() {
        return Ok(RemovedDeletes::default());
    }
    let mut content = RewriteFiles::new();
    files.iter().cloned().try_for_each(|file| content.delete_delete_file(file))?;
    let mut change = SnapshotProducer::new(table.storage().clone(), content, options).on_existing_branch();
    let table = table.make(&mut change)?;
    Ok(RemovedDeletes { table: Some(table), snapshot_id: change.made_snapshot_id(), files })
}

/// The delete files of a branch that apply to no data file.
///
/// # Errors
/// Invalid manifests.
pub fn dangling_deletes(table: &Table, branch: &str) -> Result<Vec<DataFile>> {
    let metadata = table.metadata();
    require_branch("removal of dangling deletes", metadata, branch)?;
    let scan = Matches::scan(table.storage(), metadata, branch, &Expression::True, true)?;
    let plan = scan.plan()?;
    let live = Live::of(&plan, &AfterRewrite::default())?;
    let mut dangling = Vec::new();
    for delete in plan.deletes.iter() {
        let delete = delete?;
        if live.is_dangling(metadata, &delete.file, delete.is_vector(), delete.sequence_number) {
            dangling.push(delete.file);
        }
    }
    Ok(dangling)
}

/// What a rewrite of data files changes.
#[derive(Debug, Default)]
pub(in crate::maintain) struct AfterRewrite<'a> {
    /// The data files that are replaced.
    pub(in crate::maintain) removed: HashSet<&'a str>,
    /// The partitions of the new files, as keys, with their data sequence numbers.
    pub(in crate::maintain) added: Vec<(Vec<u8>, i64)>,
    /// The last sequence number of the table before.
    pub(in crate::maintain) last: i64,
}

/// The number of delete files that will apply to no data file after a rewrite. Those that its commit removes, vectors of
/// the replaced files and delete files that are older than all data files, are not counted.
///
/// # Errors
/// Invalid manifests.
pub(in crate::maintain) fn dangling_after(
    metadata: &TableMetadata,
    plan: &Plan,
    after: &AfterRewrite<'_>,
) -> Result<usize> {
    let live = Live::of(plan, after)?;
    let is_commit = !after.removed.is_empty();
    let oldest = live.oldest_of_all.map_or(after.last, |oldest| oldest.min(after.last));
    let mut count = 0;
    for delete in plan.deletes.iter() {
        let delete = delete?;
        let file = delete.file.referenced_data_file.as_deref().filter(|_| delete.is_vector());
        let by_commit = delete.sequence_number < oldest || file.is_some_and(|file| after.removed.contains(file));
        let dangling = live.is_dangling(metadata, &delete.file, delete.is_vector(), delete.sequence_number);
        count += usize::from(dangling && !(is_commit && by_commit));
    }
    Ok(count)
}

/// The live data files.
struct Live<'a> {
    paths: HashSet<&'a str>,
    /// The smallest data sequence number in each partition.
    oldest: HashMap<Vec<u8>, i64>,
    /// The smallest of all.
    oldest_of_all: Option<i64>,
}

impl<'a> Live<'a> {
    /// The data files of a plan after a rewrite.
    fn of(plan: &'a Plan, after: &AfterRewrite<'_>) -> Result<Self> {
        let mut own = Self { paths: HashSet::new(), oldest: HashMap::new(), oldest_of_all: None };
        for manifest in &plan.manifests {
            let entries = &manifest.entries;
            let mut keys: HashMap<u32, Vec<u8>> = HashMap::new();
            for row in 0..entries.len() {
                let path = entries.file_path.value(row);
                if after.removed.contains(path) {
                    continue;
                }
                own.paths.insert(path);
                let numbers = &entries.sequence_number;
                let number = if numbers.is_valid(row) { numbers.value(row) } else { 0 };
                let tuple = entries.tuple_of.value(row);
                let key = match keys.get(&tuple) {
                    Some(key) => key.clone(),
                    None => {
                        let key = partition_key(manifest.spec_id(), &entries.tuple(tuple as usize)?);
                        keys.entry(tuple).or_insert(key).clone()
                    }
                };
                own.add(key, number);
            }
        }
        after.added.iter().for_each(|(key, number)| own.add(key.clone(), *number));
        Ok(own)
    }

    fn add(&mut self, key: Vec<u8>, number: i64) {
        let oldest = self.oldest.entry(key).or_insert(number);
        *oldest = (*oldest).min(number);
        self.oldest_of_all = Some(self.oldest_of_all.map_or(number, |oldest| oldest.min(number)));
    }

    fn is_dangling(&self, metadata: &TableMetadata, file: &DataFile, is_vector: bool, number: i64) -> bool {
        if is_vector {
            return file.referenced_data_file.as_deref().is_none_or(|path| !self.paths.contains(path));
        }
        let spec = metadata.partition_spec(file.partition_spec_id);
        let is_equality = file.content == FileContent::EqualityDeletes;
        // Equality deletes of an unpartitioned spec apply to all partitions.
        let oldest = match is_equality && spec.is_some_and(|spec| spec.is_unpartitioned()) {
            true => self.oldest_of_all,
            false => self.oldest.get(&partition_key(file.partition_spec_id, &file.partition)).copied(),
        };
        oldest.is_none_or(|oldest| if is_equality { number <= oldest } else { number < oldest })
    }
}
