//! Assembles batches from columns decoded here and columns decoded by the parquet crate.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::selection::{Rows, Selected};
use crate::arrow::filter::rows_in;
use crate::file::parquet::flat::booleans::Booleans;
use crate::file::parquet::flat::byte_arrays::ByteArrays;
use crate::file::parquet::flat::column::{Chunks, Column, FlatColumn};
use crate::file::parquet::flat::numbers::{Doubles, Floats, IntDecimals, Ints, LongDecimals, Longs, Number, Numbers};
use crate::file::parquet::guard::internal;

/// The columns of some leaves, read in step.
pub(super) struct Columns {
    /// Reader of the columns that the parquet crate decodes; `None` if there are none.
    others: Option<ParquetRecordBatchReader>,
    /// Columns decoded here, each with its position in the batch.
    own: Vec<(usize, Box<dyn FlatColumn>)>,
    schema: SchemaRef,
    rows: Rows,
    batch_rows: usize,
}

impl Columns {
    /// The columns of some leaves in some row groups: all rows, or the selected ones, in batches of `batch_rows`
    /// decoded rows.
    pub(super) fn new(
        groups: &dyn RowGroups,
        descriptor: &SchemaDescriptor,
        fields: &Fields,
        leaves: &[usize],
        batch_rows: usize,
        selected: Option<Selected>,
    ) -> Result<Self> {
        // The parquet crate reserves memory for a whole batch of each column before it reads.
        let batch_rows = batch_rows.min(groups.num_rows().max(1));
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let leaves: BTreeSet<usize> = leaves.iter().copied().collect();
        let roots: Vec<usize> = leaves
            .iter()
            .map(|leaf| descriptor.get_column_root_idx(*leaf))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for leaf in leaves {
            let place = roots.binary_search(&descriptor.get_column_root_idx(leaf));
            let place = place.map_err(|_| internal("a leaf without its column"))?;
            match flat_column(groups, descriptor, fields, leaf)? {
                Some(column) => own.push((place, column)),
                None => others.push(leaf),
            }
        }
        let rows = selected.map_or_else(|| Rows::all(groups.num_rows()), Selected::joined);
        let mut of_others = Fields::empty();
        let others = if others.is_empty() && !own.is_empty() {
            None
        } else {
            let mask = ProjectionMask::leaves(descriptor, others);
            let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(fields))?;
            let made =
                ParquetRecordBatchReader::try_new_with_row_groups(&levels, groups, batch_rows, rows.selection())?;
            of_others = made.schema().fields().clone();
            Some(made)
        };
        let of_own = roots.iter().map(|root| fields.get(*root).cloned());
        let mut all = of_others.iter().cloned();
        let field = |(place, own_field): (usize, Option<FieldRef>)| match own.iter().any(|(own, _)| *own == place) {
            true => own_field,
            false => all.next(),
        };
        let schema: Option<Fields> = of_own.enumerate().map(field).collect();
        let schema =
            schema.ok_or_else(|| ParquetError::General("its columns are not those of its schema".to_owned()))?;
        Ok(Self { others, own, schema: Arc::new(Schema::new(schema)), rows, batch_rows })
    }

    /// The columns of each batch.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next batch.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.next_of(None)
    }

    /// The next batch; `numbers` receives the numbers of its rows through the row groups.
    pub(super) fn next_of(&mut self, numbers: Option<&mut Vec<Range<usize>>>) -> Result<Option<RecordBatch>> {
        let others = match &mut self.others {
            Some(others) => match others.next().transpose()? {
                Some(batch) => Some(batch),
                None => return Ok(None),
            },
            None => None,
        };
        let count = others.as_ref().map_or_else(|| self.rows.left().min(self.batch_rows), RecordBatch::num_rows);
        if count == 0 {
            return Ok(None);
        }
        let taken = self.rows.take(count)?;
        if let Some(numbers) = numbers {
            numbers.extend(taken.wanted.numbers());
        }
        let places = if others.is_some() { taken.places() } else { None };
        let others = match (others, places) {
            (Some(batch), Some(places)) => Some(rows_in(batch, &places)?),
            (others, _) => others,
        };
        let count = taken.wanted.count();
        let mut columns = others.map(|batch| batch.into_parts().1).unwrap_or_default();
        for (place, column) in &mut self.own {
            columns.insert((*place).min(columns.len()), column.read(&taken.wanted, count)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?))
    }
}

