//! The entry point of operations: a table with its storage and its catalog.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement};

use crate::commit::{
    Catalog, Change, Committed, Content, IDEMPOTENCY_KEY, SnapshotOptions, SnapshotProducer, Transaction, Updates,
    WithUpdates, commit, made_by_key, require_same_table,
};
use crate::error::{Error, Result};
use crate::operation::append::{Append, AppendOptions};
use crate::operation::distributed::{RemovedRows, RowChangePlan, replace_written};
use crate::operation::replace_rows::RowsReplaced;
use crate::operation::row_change::Isolation;
use crate::plan::{At, Scan};
use crate::storage::Storage;
use crate::write::WritePlan;

/// A table as last loaded, with its storage and its catalog entry. A commit returns the table after it.
#[derive(Clone)]
pub struct Table {
    storage: Storage,
    catalog: Arc<dyn Catalog>,
    committed: Committed,
}

impl Table {
    /// A table with known metadata; nothing is loaded.
    pub fn new(storage: Storage, catalog: Arc<dyn Catalog>, committed: Committed) -> Self {
        Self { storage, catalog, committed }
    }

    /// Loads the current table from the catalog.
    pub fn load(storage: Storage, catalog: Arc<dyn Catalog>) -> Result<Self> {
        let committed = catalog.load(None)?;
        Ok(Self::new(storage, catalog, committed))
    }

    /// Returns the current table from the catalog.
    ///
    /// # Errors
    /// [`crate::Error::TableReplaced`] if another table has replaced it.
    pub fn refresh(&self) -> Result<Self> {
        let committed = self.catalog.load(Some(&self.committed))?;
        require_same_table(self.committed.metadata.table_uuid(), &committed.metadata, &committed.location)?;
        Ok(self.with(committed))
    }

    /// The storage of the table's files.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The metadata and the location of its file.
    pub fn committed(&self) -> &Committed {
        &self.committed
    }

    /// The table's metadata.
    pub fn metadata(&self) -> &Arc<TableMetadata> {
        &self.committed.metadata
    }

    /// A scan of the table at a point of its history.
    pub fn scan(&self, at: &At) -> Result<Scan> {
        Scan::new(self.storage.clone(), self.committed.metadata.clone(), at)
    }

    /// Writes rows to data files and appends them in one snapshot.
    ///
    /// # Errors
    /// [`crate::Error::CommitStateUnknown`]: the files may be in the table and are kept. With any other error nothing
    /// of the append is in the table, and written files are deleted.
    pub fn append(
        &self,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        options: AppendOptions,
    ) -> Result<Appended> {
        let mut transaction = self.transaction();
        let rows = transaction.append(schema, batches, options)?.rows;
        let table = self.commit(&mut transaction)?;
        let (snapshot_id, made_before) = made(&transaction);
        Ok(Appended { table, snapshot_id, made_before, rows: if made_before { 0 } else { rows } })
    }

    /// Appends existing data files in one snapshot. If that fails, the caller keeps the files.
    ///
    /// # Errors
    /// As [`Table::append`].
    pub fn append_files(&self, files: Vec<DataFile>, options: SnapshotOptions) -> Result<Appended> {
        let rows = files.iter().map(|file| file.record_count).sum();
        let Changed { table, snapshot_id, made_before } = self.change(Append::new(files)?, options)?;
        Ok(Appended { table, snapshot_id, made_before, rows: if made_before { 0 } else { rows } })
    }

