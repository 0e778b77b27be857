//! Rules for conflicts with other commits, evaluated on the entries of their manifests without I/O ("Commit Conflict
//! Resolution and Retry").
//!
//! Each rule returns at most [`MOST`] conflicting files. The caller ([`History`](crate::commit::History)) decides which
//! manifests to pass, and in which order.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use icefield_format::Limits;
use icefield_format::manifest::{DataFile, Entries, FileContent, FileFormat, Status};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::Schema;

use super::rule::{self, Rule};
use crate::commit::manifests::filter::{section, section_of};
use crate::commit::manifests::selection::Selection;
use crate::commit::manifests::specs::{Partitions, Spec};
use crate::error::{Error, Result};
use crate::plan::deletes::{DeleteIndex, DeleteKind};

/// Maximum number of conflicting files per rule: enough for an error message.
pub const MOST: usize = 16;

/// The entries of a manifest that another commit wrote, with inherited values filled in.
#[derive(Debug, Clone)]
pub struct Written {
    /// The spec of the manifest.
    pub spec: Arc<Spec>,
    /// The entries.
    pub entries: Arc<Entries>,
}

/// Selects the files that matter to an operation.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// All files.
    All,
    /// Files that may have rows matching a filter.
    Rows(&'a Selection),
    /// Files of some partitions, and equality deletes that apply to files of all partitions.
    Partitions(&'a Partitions),
}

/// A file that conflicts with the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The snapshot that added or removed the file.
    pub snapshot_id: i64,
    /// The file.
    pub path: String,
    /// The data file that a delete file applies to, if known and relevant.
    pub of: Option<String>,
}

impl Scope<'_> {
    /// For each entry, whether its file is in the scope; `None` if all are.
    fn mask(&self, written: &Written) -> Result<Option<Vec<bool>>> {
        match self {
            Self::All => Ok(None),
            Self::Rows(rows) => Ok(Some(rows.might_match(&written.spec, &written.entries)?.iter().collect())),
            Self::Partitions(partitions) => {
                let (entries, of_all) = (&written.entries, is_for_all(&written.spec.spec));
                let of_tuples = partitions.of_tuples(&written.spec, entries)?;
                let is_of = |row: usize| {
                    let of_tuple = of_tuples.get(entries.tuple_of.value(row) as usize).copied().unwrap_or(false);
                    Ok(of_tuple || of_all && entries.content_of(row)? == FileContent::EqualityDeletes)
                };
                Ok(Some((0..entries.len()).map(is_of).collect::<Result<_>>()?))
            }
        }
    }
}

/// Whether equality deletes of a spec apply to data files of any spec and partition.
pub(super) fn is_for_all(spec: &PartitionSpec) -> bool {
    spec.is_unpartitioned() && rule::holds(Rule::DeletesEverywhere)
}

/// Data files in the scope that one of these snapshots added.
///
/// # Errors
/// Invalid entries.
pub fn added_data_files(
    written: impl IntoIterator<Item = Result<Written>>,
    snapshots: &HashSet<i64>,
    scope: Scope<'_>,
) -> Result<Vec<Conflict>> {
    in_the_way(written, scope, |entries, row| {
        Ok(status(entries, row)? == Status::Added && is_of(entries, row, snapshots))
    })
}

/// Data files in the scope that one of these snapshots removed.
///
/// # Errors
/// Invalid entries.
pub fn removed_data_files(
    written: impl IntoIterator<Item = Result<Written>>,
    snapshots: &HashSet<i64>,
    scope: Scope<'_>,
) -> Result<Vec<Conflict>> {
    in_the_way(written, scope, |entries, row| {
        Ok(status(entries, row)? == Status::Deleted && is_of(entries, row, snapshots))
    })
}

/// Those of the `required` data files that one of these snapshots removed.
///
/// # Errors
/// Invalid entries.
pub fn missing_data_files(
    written: impl IntoIterator<Item = Result<Written>>,
    snapshots: &HashSet<i64>,
    scope: Scope<'_>,
    required: &HashSet<String>,
) -> Result<Vec<Conflict>> {
    in_the_way(written, scope, |entries, row| {
        let required = required.contains(entries.file_path.value(row));
        Ok(required && status(entries, row)? == Status::Deleted && is_of(entries, row, snapshots))
    })
}

