//! Counts inserts and deletes of equal rows: an insert and a delete of equal rows cancel out.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};
use hashbrown::hash_table::Entry as Slot;
use hashbrown::{DefaultHashBuilder, HashTable};
use icefield_format::limits::OPERATION_VARIABLE;

use super::comparable::comparable;
use crate::error::{Error, Result};
use crate::plan::changes::{Change, ChangeType};

/// Rows per batch of remaining rows.
const BATCH_ROWS: usize = 8 << 10;

/// Rows as bytes.
#[derive(Debug)]
pub(super) struct Rows(RowConverter);

impl Rows {
    /// For columns of these types.
    pub(super) fn new(types: impl Iterator<Item = DataType>) -> Result<Self> {
        let fields: Vec<SortField> = types.map(SortField::new).collect();
        Ok(Self(RowConverter::new(fields).map_err(internal)?))
    }

    /// The rows of some columns as bytes, equal if the rows are.
    pub(super) fn of(&self, columns: &[ArrayRef]) -> Result<arrow_row::Rows> {
        let columns = columns.iter().map(comparable).collect::<Result<Vec<_>, _>>().map_err(internal)?;
        self.0.convert_columns(&columns).map_err(internal)
    }
}

/// The remaining changes.
#[derive(Debug)]
pub(super) struct Ledger {
    rows: Arc<Rows>,
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    bytes: Vec<u8>,
    entries: Vec<DistinctRow>,
    /// Memory limit in bytes.
    most: usize,
}

/// A distinct row.
#[derive(Debug)]
struct DistinctRow {
    start: usize,
    length: usize,
    /// Inserts minus deletes.
    count: i64,
    /// The first of the remaining changes.
    change: Change,
}

impl Ledger {
    /// An empty ledger; exceeding `most` bytes is an error.
    pub(super) fn new(rows: Arc<Rows>, most: usize) -> Self {
        let (table, hasher) = (HashTable::new(), DefaultHashBuilder::default());
        Self { rows, hasher, table, bytes: Vec::new(), entries: Vec::new(), most }
    }

    /// Adds a change of each row of some columns.
    pub(super) fn add(&mut self, columns: &[ArrayRef], change: Change) -> Result<()> {
        let step = if change.change_type == ChangeType::Insert { 1 } else { -1 };
        for row in self.rows.of(columns)?.iter() {
            let row = row.data();
            let Self { hasher, table, bytes, entries, .. } = self;
            let of = |place: &u32| stored(bytes, entries, *place);
            match table.entry(
                hasher.hash_one(row),
                |place| of(place) == Some(row),
                |place| hasher.hash_one(of(place).unwrap_or_default()),
            ) {
                Slot::Occupied(place) => {
                    if let Some(entry) = entries.get_mut(*place.get() as usize) {
                        if entry.count == 0 {
                            entry.change = change;
                        }
                        entry.count = entry.count.saturating_add(step);
                    }
                }
                Slot::Vacant(room) => {
                    let place = u32::try_from(entries.len());
                    room.insert(place.map_err(|_| Error::unsupported("a changelog of 2^32 and more different rows"))?);
                    entries.push(DistinctRow { start: bytes.len(), length: row.len(), count: step, change });
                    bytes.extend_from_slice(row);
                }
            }
        }
        self.check()
    }

    fn check(&self) -> Result<()> {
        let table = self.table.allocation_size() + self.entries.capacity() * size_of::<DistinctRow>();
        let held = table.saturating_add(self.bytes.capacity());
        if held <= self.most {
            return Ok(());
        }
        let most = self.most;
        Err(Error::invalid(format!(
            "comparing the rows of this changelog takes more than {most} bytes: read fewer snapshots at a time, filter rows, or \
             raise this limit with {OPERATION_VARIABLE}=BYTES"
        )))
    }

    /// Takes the remaining changes, deleted rows first, and empties the ledger.
    pub(super) fn drain(&mut self) -> Left {
        let entries = std::mem::take(&mut self.entries);
        self.table.clear();
        Left {
            rows: self.rows.clone(),
            bytes: std::mem::take(&mut self.bytes),
            entries,
            change_type: ChangeType::Delete,
            next: 0,
            done: 0,
        }
    }
}

fn stored<'b>(bytes: &'b [u8], entries: &[DistinctRow], place: u32) -> Option<&'b [u8]> {
    let entry = entries.get(place as usize)?;
    bytes.get(entry.start..entry.start.checked_add(entry.length)?)
}

/// The rows that remain.
#[derive(Debug)]
pub(super) struct Left {
    rows: Arc<Rows>,
    bytes: Vec<u8>,
    entries: Vec<DistinctRow>,
    change_type: ChangeType,
    next: usize,
    /// How many times the next row was returned.
    done: u64,
}

/// Remaining rows, all inserted or all deleted.
pub(super) struct LeftRows {
    /// Their columns.
    pub columns: Vec<ArrayRef>,
    /// Their changes.
    pub changes: Vec<Change>,
}

