//! Runs the fuzz targets of this crate on their stored corpus and on seeded mutations of it.
//!
//! `make fuzz` continues from the same corpus with coverage; this test runs with all others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

#[path = "../../../fuzz/avro_targets.rs"]
mod avro_targets;
#[path = "../../../fuzz/mutation.rs"]
mod mutation;
#[path = "../../../fuzz/plan_targets.rs"]
mod targets;

#[test]
fn no_sizes_are_lost_in_a_plan() {
    mutation::run(targets::ALL);
}

#[test]
fn rows_of_avro_files_never_panic() {
    mutation::run(avro_targets::ALL);
}