/// Delete files in the scope with a data sequence number above `after`.
///
/// # Errors
/// Invalid entries.
pub fn added_delete_files(
    written: impl IntoIterator<Item = Result<Written>>,
    after: i64,
    scope: Scope<'_>,
) -> Result<Vec<Conflict>> {
    in_the_way(written, scope, |entries, row| is_newer(entries, row, after))
}

/// Equality delete files of partitions in the scope with a data sequence number above `after`; not those that apply to
/// all partitions.
///
/// # Errors
/// Invalid entries.
pub fn added_deletes_of_partitions(
    written: impl IntoIterator<Item = Result<Written>>,
    after: i64,
    scope: Scope<'_>,
) -> Result<Vec<Conflict>> {
    let is_of_partitions =
        |written: &Result<Written>| written.as_ref().map_or(true, |written| !written.spec.spec.is_unpartitioned());
    in_the_way(written.into_iter().filter(is_of_partitions), scope, |entries, row| {
        Ok(entries.content_of(row)? == FileContent::EqualityDeletes && is_newer(entries, row, after)?)
    })
}

/// Deletion vectors that one of these snapshots added for one of these data files.
///
/// # Errors
/// Invalid entries.
pub fn added_vectors(
    written: impl IntoIterator<Item = Result<Written>>,
    snapshots: &HashSet<i64>,
    scope: Scope<'_>,
    data_files: &HashSet<String>,
) -> Result<Vec<Conflict>> {
    in_the_way(written, scope, |entries, row| {
        let named = &entries.referenced_data_file;
        let vector = FileFormat::from_name(entries.file_format.value(row)) == Some(FileFormat::Puffin);
        let of_these = vector && named.is_valid(row) && data_files.contains(named.value(row));
        Ok(of_these && status(entries, row)?.is_live() && is_of(entries, row, snapshots))
    })
}

/// Data files whose rows must not have been deleted since the operation started.
#[derive(Debug)]
pub struct Kept<'a> {
    /// The files as columns of manifest entries, grouped by spec.
    pub files: &'a [Written],
    /// The sequence number assumed for all of them: that of the snapshot which the operation started from.
    pub after: i64,
    /// What the operation does with their rows.
    pub fate: Fate<'a>,
    /// The table's schema.
    pub schema: &'a Arc<Schema>,
}

/// What an operation does with the rows of data files that it removes.
#[derive(Debug, Clone, Copy)]
pub enum Fate<'a> {
    /// It changes the rows in the scope; the others do not matter.
    Changed,
    /// It changes the rows in the scope and writes the others again unchanged, so these must not have been deleted
    /// either. The list has the delete files that the operation itself removes and has therefore already applied.
    WrittenAgain(&'a [DataFile]),
    /// It writes all rows again to files that keep a sequence number; deletes that still apply to them do not matter.
    Moved(&'a Successors),
}

/// The data files that replace others with the same rows.
#[derive(Debug, Clone)]
pub struct Successors {
    /// Their data sequence number.
    pub sequence_number: i64,
    /// Their partition specs.
    pub specs: BTreeSet<i32>,
}

impl Fate<'_> {
    /// Whether a delete file outside the scope counts as a conflict.
    fn is_beside(self, deletes: &Entries, row: usize) -> bool {
        let Self::WrittenAgain(known) = self else { return false };
        let path = deletes.file_path.value(row);
        let place = section_of(deletes, row);
        rule::holds(Rule::DeletesBeside) && !known.iter().any(|file| file.file_path == path && section(file) == place)
    }
}

impl Successors {
    /// Whether an equality delete that applied to the replaced data files applies to these as well.
    fn keep(&self, spec: &PartitionSpec, entries: &Entries, row: usize) -> bool {
        // The rows of a partition stay in that partition as long as the spec is the same.
        let reached = spec.is_unpartitioned() || self.specs.iter().all(|id| *id == spec.spec_id);
        let number = &entries.sequence_number;
        let newer = number.is_valid(row) && number.value(row) > self.sequence_number;
        reached && newer || !rule::holds(Rule::DeletesOfMoved)
    }
}

