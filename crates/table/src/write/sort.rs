//! Sorts rows by a table's sort order ("Sorting"): transforms by kernel, compared in Arrow's row format. Or along a
//! curve through several columns.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
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
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (number, batch) in batches.iter().enumerate() {
            places.extend((0..batch.num_rows()).map(|row| (number, row)));
        }
        let key = |place: &(usize, usize)| rows.get(place.0).map(|rows| rows.row(place.1));
        match places.len() < PARALLEL_ROWS {
            true => places.sort_by(|a, b| key(a).cmp(&key(b))),
            false => runtime::pool()?.install(|| places.par_sort_by(|a, b| key(a).cmp(&key(b)))),
        }
        let batches = batches.to_vec();
        Ok((0..places.len()).step_by(count.max(1)).map(move |start| {
            let batches: Vec<&RecordBatch> = batches.iter().collect();
            let places = places.get(start..(start + count).min(places.len())).unwrap_or_default();
            interleave_record_batch(&batches, places).map_err(|error| Error::Internal(format!("sorting: {error}")))
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
