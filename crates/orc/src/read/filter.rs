//! Filters of rows: columns that are decoded first, and say which rows the others are decoded for.

use std::fmt::Debug;

use arrow_array::{BooleanArray, RecordBatch};

use crate::error::Result;

/// Says of decoded rows which of them are wanted.
pub trait RowFilter: Debug + Send + Sync {
    /// The ids of the columns it looks at.
    fn columns(&self) -> Vec<u32>;
    /// One value a row; a null is a no. The batch holds the top-level fields of [`RowFilter::columns`] (whole as the
    /// projection wants them), in the order of the schema.
    fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray>;
}
