//! Replaces rows with others in one snapshot: the common part of deletes, updates and overwrites of rows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::expr::Expr;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{FormatVersion, StringMap, TableMetadata};
use icefield_format::types::Schema;
use icefield_format::types::reserved::ROW_ID;
use uuid::Uuid;

use super::matching::Matches;
use super::row_change::{ChangedFiles, Command, FileCounts, Isolation, Mode, Names, Removals};
use super::widened::Widened;
use crate::commit::{SnapshotOptions, SnapshotProducer, Transaction};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::operation::overwrite::Overwrite;
use crate::operation::row_delta::RowDelta;
use crate::storage::Storage;
use crate::write::{Matching, TableWriter, WriterConfig, with_lineage};

/// Options of a row change.
#[derive(Debug, Clone, Default)]
pub struct RowOptions {
    /// The branch and the summary entries of the snapshot.
    pub snapshot: SnapshotOptions,
    /// How rows are removed from files; by default from the table's properties.
    pub mode: Option<Mode>,
    /// Which concurrent commits are tolerated; by default from the table's properties.
    pub isolation: Option<Isolation>,
    /// Whether to write nothing and only return what the change would do.
    pub dry_run: bool,
    /// Approximate memory limit for reading rows, both to find them and to rewrite them.
    pub memory: Option<usize>,
    /// Whether a new row that the filter does not match is an error; only for overwrites with a filter.
    pub check_rows: bool,
    /// Values of table properties that new rows are written with instead of the table's.
    pub properties: StringMap,
}

/// The effects of a row change, made or planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsReplaced {
    /// Number of removed rows. For files that are removed without being read, this includes rows that equality deletes
    /// had already deleted.
    pub rows_removed: i64,
    /// Number of new rows.
    pub rows_added: i64,
    /// Counts of the files that were changed.
    pub files: FileCounts,
}

/// Rows to add.
pub struct NewRows<'a> {
    /// Their columns. Rows that replace existing ones have the column `_row_id`.
    pub schema: &'a ArrowSchema,
    /// The rows.
    pub batches: &'a mut dyn Iterator<Item = Result<RecordBatch>>,
    /// How their columns may differ from the table's.
    pub matching: Matching,
    /// Whether columns that the table lacks are added in the same commit; only for overwrites.
    pub evolve: bool,
}

impl RowOptions {
    /// The storage for new files; in a dry run it writes nothing.
    pub(in crate::operation) fn written_to(&self, storage: &Storage) -> Storage {
        if self.dry_run { storage.unwritten() } else { storage.clone() }
    }
}

impl Transaction {
    /// Removes the rows of `matches` and adds others, in one snapshot. If there are neither, no snapshot is made.
    ///
    /// # Errors
    /// An error of the rows, the table or the storage. Written files are then deleted, as they are when the transaction
    /// fails.
    pub fn replace_rows(
        &mut self,
        matches: &Matches,
        command: Command,
        rows: Option<NewRows<'_>>,
        options: RowOptions,
    ) -> Result<RowsReplaced> {
        let table = Widened::unchanged(self)?;
        replace_widened(self, table, matches, command, rows, options)
    }
}

/// As [`Transaction::replace_rows`], for a table that is widened in the same commit.
pub(super) fn replace_widened(
    transaction: &mut Transaction,
    table: Widened,
    matches: &Matches,
    command: Command,
    rows: Option<NewRows<'_>>,
    options: RowOptions,
) -> Result<RowsReplaced> {
    // New rows are written first: errors are most likely there.
    let written_to = options.written_to(transaction.storage());
    let added = rows.map_or(Ok(Vec::new()), |rows| write(&written_to, &table.metadata, rows, &options.properties))?;
    replace_with(transaction, table, matches, command, added, options)
}

/// As [`replace_widened`], with new rows already written to [`RowOptions::written_to`]. Their files are deleted after
/// an error.
pub(in crate::operation) fn replace_with(
    transaction: &mut Transaction,
    table: Widened,
    matches: &Matches,
    command: Command,
    added: Vec<DataFile>,
    options: RowOptions,
) -> Result<RowsReplaced> {
    let dry_run = options.dry_run;
    let prepared = Prepared::new(transaction, &table, matches, command, &options);
    let planned = prepared.and_then(|prepared| {
        let removals = Removals::plan(matches, prepared.mode, prepared.metadata.format_version())?;
        let rows_added = added.iter().map(|file| file.record_count).sum();
        let files = removals.counts().with_added(&added);
        let result = RowsReplaced { rows_removed: removals.rows(), rows_added, files };
        let changed = match dry_run {
            true => ChangedFiles::default(),
            false => removals.write(transaction.storage(), &prepared.metadata, Names::Alone(Uuid::new_v4()))?,
        };
        Ok((prepared, result, changed))
    });
    let (prepared, result, mut changed) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            ChangedFiles { added, ..ChangedFiles::default() }.discard(&options.written_to(transaction.storage()));
            return Err(error);
        }
    };
    if dry_run {
        return Ok(result);
    }
    changed.added.extend(added);
    if !changed.is_empty() {
        commit(transaction, table, matches, command, prepared.isolation, changed, options.snapshot)?;
    }
    Ok(result)
}

/// The settings of a row change.
struct Prepared {
    metadata: Arc<TableMetadata>,
    mode: Mode,
    isolation: Isolation,
}

impl Prepared {
    fn new(
        transaction: &mut Transaction,
        table: &Widened,
        matches: &Matches,
        command: Command,
        options: &RowOptions,
    ) -> Result<Self> {
        table.check(transaction)?;
        let metadata = table.metadata.clone();
        check_same(&metadata, matches)?;
        let mode = Mode::of(options.mode, command, &metadata)?;
        let isolation = Isolation::of(options.isolation, command, metadata.properties())?;
        Ok(Self { metadata, mode, isolation })
    }
}

