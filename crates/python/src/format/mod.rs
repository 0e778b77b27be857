//! The classes of `icefield_format`: the nouns of the specification, each beside the Python module of its name.

pub(crate) mod classes;
pub(crate) mod display;
pub(crate) mod expr;
pub(crate) mod files;
pub(crate) mod literals;
pub(crate) mod metadata;
pub(crate) mod name_mapping;
pub(crate) mod partitioning;
pub(crate) mod schemas;
pub(crate) mod sorting;
pub(crate) mod transforms;
pub(crate) mod values;
pub(crate) mod variant;
