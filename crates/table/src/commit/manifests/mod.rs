//! The manifests of a new snapshot: those of its own files, and the older ones filtered, merged or grouped in another way. Also
//! the partition specs, row filters and summary counts that this needs.

pub(super) mod cluster;
pub(super) mod filter;
pub(super) mod merging;
pub(super) mod new_manifest;
pub(super) mod output;
pub(super) mod selection;
pub(super) mod specs;
pub(super) mod summary;
