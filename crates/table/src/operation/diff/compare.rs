//! Compares the rows of one part: those of the left side in memory, those of the right one as they come.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, SchemaRef};
use arrow_select::interleave::interleave;
use hashbrown::hash_table::Entry as Slot;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::columns::Columns;
use super::counts::DiffCounts;
use crate::error::{Error, Result};
use crate::read::changelog::comparable::comparable;

/// Rows of a batch of differences.
const BATCH_ROWS: usize = 8 << 10;

/// What is the same for all parts.
#[derive(Debug)]
pub(super) struct Comparing {
    pub(super) columns: Columns,
    pub(super) output: SchemaRef,
    /// The key columns; without them rows are compared as a whole.
    keys: Option<Vec<usize>>,
    /// The other columns.
    values: Vec<usize>,
    hasher: DefaultHashBuilder,
    pub(super) counts: Arc<DiffCounts>,
}

impl Comparing {
    pub(super) fn new(columns: Columns, keys: Option<Vec<usize>>, counts: Arc<DiffCounts>) -> Self {
        let all = 0..columns.arrow.fields().len();
        let values = all.filter(|place| keys.as_ref().is_some_and(|keys| !keys.contains(place))).collect();
        let output = columns.output();
        Self { columns, output, keys, values, hasher: DefaultHashBuilder::default(), counts }
    }

    /// The bytes of the keys of a batch.
    pub(super) fn keys_of(&self, batch: &RecordBatch) -> Result<Rows> {
        let columns: Vec<ArrayRef> = match &self.keys {
            Some(keys) => keys.iter().filter_map(|place| batch.columns().get(*place)).cloned().collect(),
            None => batch.columns().to_vec(),
        };
        rows_of(&columns)
    }

    /// The bytes of each of the other columns.
    fn values_of(&self, batch: &RecordBatch) -> Result<Vec<Rows>> {
        let columns = self.values.iter().filter_map(|place| batch.columns().get(*place));
        columns.map(|column| rows_of(std::slice::from_ref(column))).collect()
    }

    /// The part that a key belongs to; a part that is divided again is divided by another hash.
    pub(super) fn part(&self, key: &[u8], depth: u32, parts: usize) -> usize {
        let parts = u64::try_from(parts).unwrap_or(1).max(1);
        usize::try_from(self.hasher.hash_one((depth, key)) % parts).unwrap_or(0)
    }

    fn shown(&self, batch: &RecordBatch, row: usize) -> Result<String> {
        let schema = batch.schema();
        let of = |place: &usize| {
            let (field, column) = (schema.field(*place), batch.column(*place));
            let value = match column.is_null(row) {
                true => "null".to_owned(),
                false => arrow_cast::display::array_value_to_string(column, row).map_err(internal)?,
            };
            Ok(format!("{} = {value}", field.name()))
        };
        Ok(self.keys.iter().flatten().map(of).collect::<Result<Vec<_>>>()?.join(", "))
    }
}

/// The rows of some columns as bytes, equal if the rows are.
fn rows_of(columns: &[ArrayRef]) -> Result<Rows> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let columns = columns.iter().map(comparable).collect::<Result<Vec<_>, _>>().map_err(internal)?;
    RowConverter::new(fields).and_then(|converter| converter.convert_columns(&columns)).map_err(internal)
}

/// The rows with one key.
#[derive(Debug)]
struct KeyRows {
    key: Box<[u8]>,
    /// The batch and the row on the left; `None` if only the right side has the key.
    place: Option<(usize, usize)>,
    /// Rows of the left side that the right side lacks.
    count: u64,
    /// Whether the right side has the key.
    is_matched: bool,
}

/// One part.
pub(super) struct Part {
    left: Vec<RecordBatch>,
    values: Vec<Vec<Rows>>,
    table: HashTable<usize>,
    entries: Vec<KeyRows>,
    right: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    /// Pending differences: their batch and row, what they are, and which columns changed.
    found: Vec<(usize, usize, &'static str, Option<Vec<usize>>)>,
    /// The batch of the right that `found` refers to.
    current: Option<RecordBatch>,
    /// The next entry that may be a removed row; `None` while the right side is read.
    removed: Option<usize>,
}

impl Part {
    /// Reads the left side.
    ///
    /// # Errors
    /// Two rows with the same key.
    pub(super) fn new(
        comparing: &Comparing,
        left: impl Iterator<Item = Result<RecordBatch>>,
        right: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    ) -> Result<Self> {
        let mut part = Self {
            left: Vec::new(),
            values: Vec::new(),
            table: HashTable::new(),
            entries: Vec::new(),
            right: Box::new(right),
            found: Vec::new(),
            current: None,
            removed: None,
        };
        for batch in left {
            let batch = batch?;
            let keys = comparing.keys_of(&batch)?;
            for (row, key) in keys.iter().enumerate() {
                let place = (part.left.len(), row);
                let entry = part.entry(comparing, key.data(), Some(place));
                entry.count += 1;
                if comparing.keys.is_some() && entry.count > 1 {
                    return Err(twice("a", &comparing.shown(&batch, row)?));
                }
            }
            part.values.push(comparing.values_of(&batch)?);
            part.left.push(batch);
        }
        Ok(part)
    }

