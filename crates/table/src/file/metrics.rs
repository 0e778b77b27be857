//! Metrics of a written file ("Data File Fields": column sizes, counts, bounds).
//!
//! As in Java, only columns outside lists and maps have counts and bounds, and only as their metrics mode says.

use std::collections::BTreeMap;

use icefield_format::metadata::properties::MetricsMode;
use icefield_format::types::PrimitiveType;
use icefield_format::value::{Value, binary, bounds, uuid};

use crate::error::Result;

/// Metrics of a data file, by field id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileMetrics {
    /// Rows.
    pub record_count: i64,
    /// Bytes on disk.
    pub column_sizes: BTreeMap<i32, i64>,
    /// Values, including nulls.
    pub value_counts: BTreeMap<i32, i64>,
    /// Nulls.
    pub null_value_counts: BTreeMap<i32, i64>,
    /// NaNs of float and double columns.
    pub nan_value_counts: BTreeMap<i32, i64>,
    /// Lower bounds as single values.
    pub lower_bounds: BTreeMap<i32, Vec<u8>>,
    /// Upper bounds as single values.
    pub upper_bounds: BTreeMap<i32, Vec<u8>>,
    /// Offsets of the row groups or stripes.
    pub split_offsets: Vec<i64>,
}

impl FileMetrics {
    /// Sets the bounds of a column, truncated as its mode says.
    pub(crate) fn set_bounds(
        &mut self,
        id: i32,
        ty: &PrimitiveType,
        (lower, upper): (Value, Value),
        mode: MetricsMode,
    ) -> Result<()> {
        let Some(length) = mode.bound_length() else { return Ok(()) };
        if let (Value::Uuid(lower), Value::Uuid(upper)) = (&lower, &upper) {
            let (lower, upper) = uuid::in_both_orders(u128::from_be_bytes(*lower), u128::from_be_bytes(*upper));
            self.lower_bounds.extend(lower.map(|lower| (id, lower.to_be_bytes().to_vec())));
            self.upper_bounds.extend(upper.map(|upper| (id, upper.to_be_bytes().to_vec())));
            return Ok(());
        }
        let lower = bounds::lower_bound(lower, ty, length);
        self.lower_bounds.insert(id, binary::to_bytes(&lower, ty)?);
        if let Some(upper) = bounds::upper_bound(upper, ty, length) {
            self.upper_bounds.insert(id, binary::to_bytes(&upper, ty)?);
        }
        Ok(())
    }
}
