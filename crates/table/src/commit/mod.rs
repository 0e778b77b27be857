//! Changes of a table that become visible in one step ("Commit Conflict Resolution and Retry").
//!
//! A [`Change`] makes updates of the table as it is; a [`Catalog`] applies them, if the table still meets what they
//! require, and says whether they landed, were lost to another commit, or that this is unknown. [`commit()`] makes a lost
//! change anew on top of the other one. What an attempt has written is deleted only when it has certainly failed.

mod catalog;
mod change;
mod changes;
mod cluster;
mod creation;
mod filter;
mod history;
mod idempotency;
mod manifests;
mod metadata_file;
mod new_manifest;
mod output;
mod pointer;
mod retry;
pub mod rule;
mod selection;
mod snapshot;
mod specs;
mod status;
mod summary;
mod transaction;
pub mod validate;
mod with_updates;

use std::sync::Arc;

use icefield_format::metadata::TableMetadata;

use crate::error::{Error, Result};

pub use catalog::{Catalog, Outcome};
pub use change::{Change, Updates};
pub use changes::FileChanges;
pub(crate) use changes::assigned;
pub use cluster::{Clustered, Clustering, keys_of_columns, keys_of_values};
pub use creation::{create_table, created_by};
pub use history::History;
pub use idempotency::{IDEMPOTENCY_KEY, made_by_key};
pub use manifests::{Arranged, Manifests};
pub use metadata_file::{read_metadata, write_metadata};
pub use new_manifest::NewManifest;
pub(crate) use output::ManifestKey;
pub use pointer::{Pointer, PointerCatalog};
pub use retry::commit;
pub use selection::{RowMatch, Selection};
pub(crate) use snapshot::WAP_ID;
pub use snapshot::{Content, SnapshotOptions, SnapshotProducer};
pub use specs::{Partitions, Spec, Specs, Tuple};
pub use summary::SummaryBuilder;
pub use transaction::Transaction;
pub use with_updates::WithUpdates;

/// A table's metadata and the file it is in.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Location of the metadata file.
    pub location: String,
    /// Its content, shared by whatever is made of the table.
    pub metadata: Arc<TableMetadata>,
}

/// Refuses a table that has taken the place of the one with the uuid `expected`: the name was dropped and created anew,
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
