//! Simulates writers and faults in every order: whatever happens, the history of the table is the result of the
//! committed changes in some order.
//!
//! A schedule is a tape of bytes: each choice takes the next byte, and 0 is the harmless choice, so that a failing tape
//! shrinks to a short story. Data files are empty; their contents are recorded outside the table. Whenever a writer
//! calls the catalog, other writers may run, and requests may be lost, delayed or delivered twice. A writer may die at
//! any write and leave a partial file, and clocks jump.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod change;
mod check;
mod client;
mod contents;
mod draw;
mod empty;
mod operations;
mod orphans;
mod schedule;
mod served;

use std::hash::{BuildHasher, RandomState};
#[cfg(debug_assertions)]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[cfg(debug_assertions)]
use icefield_table::commit::rule::{Rule, leave_out};
use icefield_table::runtime;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestRng, TestRunner};

use schedule::{Broken, Schedule, Theme};

// Schedules allocate many small values: the system's allocator took a fifth of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Least number of schedules in a test run. `PROPTEST_CASES` sets a larger one (`make test-random`: a million), and
/// `PROPTEST_RNG_SEED` another seed.
const SCHEDULES: u32 = 20_000;
/// Maximum number of schedules until a deliberate bug must be found.
const FEW: u32 = 6_000;
/// Maximum number of schedules until the absence of a rule must be found. The search ends with the first that needs it.
#[cfg(debug_assertions)]
const MANY: u32 = 10_000;
/// Parts of a run, each with its own tapes, so that the tapes do not depend on the number of processors.
const PARTS: usize = 64;

fn tape() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 20..160)
}

/// Runs this many schedules on all processors. Returns the first failure, made as short as possible if `shrinks` is
/// set.
fn first_wrong(
    schedules: u32,
    seed: u64,
    shrinks: bool,
    run: impl Fn(Vec<u8>) -> Result<(), String> + Sync,
) -> Option<String> {
    // A waiting thread of the pool must not start a schedule of another run meanwhile.
    static ONE_RUN: Mutex<()> = Mutex::new(());
    let _alone = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let found = Mutex::new(None);
    let run_part = |part: usize| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(part as u64).to_le_bytes());
        let config = Config {
            cases: schedules.div_ceil(PARTS as u32),
            failure_persistence: None,
            max_shrink_iters: if shrinks { 20_000 } else { 0 },
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &key));
        let result = runner.run(&tape(), |tape| {
            if ![usize::MAX, part].contains(&failed.load(Ordering::Relaxed)) {
                return Ok(());
            }
            run(tape).map_err(|wrong| {
                let _ = failed.compare_exchange(usize::MAX, part, Ordering::Relaxed, Ordering::Relaxed);
                TestCaseError::fail(wrong)
            })
        });
        if let Err(failure) = result {
            found.lock().unwrap().get_or_insert(failure.to_string());
        }
    };
    // Each thread of the pool does its own work, and leaves none to others.
    runtime::pool().unwrap().broadcast(|_| {
        while let Some(part) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < PARTS) {
            run_part(part);
        }
    });
    found.into_inner().unwrap()
}

/// The seed that `PROPTEST_RNG_SEED` sets, or a random one.
fn seed() -> u64 {
    match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(0),
    }
}

fn run(tape: Vec<u8>, broken: Option<Broken>) -> Result<(), String> {
    Schedule::run(tape, broken).map(drop)
}

#[test]
fn every_history_is_some_order_of_the_changes() {
    let (schedules, seed) = (Config::default().cases.max(SCHEDULES), seed());
    if let Some(wrong) = first_wrong(schedules, seed, true, |tape| run(tape, None)) {
        panic!("seed {seed}: {wrong}");
    }
}

