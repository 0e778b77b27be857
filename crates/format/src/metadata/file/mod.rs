//! Metadata files: reading, validation, writing, compression and names.

pub(super) mod compression;
pub(super) mod file_name;
mod read;
mod validate;
mod write;