/// Delete files that apply to one of the data files, in the scope or relevant by the fate of the rows.
///
/// # Errors
/// Invalid entries.
pub fn deletes_of_data_files(
    written: impl IntoIterator<Item = Result<Written>>,
    scope: Scope<'_>,
    kept: &Kept<'_>,
    limits: &Limits,
) -> Result<Vec<Conflict>> {
    let mut found = Vec::new();
    for written in written {
        let written = written?;
        let mask = scope.mask(&written)?;
        let in_scope = |row: usize| mask.as_ref().is_none_or(|mask| mask.get(row) == Some(&true));
        let matters = |row| in_scope(row) || kept.fate.is_beside(&written.entries, row);
        let wanted = |row| Ok(is_newer(&written.entries, row, kept.after)? && matters(row));
        let wanted = (0..written.entries.len()).map(wanted).collect::<Result<Vec<bool>>>()?;
        let entries = Arc::new(written.entries.filter(&BooleanArray::from(wanted))?);
        if entries.is_empty() {
            continue;
        }
        // One index per manifest: several snapshots may each have written a vector for the same data file.
        let mut index = DeleteIndex::new(kept.schema.clone(), limits);
        index.add(&written.spec.spec, entries.clone())?;
        index.finish()?;
        for data in kept.files {
            let Some(links) = index.links(&data.spec.spec, &data.entries)? else { continue };
            for row in 0..data.entries.len() {
                for place in links.of(row) {
                    let row_of = *place as usize;
                    if let Fate::Moved(successors) = kept.fate
                        && index.files().kind(*place)? == DeleteKind::Equality
                        && successors.keep(&written.spec.spec, &entries, row_of)
                    {
                        continue;
                    }
                    let of = data.entries.file_path.value(row).to_owned();
                    found.push(Conflict { of: Some(of), ..conflict(&entries, row_of) });
                    if found.len() == MOST {
                        return Ok(found);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Returns a data file that is removed although the same change adds deletes for it.
pub fn removed_and_referenced<'a>(removed: &'a [DataFile], referenced: &HashSet<String>) -> Option<&'a str> {
    removed.iter().map(|file| file.file_path.as_str()).find(|path| referenced.contains(*path))
}

/// The entries in the scope that conflict.
fn in_the_way(
    written: impl IntoIterator<Item = Result<Written>>,
    scope: Scope<'_>,
    is_in_the_way: impl Fn(&Entries, usize) -> Result<bool>,
) -> Result<Vec<Conflict>> {
    let mut found = Vec::new();
    for written in written {
        let written = written?;
        let mut mask: Option<Option<Vec<bool>>> = None;
        for row in 0..written.entries.len() {
            if !is_in_the_way(&written.entries, row)? {
                continue;
            }
            let mask = match &mut mask {
                Some(mask) => mask,
                none => none.insert(scope.mask(&written)?),
            };
            if mask.as_ref().is_none_or(|mask| mask.get(row) == Some(&true)) {
                found.push(conflict(&written.entries, row));
                if found.len() == MOST {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

fn conflict(entries: &Entries, row: usize) -> Conflict {
    let named = &entries.referenced_data_file;
    Conflict {
        snapshot_id: if entries.snapshot_id.is_valid(row) { entries.snapshot_id.value(row) } else { 0 },
        path: entries.file_path.value(row).to_owned(),
        of: named.is_valid(row).then(|| named.value(row).to_owned()),
    }
}

fn status(entries: &Entries, row: usize) -> Result<Status> {
    Status::from_id(entries.status.value(row)).map_err(Error::from)
}

fn is_of(entries: &Entries, row: usize, snapshots: &HashSet<i64>) -> bool {
    entries.snapshot_id.is_valid(row) && snapshots.contains(&entries.snapshot_id.value(row))
}

/// Whether the file is live and has a data sequence number above `after`.
fn is_newer(entries: &Entries, row: usize, after: i64) -> Result<bool> {
    let number = &entries.sequence_number;
    Ok(status(entries, row)?.is_live() && number.is_valid(row) && number.value(row) > after)
}
