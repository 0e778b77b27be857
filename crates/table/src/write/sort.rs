//! Sorts rows by a table's sort order ("Sorting"): transforms by kernel, compared in Arrow's row format. Or along a
//! curve through several columns.

use std::cmp::Ordering;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{Row, RowConverter, Rows, SortField};
use arrow_schema::SortOptions;
use arrow_select::interleave::interleave_record_batch;

use icefield_format::spec::{NullOrder, SortDirection, SortOrder};
use icefield_format::transform::Transform;
use icefield_format::types::Schema;
use rayon::prelude::*;

use super::curve::{Curve, CurveKeys};
use crate::arrow::cells::StoredColumn;
use crate::error::{Error, Result};
use crate::runtime;

/// Rows that are sorted by several threads; below, starting them takes longer.
const PARALLEL_ROWS: usize = 1 << 14;

/// A row, and the first bytes of its key that tell it from others: most comparisons need no more.
#[derive(Debug, Clone, Copy)]
struct Place {
    head: u64,
    batch: u32,
    row: u32,
}

impl Place {
    fn index(&self) -> (usize, usize) {
        (self.batch as usize, self.row as usize)
    }
}

/// The encoded keys of batches.
struct Keys<'a> {
    rows: &'a [Rows],
    /// Bytes at the start of all keys that are the same, such as those that say that a value is not null.
    shared: usize,
    /// Whether the heads of places are the whole keys.
    is_whole: bool,
}

impl<'a> Keys<'a> {
    fn of(rows: &'a [Rows]) -> Self {
        let Some(first) = rows.iter().flatten().next() else { return Self { rows, shared: 0, is_whole: true } };
        let first = first.as_ref();
        let (mut shared, mut has_one_length) = (first.len(), true);
        for row in rows.iter().flatten() {
            let key = row.as_ref();
            has_one_length &= key.len() == first.len();
            let start = first.get(..shared).unwrap_or(first);
            if !key.starts_with(start) {
                shared = start.iter().zip(key).take_while(|(a, b)| a == b).count();
            }
        }
        Self { rows, shared, is_whole: has_one_length && first.len() - shared <= size_of::<u64>() }
    }

    fn places(&self) -> Result<Vec<Place>> {
        let number = |number: usize| {
            u32::try_from(number).map_err(|_| Error::unsupported("sorting: more than 4294967296 rows in a batch"))
        };
        let mut places = Vec::with_capacity(self.rows.iter().map(Rows::num_rows).sum());
        for (batch, rows) in self.rows.iter().enumerate() {
            let batch = number(batch)?;
            for (row, key) in rows.iter().enumerate() {
                places.push(Place {
                    head: head(key.as_ref().get(self.shared..).unwrap_or_default()),
                    batch,
                    row: number(row)?,
                });
            }
        }
        Ok(places)
    }

    fn order(&self, a: &Place, b: &Place) -> Ordering {
        match a.head.cmp(&b.head) {
            Ordering::Equal if !self.is_whole => self.key(a).cmp(&self.key(b)),
            order => order,
        }
    }

    fn key(&self, place: &Place) -> Option<Row<'_>> {
        let (batch, row) = place.index();
        self.rows.get(batch).map(|rows| rows.row(row))
    }
}

/// The first bytes of a key as a number, with zeros after those of a short one: less only if the key is less.
fn head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; size_of::<u64>()];
    bytes.iter_mut().zip(key).for_each(|(byte, of_key)| *byte = *of_key);
    u64::from_be_bytes(bytes)
}

/// Sorts stored batches.
#[derive(Debug)]
pub struct Sorter {
    keys: SortKeys,
}

#[derive(Debug)]
enum SortKeys {
    Columns(Vec<(StoredColumn, Transform, SortOptions)>),
    Curve(CurveKeys),
}

