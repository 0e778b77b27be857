//! Runs the fuzz targets of this crate on their stored corpus and on seeded mutations of it: no decoder panics, and
//! decoded values are the same after encoding and decoding them again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "../../../fuzz/mutation.rs"]
mod mutation;
#[path = "../../../fuzz/orc_targets.rs"]
mod orc_targets;

#[test]
fn no_decoder_panics_on_the_corpus_or_its_mutations() {
    mutation::run(orc_targets::ALL);
}