/// A simulation that does not find deliberate bugs proves nothing. The result is the shortest possible story.
#[test]
fn what_is_broken_is_found_and_told() {
    for (broken, expected) in [
        (Broken::ForgetsStart, "expected the rows"),
        (Broken::SwapsAlways, "which is the end of no branch"),
        (Broken::DeletesUsed, "was deleted"),
        (Broken::DeletesManifest, "was deleted"),
        (Broken::LeavesFile, "files that no snapshot uses are left over"),
        (Broken::RemovesYoung, "not found"),
        (Broken::KeepsOrphans, "orphans are left"),
        (Broken::TellsFailure, "was told Some(Failed), and is in the table 1 times"),
    ] {
        let wrong = first_wrong(FEW, 1, true, |tape| run(tape, Some(broken)));
        let wrong = wrong.unwrap_or_else(|| panic!("{broken:?} is not found"));
        assert!(wrong.contains(expected), "{broken:?}: {wrong}");
        assert!(wrong.contains("\n0: reads main of 0 snapshots for "), "{broken:?}: {wrong}");
        let lines = wrong.lines().take_while(|line| !line.starts_with("minimal failing input")).count();
        assert!(lines <= 24, "{broken:?}: {wrong}");
    }
}

/// Conversions of equality deletes must look like deletes to other commits. This takes a compaction that began before the
/// deletes, so it is not found as soon as others.
#[test]
fn conversions_that_others_do_not_see_are_found() {
    let wrong = first_wrong(10_000, 1, false, |mut tape| {
        Schedule::choose(&mut tape, Theme::Keys);
        run(tape, Some(Broken::ConvertsAsFiles))
    });
    assert!(wrong.is_some_and(|wrong| wrong.contains("expected the rows")));
}

/// Runs a tape without some rules.
#[cfg(debug_assertions)]
fn run_without(rules: &'static [Rule], tape: Vec<u8>) -> Result<schedule::Ran, String> {
    leave_out(rules);
    let ran = Schedule::run(tape, None);
    leave_out(&[]);
    ran
}

/// The simulation detects the absence of each rule.
#[cfg(debug_assertions)]
#[test]
fn a_rule_that_is_left_out_is_found() {
    for rule in Rule::ALL.iter().filter(|rule| **rule != Rule::AddedVectors) {
        let theme = match rule {
            Rule::DeletesBeside | Rule::DeletesOfMoved | Rule::DeletesEverywhere => Some(Theme::Keys),
            Rule::SecondVector => Some(Theme::Positions),
            _ => None,
        };
        let found = first_wrong(MANY, 1, false, |mut tape| {
            if let Some(theme) = theme {
                Schedule::choose(&mut tape, theme);
            }
            run_without(std::slice::from_ref(rule), tape).map(drop)
        });
        assert!(found.is_some(), "no schedule needs {rule:?}");
    }
}

/// Without [`Rule::AddedVectors`], another rule rejects the same commits. The rule is kept for its error, which names
/// the snapshot that was first; the other rule only says that there is a vector.
#[cfg(debug_assertions)]
#[test]
fn added_vectors_are_refused_by_two_rules() {
    let refused = AtomicU32::new(0);
    let by_rule = |story: &str| story.contains("added a deletion vector for");
    let differs = first_wrong(1_500, 1, true, |tape| {
        let with = run_without(&[], tape.clone())?;
        let without = run_without(&[Rule::AddedVectors], tape)?;
        let of_rule = with.story.iter().filter(|line| by_rule(line)).count() as u32;
        refused.fetch_add(of_rule, Ordering::Relaxed);
        match with.ended == without.ended && !without.story.iter().any(|line| by_rule(line)) {
            true => Ok(()),
            false => Err(format!("{}\n\n{}", with.story.join("\n"), without.story.join("\n"))),
        }
    });
    assert_eq!(differs, None);
    assert_ne!(refused.into_inner(), 0, "the rule refuses nothing");
    let both: &[Rule] = &[Rule::AddedVectors, Rule::SecondVector];
    assert!(
        first_wrong(MANY, 1, false, |tape| run_without(both, tape).map(drop)).is_some(),
        "no schedule needs {both:?}"
    );
}
