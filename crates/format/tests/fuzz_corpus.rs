//! Runs the fuzz targets of this crate on their stored corpus and on seeded mutations of it: no decoder panics.
//!
//! `make fuzz` continues from the same corpus with coverage; this test runs with all others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "../../../fuzz/mutation.rs"]
mod mutation;
#[path = "../../../fuzz/targets.rs"]
mod targets;

#[test]
fn no_decoder_panics_on_the_corpus_or_its_mutations() {
    mutation::run(targets::ALL);
}