    /// Appends the files written by tasks of a distributed write in one snapshot, preceded by the schema changes that
    /// the write needs. If that fails, the caller keeps the files.
    ///
    /// # Errors
    /// As [`Table::append`]; [`crate::Error::TableReplaced`] if the write was planned for another table.
    pub fn append_written(&self, plan: &WritePlan, files: Vec<DataFile>, options: SnapshotOptions) -> Result<Appended> {
        require_same_table(plan.table_uuid.as_deref(), self.metadata(), &self.committed.location)?;
        refuse_of_rows(plan)?;
        let (requirements, updates) = plan.widening();
        if updates.is_empty() {
            return self.append_files(files, options);
        }
        let rows = files.iter().map(|file| file.record_count).sum();
        let updates = Updates::new(requirements.clone(), updates.clone())?;
        let append = SnapshotProducer::new(self.storage.clone(), Append::new(files)?, options);
        let mut change = WithUpdates::new(Some(updates), append);
        let table = self.make(&mut change)?;
        let (snapshot_id, made_before) = made(&change);
        Ok(Appended { table, snapshot_id, made_before, rows: if made_before { 0 } else { rows } })
    }

    /// Commits a row change made by workers: removed rows, and files of new rows by worker. Files in which all rows
    /// match have no worker; they are dropped here. If nothing changes, no snapshot is made. If the commit fails, the
    /// caller keeps the workers' files.
    ///
    /// # Errors
    /// As [`Table::change`]; two results of one task or for one data file; [`crate::Error::TableReplaced`] if the
    /// change was planned for another table.
    pub fn commit_rows(
        &self,
        plan: &RowChangePlan,
        removed: Vec<RemovedRows>,
        added: Vec<Vec<DataFile>>,
        options: SnapshotOptions,
    ) -> Result<RowsCommitted> {
        let options = SnapshotOptions { branch: plan.branch().to_owned(), ..options };
        let table = self.with_snapshot(plan.write(), plan.snapshot_id())?;
        if let Some(made) = table.made_before(&options)? {
            return Ok(RowsCommitted::nothing(table, Some(made)));
        }
        let collected = plan.collect(&table.storage, removed, added)?;
        let done = collected.done;
        match collected.change(table.storage.clone(), options)? {
            None => Ok(RowsCommitted::nothing(table, None)),
            Some(change) => table.make_of_rows(change, done),
        }
    }

    /// Commits the files written by tasks of a distributed write, grouped by task; they replace everything in their
    /// partitions. If that fails, the caller keeps the files.
    ///
    /// # Errors
    /// As [`Table::commit_rows`]; a table without partitions, or files of other partition specs that may have rows of
    /// these partitions.
    pub fn replace_partitions(
        &self,
        plan: &WritePlan,
        written: Vec<Vec<DataFile>>,
        isolation: Option<Isolation>,
        options: SnapshotOptions,
    ) -> Result<RowsCommitted> {
        refuse_of_rows(plan)?;
        let table = self.with_snapshot(plan, plan.head(&options.branch))?;
        if let Some(made) = table.made_before(&options)? {
            return Ok(RowsCommitted::nothing(table, Some(made)));
        }
        match replace_written(&table.storage, table.metadata(), plan, written, isolation, options)? {
            None => Ok(RowsCommitted::nothing(table, None)),
            Some((change, done)) => table.make_of_rows(change, done),
        }
    }

    fn make_of_rows(&self, mut change: Box<dyn Change>, done: RowsReplaced) -> Result<RowsCommitted> {
        let table = self.make(&mut *change)?;
        let (snapshot_id, made_before) = made(&*change);
        Ok(match made_before {
            true => RowsCommitted::nothing(table, snapshot_id),
            false => RowsCommitted { table, snapshot_id, made_before, done },
        })
    }

    /// The snapshot that an earlier run of a change made, according to the loaded metadata; the commit checks again.
    fn made_before(&self, options: &SnapshotOptions) -> Result<Option<i64>> {
        let Some(key) = options.properties.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        made_by_key(self.metadata(), &options.branch, key)
    }

    /// The table with the snapshot that a plan is based on: as loaded, or refreshed if the plan is newer.
    fn with_snapshot(&self, plan: &WritePlan, snapshot_id: Option<i64>) -> Result<Self> {
        let same =
            |table: &Self| require_same_table(plan.table_uuid.as_deref(), table.metadata(), &table.committed.location);
        same(self)?;
        if snapshot_id.is_none_or(|id| self.metadata().snapshot(id).is_some()) {
            return Ok(self.clone());
        }
        let table = self.refresh()?;
        same(&table)?;
        Ok(table)
    }

