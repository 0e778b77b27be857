//! The classes of `icefield_format`: the nouns of the specification, each beside the Python module of its name.

pub(crate) mod bound_classes;
pub(crate) mod classes;
pub(crate) mod data_file;
pub(crate) mod display;
pub(crate) mod expression_classes;
pub(crate) mod expressions;
pub(crate) mod literals;
pub(crate) mod manifest_file;
pub(crate) mod manifests;
pub(crate) mod metadata;
pub(crate) mod name_mapping;
pub(crate) mod partitioning;
pub(crate) mod predicates;
pub(crate) mod puffin;
pub(crate) mod schema;
pub(crate) mod sorting;
pub(crate) mod transforms;
pub(crate) mod type_classes;
pub(crate) mod types;
pub(crate) mod values;
pub(crate) mod variant;
