//! Metadata files: how they are read, validated, written, compressed and named.

pub(super) mod compression;
pub(super) mod file_name;
mod read;
mod validate;
mod write;