/// The column of a leaf in some row groups; `None` if the parquet crate has to decode it.
pub(super) fn flat_column(
    groups: &dyn RowGroups,
    schema: &SchemaDescriptor,
    fields: &Fields,
    leaf: usize,
) -> Result<Option<Box<dyn FlatColumn>>> {
    let column = schema.column(leaf);
    let ty = fields.get(schema.get_column_root_idx(leaf)).map(|field| field.data_type());
    // Lists, maps and structs need record assembly from levels, which is the parquet crate's.
    if column.max_rep_level() > 0 || column.max_def_level() > 1 || !schema.get_column_root(leaf).is_primitive() {
        return Ok(None);
    }
    let chunks = || -> Result<_> {
        let rows = groups.row_groups().map(|group| usize::try_from(group.num_rows()));
        Ok((groups.column_chunks(leaf)?, rows.collect::<Result<_, _>>()?))
    };
    Ok(match (column.physical_type(), ty) {
        // DELTA_LENGTH_BYTE_ARRAY stores lengths first, and the parquet crate copies all values of a page together.
        (PhysicalType::BYTE_ARRAY, _) if has_lengths_first(groups, leaf) => None,
        (PhysicalType::BYTE_ARRAY, Some(ty @ (DataType::Utf8 | DataType::Binary))) => {
            Some(Box::new(Column::new(chunks()?, column, ByteArrays::new(*ty == DataType::Utf8))))
        }
        (PhysicalType::BOOLEAN, Some(DataType::Boolean)) => {
            Some(Box::new(Column::new(chunks()?, column, Booleans::default())))
        }
        // The parquet crate decodes other encodings a batch at a time, and not a page at a time.
        _ if !is_plain_or_keys(groups, leaf) => None,
        (PhysicalType::INT32, Some(DataType::Int32 | DataType::Date32)) => numbers::<Ints>(chunks()?, column, ty),
        (PhysicalType::INT32, Some(DataType::Decimal128(..))) => numbers::<IntDecimals>(chunks()?, column, ty),
        (PhysicalType::INT64, Some(DataType::Int64 | DataType::Time64(_) | DataType::Timestamp(..))) => {
            numbers::<Longs>(chunks()?, column, ty)
        }
        (PhysicalType::INT64, Some(DataType::Decimal128(..))) => numbers::<LongDecimals>(chunks()?, column, ty),
        (PhysicalType::FLOAT, Some(DataType::Float32)) => numbers::<Floats>(chunks()?, column, ty),
        (PhysicalType::DOUBLE, Some(DataType::Float64)) => numbers::<Doubles>(chunks()?, column, ty),
        _ => None,
    })
}

/// A numeric column.
fn numbers<N: Number + 'static>(
    chunks: Chunks,
    column: ColumnDescPtr,
    ty: Option<&DataType>,
) -> Option<Box<dyn FlatColumn>> {
    Some(Box::new(Column::new(chunks, column, Numbers::<N>::new(ty?.clone()))))
}

/// Whether the footer says that all pages of a column are PLAIN or dictionary-encoded; RLE is that of levels and keys.
fn is_plain_or_keys(groups: &dyn RowGroups, leaf: usize) -> bool {
    let mut chunks = groups.row_groups().filter_map(|group| group.columns().get(leaf));
    chunks.all(|chunk| {
        let mut others = chunk.encodings();
        others.all(|encoding| {
            matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE)
        })
    })
}

/// Whether the footer says that pages of a column store the lengths of all values first (DELTA_LENGTH_BYTE_ARRAY).
fn has_lengths_first(groups: &dyn RowGroups, leaf: usize) -> bool {
    let mut chunks = groups.row_groups().filter_map(|group| group.columns().get(leaf));
    let are_first = |encoding| matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY);
    chunks.any(|chunk| chunk.encodings().any(are_first))
}

#[cfg(test)]
mod tests;
