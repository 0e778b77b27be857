//! Replaces equality deletes by deletes of positions: deletion vectors from version 3 on, position delete files before.

use std::collections::HashSet;

use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::FormatVersion;
use uuid::Uuid;

use super::{DeletesRequest, require_branch};
use crate::commit::{Change, IDEMPOTENCY_KEY, SnapshotProducer, made_by_key};
use crate::error::Result;
use crate::operation::matching::{Candidates, MatchedFile, MatchedRows, Matches};
use crate::operation::rewrite_files::RewriteFiles;
use crate::operation::rewrite_groups::discard;
use crate::operation::row_delta::RowDelta;
use crate::plan::Scan;
use crate::table::Table;
use crate::write::deletes::positions::write_positions;
use crate::write::deletes::vectors::write_vectors;
use crate::write::deletes::{DeleteConfig, DeletedRows, Granularity};

/// The effects of a conversion, made or planned.
#[derive(Debug, Clone, Default)]
pub struct ConvertedDeletes {
    /// The table after it; `None` if nothing was committed.
    pub table: Option<Table>,
    /// The new snapshot, or that of an earlier run with the same idempotency key.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run with the same idempotency key made it.
    pub made_before: bool,
    /// Equality delete files that were removed.
    pub converted_delete_files: usize,
    /// Position delete files and deletion vectors that the new ones replace.
    pub replaced_delete_files: usize,
    /// New position delete files or deletion vectors.
    pub added_delete_files: usize,
    /// Data files with rows that equality deletes had deleted.
    pub data_files: usize,
    /// Deleted rows of these files.
    pub deleted_rows: u64,
}

/// Finds the rows that equality deletes have deleted, deletes them by position, and removes the equality deletes.
///
/// With a filter, only data files that may have matching rows are read, and only equality deletes that apply to no
/// other file are removed. The snapshot is a `delete`, although no row changes: other commits, such as compactions that
/// began earlier, then see that deletes were added for their files.
///
/// # Errors
/// Errors of the files and of the commit: [`crate::Error::Validation`] if another commit removed one of the data files.
/// Written files are deleted if the commit certainly failed.
pub fn convert_equality_deletes(table: &Table, request: &DeletesRequest) -> Result<ConvertedDeletes> {
    if let Some(key) = request.snapshot.properties.get(IDEMPOTENCY_KEY)
        && let Some(made) = made_by_key(table.metadata(), &request.snapshot.branch, key)?
    {
        return Ok(ConvertedDeletes { made_before: true, snapshot_id: Some(made), ..ConvertedDeletes::default() });
    }
    let Some(found) = ConversionInput::of(table, request)? else { return Ok(ConvertedDeletes::default()) };
    let mut done = ConvertedDeletes {
        converted_delete_files: found.removed.len(),
        data_files: found.matches.files.len(),
        ..ConvertedDeletes::default()
    };
    let deleted: Vec<DeletedRows> = found.matches.files.iter().filter_map(deleted_rows).collect();
    done.deleted_rows = deleted.iter().map(|rows| rows.positions.cardinality()).sum();
    let replaced = found.matches.files.iter().flat_map(|file| file.own_deletes.iter().cloned());
    let replaced: Vec<DataFile> = replaced.collect();
    done.replaced_delete_files = replaced.len();
    if request.dry_run {
        done.added_delete_files = deleted.len();
        return Ok(done);
    }
    let metadata = table.metadata();
    let config = DeleteConfig::of_table(table.storage().clone(), metadata, Uuid::new_v4());
    let added = match metadata.format_version() >= FormatVersion::V3 {
        true => write_vectors(&config, deleted)?,
        false => write_positions(&config, deleted, Granularity::File)?,
    };
    done.added_delete_files = added.len();
    let (storage, options) = (table.storage().clone(), request.snapshot.clone());
    if added.is_empty() {
        // The deletes have deleted nothing, so they are only removed.
        let mut content = RewriteFiles::new();
        found.removed.into_iter().try_for_each(|file| content.delete_delete_file(file))?;
        return committed(table, &mut SnapshotProducer::new(storage, content, options).on_existing_branch(), done);
    }
    match found.content(added.clone(), replaced) {
        Ok(content) => {
            let mut change =
                SnapshotProducer::new(storage, content, options).on_existing_branch().that_owns_its_files();
            committed(table, &mut change, done)
        }
        Err(error) => {
            discard(&storage, &added);
            Err(error)
        }
    }
}