    /// The entry of a key, which is added if it is new.
    fn entry(&mut self, comparing: &Comparing, key: &[u8], place: Option<(usize, usize)>) -> &mut KeyRows {
        let Self { table, entries, .. } = self;
        let hash = |key: &[u8]| comparing.hasher.hash_one(key);
        let of = |at: &usize| entries.get(*at).map(|entry| &*entry.key);
        let at = match table.entry(hash(key), |at| of(at) == Some(key), |at| hash(of(at).unwrap_or_default())) {
            Slot::Occupied(slot) => *slot.get(),
            Slot::Vacant(slot) => {
                slot.insert(entries.len());
                entries.len()
            }
        };
        if at == entries.len() {
            entries.push(KeyRows { key: key.into(), place, count: 0, is_matched: false });
        }
        &mut entries[at]
    }

    /// The next differences; `None` at the end of the part.
    pub(super) fn next(&mut self, comparing: &Comparing) -> Result<Option<RecordBatch>> {
        loop {
            if !self.found.is_empty() {
                return self.batch(comparing).map(Some);
            }
            if let Some(next) = self.removed {
                if next >= self.entries.len() {
                    return Ok(None);
                }
                self.find_removed(comparing, next);
                continue;
            }
            match self.right.next().transpose()? {
                Some(batch) => self.compare(comparing, batch)?,
                None => (self.removed, self.current) = (Some(0), None),
            }
        }
    }

    fn compare(&mut self, comparing: &Comparing, batch: RecordBatch) -> Result<()> {
        let keys = comparing.keys_of(&batch)?;
        let values = comparing.values_of(&batch)?;
        let right = self.left.len();
        let (mut added, mut changed) = (0, 0);
        for (row, key) in keys.iter().enumerate() {
            let is_keyed = comparing.keys.is_some();
            if !is_keyed {
                // Rows of the right are not kept: one that the left does not have is added.
                let known = self.known(comparing, key.data());
                match known.filter(|entry| entry.count > 0) {
                    Some(entry) => entry.count -= 1,
                    None => {
                        added += 1;
                        self.found.push((right, row, "added", None));
                    }
                }
                continue;
            }
            let entry = self.entry(comparing, key.data(), None);
            if std::mem::replace(&mut entry.is_matched, true) {
                return Err(twice("b", &comparing.shown(&batch, row)?));
            }
            let Some((of, at)) = entry.place else {
                added += 1;
                self.found.push((right, row, "added", None));
                continue;
            };
            let Some(before) = self.values.get(of) else { continue };
            let differ = before.iter().zip(&values).zip(&comparing.values);
            let differ: Vec<usize> = differ
                .filter(|((before, after), _)| before.row(at).data() != after.row(row).data())
                .map(|(_, place)| *place)
                .collect();
            if !differ.is_empty() {
                changed += 1;
                comparing.counts.add_cells(&differ);
                self.found.push((of, at, "changed_before", Some(differ.clone())));
                self.found.push((right, row, "changed_after", Some(differ)));
            }
        }
        comparing.counts.added.fetch_add(added, Ordering::Relaxed);
        comparing.counts.changed.fetch_add(changed, Ordering::Relaxed);
        self.current = Some(batch);
        Ok(())
    }

    fn known(&mut self, comparing: &Comparing, key: &[u8]) -> Option<&mut KeyRows> {
        let Self { table, entries, .. } = self;
        let at = table.find(comparing.hasher.hash_one(key), |at| entries.get(*at).is_some_and(|one| *one.key == *key));
        at.copied().and_then(|at| entries.get_mut(at))
    }

    /// Finds removed rows for one batch.
    fn find_removed(&mut self, comparing: &Comparing, mut next: usize) {
        while self.found.len() < BATCH_ROWS
            && let Some(entry) = self.entries.get_mut(next)
        {
            match entry.place {
                Some((batch, row)) if entry.count > 0 && !entry.is_matched => {
                    entry.count -= 1;
                    comparing.counts.removed.fetch_add(1, Ordering::Relaxed);
                    self.found.push((batch, row, "removed", None));
                }
                _ => next += 1,
            }
        }
        self.removed = Some(next);
    }

    /// Takes the pending differences as a batch.
    fn batch(&mut self, comparing: &Comparing) -> Result<RecordBatch> {
        // Both rows of a change are in one batch.
        let mut count = self.found.len().min(BATCH_ROWS);
        if count > 1 && self.found.get(count - 1).is_some_and(|(_, _, change, _)| *change == "changed_before") {
            count -= 1;
        }
        let found: Vec<_> = self.found.drain(..count).collect();
        let places: Vec<(usize, usize)> = found.iter().map(|(batch, row, ..)| (*batch, *row)).collect();
        let schema = &comparing.columns.arrow;
        let item = ArrowField::new("item", DataType::Utf8, false);
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item);
        for (.., columns) in &found {
            for place in columns.iter().flatten() {
                lists.values().append_value(schema.field(*place).name());
            }
            lists.append(columns.is_some());
        }
        let changes = StringArray::from_iter_values(found.iter().map(|(_, _, change, _)| *change));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(changes), Arc::new(lists.finish())];
        let batches: Vec<&RecordBatch> = self.left.iter().chain(&self.current).collect();
        for column in 0..schema.fields().len() {
            let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            columns.push(interleave(&arrays, &places).map_err(internal)?);
        }
        RecordBatch::try_new(comparing.output.clone(), columns).map_err(internal)
    }
}

fn twice(side: &str, key: &str) -> Error {
    Error::invalid(format!(
        "side {side} has more than one row with the key {key}: name columns that identify rows, or compare whole rows \
         without keys"
    ))
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("rows of a comparison: {error}"))
}
