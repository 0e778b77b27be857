//! Tests of icefield-format by its public items.
//!
//! One program: each one more would compile and link all that the crate stands on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod expressions;
mod kernels;
mod manifests;
mod metadata_laws;
mod values;
mod variants;
