//! Sizes of arrays in memory.

use arrow_array::{Array, ArrayRef, RecordBatch};

/// Bytes of a batch, without unused parts of its buffers.
pub(crate) fn bytes_of(batch: &RecordBatch) -> usize {
    let column =
        |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size());
    batch.columns().iter().map(column).sum()
}
