//! The classes of `icefield_format`, which represent the terms of the specification. The files have the names of the
//! Python modules.

pub(crate) mod classes;
pub(crate) mod display;
pub(crate) mod expr;
pub(crate) mod files;
pub(crate) mod literals;
pub(crate) mod metadata;
pub(crate) mod name_mapping;
pub(crate) mod partitioning;
pub(crate) mod schemas;
pub(crate) mod snapshots;
pub(crate) mod sorting;
pub(crate) mod transforms;
pub(crate) mod values;
pub(crate) mod variant;
