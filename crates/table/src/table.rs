//! A table: what operations take and return.

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

/// A table as it was last seen, its files, and its entry in a catalog. Commits return the table as they leave it.
#[derive(Clone)]
pub struct Table {
    storage: Storage,
    catalog: Arc<dyn Catalog>,
    committed: Committed,
}

impl Table {
    /// A table as it is known already.
    pub fn new(storage: Storage, catalog: Arc<dyn Catalog>, committed: Committed) -> Self {
        Self { storage, catalog, committed }
    }

    /// Opens the table as the catalog has it.
    pub fn load(storage: Storage, catalog: Arc<dyn Catalog>) -> Result<Self> {
        let committed = catalog.load(None)?;
        Ok(Self::new(storage, catalog, committed))
    }

    /// Returns the table as the catalog has it now.
    ///
    /// # Errors
    /// [`crate::Error::TableReplaced`] if another table has taken its place.
    pub fn refresh(&self) -> Result<Self> {
        let committed = self.catalog.load(Some(&self.committed))?;
        require_same_table(self.committed.metadata.table_uuid(), &committed.metadata, &committed.location)?;
        Ok(self.with(committed))
    }

    /// Its files.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Its metadata, and the file that they are in.
    pub fn committed(&self) -> &Committed {
        &self.committed
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Arc<TableMetadata> {
        &self.committed.metadata
    }

    /// A scan of the table at a moment.
    pub fn scan(&self, at: &At) -> Result<Scan> {
        Scan::new(self.storage.clone(), self.committed.metadata.clone(), at)
    }

    /// Writes rows to data files and appends them in one snapshot.
    ///
    /// # Errors
    /// [`crate::Error::CommitStateUnknown`]: the files may be in the table, and stay. Every other error: nothing of the
    /// append is in the table, and what was written is deleted.
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

    /// Appends data files that are written already, in one snapshot. If that fails they stay, and are the caller's.
    ///
    /// # Errors
    /// As [`Table::append`].
    pub fn append_files(&self, files: Vec<DataFile>, options: SnapshotOptions) -> Result<Appended> {
        let rows = files.iter().map(|file| file.record_count).sum();
        let Changed { table, snapshot_id, made_before } = self.change(Append::new(files)?, options)?;
        Ok(Appended { table, snapshot_id, made_before, rows: if made_before { 0 } else { rows } })
    }

    /// Appends the files that the tasks of a distributed write have written, in one snapshot, after the changes of the schema
    /// that the write needs. If that fails they stay, and are the caller's.
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

    /// Commits a change of rows that workers have made: what they took out, and the files of new rows, by worker. Files that
    /// match whole are dropped here. Without any change there is no snapshot. If it fails, the files of the workers stay, and are the
    /// caller's.
    ///
    /// # Errors
    /// As [`Table::change`]; two results of one task or about one data file, and [`crate::Error::TableReplaced`] if the change
    /// was planned for another table.
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

    /// Commits the files that the tasks of a distributed write have written, by task, in place of everything in their
    /// partitions. If that fails they stay, and are the caller's.
    ///
    /// # Errors
    /// As [`Table::commit_rows`]; a table without partitions, and files of other partition specs that may have rows of these
    /// partitions.
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

    /// The snapshot that an earlier run of a change has made, as far as it is known here; the commit looks again.
    fn made_before(&self, options: &SnapshotOptions) -> Result<Option<i64>> {
        let Some(key) = options.properties.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        made_by_key(self.metadata(), &options.branch, key)
    }

    /// The table of a plan that was made of a snapshot: as it is known here, or as the catalog has it where the plan is
    /// newer.
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

    /// Makes one snapshot with this content, such as a [`RowDelta`](crate::operation::row_delta::RowDelta), and commits it.
    ///
    /// # Errors
    /// As [`Table::append`], and [`crate::Error::Validation`] where the table, or what others have committed meanwhile, does
    /// not allow the change.
    pub fn change(&self, content: impl Content, options: SnapshotOptions) -> Result<Changed> {
        let mut change = SnapshotProducer::new(self.storage.clone(), content, options);
        let committed = commit(&*self.catalog, &self.committed, &mut change)?;
        let (snapshot_id, made_before) = made(&change);
        Ok(Changed { table: self.with(committed), snapshot_id, made_before })
    }

    /// Makes a change of the table as the catalog has it, anew where another commit was first.
    ///
    /// # Errors
    /// As [`commit`].
    pub fn make(&self, change: &mut dyn Change) -> Result<Self> {
        Ok(self.with(commit(&*self.catalog, &self.committed, change)?))
    }

    /// Applies updates of metadata to the table as the catalog has it, if that meets the requirements.
    pub fn update(&self, requirements: Vec<UpdateRequirement>, updates: Vec<MetadataUpdate>) -> Result<Self> {
        let mut change = Updates::new(requirements, updates)?;
        Ok(self.with(commit(&*self.catalog, &self.committed, &mut change)?))
    }

    /// Begins a transaction of the table as it is known here.
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

/// What a change of files has done.
#[derive(Debug)]
pub struct Changed {
    /// The table after the change.
    pub table: Table,
    /// The new snapshot; that of the earlier run, if the change was made before.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run of the change, with the same idempotency key, has made it.
    pub made_before: bool,
}

/// What a change of rows by workers has done.
#[derive(Debug)]
pub struct RowsCommitted {
    /// The table with the change.
    pub table: Table,
    /// The new snapshot; that of the earlier run, if the change was made before; none if nothing changed.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run of the change, with the same idempotency key, has made it.
    pub made_before: bool,
    /// Rows taken out and added now, and what became of files.
    pub done: RowsReplaced,
}

impl RowsCommitted {
    /// Nothing was done, or it was done before by this snapshot.
    fn nothing(table: Table, snapshot_id: Option<i64>) -> Self {
        Self { table, snapshot_id, made_before: snapshot_id.is_some(), done: RowsReplaced::default() }
    }
}

/// Refuses to commit the new rows of a change that takes others out by themselves.
fn refuse_of_rows(plan: &WritePlan) -> Result<()> {
    match plan.is_of_rows() {
        true => Err(Error::invalid(
            "these files are the new rows of a change that takes others out: commit them by commit_rows",
        )),
        false => Ok(()),
    }
}

/// What an append has done.
#[derive(Debug)]
pub struct Appended {
    /// The table with the rows.
    pub table: Table,
    /// The new snapshot; that of the earlier run, if the append was made before.
    pub snapshot_id: Option<i64>,
    /// Whether an earlier run of the append, with the same idempotency key, has made it.
    pub made_before: bool,
    /// Number of rows that were added.
    pub rows: i64,
}

/// The snapshot that a committed change, or an earlier run of it, has made, and whether it was the earlier run.
fn made(change: &dyn Change) -> (Option<i64>, bool) {
    let snapshot_id = change.made_snapshot_id();
    (snapshot_id, snapshot_id.is_some() && change.snapshot_id().is_none())
}
