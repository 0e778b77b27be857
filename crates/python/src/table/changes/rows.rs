//! Changes of rows in a transaction: deletes, updates, overwrites, upserts.

use std::collections::BTreeMap;

use icefield_format::expr::{Condition, Expression};
use icefield_table::commit::SnapshotOptions;
use icefield_table::operation::matching::{MEMORY_LIMIT, Matches};
use icefield_table::operation::merge::clause::Rules;
use icefield_table::operation::merge::run::MergeOptions;
use icefield_table::operation::overwrite_rows::OldSpecs;
use icefield_table::operation::replace_rows::{NewRows, RowOptions, RowsReplaced, columns_to_change};
use icefield_table::operation::row_change::{Command, Isolation, Mode};
use icefield_table::operation::upsert::UpsertOptions;
use icefield_table::write::Matching;
use pyo3::prelude::*;

use super::merging::ClauseInput;
use super::transaction::{Counts, PyTransaction};
use crate::capsule::{ArrowStream, StreamInput};
use crate::entry::detached;
use crate::errors::{Result, from_rows};
use crate::format::expr::expressions::ConditionInput;
use crate::table::reads::scan::Reader;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFoundRows>()?;
    module.add_class::<PyRowChanges>()
}

/// Rows of a branch that a filter matches.
#[pyclass(frozen, name = "FoundRows", module = "icefield._core")]
#[derive(Debug)]
pub struct PyFoundRows(Matches);

/// How rows are changed in a transaction.
#[pyclass(frozen, name = "RowChanges", module = "icefield._core")]
#[derive(Debug)]
pub struct PyRowChanges {
    transaction: Py<PyTransaction>,
    options: RowOptions,
}

#[pymethods]
impl PyFoundRows {
    /// The rows, with all columns of the table and, from version 3 on, `_row_id`.
    fn rows(&self, py: Python<'_>) -> Result<ArrowStream> {
        let stream = detached(py, || self.0.matching_rows(columns_to_change(self.0.metadata())?))??;
        Ok(ArrowStream::new(Box::new(Reader(stream))))
    }
}

#[pymethods]
impl PyRowChanges {
    /// Changes of a branch. `mode` is `copy-on-write`, `merge-on-read` or `auto`, `isolation` is `serializable` or `snapshot`;
    /// without them the table says. With `dry_run` nothing is written. `memory_limit` is for the rows that are read,
    /// `properties` are values of table properties that new rows are written with.
    #[new]
    #[pyo3(signature = (
        transaction, *, branch="main".to_owned(), snapshot_properties=BTreeMap::new(), mode=None, isolation=None, dry_run=false,
        memory_limit=None, properties=BTreeMap::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the changes")]
    fn py_new(
        transaction: Py<PyTransaction>,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
        mode: Option<&str>,
        isolation: Option<&str>,
        dry_run: bool,
        memory_limit: Option<usize>,
        properties: BTreeMap<String, String>,
    ) -> Result<Self> {
        let summary = snapshot_properties.into_iter().collect();
        let options = RowOptions {
            snapshot: SnapshotOptions { branch, properties: summary, ..SnapshotOptions::default() },
            mode: mode.map(Mode::parse).transpose()?,
            isolation: isolation.map(Isolation::parse).transpose()?,
            dry_run,
            memory: memory_limit,
            check_rows: false,
            properties: properties.into_iter().collect(),
        };
        Ok(Self { transaction, options })
    }

    /// Delete the rows that a filter matches; all without one.
    #[pyo3(signature = (filter, *, case_sensitive=true))]
    fn delete(&self, py: Python<'_>, filter: Option<ConditionInput>, case_sensitive: bool) -> Result<Counts> {
        let (filter, own) = (of(filter), self.transaction.get());
        let counts = detached(py, || own.changes()?.delete_rows(&filter, case_sensitive, self.options.clone()));
        Ok(counted(counts??))
    }

    /// Delete the rows that a filter matches, all without one, and add others.
    #[pyo3(signature = (rows, filter, *, case_sensitive=true, allow_missing=true, evolve=false, check_rows=false))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the overwrite")]
    fn overwrite(
        &self,
        py: Python<'_>,
        rows: StreamInput,
        filter: Option<ConditionInput>,
        case_sensitive: bool,
        allow_missing: bool,
        evolve: bool,
        check_rows: bool,
    ) -> Result<Counts> {
        let (filter, own) = (of(filter), self.transaction.get());
        let schema = rows.0.schema();
        let mut batches = rows.0.map(|batch| batch.map_err(from_rows));
        let matching = Matching { allow_missing, ignore_extra: false };
        let counts = detached(py, || {
            let rows = NewRows { schema: &schema, batches: &mut batches, matching, evolve };
            let options = RowOptions { check_rows, ..self.options.clone() };
            own.changes()?.overwrite_rows(&filter, case_sensitive, rows, options)
        });
        Ok(counted(counts??))
    }

