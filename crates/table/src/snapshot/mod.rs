//! What a snapshot holds: its manifests, and the cache of those that were read.

pub mod cache;
pub mod manifests;