fn committed(table: &Table, change: &mut dyn Change, done: ConvertedDeletes) -> Result<ConvertedDeletes> {
    let table = table.make(change)?;
    Ok(ConvertedDeletes { table: Some(table), snapshot_id: change.made_snapshot_id(), ..done })
}

/// What a conversion reads.
struct ConversionInput {
    /// Data files with the rows that are deleted now, by any delete file.
    matches: Matches,
    /// All data files that the removed equality deletes may apply to.
    referenced: Vec<String>,
    /// The equality deletes to remove.
    removed: Vec<DataFile>,
}

impl ConversionInput {
    /// `None` if no equality deletes can be removed.
    fn of(table: &Table, request: &DeletesRequest) -> Result<Option<Self>> {
        let (storage, metadata, branch) = (table.storage(), table.metadata(), &request.snapshot.branch);
        require_branch("conversion of equality deletes", metadata, branch)?;
        let candidates = |filter: &Expr| -> Result<Candidates> {
            Matches::candidates(storage, metadata, branch, filter, request.case_sensitive, request.memory)
        };
        let chosen = match &request.filter {
            Expression::True => None,
            filter => Some(candidates(filter)?.files().map(|file| file.file_path.clone()).collect::<HashSet<_>>()),
        };
        let is_chosen = |path: &str| chosen.as_ref().is_none_or(|chosen| chosen.contains(path));
        let scan = Matches::scan(storage, metadata, branch, &Expression::True, true)?;
        let plan = scan.plan()?;
        let mut kept = vec![chosen.is_some(); plan.deletes.len()];
        let mut referenced = Vec::new();
        let mut linked: Vec<(String, Vec<u32>)> = Vec::new();
        for manifest in &plan.manifests {
            for row in 0..manifest.entries.len() {
                let path = manifest.entries.file_path.value(row);
                if !manifest.deletes(row).is_empty() {
                    linked.push((path.to_owned(), manifest.deletes(row).iter().copied().collect()));
                }
            }
        }
        // A delete file goes if all of its data files are chosen; with a filter, it also has at least one.
        for (_, places) in linked.iter().filter(|(path, _)| is_chosen(path)) {
            places.iter().for_each(|place| kept.get_mut(*place as usize).into_iter().for_each(|kept| *kept = false));
        }
        for (_, places) in linked.iter().filter(|(path, _)| !is_chosen(path)) {
            places.iter().for_each(|place| kept.get_mut(*place as usize).into_iter().for_each(|kept| *kept = true));
        }
        let mut removed = Vec::new();
        for (delete, kept) in plan.deletes.iter().zip(&mut kept) {
            let delete = delete?;
            *kept |= delete.file.content != FileContent::EqualityDeletes;
            if !*kept {
                removed.push(delete.file);
            }
        }
        if removed.is_empty() {
            return Ok(None);
        }
        for (path, places) in linked {
            if places.iter().any(|place| kept.get(*place as usize).is_some_and(|kept| !kept)) {
                referenced.push(path);
            }
        }
        let read: HashSet<&str> = referenced.iter().map(String::as_str).collect();
        let scan = Matches::scan(storage, metadata, branch, &Expr::parse("_deleted = true")?, true)?;
        let scan = Scan { only_live_rows: false, ..scan };
        let plan = scan.plan()?;
        let mut deleted = Matches::candidates_of(scan, &plan, request.memory)?;
        deleted.retain(|file| read.contains(file.part.path.as_str()));
        Ok(Some(Self { matches: deleted.find()?, referenced, removed }))
    }

    fn content(self, added: Vec<DataFile>, replaced: Vec<DataFile>) -> Result<RowDelta> {
        let mut content = RowDelta::new();
        if let Some(start) = self.matches.snapshot() {
            content.validate_from_snapshot(start.snapshot_id);
        }
        content.validate_deleted_files();
        content.validate_data_files_exist(self.referenced);
        added.into_iter().try_for_each(|file| content.add_deletes(file))?;
        self.removed.into_iter().chain(replaced).try_for_each(|file| content.remove_deletes(file))?;
        Ok(content)
    }
}

fn deleted_rows(file: &MatchedFile) -> Option<DeletedRows> {
    let MatchedRows::Some(positions) = &file.rows else { return None };
    Some(DeletedRows {
        data_file: file.part.path.clone(),
        spec: file.part.partition.spec.spec.clone(),
        partition: file.part.partition.tuple.clone(),
        positions: positions.clone(),
    })
}
