//! The manifests of a new snapshot: those of its own files, and older ones filtered, merged or regrouped; with the
//! partition specs, row filters and summary counts needed for it.

pub(super) mod cluster;
pub(super) mod corrected;
pub(super) mod filter;
pub(super) mod merging;
pub(super) mod new_manifest;
pub(super) mod output;
pub(super) mod selection;
pub(super) mod specs;
pub(super) mod summary;
