//! Tests of the public items of icefield-orc.
//!
//! They are one program, because each program compiles and links all dependencies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod compress;
mod parallel;
mod roundtrip;
mod runs;
mod texts;
