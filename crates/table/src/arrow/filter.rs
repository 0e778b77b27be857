//! Filters the rows of a batch.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, ByteArrayType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, GenericByteArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::filter::{FilterBuilder, FilterPredicate};

/// The rows for which `kept` is true; null counts as false. Each column is dropped as soon as its rows are copied, so
/// that no thread of a stream holds two batches.
pub(crate) fn rows_kept(batch: RecordBatch, kept: &BooleanArray) -> Result<RecordBatch, ArrowError> {
    if kept.len() != batch.num_rows() {
        let message = format!("expected a value for each of {} rows, got {}", batch.num_rows(), kept.len());
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let rows = kept.true_count();
    if rows == kept.len() {
        return Ok(batch);
    }
    if rows >= kept.len() / 2 {
        let kept = kept.nulls().map_or_else(|| kept.values().clone(), |nulls| kept.values() & nulls.inner());
        return rows_in(batch, &kept.set_slices().map(|(start, end)| start..end).collect::<Vec<_>>());
    }
    let (schema, columns, _) = batch.into_parts();
    let filter = FilterBuilder::new(kept);
    let filter = if columns.len() > 1 { filter.optimize() } else { filter }.build();
    let copied = |column: ArrayRef| filter.filter(&*column);
    let columns = columns.into_iter().map(copied).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
}

/// The rows in some ranges: ascending, disjoint, within the batch.
///
/// Columns of common types without nulls, the majority, are copied range by range. Building a mask from the ranges,
/// and ranges from the mask again, takes as long as copying two such columns.
pub(crate) fn rows_in(batch: RecordBatch, ranges: &[Range<usize>]) -> Result<RecordBatch, ArrowError> {
    let (schema, columns, all) = batch.into_parts();
    let rows = ranges.iter().fold(0, |sum: usize, range| sum + range.len());
    if ranges.last().is_some_and(|last| last.end > all) {
        return Err(ArrowError::InvalidArgumentError(format!("a range ends after the last of {all} rows")));
    }
    let mask = OnceCell::new();
    let copied = |column: ArrayRef| match column_in(&column, ranges, rows) {
        Some(copied) => Ok(copied),
        None => mask.get_or_init(|| mask_of(ranges, all)).filter(&*column),
    };
    let columns = columns.into_iter().map(copied).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
}

fn mask_of(ranges: &[Range<usize>], all: usize) -> FilterPredicate {
    let mut mask = BooleanBufferBuilder::new(all);
    for range in ranges {
        mask.append_n(range.start.saturating_sub(mask.len()), false);
        mask.append_n(range.len(), true);
    }
    mask.append_n(all.saturating_sub(mask.len()), false);
    FilterBuilder::new(&BooleanArray::new(mask.build(), None)).optimize().build()
}

/// Some rows of a column of a common type without nulls; `None` for other columns.
fn column_in(column: &ArrayRef, ranges: &[Range<usize>], rows: usize) -> Option<ArrayRef> {
    if column.null_count() > 0 {
        return None;
    }
    match column.data_type() {
        DataType::Int32 => numbers_in::<Int32Type>(column, ranges, rows),
        DataType::Int64 => numbers_in::<Int64Type>(column, ranges, rows),
        DataType::Float32 => numbers_in::<Float32Type>(column, ranges, rows),
        DataType::Float64 => numbers_in::<Float64Type>(column, ranges, rows),
        DataType::Date32 => numbers_in::<Date32Type>(column, ranges, rows),
        DataType::Decimal128(..) => numbers_in::<Decimal128Type>(column, ranges, rows),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers_in::<TimestampMicrosecondType>(column, ranges, rows),
        DataType::Utf8 => bytes_in::<Utf8Type>(column, ranges, rows),
        DataType::Binary => bytes_in::<BinaryType>(column, ranges, rows),
        DataType::Boolean => booleans_in(column, ranges, rows),
        _ => None,
    }
}

fn numbers_in<T: ArrowPrimitiveType>(column: &ArrayRef, ranges: &[Range<usize>], rows: usize) -> Option<ArrayRef> {
    let values = column.as_primitive_opt::<T>()?.values();
    let mut copied: Vec<T::Native> = Vec::with_capacity(rows);
    ranges.iter().for_each(|range| copied.extend_from_slice(values.get(range.clone()).unwrap_or_default()));
    let made = PrimitiveArray::<T>::try_new(ScalarBuffer::from(copied), None).ok()?;
    Some(Arc::new(made.with_data_type(column.data_type().clone())))
}

fn bytes_in<T: ByteArrayType<Offset = i32>>(
    column: &ArrayRef,
    ranges: &[Range<usize>],
    rows: usize,
) -> Option<ArrayRef> {
    let array = column.as_bytes_opt::<T>()?;
    let (offsets, bytes) = (array.value_offsets(), array.value_data());
    let mut copied = Vec::with_capacity(bytes.len());
    let mut ends = Vec::with_capacity(rows + 1);
    ends.push(0);
    for range in ranges {
        let (start, rest) = offsets.get(range.start..=range.end)?.split_first()?;
        let moved = i32::try_from(copied.len()).ok()?;
        ends.extend(rest.iter().map(|end| moved + (end - start)));
        let end = rest.last().unwrap_or(start);
        copied.extend_from_slice(bytes.get(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?)?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    // SAFETY: each value is one of the array, whole, so that texts are UTF-8; the offsets ascend and end with the bytes.
    Some(Arc::new(unsafe { GenericByteArray::<T>::new_unchecked(offsets, Buffer::from_vec(copied), None) }))
}

fn booleans_in(column: &ArrayRef, ranges: &[Range<usize>], rows: usize) -> Option<ArrayRef> {
    let bits = column.as_boolean_opt()?.values();
    let mut copied = BooleanBufferBuilder::new(rows);
    for range in ranges {
        copied.append_packed_range(bits.offset() + range.start..bits.offset() + range.end, bits.values());
    }
    Some(Arc::new(BooleanArray::new(copied.build(), None)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Decimal128Array, Int32Array, StringArray, TimestampMicrosecondArray};
    use arrow_schema::Schema;

    use super::*;

    #[test]
    fn rows_of_ranges_are_those_of_their_mask() {
        let mut random = 7_u64;
        let mut next = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        let count = 300;
        let numbers = |offset: i32| (offset..offset + count).collect::<Vec<_>>();
        let texts = |row: &i32| (row % 7 > 0).then(|| format!("text {row}"));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("int", Arc::new(Int32Array::from(numbers(3)))),
            ("some", Arc::new(numbers(0).iter().map(|row| (row % 5 > 0).then_some(*row)).collect::<Int32Array>())),
            ("sliced", Arc::new(Int32Array::from((0..2 * count).collect::<Vec<_>>()).slice(17, 300))),
            ("full", Arc::new(StringArray::from_iter_values((0..400).map(|row| format!("täxt {row}"))).slice(50, 300))),
            ("yes", Arc::new(BooleanArray::from_iter((0..400).map(|row| Some(row % 3 > 0))).slice(13, 300))),
            ("text", Arc::new(numbers(0).iter().map(texts).collect::<StringArray>())),
            (
                "boolean",
                Arc::new(BooleanArray::from_iter(numbers(0).iter().map(|row| (row % 4 > 0).then_some(row % 3 > 0)))),
            ),
            (
                "decimal",
                Arc::new(
                    Decimal128Array::from_iter_values(numbers(0).into_iter().map(i128::from))
                        .with_precision_and_scale(9, 2)
                        .unwrap(),
                ),
            ),
            (
                "time",
                Arc::new(
                    TimestampMicrosecondArray::from_iter_values(numbers(0).into_iter().map(i64::from))
                        .with_timezone("UTC"),
                ),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        for _ in 0..50 {
            let (mut ranges, mut at) = (Vec::new(), 0);
            while at < batch.num_rows() {
                let start = at + next(9) as usize;
                at = (start + 1 + next(20) as usize).min(batch.num_rows());
                ranges.extend((start < at).then_some(start..at));
            }
            let mask: BooleanArray =
                (0..batch.num_rows()).map(|row| Some(ranges.iter().any(|range| range.contains(&row)))).collect();
            assert_eq!(rows_in(batch.clone(), &ranges).unwrap(), rows_kept(batch.clone(), &mask).unwrap());
        }
        assert_eq!(rows_in(batch.clone(), &[]).unwrap().num_rows(), 0);
        assert!(rows_in(batch, std::slice::from_ref(&(299..301))).is_err());
    }

    #[test]
    fn rows_are_kept_in_all_columns_and_counted_where_there_are_none() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap();
        let kept = BooleanArray::from(vec![Some(false), Some(true), Some(true)]);
        assert_eq!(rows_kept(batch.clone(), &kept).unwrap(), batch.slice(1, 2));
        assert_eq!(rows_kept(batch.clone(), &BooleanArray::from(vec![true; 3])).unwrap(), batch);
        let unknown = BooleanArray::from(vec![Some(true), None, Some(false)]);
        assert_eq!(rows_kept(batch.clone(), &unknown).unwrap(), batch.slice(0, 1));
        let one = batch.project(&[1]).unwrap();
        assert_eq!(rows_kept(one.clone(), &kept).unwrap(), one.slice(1, 2));
        let empty = RecordBatchOptions::new().with_row_count(Some(3));
        let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &empty).unwrap();
        assert_eq!(rows_kept(empty, &kept).unwrap().num_rows(), 2);
        assert!(rows_kept(batch, &BooleanArray::from(vec![true, false])).is_err());
    }
}
