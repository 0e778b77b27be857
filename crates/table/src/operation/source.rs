//! The source of an upsert: its rows in memory, found by their keys.
//!
//! Keys are compared in Arrow's row form: null equals null, NaN equals NaN, and -0.0 is not 0.0.

use std::collections::HashSet;
use std::hash::BuildHasher;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_cast::display::array_value_to_string;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, Schema as ArrowSchema};
use arrow_select::interleave::interleave;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use icefield_format::expr::{Comparison, Expr, Expression, Literal, Predicate, Term, Test};
use icefield_format::types::{PrimitiveType, Schema, Type};

use crate::arrow::cells::{StoredColumn, value_at};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::write::Matching;
use crate::write::conform::Conform;
use crate::write::intake::Intake;

/// Keys that are looked for one by one in metadata; more are looked for between the least and the greatest.
const MOST_KEYS: usize = 200;

/// The rows of a source.
pub(super) struct Source {
    /// As the table stores them: all of its columns.
    batches: Vec<RecordBatch>,
    /// The number of the first row of each batch.
    starts: Vec<usize>,
    len: usize,
    /// Columns that were given; the others have defaults.
    given: HashSet<String>,
    key: Vec<(i32, StoredColumn)>,
    converter: RowConverter,
    keys: Vec<Rows>,
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
}

impl Source {
    /// Reads all rows.
    ///
    /// # Errors
    /// Rows that do not fit the table, two rows with the same key, and key columns that the data lack.
    pub(super) fn read(
        table: &Schema,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        key: &[i32],
    ) -> Result<Self> {
        let given: HashSet<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let conform = Conform::new(table, schema, Matching::default())?;
        let stored = conform.schema().clone();
        let columns = key.iter().map(|id| Ok((*id, StoredColumn::find(table, *id)?))).collect::<Result<Vec<_>>>()?;
        let empty = RecordBatch::new_empty(stored);
        let mut fields = Vec::with_capacity(columns.len());
        for (_, column) in &columns {
            let name = column.to_string();
            if !given.contains(name.split('.').next().unwrap_or(&name)) {
                return Err(Error::column(name, "is a column of the key, and the data lack it"));
            }
            fields.push(SortField::new(column.of(&empty)?.data_type().clone()));
        }
        let converter = RowConverter::new(fields).map_err(|error| Error::unsupported(format!("the key: {error}")))?;
        let mut own = Self {
            batches: Vec::new(),
            starts: Vec::new(),
            len: 0,
            given,
            key: columns,
            converter,
            keys: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
        };
        let mut intake = Intake::new(conform, None, None);
        for batch in batches {
            interrupt::check()?;
            own.add(intake.prepare(&batch?)?.chunk)?;
        }
        Ok(own)
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let columns = self.key.iter().map(|(_, column)| column.of(&batch)).collect::<Result<Vec<_>>>()?;
        let keys = self.converter.convert_columns(&columns).map_err(internal)?;
        let first = self.len;
        self.starts.push(first);
        self.keys.push(keys);
        self.batches.push(batch);
        let rows = self.batches.last().map_or(0, RecordBatch::num_rows);
        self.len = first + rows;
        for row in first..self.len {
            let number = u32::try_from(row).map_err(|_| Error::unsupported("a source of more than 2^32 rows"))?;
            let (keys, starts, hasher) = (&self.keys, &self.starts, &self.hasher);
            let bytes = |number: u32| key_of(keys, starts, number as usize);
            let own = bytes(number);
            let known = self.table.entry(
                hasher.hash_one(own),
                |other| bytes(*other) == own,
                |other| hasher.hash_one(bytes(*other)),
            );
            match known {
                Entry::Vacant(place) => drop(place.insert(number)),
                Entry::Occupied(_) => {
                    let shown = self.key.iter().zip(&columns).map(|((_, name), column)| {
                        let value = array_value_to_string(column, row - first).unwrap_or_default();
                        format!("{name} = {}", if column.is_null(row - first) { "null".to_owned() } else { value })
                    });
                    let shown: Vec<String> = shown.collect();
                    return Err(Error::invalid(format!(
                        "two rows of the source have the key {}: nothing was changed",
                        shown.join(", ")
                    )));
                }
            }
        }
        Ok(())
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rows, as the table stores them.
    pub(super) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// For every row of a batch of the table, the row with the same key.
    pub(super) fn find(&self, batch: &RecordBatch) -> Result<Vec<Option<u32>>> {
        let columns = self.key.iter().map(|(_, column)| column.of(batch)).collect::<Result<Vec<_>>>()?;
        let keys = self.converter.convert_columns(&columns).map_err(internal)?;
        let find = |key: arrow_row::Row<'_>| {
            let key = key.as_ref();
            let same = |number: &u32| key_of(&self.keys, &self.starts, *number as usize) == key;
            self.table.find(self.hasher.hash_one(key), same).copied()
        };
        Ok(keys.iter().map(find).collect())
    }

    /// Values of a column in some rows; none where the column was not given.
    pub(super) fn column(&self, name: &str, rows: &[u32]) -> Result<Option<ArrayRef>> {
        if !self.given.contains(name) {
            return Ok(None);
        }
        let columns: Option<Vec<&dyn Array>> =
            self.batches.iter().map(|batch| batch.column_by_name(name).map(|column| &**column)).collect();
        let Some(columns) = columns else { return Ok(None) };
        let places: Vec<(usize, usize)> = rows.iter().map(|row| place(&self.starts, *row as usize)).collect();
        interleave(&columns, &places).map(Some).map_err(internal)
    }

