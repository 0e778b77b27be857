//! Updates: a deleted and an inserted row with the same identifier are the old and the new version of one row.
//!
//! As in the Java library, a deleted row is paired with the first inserted row of its identifier, and further
//! inserted rows remain inserts. Several deleted rows with one identifier are an error, because it is unknown which
//! of them was updated.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;

use super::layout::{Identifier, Layout};
use super::ledger::{Rows, internal};
use crate::error::{Error, Result};
use crate::plan::changes::ChangeType;
use crate::read::reshape::Reshape;

/// Finds updates.
pub(super) struct Pairing {
    by: By,
    keys: Rows,
    /// The identifier, for errors.
    name: String,
}

enum By {
    /// The column `_row_id`. Rows without an id are not updates, and rows that differ only in their ids have not
    /// changed.
    RowId { place: usize, values: Rows },
    /// Columns; null equals null.
    Columns(Reshape),
}

/// Identifiers of rows.
struct RowIdentifiers {
    rows: arrow_row::Rows,
    /// Which rows have one.
    valid: Option<NullBuffer>,
}

impl RowIdentifiers {
    fn of(&self, row: usize) -> Option<&[u8]> {
        let is_valid = self.valid.as_ref().is_none_or(|valid| valid.is_valid(row));
        is_valid.then(|| self.rows.row(row).data())
    }
}

impl Pairing {
    /// For an identifier.
    pub(super) fn new(identifier: &Identifier, layout: &Layout) -> Result<Self> {
        Ok(match identifier {
            Identifier::RowId => {
                let lost = || Error::Internal("a changelog without row ids".to_owned());
                let values = Rows::new(layout.types_of(&layout.values))?;
                let by = By::RowId { place: layout.row_id.ok_or_else(lost)?, values };
                Self { by, keys: Rows::new([DataType::Int64].into_iter())?, name: "_row_id".to_owned() }
            }
            Identifier::Columns(fields) => {
                let (columns, schema) = layout.select(fields)?;
                let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                let keys = Rows::new(schema.fields().iter().map(|field| field.data_type().clone()))?;
                Self { by: By::Columns(columns), keys, name: names.join(", ") }
            }
        })
    }

    /// The rows with their change types; a batch has only deleted or only inserted rows.
    pub(super) fn pair(&self, layout: &Layout, batches: Vec<(ChangeType, RecordBatch)>) -> Result<Option<RecordBatch>> {
        let of = |wanted: ChangeType| {
            let some = batches.iter().filter(move |(change_type, _)| *change_type == wanted).map(|(_, batch)| batch);
            concat_batches(&layout.schema, some).map_err(internal)
        };
        let (deleted, inserted) = (of(ChangeType::Delete)?, of(ChangeType::Insert)?);
        drop(batches);
        let (deleted_keys, inserted_keys) = (self.keys(&deleted)?, self.keys(&inserted)?);
        let (is_deleted, is_inserted) = self.changed(layout, &deleted, &inserted)?;
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        for row in chosen(&is_deleted) {
            let Some(key) = deleted_keys.of(row) else { continue };
            match places.entry(key) {
                Entry::Vacant(room) => {
                    room.insert(row);
                }
                Entry::Occupied(_) => {
                    return Err(Error::Validation(format!(
                        "cannot compute updates: several deleted rows have the same values of the identifier columns [{}]; \
                         name columns that tell all rows apart",
                        self.name
                    )));
                }
            }
        }
        let mut after: Vec<Option<usize>> = vec![None; deleted.num_rows()];
        let mut others = Vec::new();
        for row in chosen(&is_inserted) {
            let before =
                inserted_keys.of(row).and_then(|key| places.get(key)).and_then(|before| after.get_mut(*before));
            match before {
                Some(slot @ None) => *slot = Some(row),
                _ => others.push(row),
            }
        }
        let (mut rows, mut types) = (Vec::new(), Vec::new());
        for before in chosen(&is_deleted) {
            match after.get(before).copied().flatten() {
                None => rows.push((0, before)),
                Some(after) => {
                    rows.extend([(0, before), (1, after)]);
                    types.push(ChangeType::UpdateBefore.as_str());
                    types.push(ChangeType::UpdateAfter.as_str());
                    continue;
                }
            }
            types.push(ChangeType::Delete.as_str());
        }
        types.extend(others.iter().map(|_| ChangeType::Insert.as_str()));
        rows.extend(others.into_iter().map(|row| (1, row)));
        if rows.is_empty() {
            return Ok(None);
        }
        let batch = interleave_record_batch(&[&deleted, &inserted], &rows).map_err(internal)?;
        let types: ArrayRef = Arc::new(StringArray::from_iter_values(types));
        layout.with_change_types(&batch, types).map(Some)
    }

    fn keys(&self, batch: &RecordBatch) -> Result<RowIdentifiers> {
        match &self.by {
            By::Columns(columns) => {
                Ok(RowIdentifiers { rows: self.keys.of(columns.apply(batch)?.columns())?, valid: None })
            }
            By::RowId { place, .. } => {
                let ids = batch.columns().get(*place).cloned();
                let ids = ids.ok_or_else(|| Error::Internal("rows without their ids".to_owned()))?;
                let valid = ids.logical_nulls();
                Ok(RowIdentifiers { rows: self.keys.of(&[ids])?, valid })
            }
        }
    }

    /// Which deleted and inserted rows have changed; two that differ only in their ids have not.
    fn changed(
        &self,
        layout: &Layout,
        deleted: &RecordBatch,
        inserted: &RecordBatch,
    ) -> Result<(Vec<bool>, Vec<bool>)> {
        let (mut is_deleted, mut is_inserted) = (vec![true; deleted.num_rows()], vec![true; inserted.num_rows()]);
        let By::RowId { values, .. } = &self.by else { return Ok((is_deleted, is_inserted)) };
        let (before, after) = (values.of(&layout.values_of(deleted))?, values.of(&layout.values_of(inserted))?);
        // For each value the last row with it, and for each row the previous one with the same value.
        let mut last: HashMap<&[u8], usize> = HashMap::new();
        let previous: Vec<Option<usize>> =
            before.iter().zip(0..).map(|(row, at)| last.insert(row.data(), at)).collect();
        for (row, slot) in after.iter().zip(&mut is_inserted) {
            let Entry::Occupied(mut equal) = last.entry(row.data()) else { continue };
            *slot = false;
            if let Some(slot) = is_deleted.get_mut(*equal.get()) {
                *slot = false;
            }
            match previous.get(*equal.get()).copied().flatten() {
                Some(previous) => *equal.get_mut() = previous,
                None => {
                    equal.remove();
                }
            }
        }
        Ok((is_deleted, is_inserted))
    }
}

fn chosen(marks: &[bool]) -> impl Iterator<Item = usize> {
    marks.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(row, _)| row)
}
