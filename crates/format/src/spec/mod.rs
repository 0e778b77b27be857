//! Partition specs and sort orders ("Partitioning", "Sorting"; JSON forms in Appendix C). [`path`] has the names of partition folders.

mod evolution;
mod json;
mod partition;
pub mod path;
mod sort;
mod text;

use std::fmt;

use crate::transform::Transform;

pub use evolution::UpdatePartitionSpec;
pub use partition::SpecUse;
pub use sort::UNSORTED_ORDER_ID;
pub use text::PartitionTerm;

/// Ids of partition fields start here.
pub const FIRST_PARTITION_FIELD_ID: i32 = 1000;

/// A partition spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionSpec {
    /// Id within the table.
    pub spec_id: i32,
    /// The fields, in the order of the partition tuple.
    pub fields: Vec<PartitionField>,
}

/// A field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// Columns that the transform takes; one, but for the multi-argument transforms of v3.
    pub source_ids: Vec<i32>,
    /// Id of the partition field, from 1000 on.
    pub field_id: i32,
    /// Name of the partition field.
    pub name: String,
    /// The transform.
    pub transform: Transform,
}

/// A sort order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SortOrder {
    /// Id within the table; 0 is the unsorted order.
    pub order_id: i32,
    /// The fields, most significant first.
    pub fields: Vec<SortField>,
}

/// A field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    /// Columns that the transform takes.
    pub source_ids: Vec<i32>,
    /// The transform.
    pub transform: Transform,
    /// Ascending or descending.
    pub direction: SortDirection,
    /// Where nulls stand.
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

/// Place of nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullOrder {
    /// Before all values.
    First,
    /// After all values.
    Last,
}

/// Fields one a line in brackets, as the Java library prints specs and orders.
fn write_fields(f: &mut fmt::Formatter<'_>, fields: &[impl fmt::Display]) -> fmt::Result {
    f.write_str("[")?;
    for field in fields {
        write!(f, "\n  {field}")?;
    }
    f.write_str(if fields.is_empty() { "]" } else { "\n]" })
}