    /// Makes one snapshot with this content, such as a [`RowDelta`](crate::operation::row_delta::RowDelta), and commits
    /// it.
    ///
    /// # Errors
    /// As [`Table::append`]; [`crate::Error::Validation`] if the table, or another commit since, does not allow the
    /// change.
    pub fn change(&self, content: impl Content, options: SnapshotOptions) -> Result<Changed> {
        let mut change = SnapshotProducer::new(self.storage.clone(), content, options);
        let committed = commit(&*self.catalog, &self.committed, &mut change)?;
        let (snapshot_id, made_before) = made(&change);
        Ok(Changed { table: self.with(committed), snapshot_id, made_before })
    }

    /// Commits a change to the catalog's current table, with retries after lost races.
    ///
    /// # Errors
    /// As [`commit`].
    pub fn make(&self, change: &mut dyn Change) -> Result<Self> {
        Ok(self.with(commit(&*self.catalog, &self.committed, change)?))
    }

    /// Applies metadata updates to the catalog's current table if it meets the requirements.
    pub fn update(&self, requirements: Vec<UpdateRequirement>, updates: Vec<MetadataUpdate>) -> Result<Self> {
        let mut change = Updates::new(requirements, updates)?;
        Ok(self.with(commit(&*self.catalog, &self.committed, &mut change)?))
    }

    /// Begins a transaction on the table as loaded.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.storage.clone(), self.committed.clone())
    }

    /// Commits a transaction of this table.
    pub fn commit(&self, transaction: &mut Transaction) -> Result<Self> {
        Ok(self.with(transaction.commit(&*self.catalog)?))
    }

    fn with(&self, committed: Committed) -> Self {
        Self { storage: self.storage.clone(), catalog: self.catalog.clone(), committed }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("location", &self.committed.location).finish_non_exhaustive()
    }
}

/// The result of a change of files.
#[derive(Debug)]
pub struct Changed {
    /// The table after the change.
    pub table: Table,
    /// The new snapshot, or the one of the earlier run that made the change.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run with the same idempotency key made the change.
    pub made_before: bool,
}

/// The result of a row change by workers.
#[derive(Debug)]
pub struct RowsCommitted {
    /// The table after the change.
    pub table: Table,
    /// The new snapshot, or the one of the earlier run that made the change; `None` if nothing changed.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run with the same idempotency key made the change.
    pub made_before: bool,
    /// Removed and added rows of this run, and counts of the changed files.
    pub done: RowsReplaced,
}

impl RowsCommitted {
    /// The result if nothing was done now, either at all or because an earlier run made this snapshot.
    fn nothing(table: Table, snapshot_id: Option<i64>) -> Self {
        Self { table, snapshot_id, made_before: snapshot_id.is_some(), done: RowsReplaced::default() }
    }
}

/// Rejects a plan for the new rows of a row change: they must be committed together with the removed rows.
fn refuse_of_rows(plan: &WritePlan) -> Result<()> {
    match plan.is_of_rows() {
        true => Err(Error::invalid(
            "these files are the new rows of a change that takes others out: commit them by commit_rows",
        )),
        false => Ok(()),
    }
}

/// The result of an append.
#[derive(Debug)]
pub struct Appended {
    /// The table after the append.
    pub table: Table,
    /// The new snapshot, or the one of the earlier run that made the append.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run with the same idempotency key made the append.
    pub made_before: bool,
    /// Number of added rows.
    pub rows: i64,
}

/// The snapshot that a committed change made, now or in an earlier run, and whether it was an earlier run.
fn made(change: &dyn Change) -> (Option<i64>, bool) {
    let snapshot_id = change.made_snapshot_id();
    (snapshot_id, snapshot_id.is_some() && change.snapshot_id().is_none())
}
