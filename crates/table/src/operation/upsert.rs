//! Upserts: rows of a source that take the place of rows with the same key, and rows that are new.
//!
//! The source is held in memory, with the hashes of its keys. Of the table those files are read that may have keys between
//! the least and the greatest of the source. A row is changed only where it differs.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use icefield_format::puffin::DeletionVector;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{FILE, POS};
use icefield_format::types::{Schema, Type};

use super::matching::Matches;
use super::replace_rows::{NewRows, RowOptions, RowsReplaced, columns_to_change, replace};
use super::row_change::Command;
use super::source::{Source, differences};
use crate::arrow::conform::conform;
use crate::commit::Transaction;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::storage::Storage;
use crate::write::Matching;

/// What an upsert does.
#[derive(Debug, Clone, Default)]
pub struct UpsertOptions {
    /// The columns of the key, by name; those of the schema's identifier where there are none.
    pub join_columns: Vec<String>,
    /// Whether rows whose key the table has are changed.
    pub update_matched: bool,
    /// Whether rows whose key the table lacks are added.
    pub insert_others: bool,
    /// Whether the case of names matters.
    pub case_sensitive: bool,
    /// How it is done.
    pub rows: RowOptions,
}

/// What an upsert has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upserted {
    /// Rows of the table that were changed.
    pub rows_updated: i64,
    /// Rows of the source that were added.
    pub rows_inserted: i64,
    /// What became of the files.
    pub replaced: RowsReplaced,
}

/// Changes the rows of the table that have the keys of the source, where they differ, and adds the others. Columns that the
/// source lacks keep their values in changed rows. Null is a key as any other.
///
/// # Errors
/// A key that the source has twice, a table without identifier fields where no columns are named, what is wrong with the rows,
/// the table or the storage. What was written is deleted then.
pub fn upsert(
    storage: &Storage,
    transaction: &mut Transaction,
    schema: &ArrowSchema,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: UpsertOptions,
) -> Result<Upserted> {
    transaction.check_open()?;
    if !options.update_matched && !options.insert_others {
        return Err(Error::invalid("upsert: neither rows that match nor others are wanted: there is nothing to do"));
    }
    let metadata = transaction.metadata()?.clone();
    let table = metadata.current_schema().clone();
    let key = key_ids(&table, &options)?;
    let source = Source::read(&table, schema, batches, &key)?;
    if source.is_empty() {
        return Ok(Upserted::default());
    }
    let filter = source.key_filter(&table)?;
    let branch = &options.rows.snapshot.branch;
    let candidates = Matches::candidates(storage, &metadata, branch, &filter, true)?;
    let mut join = Join::new(&source, columns_to_change(&metadata)?, options.update_matched)?;
    let columns = Arc::new(Schema::new(
        0,
        join.columns.fields().iter().cloned().chain([FILE.to_field(), POS.to_field()]).collect(),
    )?);
    for batch in candidates.rows(columns)? {
        interrupt::check()?;
        join.meet(&batch?)?;
    }
    let Join { found, changed, arrow, matched, updated, .. } = join;
    let found = found.into_iter().map(|(path, rows)| (path, Arc::new(rows))).collect();
    let matches = candidates.choose(found);
    let mut inserted = 0;
    let mut new = Vec::new();
    if options.insert_others {
        for (number, batch) in source.batches().iter().enumerate() {
            let rows = source.unmatched(number, &matched);
            inserted += i64::try_from(rows.true_count()).unwrap_or(i64::MAX);
            new.push(inserted_rows(batch, &rows, &arrow)?);
        }
    }
    let mut all = changed.into_iter().chain(new).filter(|batch| batch.num_rows() > 0).map(Ok).peekable();
    let rows = all.peek().is_some();
    let rows = rows.then_some(NewRows { schema: &arrow, batches: &mut all, matching: Matching::default() });
    let replaced = replace(storage, transaction, &matches, Command::Merge, rows, options.rows)?;
    Ok(Upserted { rows_updated: updated, rows_inserted: inserted, replaced })
}

