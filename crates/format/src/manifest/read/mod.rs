//! Reads manifests in steps that are compiled from the writer's schema and the reader's options.

pub(super) mod decode;
pub(super) mod options;
pub(super) mod read_field;
pub(super) mod steps;
