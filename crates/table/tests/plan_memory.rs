//! The memory of a plan, measured in the allocator: a stream needs no more memory for many manifests than for some.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

#[path = "it/planning/world.rs"]
#[allow(dead_code)] // shared with the tests of planning
mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use icefield_format::manifest::Metrics;
use icefield_format::value::Value;
use icefield_table::plan::Scan;
use icefield_table::runtime;
use icefield_table::storage::Storage;

use world::{ID, Manifest, World, file, set_metrics};

/// Counts the bytes that the process has allocated, and its peak.
struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let made = work();
    (made, (PEAK.load(Ordering::Relaxed) - before).unsigned_abs())
}

const FILES_OF_MANIFEST: usize = 400;

fn world(location: &str, manifests: usize) -> World {
    let manifest = |number: usize| {
        let entry = |at: usize| {
            let mut made = file(format!("{location}/data/{number:04}/{at:0>100}.parquet"), 0, (at % 7) as i32);
            set_metrics(&mut made, ID, &[Some(Value::Long(at as i64))], true, true);
            (true, made)
        };
        Manifest { sequence_number: 1, entries: (0..FILES_OF_MANIFEST).map(entry).collect(), ..Manifest::default() }
    };
    let all: Vec<Manifest> = (0..manifests).map(manifest).collect();
    World::write(&Storage::default(), location, 2, &all)
}

fn streamed(scan: &Scan) -> usize {
    scan.plan_batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

/// The only test of its process, because others would be counted too.
#[test]
fn a_stream_does_not_grow_with_the_table() {
    // Enough manifests that all threads that read ahead are busy.
    let some = 4 * runtime::threads();
    let (small, large) = (world("memory://plan-memory/small", some), world("memory://plan-memory/large", 10 * some));
    let scan = |world: &World| Scan { cached: false, metrics: Metrics::all(), ..world.scan("id >= 0") };
    // Start the thread pool, and let its threads allocate what they keep.
    assert_eq!(streamed(&scan(&small)), some * FILES_OF_MANIFEST);

    let (files, of_small) = peak_of(|| streamed(&scan(&small)));
    assert_eq!(files, some * FILES_OF_MANIFEST);
    let (files, of_large) = peak_of(|| streamed(&scan(&large)));
    assert_eq!(files, 10 * some * FILES_OF_MANIFEST);
    let (plan, of_plan) = peak_of(|| scan(&large).plan().unwrap());
    assert_eq!(plan.len(), files);

    // In addition to a bounded number of manifests, a stream holds the manifest list.
    let list = 10 * some * 2_000;
    assert!(of_large < of_small * 3 / 2 + list, "{some} manifests: {of_small}, ten times as many: {of_large}");
    assert!(of_large < of_plan / 2, "streamed {of_large}, collected {of_plan}");
}
