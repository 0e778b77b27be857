//! A table: what operations take and return.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{MetadataUpdate, TableMetadata, UpdateRequirement};

use crate::commit::{
    Catalog, Change, Committed, Content, SnapshotOptions, SnapshotProducer, Transaction, Updates, WithUpdates, commit,
    require_same_table,
};
use crate::error::Result;
use crate::operation::append::{Append, AppendOptions};
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
fn made(change: &impl Change) -> (Option<i64>, bool) {
    let snapshot_id = change.made_snapshot_id();
    (snapshot_id, snapshot_id.is_some() && change.snapshot_id().is_none())
}
