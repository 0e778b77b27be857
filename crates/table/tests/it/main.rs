//! Tests of the public items of icefield-table.
//!
//! They are one program, because each program compiles and links all dependencies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod changelog;
mod changes;
mod commit;
mod compaction;
mod deletes;
mod files;
mod operations;
mod planning;
mod pruning;
mod reading;
mod row_operations;
mod storage;
mod writing;
