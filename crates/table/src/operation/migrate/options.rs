//! Options for inspecting a folder.

use std::collections::BTreeMap;

use icefield_format::manifest::FileFormat;
use icefield_format::types::PrimitiveType;

/// Options for inspecting a folder.
#[derive(Debug, Clone)]
pub struct FolderOptions {
    /// The format of all files; `None` detects the format of each.
    pub format: Option<FileFormat>,
    /// Types of partition columns by name; other types are inferred from the names of folders.
    pub partition_types: BTreeMap<String, PrimitiveType>,
    /// The format version of the table, which limits the types.
    pub format_version: u8,
}
