//! Reads manifests: an entry is walked in steps that are compiled from the writer's schema and from what the reader wants.

pub(super) mod decode;
pub(super) mod options;
pub(super) mod read_field;
pub(super) mod steps;
