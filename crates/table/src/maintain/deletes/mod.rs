//! Maintenance of delete files: fewer and larger ones, deletion vectors instead of them, none that apply to nothing.

mod dangling;
mod equality;
mod positions;

pub use dangling::{RemovedDeletes, dangling_deletes, remove_dangling_deletes};
pub use equality::{ConvertedDeletes, convert_equality_deletes};
pub use positions::{PositionsRewritten, RewritePositions, rewrite_position_deletes};

use icefield_format::expr::Expr;

use crate::commit::SnapshotOptions;

/// Which data files a call is about, and how it commits.
#[derive(Debug, Clone)]
pub struct DeletesRequest {
    /// Chooses data files: those that may have matching rows.
    pub filter: Expr,
    /// Whether names of columns are case-sensitive.
    pub case_sensitive: bool,
    /// The branch, and summary entries of the snapshot.
    pub snapshot: SnapshotOptions,
    /// Approximate memory limit for reading, in bytes.
    pub memory: Option<usize>,
    /// Whether to write nothing and only return what would be done.
    pub dry_run: bool,
}
