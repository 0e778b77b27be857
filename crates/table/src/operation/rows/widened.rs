//! Adds columns that new rows have and the table lacks, in the same commit as the rows ("Schema Evolution").

use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;
use icefield_format::metadata::{MetadataBuilder, TableMetadata, requirements_for_update};

use crate::commit::{Change, Transaction, Updates, WithUpdates};
use crate::error::{Error, Result};
use crate::write::widening::asked_by;

/// The metadata of a table in a transaction, and the schema changes that lead to it.
#[derive(Debug, Clone)]
pub(in crate::operation) struct Widened {
    pub(in crate::operation) metadata: Arc<TableMetadata>,
    before: Arc<TableMetadata>,
    updates: Option<Updates>,
}

impl Widened {
    /// The transaction's table, without schema changes.
    pub(super) fn unchanged(transaction: &mut Transaction) -> Result<Self> {
        let metadata = transaction.metadata()?.clone();
        Ok(Self { before: metadata.clone(), metadata, updates: None })
    }

    /// The transaction's table, with all columns of these rows.
    ///
    /// # Errors
    /// Columns that no schema change can accommodate.
    pub(super) fn by(transaction: &mut Transaction, rows: &ArrowSchema) -> Result<Self> {
        let before = transaction.metadata()?.clone();
        let asked = asked_by(rows, before.current_schema(), before.format_version().number())?;
        let updates = before.widened_by(&asked)?;
        if updates.is_empty() {
            return Ok(Self { metadata: before.clone(), before, updates: None });
        }
        let builder = MetadataBuilder::from_base(&before, before.last_updated_ms());
        let metadata = Arc::new(builder.apply_all(updates.iter().cloned())?.build()?);
        let requirements = requirements_for_update(&before, &updates);
        Ok(Self { metadata, before, updates: Some(Updates::new(requirements, updates)?) })
    }

    /// The transaction's table, with the columns of the rows if `evolve` is set.
    pub(in crate::operation) fn of(transaction: &mut Transaction, rows: &ArrowSchema, evolve: bool) -> Result<Self> {
        if evolve { Self::by(transaction, rows) } else { Self::unchanged(transaction) }
    }

    /// Fails if the transaction has changed since.
    pub(super) fn check(&self, transaction: &mut Transaction) -> Result<()> {
        match Arc::ptr_eq(transaction.metadata()?, &self.before) {
            true => Ok(()),
            false => Err(Error::invalid("the table has changed since the rows were found: find them again")),
        }
    }

    /// Stages a change, preceded by the schema changes.
    pub(super) fn stage(self, transaction: &mut Transaction, change: impl Change + Send + 'static) -> Result<()> {
        transaction.stage(WithUpdates::new(self.updates, change))
    }
}