impl Sorter {
    /// A sorter for an order; `None` if the order is empty or has an unknown transform: files are then written and
    /// marked as unsorted.
    pub fn new(order: &SortOrder, schema: &Schema) -> Result<Option<Self>> {
        let mut keys = Vec::with_capacity(order.fields.len());
        for field in &order.fields {
            let [source_id] = field.source_ids.as_slice() else { return Ok(None) };
            match &field.transform {
                Transform::Unknown(_) => return Ok(None),
                Transform::Void => continue,
                transform => {
                    let options = SortOptions {
                        descending: field.direction == SortDirection::Descending,
                        nulls_first: field.null_order == NullOrder::First,
                    };
                    keys.push((StoredColumn::find(schema, *source_id)?, transform.clone(), options));
                }
            }
        }
        Ok((!keys.is_empty()).then_some(Self { keys: SortKeys::Columns(keys) }))
    }

    /// A sorter along a curve.
    ///
    /// # Errors
    /// Columns that the schema lacks, or that have no place on a curve.
    pub fn along(curve: &Curve, schema: &Schema) -> Result<Self> {
        Ok(Self { keys: SortKeys::Curve(CurveKeys::new(curve, schema)?) })
    }

    /// All rows of the batches, sorted, in batches of `count`; equal rows keep their order.
    pub fn sort(
        &self,
        batches: &[RecordBatch],
        count: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let mut converter = None;
        let rows = batches.iter().map(|batch| self.rows(batch, &mut converter)).collect::<Result<Vec<_>>>()?;
        let keys = Keys::of(&rows);
        let mut places = keys.places()?;
        match places.len() < PARALLEL_ROWS {
            true => places.sort_by(|a, b| keys.order(a, b)),
            false => runtime::pool()?.install(|| places.par_sort_by(|a, b| keys.order(a, b))),
        }
        let batches = batches.to_vec();
        Ok((0..places.len()).step_by(count.max(1)).map(move |start| {
            let batches: Vec<&RecordBatch> = batches.iter().collect();
            let places = places.get(start..start.saturating_add(count).min(places.len())).unwrap_or_default();
            let places: Vec<(usize, usize)> = places.iter().map(Place::index).collect();
            interleave_record_batch(&batches, &places).map_err(|error| Error::Internal(format!("sorting: {error}")))
        }))
    }

    /// The sort keys of a batch; the converter is shared by all batches.
    pub(super) fn rows(&self, batch: &RecordBatch, converter: &mut Option<RowConverter>) -> Result<Rows> {
        let (columns, options) = self.columns(batch)?;
        let failed = |error: arrow_schema::ArrowError| Error::unsupported(format!("sorting: {error}"));
        if converter.is_none() {
            let fields = columns.iter().zip(options);
            let fields =
                fields.map(|(column, options)| SortField::new_with_options(column.data_type().clone(), options));
            *converter = Some(RowConverter::new(fields.collect()).map_err(failed)?);
        }
        let converter = converter.as_mut().ok_or_else(|| Error::Internal("no converter".into()))?;
        converter.convert_columns(&columns).map_err(failed)
    }

    /// The columns to compare, and how.
    fn columns(&self, batch: &RecordBatch) -> Result<(Vec<ArrayRef>, Vec<SortOptions>)> {
        let keys = match &self.keys {
            SortKeys::Curve(curve) => return Ok((vec![curve.of(batch)?], vec![SortOptions::default()])),
            SortKeys::Columns(keys) => keys,
        };
        let columns = keys.iter().map(|(column, transform, _)| {
            transform.kernel(&column.of(batch)?).map_err(|error| match error {
                // The rows are no longer in input order, so the error has no row number.
                icefield_format::Error::Value { message, .. } => {
                    Error::column(column.to_string(), format!("a row has no place in the sort order: {message}"))
                }
                other => other.into(),
            })
        });
        Ok((columns.collect::<Result<Vec<_>>>()?, keys.iter().map(|(.., options)| *options).collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int32Array, Int64Array, StringArray};
    use icefield_format::spec::SortField;
    use icefield_format::types::{Field, PrimitiveType};
    use proptest::prelude::*;

    use super::*;

    /// A row: values of the columns `text`, `int` and `long`.
    type Drawn = (Option<String>, Option<i32>, Option<i64>);

    /// A column of an order, whether it is descending, and whether nulls are first.
    type Key = (usize, bool, bool);

    fn drawn() -> impl Strategy<Value = Drawn> {
        let text = "(a{20}|a{8}|a{7}|a{3}|)[ab\\x00]{0,2}";
        let int = prop_oneof![-2..3_i32, 1000..1300_i32, any::<i32>()];
        let long = prop_oneof![-2..3_i64, 1_000_000..1_000_600_i64, any::<i64>()];
        (proptest::option::of(text), proptest::option::of(int), proptest::option::of(long))
    }

    fn batch(rows: &[Drawn], first: usize) -> RecordBatch {
        let numbers = first as i64..(first + rows.len()) as i64;
        RecordBatch::try_from_iter_with_nullable([
            ("text", Arc::new(rows.iter().map(|row| row.0.clone()).collect::<StringArray>()) as ArrayRef, true),
            ("int", Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>()) as ArrayRef, true),
            ("long", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()) as ArrayRef, true),
            ("row", Arc::new(numbers.collect::<Int64Array>()) as ArrayRef, true),
        ])
        .unwrap()
    }

