//! Tests of icefield-table by its public items.
//!
//! One program: each one more would compile and link all that the crate stands on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod changelog;
mod changes;
mod commit;
mod deletes;
mod files;
mod operations;
mod planning;
mod pruning;
mod reading;
mod row_operations;
mod storage;
mod writing;
