//! Reads of a table: scans, micro-batches and metadata tables.

pub(crate) mod diff;
pub(crate) mod inspect;
pub(crate) mod micro_batches;
pub(crate) mod scan;
