//! The fuzz targets of this crate over their stored corpus and over seeded mutations of it: no decoder panics, and what
//! the encoders make of decoded values is decoded to the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "../../../fuzz/mutation.rs"]
mod mutation;
#[path = "../../../fuzz/orc_targets.rs"]
mod orc_targets;

#[test]
fn no_decoder_panics_on_the_corpus_or_its_mutations() {
    mutation::run(orc_targets::ALL);
}
