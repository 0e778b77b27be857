//! Row-level deletes: random tables against a naive reading, budgets of memory, and damaged delete files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod damage;
#[path = "../files/mod.rs"]
mod files;
mod laws;
mod places;
mod rows;
mod world;
