//! The classes of `icefield_table`: a table, its scans, writes, changes and metadata tables.

pub(crate) mod catalog;
pub(crate) mod changes;
pub(crate) mod compaction;
pub(crate) mod locations;
pub(crate) mod maintenance;
pub(crate) mod migration;
pub(crate) mod outcomes;
pub(crate) mod reads;
pub(crate) mod relocation;
pub(crate) mod row_change;
pub(crate) mod state;
pub(crate) mod write;
