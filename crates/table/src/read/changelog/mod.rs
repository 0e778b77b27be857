//! Changelogs of compared rows, as in Java's `create_changelog_view`: without carried-over rows, net of several
//! snapshots, and with updates.
//!
//! Rows are compared by all columns of the table ([equality](comparable)) before columns are projected. A
//! [ledger](Ledger) counts the inserts minus the deletes of each row, per snapshot or, for net changes, over all
//! snapshots; the rows with a remaining count are the changes. Rows of snapshots without deletes bypass it. Then
//! [deleted and inserted rows](Pairing) with the same identifier become updates.
//!
//! A filter is applied before rows are compared as far as it cannot separate rows that are compared with each other:
//! tests of table columns, or with updates only tests of identifier columns. The rest is applied to the result.

pub mod comparable;
mod layout;
mod ledger;
mod updates;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_select::filter::filter_record_batch;
use icefield_format::expr::{BoundExpr, Expr, Expression};
use icefield_format::metadata::FormatVersion;
use icefield_format::types::Field;
use icefield_format::types::reserved::{CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID, ROW_ID};

use super::reshape::Reshape;
use super::task;
use crate::error::{Error, Result};
use crate::plan::Scan;
use crate::plan::changes::{Change, ChangeType};
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::stream::{BatchStream, TaskBatches};
use layout::{Identifier, Layout};
use ledger::{Ledger, Left, Rows, internal};
use updates::Pairing;

/// How the rows of a changelog are compared.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Compare across all snapshots: a row that one inserts and a later one deletes is no change, and vice versa.
    pub net_changes: bool,
    /// Whether deleted and inserted rows with one identifier become updates.
    pub updates: Option<Updates>,
}

/// How a deleted and an inserted row are recognized as the same row.
#[derive(Debug, Clone, Default)]
pub struct Updates {
    /// Column names. The default is `_row_id` if all files of the changelog have row ids, otherwise the identifier
    /// fields of the table's schema.
    pub identifier_columns: Option<Vec<String>>,
}

impl Comparison {
    /// Refuses scans that cannot be compared, and columns that compared rows do not have.
    pub fn check(&self, scan: &Scan, output: &Wanted) -> Result<()> {
        if !scan.changes.as_ref().is_some_and(|changes| changes.is_changelog()) {
            return Err(Error::invalid("only the rows of a changelog are compared"));
        }
        let is_there = |id: i32| {
            let of_change = [CHANGE_TYPE.id, CHANGE_ORDINAL.id, COMMIT_SNAPSHOT_ID.id];
            of_change.contains(&id) || output.variant_paths.contains_key(&id) || scan.schema.find_field(id).is_some()
        };
        if let Some(field) = output.projection.fields().iter().find(|field| !is_there(field.id)) {
            return Err(Error::invalid(format!("column {}: compared rows of a changelog do not have it", field.name)));
        }
        let Some(updates) = &self.updates else { return Ok(()) };
        if updates.columns(scan)?.is_empty() && scan.metadata.format_version() < FormatVersion::V3 {
            return Err(no_identifier());
        }
        Ok(())
    }

    /// The identifier for updates.
    fn identifier(&self, scan: &Scan) -> Result<Option<Identifier>> {
        let Some(updates) = &self.updates else { return Ok(None) };
        let columns = updates.columns(scan)?;
        if updates.identifier_columns.is_none() && have_row_ids(scan)? {
            return Ok(Some(Identifier::RowId));
        }
        if columns.is_empty() { Err(no_identifier()) } else { Ok(Some(Identifier::Columns(columns))) }
    }
}

/// Whether all files of a changelog have row ids. Ignores the filter, which must not change the identifier.
fn have_row_ids(scan: &Scan) -> Result<bool> {
    if scan.metadata.format_version() < FormatVersion::V3 {
        return Ok(false);
    }
    // A table may have a column with that name.
    let named = scan.wanted(Some(&[ROW_ID.name.to_owned()]));
    if !named.is_ok_and(|wanted| wanted.projection.find_field(ROW_ID.id).is_some()) {
        return Ok(false);
    }
    let plan = Scan { filter: Expression::True, ..scan.clone() }.plan()?;
    Ok(plan.manifests.iter().all(|manifest| manifest.entries.first_row_id.null_count() == 0))
}

fn no_identifier() -> Error {
    Error::invalid(
        "cannot compute updates: the table's schema has no identifier fields, and not all of its rows have ids; name \
         identifier columns",
    )
}

impl Updates {
    /// The named columns, or else the identifier fields.
    fn columns(&self, scan: &Scan) -> Result<Vec<Field>> {
        let schema = &scan.schema;
        match &self.identifier_columns {
            Some(names) if names.is_empty() => Err(Error::invalid("cannot compute updates by no identifier columns")),
            Some(names) => names.iter().map(|name| Ok(schema.named(name, scan.case_sensitive)?.clone())).collect(),
            None => Ok(schema.identifier_field_ids().iter().filter_map(|id| schema.find_field(*id)).cloned().collect()),
        }
    }
}

