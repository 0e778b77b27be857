//! Writers and faults in every order: whatever happens, the table's history is what some order of the landed changes makes.
//!
//! A schedule is a tape of bytes: each choice takes the next one, and 0 is the harmless choice, so that a failing tape shrinks
//! to a short story. Data files do not exist; what is in them is noted beside the table. At each moment at which a writer
//! talks to the catalog others may run, requests may be lost, late or delivered twice, and a writer may die at any write.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod check;
mod contents;
mod operations;
mod schedule;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use schedule::{Left, Schedule};

/// Schedules of a run of the tests; `PROPTEST_CASES` asks for more, `PROPTEST_RNG_SEED` for others.
const SCHEDULES: u32 = 600;

fn tape() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 20..160)
}

fn run(tape: Vec<u8>, left_out: Option<Left>) -> Result<(), TestCaseError> {
    Schedule::run(tape, left_out).map_err(TestCaseError::fail)
}

#[test]
fn every_history_is_some_order_of_the_changes() {
    let cases = Config::default().cases.max(SCHEDULES);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    if let Err(failure) = runner.run(&tape(), |tape| run(tape, None)) {
        panic!("{failure}");
    }
}

/// A simulation that cannot find a missing check proves nothing.
#[test]
fn a_check_that_is_left_out_is_found() {
    for left_out in [Left::NewData, Left::NewDeletes, Left::DataFilesExist, Left::From] {
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let config = Config { cases: 20_000, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
        let found = TestRunner::new_with_rng(config, rng).run(&tape(), |tape| run(tape, Some(left_out)));
        assert!(found.is_err(), "no schedule needs {left_out:?}");
    }
}
