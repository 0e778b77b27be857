//! Changes of a table, and transactions of several changes.

pub(crate) mod evolution;
pub(crate) mod file_changes;
pub(crate) mod manifests;
pub(crate) mod merging;
pub(crate) mod rows;
pub(crate) mod transaction;
pub(crate) mod upsert_stream;
