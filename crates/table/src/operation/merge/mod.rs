//! Merges the rows of a source into a table by key (SQL's `MERGE INTO`).
//!
//! [`run`] has the steps. [`clause`] has the rules given by the caller; [`plan`] binds them to a table and a source;
//! [`key`] compares rows; [`keyed`] indexes the source in memory; [`join`] matches rows; [`changes`] collects the
//! results; [`spill`] holds both sides on disk if the source does not fit in memory. [`texts`] finds values that look
//! like columns.

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