    /// The rows of a batch that are not marked.
    pub(super) fn unmatched(&self, batch: usize, matched: &[bool]) -> BooleanArray {
        let start = self.starts.get(batch).copied().unwrap_or(0);
        let rows = self.batches.get(batch).map_or(0, RecordBatch::num_rows);
        let is_left = |row: usize| !matched.get(start + row).copied().unwrap_or(false);
        BooleanArray::new(BooleanBuffer::collect_bool(rows, is_left), None)
    }

    /// What rows of the table have that may have a key of the source.
    pub(super) fn key_filter(&self, schema: &Schema) -> Result<Expr> {
        let mut all = Vec::new();
        for (id, column) in &self.key {
            let Some(Type::Primitive(ty)) = schema.find_type(*id) else { continue };
            if !is_ordered(ty) {
                continue;
            }
            let name = schema.column_name(*id).unwrap_or_default();
            all.extend(self.values_filter(name, ty, column)?);
        }
        Ok(Expr::all(all))
    }

    fn values_filter(&self, name: &str, ty: &PrimitiveType, column: &StoredColumn) -> Result<Option<Expr>> {
        let columns = self.batches.iter().map(|batch| column.of(batch)).collect::<Result<Vec<_>>>()?;
        let Some(first) = columns.first() else { return Ok(None) };
        let converter = RowConverter::new(vec![SortField::new(first.data_type().clone())]).map_err(internal)?;
        let rows = columns.iter().map(|column| converter.convert_columns(std::slice::from_ref(column)));
        let rows = rows.collect::<std::result::Result<Vec<_>, _>>().map_err(internal)?;
        let (mut ends, mut has_null) = (None::<((usize, usize), (usize, usize))>, false);
        let row = |(batch, row): (usize, usize)| rows.get(batch).map(|rows: &Rows| rows.row(row));
        for (batch, column) in columns.iter().enumerate() {
            for place in (0..column.len()).map(|row| (batch, row)) {
                if column.is_null(place.1) {
                    has_null = true;
                    continue;
                }
                ends = Some(match ends {
                    None => (place, place),
                    Some((least, most)) => (
                        if row(place) < row(least) { place } else { least },
                        if row(place) > row(most) { place } else { most },
                    ),
                });
            }
        }
        let literal = |(batch, row): (usize, usize)| {
            let column = columns.get(batch).ok_or_else(|| Error::Internal("no column".to_owned()))?;
            let value = value_at(column, ty, row)?.ok_or_else(|| Error::Internal("no value".to_owned()))?;
            Ok::<_, Error>(Literal::new(ty.clone(), value)?)
        };
        let test = |test| Expression::Predicate(Predicate { term: Term::column(name), test });
        let mut found = Vec::new();
        if let Some((least, most)) = ends {
            if self.len <= MOST_KEYS {
                let places = (0..self.len).map(|row| place(&self.starts, row));
                let valid =
                    places.filter(|(batch, row)| columns.get(*batch).is_some_and(|column| column.is_valid(*row)));
                found.push(test(Test::In(valid.map(literal).collect::<Result<_>>()?)));
            } else {
                let from = test(Test::Compare(Comparison::GtEq, literal(least)?));
                found.push(Expr::and(from, test(Test::Compare(Comparison::LtEq, literal(most)?))));
            }
        }
        if has_null {
            found.push(test(Test::IsNull));
        }
        Ok(Some(Expr::any(found)))
    }
}

/// Whether the order of a type's values is the same in metadata, in files and in Arrow's row form.
fn is_ordered(ty: &PrimitiveType) -> bool {
    use PrimitiveType as P;
    matches!(
        ty,
        P::Int
            | P::Long
            | P::Date
            | P::Time
            | P::Timestamp
            | P::Timestamptz
            | P::TimestampNs
            | P::TimestamptzNs
            | P::String
    )
}

/// The batch of a row, and its place there.
fn place(starts: &[usize], row: usize) -> (usize, usize) {
    let batch = starts.partition_point(|start| *start <= row).saturating_sub(1);
    (batch, row - starts.get(batch).copied().unwrap_or(0))
}

fn key_of<'k>(keys: &'k [Rows], starts: &[usize], row: usize) -> &'k [u8] {
    let (batch, row) = place(starts, row);
    keys.get(batch).map_or(&[], |keys| keys.row(row).data())
}

/// The rows in which one of some pairs of columns differs.
pub(super) fn differences(pairs: &[(ArrayRef, ArrayRef)], rows: usize) -> Result<BooleanArray> {
    let mut differ = BooleanBuffer::new_unset(rows);
    for (old, new) in pairs {
        let of_column = match RowConverter::supports_fields(&[SortField::new(old.data_type().clone())]) {
            true => {
                let converter = RowConverter::new(vec![SortField::new(old.data_type().clone())]).map_err(internal)?;
                let old = converter.convert_columns(std::slice::from_ref(old)).map_err(internal)?;
                let new = converter.convert_columns(std::slice::from_ref(new)).map_err(internal)?;
                BooleanBuffer::collect_bool(rows, |row| old.row(row) != new.row(row))
            }
            false => {
                let mut differ = BooleanBufferBuilder::new(rows);
                (0..rows).for_each(|row| differ.append(old.slice(row, 1).to_data() != new.slice(row, 1).to_data()));
                differ.finish()
            }
        };
        differ = &differ | &of_column;
    }
    Ok(BooleanArray::new(differ, None))
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("upsert: {error}"))
}
