//! How files are taken into a table: what the caller says of them.

use std::collections::{BTreeMap, HashMap};

use icefield_format::value::Value;

use crate::commit::SnapshotOptions;

/// How files are taken into a table.
#[derive(Debug, Clone, Default)]
pub struct AddFilesOptions {
    /// The snapshot: its branch and its summary.
    pub snapshot: SnapshotOptions,
    /// Whether files that the branch already has are accepted; their rows are then in the table twice.
    pub allow_duplicates: bool,
    /// Partition values of files, by path and name of the partition field. They go before those in paths.
    pub partitions: HashMap<String, BTreeMap<String, Option<Value>>>,
    /// Whether partition values that footers do not prove are held against the rows; otherwise values that the caller or the
    /// path gives are believed.
    pub read_rows: bool,
    /// Whether the files are only looked at.
    pub dry_run: bool,
}
