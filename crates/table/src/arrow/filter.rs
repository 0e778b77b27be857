//! Batches without some of their rows.

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::ArrowError;
use arrow_select::filter::FilterBuilder;

/// The rows of a batch for which `kept` is true: null counts as no. A column of the batch is let go of as soon as its rows are
/// copied, so that no thread of a stream holds two batches.
pub(crate) fn rows_kept(batch: RecordBatch, kept: &BooleanArray) -> Result<RecordBatch, ArrowError> {
    if kept.len() != batch.num_rows() {
        let message = format!("{} answers for {} rows", kept.len(), batch.num_rows());
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let rows = kept.true_count();
    if rows == kept.len() {
        return Ok(batch);
    }
    let (schema, columns, _) = batch.into_parts();
    let filter = FilterBuilder::new(kept);
    let filter = if columns.len() > 1 { filter.optimize() } else { filter }.build();
    let copied = |column: ArrayRef| filter.filter(&*column);
    let columns = columns.into_iter().map(copied).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, StringArray};
    use arrow_schema::Schema;

    use super::*;

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