    /// Add rows in place of all others of their partitions; with `rewrite`, in files of older partition specs too.
    #[pyo3(signature = (rows, *, rewrite=false, allow_missing=true, evolve=false))]
    fn overwrite_partitions(
        &self,
        py: Python<'_>,
        rows: StreamInput,
        rewrite: bool,
        allow_missing: bool,
        evolve: bool,
    ) -> Result<Counts> {
        let own = self.transaction.get();
        let schema = rows.0.schema();
        let mut batches = rows.0.map(|batch| batch.map_err(from_rows));
        let matching = Matching { allow_missing, ignore_extra: false };
        let old_specs = if rewrite { OldSpecs::Rewrite } else { OldSpecs::Refuse };
        let counts = detached(py, || {
            let rows = NewRows { schema: &schema, batches: &mut batches, matching, evolve };
            own.changes()?.overwrite_partitions(rows, old_specs, self.options.clone())
        });
        Ok(counted(counts??))
    }

    /// Find the rows that a filter matches; all without one.
    #[pyo3(signature = (filter, *, case_sensitive=true))]
    fn find(&self, py: Python<'_>, filter: Option<ConditionInput>, case_sensitive: bool) -> Result<PyFoundRows> {
        let (filter, own) = (of(filter), self.transaction.get());
        let (branch, memory) = (&self.options.snapshot.branch, self.options.memory);
        Ok(PyFoundRows(detached(py, || {
            let mut changes = own.changes()?;
            changes.check_open()?;
            let storage = changes.storage().clone();
            Matches::find(&storage, changes.metadata()?, branch, &filter, case_sensitive, memory)
        })??))
    }

    /// Take found rows out and add others in their place.
    fn update(&self, py: Python<'_>, found: &Bound<'_, PyFoundRows>, rows: StreamInput) -> Result<Counts> {
        let (found, own) = (found.get(), self.transaction.get());
        let schema = rows.0.schema();
        let mut batches = rows.0.map(|batch| batch.map_err(from_rows));
        let matching = Matching::default();
        let counts = detached(py, || {
            let rows = NewRows { schema: &schema, batches: &mut batches, matching, evolve: false };
            own.changes()?.replace_rows(&found.0, Command::Update, Some(rows), self.options.clone())
        });
        Ok(counted(counts??))
    }

    /// Change the rows of the table that have the keys of others, and add the rest: rows updated, rows inserted, counts.
    #[pyo3(signature = (
        rows, join_columns, *, update_matched=true, insert_others=true, case_sensitive=true, allow_missing=true, evolve=false,
        memory_limit=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the upsert")]
    fn upsert(
        &self,
        py: Python<'_>,
        rows: StreamInput,
        join_columns: Vec<String>,
        update_matched: bool,
        insert_others: bool,
        case_sensitive: bool,
        allow_missing: bool,
        evolve: bool,
        memory_limit: Option<usize>,
    ) -> Result<(i64, i64, Counts)> {
        let own = self.transaction.get();
        let schema = rows.0.schema();
        let batches = rows.0.map(|batch| batch.map_err(from_rows));
        let options = UpsertOptions {
            join_columns,
            update_matched,
            insert_others,
            case_sensitive,
            matching: Matching { allow_missing, ignore_extra: false },
            evolve,
            memory_limit: memory_limit.unwrap_or(MEMORY_LIMIT),
            rows: self.options.clone(),
        };
        let done = detached(py, || own.changes()?.upsert(&schema, batches, options))??;
        Ok((done.rows_updated, done.rows_inserted, counted(done.replaced)))
    }

    /// Change, delete and add rows by those of a source: rows updated, inserted and deleted, counts. `on`: pairs of columns of
    /// the table and of the source; `mentions`: texts of expressions, whose columns of the source are used.
    #[pyo3(signature = (
        rows, on, clauses, *, mentions=Vec::new(), case_sensitive=true, allow_missing=true, ignore_extra=false, evolve=false,
        memory_limit=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the merge")]
    fn merge(
        &self,
        py: Python<'_>,
        rows: StreamInput,
        on: Vec<(String, String)>,
        clauses: Vec<ClauseInput>,
        mentions: Vec<String>,
        case_sensitive: bool,
        allow_missing: bool,
        ignore_extra: bool,
        evolve: bool,
        memory_limit: Option<usize>,
    ) -> Result<(i64, i64, i64, Counts)> {
        let own = self.transaction.get();
        let schema = rows.0.schema();
        let batches = rows.0.map(|batch| batch.map_err(from_rows));
        let clauses = clauses.into_iter().map(ClauseInput::clause).collect::<Result<_>>()?;
        let matching = Matching { allow_missing, ignore_extra };
        let options = MergeOptions {
            rules: Rules { on, clauses, case_sensitive, exact: false, matching, mentions },
            evolve,
            memory_limit: memory_limit.unwrap_or(MEMORY_LIMIT),
            rows: self.options.clone(),
        };
        let done = detached(py, || own.changes()?.merge(&schema, batches, options))??;
        Ok((done.rows_updated, done.rows_inserted, done.rows_deleted, counted(done.replaced)))
    }
}

fn of(filter: Option<ConditionInput>) -> Condition {
    filter.map_or(Expression::True, |filter| filter.0)
}

pub(crate) fn counted(done: RowsReplaced) -> Counts {
    let files = done.files;
    (
        done.rows_removed,
        done.rows_added,
        files.dropped,
        files.rewritten,
        files.marked,
        files.rewritten_bytes,
        files.added,
        files.added_bytes,
        files.dropped_bytes,
    )
}
