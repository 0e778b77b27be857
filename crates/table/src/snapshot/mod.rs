//! The contents of snapshots: their manifests, the cache of decoded manifests, and all files that snapshots reference.

pub mod cache;
pub mod manifests;
pub(crate) mod parallel;
pub(crate) mod reachable;