/// The rows of a compared changelog. The output has columns of the table and of the change.
pub fn rows(scan: &Scan, comparison: &Comparison, output: &Wanted, limit: Option<usize>) -> Result<BatchStream> {
    comparison.check(scan, output)?;
    let identifier = comparison.identifier(scan)?;
    let (before, after) = split_filter(scan, identifier.as_ref())?;
    let compared = Scan { filter: before, ..scan.clone() };
    let names: Vec<String> = match &identifier {
        Some(Identifier::RowId) => vec!["*".to_owned(), ROW_ID.name.to_owned()],
        _ => vec!["*".to_owned()],
    };
    let wanted = compared.wanted(Some(&names))?;
    let layout = Layout::new(&wanted)?;
    let after = (after != Expression::True).then(|| after.bind(&wanted.projection, scan.case_sensitive)).transpose()?;
    let pairing = identifier.as_ref().map(|identifier| Pairing::new(identifier, &layout)).transpose()?;
    let plan = compared.plan()?;
    let mut parts = compared.parts(&plan, &plan.whole_files())?;
    let place =
        |change: Option<Change>| change.map(|change| (change.ordinal, change.change_type == ChangeType::Insert));
    parts.sort_by_key(|part| place(part.change));
    let deleting =
        parts.iter().filter_map(|part| part.change).filter(|change| change.change_type == ChangeType::Delete);
    let deleting = deleting.map(|change| change.ordinal).collect();
    let rows = Arc::new(Rows::new(layout.types_of(&layout.keys()))?);
    let project = layout.project(output)?;
    let stream = task::rows_within(ReadTask { wanted, parts }, &scan.storage, None, &scan.limits)?;
    let compared = ComparedRows {
        stream,
        ledger: Ledger::new(rows, scan.limits.operation_memory),
        is_net: comparison.net_changes,
        deleting,
        ordinal: None,
        ready: VecDeque::new(),
        left: None,
        is_done: false,
        pairing,
        layout,
        after,
        project,
    };
    let open = move || Ok(Box::new(compared) as TaskBatches);
    Ok(BatchStream::new(output.arrow()?, vec![Box::new(open)], limit))
}

/// Splits a filter into the parts to apply before and after the comparison: rows that are compared with each other
/// must all pass the first part, or none.
fn split_filter(scan: &Scan, identifier: Option<&Identifier>) -> Result<(Expr, Expr)> {
    let mut before = Expression::True;
    let mut all = vec![&scan.filter];
    let mut is_split = false;
    while let Some(part) = all.pop() {
        if let Expression::And(one, other) = part {
            all.extend([&**one, &**other]);
            continue;
        }
        // Parts on metadata columns are bound later.
        let ids = part.bind(&scan.schema, scan.case_sensitive).ok().map(|bound: BoundExpr| {
            bound.predicates().map(|predicate| predicate.term.reference.id).collect::<HashSet<i32>>()
        });
        let is_sound = ids.is_some_and(|ids| match identifier {
            None => true,
            Some(Identifier::RowId) => ids.is_empty(),
            Some(Identifier::Columns(columns)) => ids.iter().all(|id| columns.iter().any(|column| column.id == *id)),
        });
        if is_sound {
            before = Expression::and(before, part.clone());
        } else {
            is_split = true;
        }
    }
    Ok((before, if is_split { scan.filter.clone() } else { Expression::True }))
}

/// Compared rows as a stream. All rows of an input batch are one change; changes come in the order of their
/// snapshots, deleted rows first.
struct ComparedRows {
    stream: BatchStream,
    ledger: Ledger,
    is_net: bool,
    /// Ordinals of the snapshots that deleted rows.
    deleting: BTreeSet<i32>,
    /// The snapshot whose rows are in the ledger.
    ordinal: Option<i32>,
    ready: VecDeque<RecordBatch>,
    left: Option<Left>,
    is_done: bool,
    pairing: Option<Pairing>,
    layout: Layout,
    /// The filter for the result.
    after: Option<BoundExpr>,
    project: Reshape,
}

impl ComparedRows {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(left) = &mut self.left {
                match left.next().transpose()? {
                    Some(rows) => return self.layout.batch(rows.columns, &rows.changes).map(Some),
                    None => self.left = None,
                }
            }
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_done {
                return Ok(None);
            }
            match self.stream.next().transpose()? {
                Some(batch) => self.take(batch)?,
                None => {
                    self.is_done = true;
                    self.settle()?;
                }
            }
        }
    }

    fn take(&mut self, batch: RecordBatch) -> Result<()> {
        let change = self.layout.change(&batch)?;
        if !self.is_net && self.ordinal.is_some_and(|ordinal| ordinal != change.ordinal) {
            self.settle()?;
        }
        let passes = match self.is_net {
            true => self.deleting.is_empty(),
            false => !self.deleting.contains(&change.ordinal),
        };
        if passes {
            self.ready.push_back(batch);
            return Ok(());
        }
        self.ordinal = Some(change.ordinal);
        self.ledger.add(&Layout::pick(&self.layout.keys(), &batch), change)
    }

    /// Outputs the remaining rows of the ledger.
    fn settle(&mut self) -> Result<()> {
        if self.ordinal.take().is_none() {
            return Ok(());
        }
        let left = self.ledger.drain();
        let Some(pairing) = &self.pairing else {
            self.left = Some(left);
            return Ok(());
        };
        let mut batches = Vec::new();
        for rows in left {
            let rows = rows?;
            let Some(change) = rows.changes.first() else { continue };
            batches.push((change.change_type, self.layout.batch(rows.columns, &rows.changes)?));
        }
        self.ready.extend(pairing.pair(&self.layout, batches)?);
        Ok(())
    }

    fn wanted(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.after {
            Some(after) => filter_record_batch(&batch, &after.evaluate(&batch)?).map_err(internal)?,
            None => batch,
        };
        self.project.apply(&batch)
    }
}

impl Iterator for ComparedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.step().transpose()?;
        Some(batch.and_then(|batch| self.wanted(batch)))
    }
}

/// The number of rows of a compared changelog, at most `limit`.
pub fn count(scan: &Scan, comparison: &Comparison, limit: Option<usize>) -> Result<i64> {
    rows(scan, comparison, &*scan.wanted(Some(&[]))?, limit)?
        .try_fold(0i64, |sum, batch| Ok(sum.saturating_add(i64::try_from(batch?.num_rows()).unwrap_or(i64::MAX))))
}