    fn sorter(keys: &[Key]) -> Sorter {
        let fields = vec![
            Field::optional(1, "text", PrimitiveType::String),
            Field::optional(2, "int", PrimitiveType::Int),
            Field::optional(3, "long", PrimitiveType::Long),
            Field::optional(4, "row", PrimitiveType::Long),
        ];
        let fields_of_order = keys.iter().map(|(column, descending, nulls_first)| SortField {
            source_ids: vec![*column as i32 + 1],
            transform: Transform::Identity,
            direction: if *descending { SortDirection::Descending } else { SortDirection::Ascending },
            null_order: if *nulls_first { NullOrder::First } else { NullOrder::Last },
        });
        let order = SortOrder { order_id: 1, fields: fields_of_order.collect() };
        Sorter::new(&order, &Schema::new(0, fields).unwrap()).unwrap().unwrap()
    }

    fn value_order<T: Ord>(a: &Option<T>, b: &Option<T>, (_, descending, nulls_first): &Key) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) if *descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            _ if *nulls_first => a.is_some().cmp(&b.is_some()),
            _ => b.is_some().cmp(&a.is_some()),
        }
    }

    fn expected_order(a: &Drawn, b: &Drawn, keys: &[Key]) -> Ordering {
        keys.iter().fold(Ordering::Equal, |order, key| {
            order.then_with(|| match key.0 {
                0 => value_order(&a.0, &b.0, key),
                1 => value_order(&a.1, &b.1, key),
                _ => value_order(&a.2, &b.2, key),
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever keys share, and whether one thread sorts or several, rows come as a stable sort of values has them.
        #[test]
        fn rows_are_in_the_order_of_a_stable_sort_of_values(
            rows in proptest::collection::vec(drawn(), 0..200),
            keys in proptest::collection::vec((0..3_usize, any::<bool>(), any::<bool>()), 1..3),
            of_batch in 1..100_usize,
            is_large in proptest::bool::weighted(0.1),
        ) {
            let count = if is_large { rows.len() * (PARALLEL_ROWS / rows.len().max(1) + 1) } else { rows.len() };
            let of_batch = if is_large { of_batch * 50 } else { of_batch };
            let rows: Vec<Drawn> = rows.iter().cycle().take(count).cloned().collect();
            let batches: Vec<RecordBatch> =
                rows.chunks(of_batch).enumerate().map(|(number, rows)| batch(rows, number * of_batch)).collect();
            let sorted = sorter(&keys).sort(&batches, 1000).unwrap();
            let found: Vec<i64> =
                sorted.flat_map(|batch| batch.unwrap().column(3).as_primitive::<Int64Type>().values().to_vec()).collect();
            let mut expected: Vec<i64> = (0..rows.len() as i64).collect();
            expected.sort_by(|a, b| expected_order(&rows[*a as usize], &rows[*b as usize], &keys));
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn heads_never_contradict_keys(
            a in proptest::collection::vec(0..3_u8, 0..12),
            b in proptest::collection::vec(0..3_u8, 0..12),
        ) {
            prop_assert!(head(&a).cmp(&head(&b)).is_eq() || head(&a).cmp(&head(&b)) == a.cmp(&b), "{:?} {:?}", a, b);
        }
    }
}
