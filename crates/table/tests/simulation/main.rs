//! Writers and faults in every order: whatever happens, the table's history is what some order of the landed changes makes.
//!
//! A schedule is a tape of bytes: each choice takes the next one, and 0 is the harmless choice, so that a failing tape shrinks
//! to a short story. Data files contain nothing; what is in them is noted beside the table. At each moment at which a writer
//! talks to the catalog others may run, requests may be lost, late or delivered twice; a writer may die at any write, and
//! leave half a file; clocks jump.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod change;
mod check;
mod client;
mod contents;
mod operations;
mod schedule;

#[cfg(debug_assertions)]
use icefield_table::commit::rule::{Rule, leave_out};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
#[cfg(debug_assertions)]
use proptest::test_runner::{RngAlgorithm, TestRng};

use schedule::Schedule;

/// Schedules of a run of the tests; `PROPTEST_CASES` asks for more, `PROPTEST_RNG_SEED` for others.
const SCHEDULES: u32 = 3_000;

fn tape() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 20..160)
}

fn run(tape: Vec<u8>, forgets_start: bool) -> Result<(), TestCaseError> {
    Schedule::run(tape, forgets_start).map_err(TestCaseError::fail)
}

#[test]
fn every_history_is_some_order_of_the_changes() {
    let cases = Config::default().cases.max(SCHEDULES);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    if let Err(failure) = runner.run(&tape(), |tape| run(tape, false)) {
        panic!("{failure}");
    }
}

/// Runs schedules until one finds something wrong, and says which it was.
#[cfg(debug_assertions)]
fn first_wrong(forgets_start: bool) -> Option<usize> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: 10_000, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let ran = std::cell::Cell::new(0);
    let found = TestRunner::new_with_rng(config, rng).run(&tape(), |tape| {
        ran.set(ran.get() + 1);
        run(tape, forgets_start)
    });
    found.is_err().then(|| ran.get())
}

/// Rules of which the simulation finds the absence: one by one, but for two that refuse the same.
#[cfg(debug_assertions)]
const LEFT_OUT: [&[Rule]; 7] = [
    &[Rule::AddedData],
    &[Rule::RemovedData],
    &[Rule::MissingData],
    &[Rule::AddedDeletes],
    &[Rule::DeletesOfRemoved],
    &[Rule::AddedVectors, Rule::SecondVector],
    &[Rule::RemovedIsThere],
];

/// A simulation that cannot find a missing rule proves nothing.
#[cfg(debug_assertions)]
#[test]
fn a_rule_that_is_left_out_is_found() {
    assert_eq!(LEFT_OUT.concat(), Rule::ALL);
    for rules in LEFT_OUT {
        leave_out(rules);
        let found = first_wrong(false);
        leave_out(&[]);
        assert!(found.is_some(), "no schedule needs {rules:?}");
    }
    assert!(first_wrong(true).is_some(), "no schedule needs the snapshot that was read");
}
