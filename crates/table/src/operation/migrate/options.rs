//! What the caller says of a folder.

use std::collections::BTreeMap;

use icefield_format::manifest::FileFormat;
use icefield_format::types::PrimitiveType;

/// What the caller says of a folder.
#[derive(Debug, Clone)]
pub struct FolderOptions {
    /// The format of all files; otherwise each may have its own.
    pub format: Option<FileFormat>,
    /// Types of partition columns by name; those of others are inferred from the names of folders.
    pub partition_types: BTreeMap<String, PrimitiveType>,
    /// The format version of the table: not every version has every type.
    pub format_version: u8,
}
