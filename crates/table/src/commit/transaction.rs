//! Several changes of one table, of data and metadata alike, in one commit.

use std::fmt;
use std::sync::Arc;

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, requirements_for_create};

use super::idempotency::{made_on_a_branch, stamp};
use super::{Catalog, Change, Committed, commit, create_table};
use crate::clock::now_ms;
use crate::error::{Error, Result};
use crate::storage::{Storage, Traffic};

/// Collects changes that become visible together.
///
/// Each change sees the table as the previous changes leave it. The transaction keeps the changes themselves, not only
/// their updates: after a lost race it applies all of them again on top of the other commit. If it is dropped
/// unfinished, the files it has written are deleted.
pub struct Transaction {
    storage: Storage,
    /// The same storage, with counters for reads and writes.
    counted: Option<Storage>,
    base: Committed,
    changes: Vec<Box<dyn Change + Send>>,
    /// The table after the first `made` changes, and their updates.
    staged: Arc<TableMetadata>,
    made: usize,
    updates: Vec<MetadataUpdate>,
    finished: bool,
    /// The idempotency key, stored in the first snapshot.
    key: Option<String>,
    /// The snapshot that an earlier run of the transaction made.
    before: Option<i64>,
}

impl Transaction {
    /// A transaction without changes; the table's files are in `storage`.
    pub fn new(storage: Storage, base: Committed) -> Self {
        let staged = base.metadata.clone();
        Self {
            storage,
            counted: None,
            base,
            changes: Vec::new(),
            staged,
            made: 0,
            updates: Vec::new(),
            finished: false,
            key: None,
            before: None,
        }
    }

    /// Makes the transaction idempotent: if a branch of the table has a snapshot with this key
    /// ([`IDEMPOTENCY_KEY`](super::IDEMPOTENCY_KEY)), nothing is committed, and the files it has written are deleted.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: Option<String>) -> Self {
        self.key = key;
        self
    }

    /// The storage of the table's files.
    pub fn storage(&self) -> &Storage {
        self.counted.as_ref().unwrap_or(&self.storage)
    }

    /// Counts the reads and writes of the following changes; `None` stops counting.
    pub fn count(&mut self, traffic: Option<Arc<Traffic>>) {
        self.counted = traffic.map(|traffic| self.storage.counted(traffic));
    }

    /// The table that the transaction began with.
    pub fn base(&self) -> &Committed {
        &self.base
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Checks that the transaction is not finished.
    ///
    /// # Errors
    /// The transaction was committed or aborted.
    pub fn check_open(&self) -> Result<()> {
        if self.finished {
            return Err(Error::invalid("this transaction is finished: begin a new one"));
        }
        Ok(())
    }

    /// Adds a change without applying it.
    pub fn add(&mut self, change: impl Change + Send + 'static) {
        self.changes.push(Box::new(change));
    }

    /// Adds a change and applies it to the table as the previous changes leave it, so that its errors are returned
    /// immediately.
    ///
    /// # Errors
    /// An error of the change; it is then not part of the transaction.
    pub fn stage(&mut self, change: impl Change + Send + 'static) -> Result<()> {
        self.check_open()?;
        self.metadata()?;
        self.add(change);
        match self.metadata() {
            Ok(_) => Ok(()),
            Err(error) => {
                if let Some(mut change) = self.changes.pop() {
                    change.failed();
                }
                Err(error)
            }
        }
    }

    /// The table's metadata after the changes so far.
    ///
    /// # Errors
    /// An error of a change that cannot be applied to the table as it was when the transaction began.
    pub fn metadata(&mut self) -> Result<&Arc<TableMetadata>> {
        while let Some(change) = self.changes.get_mut(self.made) {
            let mut updates = change.updates(&self.staged)?;
            if let Some(key) = self.key.as_ref().filter(|_| !adds_snapshot(&self.updates)) {
                stamp(key, &mut updates);
            }
            self.staged = applied(&self.staged, &updates)?;
            self.updates.extend(updates);
            self.made += 1;
        }
        Ok(&self.staged)
    }

    /// Commits the changes.
    ///
    /// # Errors
    /// As [`commit`]. A transaction can be committed only once, whatever the outcome.
    pub fn commit(&mut self, catalog: &dyn Catalog) -> Result<Committed> {
        self.check_open()?;
        let opened = self.base.clone();
        let committed = commit(catalog, &opened, self);
        // [`commit`] has notified the changes unless the outcome is unknown.
        self.finished = true;
        committed
    }
}

