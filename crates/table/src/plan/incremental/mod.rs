//! Scans of what changed between snapshots: appends, changelogs, micro-batches.

pub mod changelog;
pub mod micro_batch;
mod range;
pub(super) mod window;

pub(super) use range::manifests;
pub use range::{Point, Range};
