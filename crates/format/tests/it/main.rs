//! Tests of the public items of icefield-format.
//!
//! They are one program, because each program compiles and links all dependencies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod expressions;
mod kernels;
mod manifests;
mod metadata_laws;
mod values;
mod variants;
