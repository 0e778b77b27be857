//! The commits between the snapshot that an operation started from and the one it is committed on top of.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use icefield_format::Limits;
use icefield_format::expr::Expr;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, Entries, FieldIds, ManifestContent, Metrics};
use icefield_format::metadata::{FormatVersion, Operation, Snapshot, TableMetadata};

use super::rule::{self, Rule};
use super::validate::{self, Conflict, Fate, Kept, Scope, Written, is_for_all};
use crate::commit::manifests::selection::Selection;
use crate::commit::manifests::specs::{Partitions, Specs};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::plan::pipeline::{Ordered, Work};
use crate::snapshot::manifests::of_snapshot;
use crate::storage::Storage;

/// The snapshots that an operation is checked against; without a parent there are none.
///
/// Each check reports the first conflicting file, the snapshot that added or removed it, and the operation that it
/// conflicts with.
#[derive(Debug)]
pub struct History<'a> {
    storage: &'a Storage,
    base: &'a TableMetadata,
    parent: Option<&'a Snapshot>,
    from: Option<i64>,
    /// Name of the operation, for messages.
    operation: &'static str,
    specs: Arc<Specs>,
    lists: Mutex<HashMap<i64, Arc<Vec<ManifestFile>>>>,
    limits: Limits,
}

/// Operations that add rows in data files.
const ADDING: &[Operation] = &[Operation::Append, Operation::Overwrite];
/// Operations after which the table has data files that it did not have before; `Replace` keeps the rows.
const RENEWING: &[Operation] = &[Operation::Append, Operation::Overwrite, Operation::Replace];
/// Operations that remove data files.
const REMOVING: &[Operation] = &[Operation::Overwrite, Operation::Replace, Operation::Delete];
/// Operations that add delete files for rows that were not deleted before.
const DELETING: &[Operation] = &[Operation::Overwrite, Operation::Delete];
/// Operations that add deletion vectors.
const ADDING_VECTORS: &[Operation] = REMOVING;

impl<'a> History<'a> {
    /// The snapshots after `from` up to `parent`; without `from`, the whole history.
    ///
    /// # Errors
    /// Invalid limits. The history itself is read only when a check needs it.
    pub fn new(
        operation: &'static str,
        storage: &'a Storage,
        base: &'a TableMetadata,
        parent: Option<&'a Snapshot>,
        from: Option<i64>,
    ) -> Result<Self> {
        let specs = Arc::new(Specs::of(base));
        Ok(Self { storage, base, parent, from, operation, specs, lists: Mutex::default(), limits: limits()? })
    }

    /// The specs of the table.
    pub fn specs(&self) -> &Specs {
        &self.specs
    }

    /// Prepares a row filter for [`Scope::Rows`].
    ///
    /// # Errors
    /// A filter that does not fit the schema.
    pub fn selection(&self, filter: &Expr, case_sensitive: bool) -> Result<Selection> {
        Selection::new(filter, self.base, &self.specs, case_sensitive)
    }

    /// Prepares a filter of conflicts for [`Scope::Rows`]. Returns `None` if nothing was committed since the start: the
    /// filter then need not fit the current schema, as a column may have been renamed.
    ///
    /// # Errors
    /// A filter that does not fit the current schema although there are commits to check, or that fits no schema the
    /// table ever had.
    pub fn selection_of_conflicts(&self, filter: &Expr, case_sensitive: bool) -> Result<Option<Selection>> {
        self.selection(filter, case_sensitive).map(Some).or_else(|error| {
            let fitted = self.base.schemas().iter().any(|schema| filter.bind(schema, case_sensitive).is_ok());
            let nothing = self.between().is_ok_and(|between| between.is_empty());
            if fitted && nothing { Ok(None) } else { Err(error) }
        })
    }

