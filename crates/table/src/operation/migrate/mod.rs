//! Tables of a folder in Hive's layout (Java's `migrate` and `snapshot` of Spark tables): the files and partitions of the
//! folder, and a schema that all of its files fit.
//!
//! What is found defines a table, to which `add_files` adds the files where they are.

mod folders;
mod options;
mod schema;

use icefield_format::spec::PartitionSpec;
use icefield_format::types::Schema;

use crate::error::Result;
use crate::storage::Storage;
use folders::Folders;
pub use options::FolderOptions;

/// What a folder has.
#[derive(Debug, Clone)]
pub struct FolderTable {
    /// The columns of all files, which are optional, and behind them the partition columns that files lack.
    pub schema: Schema,
    /// The partition columns by identity, the outermost folder first.
    pub partition_spec: PartitionSpec,
    /// Locations of the files.
    pub paths: Vec<String>,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Looks at a folder: at the names of all files and folders below it, and at the schemas of the files.
///
/// Files and folders whose names begin with `.` or `_` are left out, unless they are `_name=value`; so are empty files.
///
/// # Errors
/// A folder without files, or that a table format with a log of its own has; files that are no data files, or of another
/// format than is said; files whose partitions or columns contradict each other.
pub fn look_at(storage: &Storage, folder: &str, options: &FolderOptions) -> Result<FolderTable> {
    let found = Folders::find(storage, folder)?;
    let schema = schema::of_files(storage, &found.files, options)?;
    let (schema, partition_spec) = found.with_partitions(schema, &options.partition_types)?;
    let bytes = found.files.iter().map(|file| file.size).sum();
    let paths = found.files.into_iter().map(|file| file.path).collect();
    Ok(FolderTable { schema, partition_spec, paths, bytes })
}
