//! Merges: rows of a source against the rows of a table that have the same key (SQL's `MERGE INTO`).
//!
//! [`run`] has the steps. [`clause`] is what is asked for, [`plan`] the same made ready for a table and a source, [`key`] how
//! rows are compared, [`keyed`] the rows of a source in memory, [`join`] what meets what, [`changes`] what comes of it, and
//! [`spill`] the rows of both sides on disk, where the source does not fit into memory. [`texts`] are values that look like columns.

pub(super) mod assigned;
pub(super) mod changes;
pub mod clause;
mod condition;
pub(super) mod join;
pub(super) mod joined;
pub(super) mod key;
pub(super) mod key_range;
pub(super) mod keyed;
pub(super) mod plan;
pub mod run;
pub(super) mod spill;
pub mod texts;
