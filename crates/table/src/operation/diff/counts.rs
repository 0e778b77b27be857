//! Counts of differences.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// How many rows differ, so far.
#[derive(Debug, Default)]
pub struct DiffCounts {
    /// Rows of the left side that were read.
    pub left_rows: AtomicU64,
    /// Rows of the right side that were read.
    pub right_rows: AtomicU64,
    /// Rows of the right side only.
    pub added: AtomicU64,
    /// Rows of the left side only.
    pub removed: AtomicU64,
    /// Rows with other values on the right side.
    pub changed: AtomicU64,
    cells: Mutex<Vec<u64>>,
}

impl DiffCounts {
    /// Counts changed values, by the numbers of their columns.
    pub(super) fn add_cells(&self, columns: &[usize]) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        for column in columns {
            if cells.len() <= *column {
                cells.resize(column + 1, 0);
            }
            cells.get_mut(*column).into_iter().for_each(|count| *count += 1);
        }
    }

    /// Numbers of changed values, by the numbers of their columns.
    pub fn changed_cells(&self) -> Vec<u64> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
