//! Options for adding existing files.

use std::collections::{BTreeMap, HashMap};

use icefield_format::value::Value;

use crate::commit::SnapshotOptions;

/// Options for adding existing files.
#[derive(Debug, Clone, Default)]
pub struct AddFilesOptions {
    /// The branch and the summary entries of the snapshot.
    pub snapshot: SnapshotOptions,
    /// Whether files that the branch already has are accepted; their rows are then duplicated.
    pub allow_duplicates: bool,
    /// Partition values of files, by path and name of the partition field. They take precedence over those in paths.
    pub partitions: HashMap<String, BTreeMap<String, Option<Value>>>,
    /// Whether to check partition values against the rows where footers do not prove them. Otherwise values from the
    /// caller or the path are trusted.
    pub read_rows: bool,
    /// Whether to check the files without adding them.
    pub dry_run: bool,
}
