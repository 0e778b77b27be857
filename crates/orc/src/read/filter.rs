//! Row filters. Their columns are decoded first, and the others only for the rows that match.

use std::fmt::Debug;

use arrow_array::{BooleanArray, RecordBatch};

use crate::error::Result;

/// Selects rows by the values of some columns.
pub trait RowFilter: Debug + Send + Sync {
    /// The ids of the columns that the filter needs.
    fn columns(&self) -> Vec<u32>;
    /// Returns one value per row; null counts as false. The batch has the top-level fields of [`RowFilter::columns`],
    /// in the order of the schema, each with the children that the projection includes.
    ///
    /// # Errors
    ///
    /// Any error of the filter; [`Error::external`](crate::Error::external) passes it through the reader.
    fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray>;
}