/// Fails if the rows were found in another state of the table.
fn check_same(metadata: &Arc<TableMetadata>, matches: &Matches) -> Result<()> {
    match Arc::ptr_eq(metadata, matches.metadata()) {
        true => Ok(()),
        false => Err(Error::invalid("the table has changed since the rows were found: find them again")),
    }
}

/// The configuration for writing rows with these columns, with other values of some table properties. A column `_row_id` holds the ids of existing rows.
pub(in crate::operation) fn writer_config(
    storage: &Storage,
    metadata: &TableMetadata,
    schema: &ArrowSchema,
    properties: &StringMap,
) -> Result<WriterConfig> {
    let mut config = WriterConfig::of_table(storage.clone(), metadata).with_properties(properties.clone())?;
    if schema.fields().iter().any(|field| field.name() == ROW_ID.name) && has_lineage(metadata) {
        config.schema = with_lineage(metadata.current_schema())?;
    }
    Ok(config)
}

/// Writes new rows; after an error, the written files are deleted.
pub(super) fn write(
    storage: &Storage,
    metadata: &TableMetadata,
    rows: NewRows<'_>,
    properties: &StringMap,
) -> Result<Vec<DataFile>> {
    let config = writer_config(storage, metadata, rows.schema, properties)?;
    let mut writer = TableWriter::new(WriterConfig { matching: rows.matching, ..config }, rows.schema)?;
    for batch in rows.batches {
        if let Err(error) = interrupt::check().and(batch).and_then(|batch| writer.write(&batch)) {
            writer.abort();
            return Err(error);
        }
    }
    writer.finish()
}

/// Whether rows of the table have ids (row lineage).
pub(super) fn has_lineage(metadata: &TableMetadata) -> bool {
    metadata.format_version() >= FormatVersion::V3
}

/// The columns to read for rows that are rewritten with other values.
pub fn columns_to_change(metadata: &TableMetadata) -> Result<Arc<Schema>> {
    let schema = metadata.current_schema();
    if !has_lineage(metadata) {
        return Ok(schema.clone());
    }
    let fields = schema.fields().iter().cloned().chain([ROW_ID.to_field()]).collect();
    Ok(Arc::new(Schema::new(schema.schema_id(), fields)?))
}

/// Stages the snapshot, with the conflict checks that its isolation level needs.
fn commit(
    transaction: &mut Transaction,
    table: Widened,
    matches: &Matches,
    command: Command,
    isolation: Isolation,
    changed: ChangedFiles,
    snapshot: SnapshotOptions,
) -> Result<()> {
    let storage = transaction.storage().clone();
    let checks = Checks {
        from: matches.snapshot().map(|found| found.snapshot_id),
        conflicts: matches.conflicts(),
        case_sensitive: matches.is_case_sensitive(),
        command,
        isolation,
    };
    if changed.added_deletes.is_empty() {
        let producer = SnapshotProducer::new(storage, checks.overwrite(changed)?, snapshot);
        return table.stage(transaction, producer.that_owns_its_files());
    }
    let producer = SnapshotProducer::new(storage, checks.row_delta(changed)?, snapshot);
    table.stage(transaction, producer.that_owns_its_files())
}

/// The conflict checks of a row change since its rows were found: the same that Spark requests from the Java library.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    /// The snapshot that the rows were found in.
    pub(super) from: Option<i64>,
    /// A filter that matches all of these rows.
    pub(super) conflicts: Expr,
    pub(super) case_sensitive: bool,
    pub(super) command: Command,
    pub(super) isolation: Isolation,
}

impl Checks {
    /// The content of a snapshot without new delete files.
    pub(super) fn overwrite(&self, changed: ChangedFiles) -> Result<Overwrite> {
        let mut content = Overwrite::new();
        content.set_case_sensitive(self.case_sensitive);
        content.conflict_detection_filter(self.conflicts.clone());
        if let Some(found) = self.from {
            content.validate_from_snapshot(found);
        }
        content.validate_no_conflicting_deletes();
        if self.isolation == Isolation::Serializable {
            content.validate_no_conflicting_data();
        }
        changed.added.into_iter().try_for_each(|file| content.add_file(file))?;
        changed.removed.into_iter().try_for_each(|file| content.delete_file(file))?;
        changed.removed_deletes.into_iter().try_for_each(|file| content.remove_deletes(file))?;
        Ok(content)
    }

    /// The content of a snapshot with new delete files.
    pub(super) fn row_delta(&self, changed: ChangedFiles) -> Result<RowDelta> {
        let mut content = RowDelta::new();
        content.set_case_sensitive(self.case_sensitive);
        content.conflict_detection_filter(self.conflicts.clone());
        if let Some(found) = self.from {
            content.validate_from_snapshot(found);
        }
        // If another commit deletes the same rows, a delete stays correct. Rows that are written again, however, would
        // come back.
        if self.command != Command::Delete || !changed.removed.is_empty() {
            content.validate_deleted_files();
            content.validate_no_conflicting_delete_files();
        }
        if self.isolation == Isolation::Serializable {
            content.validate_no_conflicting_data_files();
        }
        content.validate_data_files_exist(changed.referenced);
        changed.added.into_iter().try_for_each(|file| content.add_rows(file))?;
        changed.added_deletes.into_iter().try_for_each(|file| content.add_deletes(file))?;
        changed.removed.into_iter().try_for_each(|file| content.remove_rows(file))?;
        changed.removed_deletes.into_iter().try_for_each(|file| content.remove_deletes(file))?;
        Ok(content)
    }
}
