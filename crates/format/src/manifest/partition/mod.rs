//! Partition tuples of manifest entries as typed columns ("102 partition").
//!
//! Values are read as the partition type that the caller passes (the spec over the current schema), so a column promoted since
//! the manifest was written, and a field that the writer lacks, come out right.

mod arrow;
mod builder;
mod walk;
mod wire;

pub use arrow::arrow_fields;
pub(super) use arrow::{finish, of_rows, type_of, value};
pub(super) use builder::PartitionBuilder;
pub(super) use walk::PartitionSteps;
pub(super) use wire::FixedForm;
