//! A store that fails on purpose, for tests of crashes and errors.

use std::ops::Range;
#[cfg(debug_assertions)]
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::storage::{Existing, Location, Output, Pages, Store};

/// What happens at the chosen step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The step fails without effect; later ones work.
    Error,
    /// The step takes effect and then reports an error, as if its response was lost.
    LostReply,
    /// The step and all later ones fail without effect, as if the process was killed.
    Killed,
    /// As [`Fault::Killed`], but the step writes half of its bytes.
    Torn,
    /// The thread panics at the step, which may be a read.
    #[cfg(debug_assertions)]
    Panic,
}

/// Counts every step that changes a store and makes one of them fail. Reads are counted separately.
#[derive(Debug)]
pub struct FaultPlan {
    at: usize,
    fault: Fault,
    steps: AtomicUsize,
    reads: AtomicUsize,
    bytes_read: AtomicU64,
}

impl FaultPlan {
    /// Makes step `at` (from 0) fail.
    pub fn new(at: usize, fault: Fault) -> Arc<Self> {
        let (steps, reads) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { at, fault, steps, reads, bytes_read: AtomicU64::new(0) })
    }

    /// Number of read calls so far, for one or several ranges each, and the bytes they returned.
    pub fn read(&self) -> (usize, u64) {
        (self.reads.load(Ordering::SeqCst), self.bytes_read.load(Ordering::SeqCst))
    }

    fn count(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.bytes_read.fetch_add(bytes as u64, Ordering::SeqCst);
    }

    /// Number of steps so far.
    pub fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    /// Whether the simulated process has been killed.
    pub fn is_dead(&self) -> bool {
        matches!(self.fault, Fault::Killed | Fault::Torn) && self.steps() > self.at
    }

    /// A step that changes nothing; counted only if it may be the one that panics.
    fn look(&self) {
        #[cfg(debug_assertions)]
        if self.fault == Fault::Panic {
            let number = self.steps.fetch_add(1, Ordering::SeqCst);
            if number == self.at {
                resume_unwind(Box::new(format!("fault at step {number}")));
            }
        }
    }

    fn step(&self, at: &Location, operation: &'static str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        self.step_or(at, operation, act, || Ok(()))
    }

    /// A step that can take effect in part.
    fn step_or(
        &self,
        at: &Location,
        operation: &'static str,
        act: impl FnOnce() -> Result<()>,
        half: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let number = self.steps.fetch_add(1, Ordering::SeqCst);
        let failure = || Error::Storage { path: at.to_string(), operation, message: format!("fault at step {number}") };
        match self.fault {
            Fault::Torn if number == self.at => half().and_then(|()| Err(failure())),
            Fault::Killed | Fault::Torn if number >= self.at => Err(failure()),
            Fault::Error if number == self.at => Err(failure()),
            #[cfg(debug_assertions)]
            Fault::Panic if number == self.at => resume_unwind(Box::new(format!("fault at step {number}"))),
            Fault::LostReply if number == self.at => act().and_then(|()| Err(failure())),
            _ => act(),
        }
    }
}

/// Environment variable, for tests, with the step at which a thread panics.
#[cfg(all(unix, debug_assertions))]
const PANIC_AT: &str = "ICEFIELD_TEST_PANIC_AT_STEP";

/// The plan that the environment sets for all storage of this process. Published builds have no such hook.
#[cfg(all(unix, debug_assertions))]
pub(in crate::storage) fn of_environment() -> Option<Arc<FaultPlan>> {
    static PLAN: std::sync::OnceLock<Option<Arc<FaultPlan>>> = std::sync::OnceLock::new();
    let planned = || Some(FaultPlan::new(std::env::var_os(PANIC_AT)?.to_str()?.parse().ok()?, Fault::Panic));
    PLAN.get_or_init(planned).clone()
}

#[cfg(not(all(unix, debug_assertions)))]
pub(in crate::storage) fn of_environment() -> Option<Arc<FaultPlan>> {
    None
}

/// Adds faults to a store.
pub(in crate::storage) fn wrap(store: Arc<dyn Store>, plan: Arc<FaultPlan>) -> Arc<dyn Store> {
    Arc::new(Faulty { store, plan })
}

#[derive(Debug)]
struct Faulty {
    store: Arc<dyn Store>,
    plan: Arc<FaultPlan>,
}

impl Store for Faulty {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        self.plan.look();
        let bytes = self.store.read(at, most)?;
        self.plan.count(bytes.len());
        Ok(bytes)
    }

    fn size(&self, at: &Location) -> Result<u64> {
        self.plan.look();
        self.store.size(at)
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.plan.look();
        let found = self.store.ranges(at, ranges)?;
        self.plan.count(found.iter().map(Bytes::len).sum());
        Ok(found)
    }

    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()> {
        let half = bytes.slice(..bytes.len() / 2);
        let put = |bytes| self.store.put(at, bytes, existing);
        self.plan.step_or(at, "write", || put(bytes), || put(half))
    }

    fn output(&self, at: &Location) -> Result<Box<dyn Output>> {
        let mut output = None;
        self.plan.step(at, "create", || {
            output = Some(self.store.output(at)?);
            Ok(())
        })?;
        let output = output.ok_or_else(|| Error::Internal("no output".into()))?;
        Ok(Box::new(FaultyOutput { output, at: at.clone(), plan: self.plan.clone() }))
    }

    fn delete(&self, at: &Location) -> Result<()> {
        self.plan.step(at, "delete", || self.store.delete(at))
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        self.plan.look();
        self.store.pages(prefix)
    }
}

struct FaultyOutput {
    output: Box<dyn Output>,
    at: Location,
    plan: Arc<FaultPlan>,
}

impl Output for FaultyOutput {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        let Self { output, at, plan } = self;
        plan.step(at, "write", || output.write(bytes))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { output, at, plan } = *self;
        plan.step(&at, "write", || output.finish())
    }

    fn abort(self: Box<Self>) {
        self.output.abort();
    }
}