/// The ids of the key's columns.
fn key_ids(table: &Schema, options: &UpsertOptions) -> Result<Vec<i32>> {
    let ids = match options.join_columns.as_slice() {
        [] => table.identifier_field_ids().to_vec(),
        names => {
            let id = |name: &String| table.named(name, options.case_sensitive).map(|field| field.id);
            names.iter().map(id).collect::<std::result::Result<_, _>>()?
        }
    };
    if ids.is_empty() {
        return Err(Error::invalid(
            "upsert: name the columns of the key (join_cols), or set identifier fields in the table's schema",
        ));
    }
    for id in &ids {
        let name = table.column_name(*id).unwrap_or_default();
        if !matches!(table.find_type(*id), Some(Type::Primitive(_))) || table.accessor(*id).is_none() {
            return Err(Error::column(
                name,
                "cannot be a column of the key: its values are not primitive, or are in lists or maps",
            ));
        }
    }
    Ok(ids)
}

/// Rows of the table as they meet those of the source.
struct Join<'a> {
    source: &'a Source,
    /// Columns of rows that are changed.
    columns: Arc<Schema>,
    arrow: SchemaRef,
    updates: bool,
    /// Positions of rows that are changed.
    found: HashMap<String, DeletionVector>,
    /// The rows as they become.
    changed: Vec<RecordBatch>,
    /// Rows of the source whose key the table has.
    matched: Vec<bool>,
    updated: i64,
}

impl<'a> Join<'a> {
    fn new(source: &'a Source, columns: Arc<Schema>, updates: bool) -> Result<Self> {
        let arrow = Arc::new(columns.to_arrow(&ToArrow::default())?);
        let matched = vec![false; source.len()];
        Ok(Self { source, columns, arrow, updates, found: HashMap::new(), changed: Vec::new(), matched, updated: 0 })
    }

    /// A batch of the table: the columns, then path and position.
    fn meet(&mut self, batch: &RecordBatch) -> Result<()> {
        let (mut rows, mut partners) = (Vec::new(), Vec::new());
        for (row, partner) in (0_u32..).zip(self.source.find(batch)?) {
            let Some(partner) = partner else { continue };
            if let Some(matched) = self.matched.get_mut(partner as usize) {
                *matched = true;
            }
            rows.push(row);
            partners.push(partner);
        }
        if !self.updates || rows.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(rows);
        let taken = |column: &ArrayRef| take(column, &rows, None).map_err(internal);
        let own = batch.columns().iter().map(taken).collect::<Result<Vec<_>>>()?;
        let schema = batch.schema_ref();
        let mut new = own.clone();
        let mut pairs = Vec::new();
        for (place, field) in schema.fields().iter().enumerate() {
            let Some(given) = self.source.column(field.name(), &partners)? else { continue };
            if let Some(slot) = new.get_mut(place) {
                let given = conform(&given, field.data_type())?;
                pairs.push((slot.clone(), given.clone()));
                *slot = given;
            }
        }
        let differ = differences(&pairs, rows.len())?;
        if differ.true_count() == 0 {
            return Ok(());
        }
        let new = RecordBatch::try_new(schema.clone(), new).map_err(internal)?;
        let new = filter_record_batch(&new, &differ).map_err(internal)?;
        self.updated += i64::try_from(new.num_rows()).unwrap_or(i64::MAX);
        let width = self.arrow.fields().len();
        let places: Vec<usize> = (0..width).collect();
        self.remember(&new, width)?;
        let rows = new.project(&places).map_err(internal)?;
        self.changed.push(rows);
        Ok(())
    }

    /// Remembers the places of rows, all of one file.
    fn remember(&mut self, rows: &RecordBatch, width: usize) -> Result<()> {
        let lost = || Error::Internal("rows without their places".to_owned());
        let paths = rows.columns().get(width).and_then(|column| column.as_string_opt::<i32>()).ok_or_else(lost)?;
        let positions = rows.columns().get(width + 1).and_then(|column| column.as_primitive_opt::<Int64Type>());
        let of_file = self.found.entry(paths.value(0).to_owned()).or_default();
        for position in positions.ok_or_else(lost)?.values() {
            of_file.insert(u64::try_from(*position).map_err(|_| lost())?)?;
        }
        Ok(())
    }
}

/// Rows of the source that are added, in the columns of changed ones. Ids are assigned to rows that have none.
fn inserted_rows(batch: &RecordBatch, rows: &BooleanArray, arrow: &SchemaRef) -> Result<RecordBatch> {
    let rows = filter_record_batch(batch, rows).map_err(internal)?;
    let column = |field: &FieldRef| match rows.column_by_name(field.name()) {
        Some(own) => conform(own, field.data_type()),
        None => Ok(new_null_array(field.data_type(), rows.num_rows())),
    };
    let columns = arrow.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(arrow.clone(), columns).map_err(internal)
}

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(format!("upsert: {error}"))
}
