//! Data files, manifests, manifest lists and Puffin files.

pub(crate) mod data_file;
pub(crate) mod manifest_file;
pub(crate) mod manifests;
pub(crate) mod puffin;
