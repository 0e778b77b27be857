//! The classes of `icefield_table`: a table, its scans, writes, changes and metadata tables.

pub(crate) mod catalog;
pub(crate) mod evolution;
pub(crate) mod file_changes;
pub(crate) mod inspect;
pub(crate) mod maintenance;
pub(crate) mod manifests;
pub(crate) mod merging;
pub(crate) mod micro_batches;
pub(crate) mod migration;
pub(crate) mod outcomes;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod state;
pub(crate) mod transaction;
pub(crate) mod upsert_stream;
pub(crate) mod write;
