//! Changelogs of random histories: appends, deletes of every kind, overwrites, compactions, delete files that are taken back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod compared;
#[path = "../files/mod.rs"]
mod files;
mod history;
mod laws;
mod rows;