impl Iterator for Left {
    type Item = Result<LeftRows>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (mut rows, mut changes) = (Vec::new(), Vec::new());
            let parser = self.rows.0.parser();
            while changes.len() < BATCH_ROWS
                && let Some(entry) = self.entries.get(self.next)
            {
                let is_own = entry.count != 0 && (entry.count < 0) == (self.change_type == ChangeType::Delete);
                let times = if is_own { entry.count.unsigned_abs() } else { 0 };
                if self.done >= times {
                    (self.next, self.done) = (self.next + 1, 0);
                    continue;
                }
                self.done += 1;
                let row = entry.start.checked_add(entry.length).and_then(|end| self.bytes.get(entry.start..end));
                rows.extend(row.map(|row| parser.parse(row)));
                changes.push(Change { change_type: self.change_type, ..entry.change });
            }
            if !changes.is_empty() {
                return Some(
                    self.rows.0.convert_rows(rows).map_err(internal).map(|columns| LeftRows { columns, changes }),
                );
            }
            match self.change_type {
                ChangeType::Delete => (self.change_type, self.next) = (ChangeType::Insert, 0),
                _ => return None,
            }
        }
    }
}

pub(super) fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("rows of a changelog: {error}"))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Float64Array, Int64Array};

    use super::*;

    fn ledger(most: usize) -> Ledger {
        Ledger::new(Arc::new(Rows::new([DataType::Int64].into_iter()).unwrap()), most)
    }

    fn left(ledger: &mut Ledger) -> Vec<(ChangeType, i32, i64)> {
        let mut found = Vec::new();
        for rows in ledger.drain() {
            let rows = rows.unwrap();
            let values = rows.columns[0].as_primitive::<Int64Type>().values();
            let of = |(change, value): (&Change, &i64)| (change.change_type, change.ordinal, *value);
            found.extend(rows.changes.iter().zip(values).map(of));
        }
        found
    }

    /// As in Java: a change cancels its opposite, and the first remaining change provides the snapshot.
    #[test]
    fn what_is_done_is_undone_by_its_opposite() {
        use ChangeType::{Delete, Insert};
        for (changes, expected) in [
            (vec![(Delete, 0), (Insert, 0)], vec![]),
            (vec![(Insert, 0), (Delete, 1)], vec![]),
            (vec![(Insert, 0), (Delete, 1), (Insert, 1)], vec![(Insert, 1)]),
            (vec![(Delete, 0), (Insert, 1), (Delete, 2)], vec![(Delete, 2)]),
            (vec![(Insert, 3), (Insert, 4)], vec![(Insert, 3), (Insert, 3)]),
            (vec![(Delete, 0), (Delete, 1), (Insert, 2)], vec![(Delete, 0)]),
            (vec![(Delete, 0), (Insert, 0), (Insert, 1)], vec![(Insert, 1)]),
        ] {
            let mut ledger = ledger(1 << 20);
            for (change_type, ordinal) in &changes {
                let change = Change { change_type: *change_type, ordinal: *ordinal, snapshot_id: 1 };
                ledger.add(&[Arc::new(Int64Array::from(vec![7]))], change).unwrap();
            }
            let expected: Vec<_> =
                expected.into_iter().map(|(change_type, ordinal)| (change_type, ordinal, 7)).collect();
            assert_eq!(left(&mut ledger), expected, "{changes:?}");
            assert_eq!(left(&mut ledger), []);
        }
    }

    #[test]
    fn deleted_rows_come_first_and_in_batches() {
        let mut ledger = ledger(1 << 24);
        let many: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
        for (change_type, columns) in
            [(ChangeType::Insert, many.slice(10_000, 10_000)), (ChangeType::Delete, many.slice(0, 10_000))]
        {
            ledger.add(&[columns], Change { change_type, ordinal: 0, snapshot_id: 1 }).unwrap();
        }
        let values: Vec<i64> = left(&mut ledger).into_iter().map(|(_, _, value)| value).collect();
        assert_eq!(values, (0..20_000).collect::<Vec<_>>());
    }

    #[test]
    fn its_memory_is_bounded() {
        let many: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
        let change = Change { change_type: ChangeType::Delete, ordinal: 0, snapshot_id: 1 };
        let error = ledger(100_000).add(&[many], change).unwrap_err().to_string();
        assert!(error.contains("more than 100000 bytes") && error.contains(OPERATION_VARIABLE), "{error}");
    }

    #[test]
    fn nans_are_equal_and_zeros_are_not() {
        let mut ledger = Ledger::new(Arc::new(Rows::new([DataType::Float64].into_iter()).unwrap()), 1 << 20);
        for (change_type, values) in [
            (ChangeType::Delete, vec![Some(f64::NAN), Some(0.0), None]),
            (ChangeType::Insert, vec![Some(f64::from_bits(0xfff8_0000_0000_0001)), Some(-0.0), None]),
        ] {
            let change = Change { change_type, ordinal: 0, snapshot_id: 1 };
            ledger.add(&[Arc::new(Float64Array::from(values))], change).unwrap();
        }
        assert_eq!(ledger.drain().map(|rows| rows.unwrap().changes.len()).sum::<usize>(), 2);
    }
}
