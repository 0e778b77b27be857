//! What to compact, and how.

use icefield_format::expr::Expr;
use icefield_format::metadata::StringMap;

use crate::commit::{IDEMPOTENCY_KEY, SnapshotOptions};

/// A compaction to make.
#[derive(Debug, Clone)]
pub struct Compaction {
    /// `binpack` or `sort`; by default it follows from the sort order.
    pub strategy: Option<String>,
    /// Fields of a sort order as in SQL, or `zorder(a, b)` or `hilbert(a, b)`; by default the table's order.
    pub sort_order: Option<String>,
    /// Chooses files: those that may have matching rows.
    pub filter: Expr,
    /// Whether names of columns are case-sensitive.
    pub case_sensitive: bool,
    /// Java's options, by name.
    pub options: StringMap,
    /// The branch, and summary entries of the snapshots.
    pub snapshot: SnapshotOptions,
    /// Approximate memory limit, in bytes.
    pub memory: Option<usize>,
    /// Whether to write nothing and only return what would be rewritten.
    pub dry_run: bool,
}

/// The options of a snapshot that is not the last of a change with an idempotency key.
pub(super) fn without_key(options: &SnapshotOptions) -> SnapshotOptions {
    let mut options = options.clone();
    options.properties.shift_remove(IDEMPOTENCY_KEY);
    options
}
