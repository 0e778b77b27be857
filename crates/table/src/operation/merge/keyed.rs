//! Source rows in memory, indexed by key.

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::interleave::interleave;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::key::{Key, Keys};
use crate::error::{Error, Result};
use crate::interrupt;

/// Marks the end of a list of rows with the same key.
const END: u32 = u32::MAX;

/// Rows in batches, indexed by key.
#[derive(Debug)]
pub(crate) struct KeyedRows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The number of the first row of each batch.
    starts: Vec<usize>,
    keys: Vec<Keys>,
    len: usize,
    /// The hash of each key, and the number of the last row with it.
    table: HashTable<(u64, u32)>,
    /// For each row, the previous row with the same key, or [`END`].
    before: Vec<u32>,
}

/// What to do with source rows that have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubles {
    /// Allowed here; the join checks their effects on the table.
    Keep,
    /// An error.
    Refuse,
}

impl KeyedRows {
    /// Indexes rows by their keys.
    ///
    /// # Errors
    /// Two rows with the same key if [`Doubles::Refuse`] applies.
    pub(crate) fn new(
        schema: SchemaRef,
        rows: Vec<(RecordBatch, Keys)>,
        key: &mut Key,
        doubles: Doubles,
    ) -> Result<Self> {
        let len = rows.iter().map(|(batch, _)| batch.num_rows()).sum();
        if u32::try_from(len).is_err() {
            return Err(Error::unsupported("more than 2^32 rows of a source at once: set a lower memory_limit"));
        }
        let (mut batches, mut keys, mut starts, mut next) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (batch, of_batch) in rows {
            starts.push(next);
            next += batch.num_rows();
            batches.push(batch);
            keys.push(of_batch);
        }
        let mut own =
            Self { schema, batches, starts, keys, len, table: HashTable::with_capacity(len), before: vec![END; len] };
        for batch in 0..own.batches.len() {
            interrupt::check()?;
            if let Some(row) = own.enter(batch, key, doubles)? {
                let shown = own.batches.get(batch).map(|batch| key.shown_of_source(batch, row)).transpose()?;
                let shown = shown.unwrap_or_default();
                return Err(Error::invalid(format!(
                    "two rows of the source have the key {shown}: nothing was changed"
                )));
            }
        }
        Ok(own)
    }

    /// Indexes the rows of a batch; returns a row whose key is a rejected duplicate.
    fn enter(&mut self, batch: usize, key: &Key, doubles: Doubles) -> Result<Option<usize>> {
        let Self { keys, starts, table, before, .. } = self;
        let (Some(own), Some(start)) = (keys.get(batch), starts.get(batch)) else { return Ok(None) };
        for row in 0..own.len() {
            let Some(bytes) = own.get(row) else { continue };
            let number = u32::try_from(start + row).map_err(|_| Error::unsupported("more than 2^32 rows"))?;
            let hash = key.hash(bytes);
            let same = |(other, last): &(u64, u32)| *other == hash && key_of(keys, starts, *last) == Some(bytes);
            match table.entry(hash, same, |(hash, _)| *hash) {
                Entry::Vacant(place) => drop(place.insert((hash, number))),
                Entry::Occupied(_) if doubles == Doubles::Refuse => return Ok(Some(row)),
                Entry::Occupied(mut place) => {
                    let last = std::mem::replace(&mut place.get_mut().1, number);
                    if let Some(slot) = before.get_mut(number as usize) {
                        *slot = last;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows.
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The rows with this key.
    pub(crate) fn find(&self, hash: u64, bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let same =
            |(other, last): &(u64, u32)| *other == hash && key_of(&self.keys, &self.starts, *last) == Some(bytes);
        let mut next = self.table.find(hash, same).map_or(END, |(_, last)| *last);
        std::iter::from_fn(move || {
            let row = (next != END).then_some(next)?;
            next = self.before.get(row as usize).copied().unwrap_or(END);
            Some(row)
        })
    }

    /// For each row, whether a later row has the same key.
    pub(crate) fn replaced(&self) -> Vec<bool> {
        let mut replaced = vec![false; self.len];
        for before in self.before.iter().filter(|before| **before != END) {
            if let Some(slot) = replaced.get_mut(*before as usize) {
                *slot = true;
            }
        }
        replaced
    }

    /// The values of a column in these rows.
    pub(crate) fn column(&self, place: usize, rows: &[u32]) -> Result<ArrayRef> {
        let columns: Vec<&dyn Array> =
            self.batches.iter().filter_map(|batch| Some(&**batch.columns().get(place)?)).collect();
        let places: Vec<(usize, usize)> = rows.iter().map(|row| place_of(&self.starts, *row as usize)).collect();
        interleave(&columns, &places).map_err(internal)
    }

    /// For each row of a batch, whether it is not marked.
    pub(crate) fn unmarked(&self, batch: usize, marked: &[bool]) -> BooleanArray {
        let start = self.starts.get(batch).copied().unwrap_or(0);
        let rows = self.batches.get(batch).map_or(0, RecordBatch::num_rows);
        let is_left = |row: usize| !marked.get(start + row).copied().unwrap_or(false);
        BooleanArray::new(BooleanBuffer::collect_bool(rows, is_left), None)
    }
}

/// The batch of a row, and its index there.
fn place_of(starts: &[usize], row: usize) -> (usize, usize) {
    let batch = starts.partition_point(|start| *start <= row).saturating_sub(1);
    (batch, row - starts.get(batch).copied().unwrap_or(0))
}

fn key_of<'k>(keys: &'k [Keys], starts: &[usize], row: u32) -> Option<&'k [u8]> {
    let (batch, row) = place_of(starts, row as usize);
    keys.get(batch)?.get(row)
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("the source of a merge: {error}"))
}
