//! Rows before they are written: strings checked, columns found by name and cast to the table's types, rows grouped by
//! partition.

mod cast;
pub mod conform;
mod fault;
pub mod intake;
pub(crate) mod partitions;
pub(super) mod route;
pub(super) mod text;
pub mod widening;
