//! Inspects a folder in Hive's layout (Java's `migrate` and `snapshot` of Spark tables): its files, its partitions, and
//! a schema that fits all of the files.
//!
//! The result defines a table, to which `add_files` adds the files without moving them.

mod folders;
mod options;
mod schema;

use icefield_format::spec::PartitionSpec;
use icefield_format::types::Schema;

use crate::error::Result;
use crate::storage::Storage;
use folders::Folders;
pub use options::FolderOptions;

/// The contents of a folder, as the definition of a table.
#[derive(Debug, Clone)]
pub struct FolderTable {
    /// The columns of all files, all optional, followed by partition columns that files lack.
    pub schema: Schema,
    /// The partition columns with identity transforms, outermost folder first.
    pub partition_spec: PartitionSpec,
    /// Locations of the files.
    pub paths: Vec<String>,
    /// Total size of the files in bytes.
    pub bytes: u64,
}

/// Inspects a folder: the names of all files and subfolders, and the schemas of the files.
///
/// Skips empty files, and files and folders whose names begin with `.` or `_`, except `_name=value`.
///
/// # Errors
/// A folder without files, or one that belongs to a table format with its own log; files that are not data files, or
/// not of the given format; or files with contradicting partitions or columns.
pub fn look_at(storage: &Storage, folder: &str, options: &FolderOptions) -> Result<FolderTable> {
    let found = Folders::find(storage, folder)?;
    let schema = schema::of_files(storage, &found.files, options)?;
    let (schema, partition_spec) = found.with_partitions(schema, &options.partition_types)?;
    let bytes = found.files.iter().map(|file| file.size).sum();
    let paths = found.files.into_iter().map(|file| file.path).collect();
    Ok(FolderTable { schema, partition_spec, paths, bytes })
}