    /// Rejects a start snapshot that is not in the history of the branch.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_start(&self) -> Result<()> {
        let (Some(parent), Some(from)) = (self.parent, self.from) else { return Ok(()) };
        if self.base.ancestors(parent.snapshot_id).any(|snapshot| snapshot.snapshot_id == from) {
            return Ok(());
        }
        let parent = parent.snapshot_id;
        Err(Error::invalid(format!(
            "{}: snapshot {from}, which it is validated from, is not an ancestor of {parent}, which it would follow",
            self.operation
        )))
    }

    /// Checks that no data file in the scope was added.
    ///
    /// # Errors
    /// [`Error::Validation`] if there is a conflict, as in all checks.
    pub fn no_added_data(&self, scope: Scope<'_>) -> Result<()> {
        let Some((snapshots, written)) = self.written(ADDING, ManifestContent::Data, scope, false)? else {
            return Ok(());
        };
        let found = validate::added_data_files(written, &snapshots, scope)?;
        self.refuse(Rule::AddedData, &found, scope, |path, _| format!("added the data file {path}"))
    }

    /// Checks that no data file in the scope was added, not even one that replaces others with the same rows.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn no_new_data_files(&self, scope: Scope<'_>) -> Result<()> {
        let Some((snapshots, written)) = self.written(RENEWING, ManifestContent::Data, scope, false)? else {
            return Ok(());
        };
        let found = validate::added_data_files(written, &snapshots, scope)?;
        self.refuse(Rule::AddedData, &found, scope, |path, _| format!("added the data file {path}"))
    }

    /// Checks that no data file in the scope was removed.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn no_removed_data(&self, scope: Scope<'_>) -> Result<()> {
        let Some((snapshots, written)) = self.written(REMOVING, ManifestContent::Data, scope, false)? else {
            return Ok(());
        };
        let found = validate::removed_data_files(written, &snapshots, scope)?;
        self.refuse(Rule::RemovedData, &found, scope, |path, _| format!("removed the data file {path}"))
    }

    /// Checks that none of these data files was removed, as far as they are in the scope.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn data_files_exist(&self, required: &HashSet<String>, scope: Scope<'_>) -> Result<()> {
        let Some((snapshots, written)) = self.written(REMOVING, ManifestContent::Data, scope, false)? else {
            return Ok(());
        };
        let found = validate::missing_data_files(written, &snapshots, scope, required)?;
        self.refuse(Rule::MissingData, &found, Scope::All, |path, _| {
            format!("removed the data file {path}, which new deletes are for")
        })
    }

    /// Checks that no delete file in the scope was added.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn no_added_deletes(&self, scope: Scope<'_>) -> Result<()> {
        if self.base.format_version() < FormatVersion::V2 {
            return Ok(());
        }
        let Some((_, written)) = self.written(DELETING, ManifestContent::Deletes, scope, false)? else { return Ok(()) };
        let found = validate::added_delete_files(written, self.start(), scope)?;
        self.refuse(Rule::AddedDeletes, &found, scope, |path, _| format!("added the delete file {path}"))
    }

    /// Checks that no delete file was added that applies to one of these data files, as far as it is in the scope or
    /// concerns rows that must be kept (`fate`).
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn no_added_deletes_of(&self, files: &[DataFile], scope: Scope<'_>, fate: Fate<'_>) -> Result<()> {
        if self.base.format_version() < FormatVersion::V2 || files.is_empty() {
            return Ok(());
        }
        let looked = if matches!(fate, Fate::WrittenAgain(_)) { Scope::All } else { scope };
        let Some((_, written)) = self.written(DELETING, ManifestContent::Deletes, looked, true)? else { return Ok(()) };
        let mut written = written.peekable();
        if written.peek().is_none() {
            return Ok(());
        }
        let files = self.columns(files, self.start())?;
        let schema = self.base.current_schema();
        let kept = Kept { files: &files, after: self.start(), fate, schema };
        let found = validate::deletes_of_data_files(written, scope, &kept, &self.limits)?;
        self.refuse(Rule::DeletesOfRemoved, &found, Scope::All, |path, of| {
            format!("added the delete file {path}, which applies to {of}")
        })
    }

    /// Checks that no equality delete file of these partitions was added with a data sequence number above `after`: rows
    /// that come from files of other specs, to which it does not apply, would be deleted by it.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn no_added_deletes_of_partitions(&self, partitions: &Partitions, after: i64) -> Result<()> {
        if self.base.format_version() < FormatVersion::V2 || partitions.is_empty() {
            return Ok(());
        }
        let scope = Scope::Partitions(partitions);
        let Some((_, written)) = self.written(DELETING, ManifestContent::Deletes, scope, false)? else { return Ok(()) };
        let found = validate::added_deletes_of_partitions(written, after, scope)?;
        self.refuse(Rule::DeletesOfMoved, &found, Scope::All, |path, _| {
            format!("added the delete file {path}, which would also apply to rows that move to its partition")
        })
    }

    /// Checks that no deletion vector was added for one of these data files, as far as they are in the scope.
    ///
    /// # Errors
    /// [`Error::Validation`].
    pub fn no_added_vectors(&self, data_files: &HashSet<String>, scope: Scope<'_>) -> Result<()> {
        if data_files.is_empty() {
            return Ok(());
        }
        let found = self.written(ADDING_VECTORS, ManifestContent::Deletes, scope, false)?;
        let Some((snapshots, written)) = found else { return Ok(()) };
        let found = validate::added_vectors(written, &snapshots, scope, data_files)?;
        self.refuse(Rule::AddedVectors, &found, Scope::All, |path, of| {
            format!("added a deletion vector for {of}, in {path}")
        })
    }

    /// Converts data files to the columns of manifest entries, grouped by spec.
    ///
    /// # Errors
    /// A file with a spec that the table does not have.
    pub fn columns(&self, files: &[DataFile], sequence_number: i64) -> Result<Vec<Written>> {
        let mut by_spec: HashMap<i32, Vec<&DataFile>> = HashMap::new();
        for file in files {
            self.specs.of_file(file)?;
            by_spec.entry(file.partition_spec_id).or_default().push(file);
        }
        let columns = |files: Vec<&DataFile>| {
            let first = files.first().ok_or_else(|| Error::Internal("no file".to_owned()))?;
            let spec = self.specs.of_file(first)?.clone();
            let entries = Arc::new(spec.entries(&files, sequence_number)?);
            Ok(Written { spec, entries })
        };
        by_spec.into_values().map(columns).collect()
    }

    /// The sequence number of the snapshot that the operation started from.
    fn start(&self) -> i64 {
        self.from.and_then(|id| self.base.snapshot(id)).map_or(0, |snapshot| snapshot.sequence_number)
    }

    /// The snapshots after the start, newest first.
    fn between(&self) -> Result<Vec<&'a Snapshot>> {
        let Some(parent) = self.parent else { return Ok(Vec::new()) };
        let ancestors = self.base.ancestors(parent.snapshot_id).map(|snapshot| &**snapshot);
        let between: Vec<&Snapshot> =
            ancestors.take_while(|snapshot| Some(snapshot.snapshot_id) != self.from).collect();
        match between.last() {
            Some(last) if last.parent_snapshot_id != self.from => {
                let start = self.from.map_or("the table's first snapshot".to_owned(), |id| format!("snapshot {id}"));
                Err(Error::Validation(format!(
                    "{}: what was committed since {start} is not known: snapshot {} is the oldest of the branch that is left",
                    self.operation, last.snapshot_id
                )))
            }
            _ => Ok(between),
        }
    }

    /// The manifests written by snapshots with these operations, if they may list files in the scope, and the ids of
    /// these snapshots; `None` if there are no such manifests. `all_metrics`: reads the metrics of all columns, not
    /// only those that the scope needs.
    fn written(
        &self,
        operations: &[Operation],
        content: ManifestContent,
        scope: Scope<'_>,
        all_metrics: bool,
    ) -> Result<Option<(HashSet<i64>, impl Iterator<Item = Result<Written>>)>> {
        let (mut snapshots, mut manifests) = (HashSet::new(), Vec::new());
        for snapshot in self.between()? {
            let made_by = snapshot.summary.as_ref().map(|summary| &summary.operation);
            if !made_by.is_some_and(|operation| operations.contains(operation)) {
                continue;
            }
            snapshots.insert(snapshot.snapshot_id);
            for manifest in self.list(snapshot)?.iter() {
                let own = manifest.added_snapshot_id == snapshot.snapshot_id && manifest.content == content;
                if own && self.may_be_in(scope, manifest)? {
                    manifests.push(manifest.clone());
                }
            }
        }
        if manifests.is_empty() {
            return Ok(None);
        }
        let metrics = match scope {
            _ if all_metrics => {
                Metrics { column_sizes: FieldIds::None, nan_value_counts: FieldIds::None, ..Metrics::all() }
            }
            Scope::Rows(rows) => rows.metrics(),
            Scope::All | Scope::Partitions(_) => Metrics::none(),
        };
        let remote = manifests.first().is_some_and(|manifest| self.storage.is_remote(&manifest.manifest_path));
        let work = ReadWork { storage: self.storage.clone(), specs: self.specs.clone(), metrics, limits: self.limits };
        let specs: Vec<_> = manifests.iter().map(|manifest| self.specs.of_manifest(manifest).cloned()).collect();
        let read = Ordered::new(Arc::new(work), manifests, remote);
        let written = specs.into_iter().zip(read);
        Ok(Some((snapshots, written.map(|(spec, entries)| Ok(Written { spec: spec?, entries: Arc::new(entries?) })))))
    }

    fn may_be_in(&self, scope: Scope<'_>, manifest: &ManifestFile) -> Result<bool> {
        let spec = self.specs.of_manifest(manifest)?;
        match scope {
            Scope::All => Ok(true),
            Scope::Rows(rows) => rows.may_be_in(spec, manifest),
            Scope::Partitions(partitions) => {
                let of_all = manifest.content == ManifestContent::Deletes && is_for_all(&spec.spec);
                Ok(of_all || partitions.may_be_in(spec, manifest))
            }
        }
    }

    fn list(&self, snapshot: &Snapshot) -> Result<Arc<Vec<ManifestFile>>> {
        let known = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = known().get(&snapshot.snapshot_id) {
            return Ok(list.clone());
        }
        let list = Arc::new(of_snapshot(self.storage, self.base, snapshot, &self.limits)?);
        known().insert(snapshot.snapshot_id, list.clone());
        Ok(list)
    }

    fn refuse(
        &self,
        rule: Rule,
        found: &[Conflict],
        scope: Scope<'_>,
        what: impl FnOnce(&str, &str) -> String,
    ) -> Result<()> {
        let Some((Conflict { snapshot_id, path, of }, others)) = found.split_first().filter(|_| rule::holds(rule))
        else {
            return Ok(());
        };
        let summary = self.base.snapshot(*snapshot_id).and_then(|snapshot| snapshot.summary.as_ref());
        let made_by = summary.map_or("", |summary| summary.operation.as_str());
        let what = what(path, of.as_deref().unwrap_or_default());
        let which = match scope {
            Scope::Rows(rows) => format!(", which may have rows that match {}", rows.text()),
            Scope::Partitions(_) if rule == Rule::AddedDeletes => {
                ", which may be for rows of a partition that is replaced".to_owned()
            }
            Scope::Partitions(_) => ", which is in a partition that is replaced".to_owned(),
            Scope::All => String::new(),
        };
        let likewise = |other: &Conflict| format!("{} (snapshot {})", other.path, other.snapshot_id);
        let likewise: Vec<String> = others.iter().map(likewise).collect();
        let others = if others.is_empty() { String::new() } else { format!("; likewise {}", likewise.join(", ")) };
        let operation = self.operation;
        Err(Error::Validation(format!("{operation}: snapshot {snapshot_id} ({made_by}) {what}{which}{others}")))
    }
}

/// Reads the entries of manifests, as work for a pool.
#[derive(Debug)]
struct ReadWork {
    storage: Storage,
    specs: Arc<Specs>,
    metrics: Metrics,
    limits: Limits,
}

impl Work for ReadWork {
    type Item = ManifestFile;
    type Fetched = Bytes;
    type Done = Entries;

    fn bytes(manifest: &ManifestFile) -> i64 {
        manifest.manifest_length
    }

    fn fetch(&self, manifest: &ManifestFile) -> Result<Bytes> {
        self.storage.read_manifest(manifest)
    }

    fn run(&self, manifest: &ManifestFile, bytes: Bytes) -> Result<Entries> {
        let options = ReadOptions {
            metrics: self.metrics.clone(),
            partition_type: Some(&self.specs.of_manifest(manifest)?.partition_type),
            inherit: Some(manifest),
            ..ReadOptions::default()
        };
        let entries = entries::read(&bytes, &options, &self.limits);
        entries.map_err(|error| Error::from(error.in_file(&manifest.manifest_path)))
    }

    fn memory(entries: &Entries) -> usize {
        entries.memory()
    }
}
