//! What a snapshot holds: its manifests, the cache of those that were read, and all files that snapshots reach.

pub mod cache;
pub mod manifests;
pub(crate) mod parallel;
pub(crate) mod reachable;