impl Transaction {
    /// Creates the transaction's table, which is not in a catalog yet, and commits all changes with it.
    ///
    /// # Errors
    /// [`Error::CommitStateUnknown`]: the table may have been created, and nothing was deleted. With any other error it
    /// has certainly not been created, and the written files are deleted.
    pub fn create(&mut self, catalog: &dyn Catalog) -> Result<Committed> {
        self.check_open()?;
        self.metadata()?;
        let mut updates = self.base.metadata.creation_updates();
        updates.extend(self.updates.iter().cloned());
        let created = create_table(catalog, &requirements_for_create(), &updates);
        self.finished = true;
        match created {
            Ok(committed) => {
                self.landed(true);
                Ok(committed)
            }
            Err(Error::CommitStateUnknown { mut commit, message, cause }) => {
                (commit.snapshot_id, commit.files) = (self.snapshot_id(), self.files());
                Err(Error::CommitStateUnknown { commit, message, cause })
            }
            Err(error) => {
                self.failed();
                Err(error)
            }
        }
    }

    /// Discards the changes and deletes the files they have written.
    pub fn abort(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            self.failed();
        }
    }
}

impl Change for Transaction {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        if let Some(key) = &self.key {
            self.before = made_on_a_branch(base, key)?;
            if self.before.is_some() {
                return Ok(Vec::new());
            }
        }
        let updates = self.made_of(base)?;
        if self.key.is_some() && !updates.is_empty() && !adds_snapshot(&updates) {
            return Err(Error::invalid(
                "the transaction has an idempotency key, and makes no snapshot that could keep it: leave the key out",
            ));
        }
        Ok(updates)
    }

    fn snapshot_id(&self) -> Option<i64> {
        self.changes.iter().rev().find_map(|change| change.snapshot_id()).filter(|_| self.before.is_none())
    }

    fn made_snapshot_id(&self) -> Option<i64> {
        self.before.or_else(|| self.changes.iter().rev().find_map(|change| change.made_snapshot_id()))
    }

    fn files(&self) -> Vec<String> {
        self.changes.iter().flat_map(|change| change.files()).collect()
    }

    fn landed(&mut self, last_attempt: bool) {
        if let Some(before) = self.before {
            // Unless that snapshot comes from an earlier attempt of this transaction.
            if self.changes.iter().all(|change| change.snapshot_id() != Some(before)) {
                self.failed();
            }
            return;
        }
        self.changes.iter_mut().for_each(|change| change.landed(last_attempt));
    }

    fn failed(&mut self) {
        self.changes.iter_mut().for_each(|change| change.failed());
    }
}

impl Transaction {
    /// The updates of all changes, applied to a table.
    fn made_of(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        if std::ptr::eq(base, &*self.base.metadata) {
            self.metadata()?;
            return Ok(self.updates.clone());
        }
        let mut all = Vec::new();
        let mut between: Option<Arc<TableMetadata>> = None;
        let last = self.changes.len().saturating_sub(1);
        for (number, change) in self.changes.iter_mut().enumerate() {
            let on = between.as_deref().unwrap_or(base);
            let mut updates = change.updates(on)?;
            if let Some(key) = self.key.as_ref().filter(|_| !adds_snapshot(&all)) {
                stamp(key, &mut updates);
            }
            if number < last {
                between = Some(applied(on, &updates)?);
            }
            all.extend(updates);
        }
        Ok(all)
    }
}

fn adds_snapshot(updates: &[MetadataUpdate]) -> bool {
    updates.iter().any(|update| matches!(update, MetadataUpdate::AddSnapshot { .. }))
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("base", &self.base.location)
            .field("changes", &self.changes.len())
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

fn applied(base: &TableMetadata, updates: &[MetadataUpdate]) -> Result<Arc<TableMetadata>> {
    let builder = MetadataBuilder::from_base(base, now_ms()).apply_all(updates.iter().cloned())?;
    Ok(Arc::new(builder.build()?))
}
