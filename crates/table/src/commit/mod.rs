//! Changes of a table that become visible in one step ("Commit Conflict Resolution and Retry").
//!
//! A [`Change`] computes updates from the current table. A [`Catalog`] applies them if the table still meets their
//! requirements, and reports whether they landed, lost to another commit, or have an unknown outcome. [`commit()`]
//! retries a lost change on top of the other commit. The files of an attempt are deleted only when it has certainly
//! failed.

mod catalog;
mod change;
mod changes;
mod conflicts;
mod idempotency;
mod manifests;
mod metadata_file;
mod snapshot;
mod transaction;
mod with_updates;

use std::sync::Arc;

use icefield_format::metadata::TableMetadata;

use crate::error::{Error, Result};

pub use catalog::creation::{create_table, created_by};
pub use catalog::pointer::{Pointer, PointerCatalog};
pub use catalog::retry::commit;
pub use catalog::{Catalog, Landed, Outcome};
pub use change::{Change, Updates};
pub use changes::FileChanges;
pub(crate) use changes::assigned;
pub use conflicts::history::History;
pub use conflicts::{rule, validate};
pub use idempotency::{IDEMPOTENCY_KEY, made_by_key};
pub use manifests::cluster::{Clustered, Clustering, keys_of_columns, keys_of_values};
pub(crate) use manifests::corrected::CorrectedManifest;
pub use manifests::merging::{Arranged, Manifests};
pub use manifests::new_manifest::NewManifest;
pub(crate) use manifests::output::{Basis, ManifestKey, basis};
pub use manifests::selection::{RowMatch, Selection};
pub use manifests::specs::{Partitions, Spec, Specs, Tuple};
pub use manifests::summary::SummaryBuilder;
pub(crate) use metadata_file::metadata_folder;
pub use metadata_file::{read_metadata, write_metadata};
pub use snapshot::{Content, SnapshotOptions, SnapshotProducer};
pub(crate) use snapshot::{WAP_ID, if_there};
pub use transaction::Transaction;
pub use with_updates::WithUpdates;

/// A table's metadata and the location of its file.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Location of the metadata file.
    pub location: String,
    /// The parsed metadata.
    pub metadata: Arc<TableMetadata>,
}

/// Rejects a table other than the one with the uuid `expected`: its name may have been dropped and created again,
/// renamed, or registered over. A table without a uuid (version 1) cannot be distinguished from another.
pub fn require_same_table(expected: Option<&str>, found: &TableMetadata, location: &str) -> Result<()> {
    match (expected, found.table_uuid()) {
        (None, _) => Ok(()),
        (Some(expected), Some(current)) if current.eq_ignore_ascii_case(expected) => Ok(()),
        (Some(expected), current) => Err(Error::TableReplaced {
            expected: expected.to_owned(),
            found: current.unwrap_or("none").to_owned(),
            location: location.to_owned(),
        }),
    }
}
