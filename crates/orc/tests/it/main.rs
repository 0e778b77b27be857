//! Tests of icefield-orc by its public items.
//!
//! One program: each one more would compile and link all that the crate stands on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod compress;
mod parallel;
mod roundtrip;
mod runs;
mod texts;
