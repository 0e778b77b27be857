//! Partition tuples of manifest entries as typed columns ("102 partition").
//!
//! Values are read as the partition type that the caller passes (the spec applied to the current schema). So columns
//! promoted after the manifest was written, and fields that the writer did not have, are read correctly.

mod arrow;
mod builder;
mod walk;
mod wire;

pub use arrow::arrow_fields;
pub(super) use arrow::{finish, of_rows, type_of, value};
pub(super) use builder::PartitionBuilder;
pub(super) use walk::PartitionSteps;
pub(super) use wire::FixedForm;
