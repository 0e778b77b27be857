//! Partition specs and sort orders ("Partitioning", "Sorting"; JSON forms in Appendix C). [`path`] converts names of
//! partition folders.

mod evolution;
mod json;
mod partition;
pub mod path;
mod sort;
mod text;
pub mod untyped;

use std::fmt;

use crate::transform::Transform;

pub use evolution::UpdatePartitionSpec;
pub use partition::SpecUse;
pub use sort::UNSORTED_ORDER_ID;
pub use text::PartitionTerm;

/// First id of partition fields.
pub const FIRST_PARTITION_FIELD_ID: i32 = 1000;

/// A partition spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionSpec {
    /// Id of the spec in the table.
    pub spec_id: i32,
    /// The fields, in the order of the partition tuple.
    pub fields: Vec<PartitionField>,
}

/// A field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// Source columns of the transform: one, except for v3's transforms of several columns.
    pub source_ids: Vec<i32>,
    /// Id of the partition field, 1000 or higher.
    pub field_id: i32,
    /// Name of the partition field.
    pub name: String,
    /// The transform.
    pub transform: Transform,
}

/// A sort order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SortOrder {
    /// Id of the order in the table; 0 is the unsorted order.
    pub order_id: i32,
    /// The fields, most significant first.
    pub fields: Vec<SortField>,
}

/// A field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    /// Source columns of the transform.
    pub source_ids: Vec<i32>,
    /// The transform.
    pub transform: Transform,
    /// Ascending or descending.
    pub direction: SortDirection,
    /// Whether nulls come first or last.
    pub null_order: NullOrder,
}

/// Direction of a sort field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortDirection {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Position of nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullOrder {
    /// Before all values.
    First,
    /// After all values.
    Last,
}

/// Formats fields in brackets, one per line, as the Java library prints specs and orders.
fn write_fields(f: &mut fmt::Formatter<'_>, fields: &[impl fmt::Display]) -> fmt::Result {
    f.write_str("[")?;
    for field in fields {
        write!(f, "\n  {field}")?;
    }
    f.write_str(if fields.is_empty() { "]" } else { "\n]" })
}
