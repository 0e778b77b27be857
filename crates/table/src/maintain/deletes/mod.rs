//! Maintenance of delete files: fewer and larger ones, deletion vectors instead of them, none that apply to nothing.

mod dangling;
mod equality;
mod positions;

pub(super) use dangling::{AfterRewrite, dangling_after};
pub use dangling::{RemovedDeletes, dangling_deletes, remove_dangling_deletes};
pub use equality::{ConvertedDeletes, convert_equality_deletes};
pub use positions::{PositionsRewritten, RewritePositions, check_position_rewrite, rewrite_position_deletes};

use icefield_format::expr::Expr;

use icefield_format::metadata::TableMetadata;

use crate::commit::SnapshotOptions;
use crate::error::{Error, Result};

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

/// Rejects a branch that does not exist: a commit to it would create it.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn require_branch(what: &str, metadata: &TableMetadata, branch: &str) -> Result<()> {
    if metadata.current_snapshot().is_some() && metadata.reference(branch).is_none() && branch != "main" {
        return Err(Error::invalid(format!("{what}: the table has no branch '{branch}'")));
    }
    Ok(())
}
