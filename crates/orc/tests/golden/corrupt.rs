//! Corrupt files, which are rejected if orc-core rejects them, and mutations: they give errors or rows, never a panic,
//! and never take more memory than 16 times the file plus 64 MiB.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use icefield_orc::{ArrowOptions, Projection, ReadOptions, Reader, StringForm};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::rows::{compare, parse};
use super::{Golden, hex, json, trial};

/// Total number of mutations.
const MUTATIONS: u64 = 20_000;
/// Rows after which reading stops: `struct<>` with 2^63 rows is a valid file.
const ENOUGH_ROWS: usize = 200_000;
/// Maximum time for one file.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts the bytes that each thread has allocated, and its peak.
pub struct Counting;

thread_local! {
    static NOW: AtomicUsize = const { AtomicUsize::new(0) };
    static MOST: AtomicUsize = const { AtomicUsize::new(0) };
}

fn add(bytes: usize) {
    let _ = NOW.try_with(|now| {
        let sum = now.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        // A thread that frees memory of another thread may go below zero, which is not a peak.
        if sum < usize::MAX / 2 {
            let _ = MOST.try_with(|most| most.fetch_max(sum, Ordering::Relaxed));
        }
    });
}

fn subtract(bytes: usize) {
    let _ = NOW.try_with(|now| now.fetch_sub(bytes, Ordering::Relaxed));
}

// SAFETY: every call is forwarded to the system's allocator unchanged; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        subtract(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        subtract(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Reads a file to its end, an error, or enough rows; returns the number of rows, and the error.
fn read(bytes: &Bytes, options: &ReadOptions) -> (usize, Option<icefield_orc::Error>) {
    let mut rows = 0;
    let reader = match Reader::open(bytes.clone()) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error)),
    };
    let _ = reader.metadata().stripe_statistics();
    let batches = match reader.batches(options.clone()) {
        Ok(batches) => batches,
        Err(error) => return (0, Some(error)),
    };
    for batch in batches {
        match batch {
            Ok(batch) => rows += batch.num_rows(),
            Err(error) => return (rows, Some(error)),
        }
        if rows >= ENOUGH_ROWS {
            break;
        }
    }
    (rows, None)
}

/// Reads arbitrary bytes as a file; fails on a panic, on too much memory, and on too much time.
fn survive(bytes: &Bytes, options: &ReadOptions) -> Result<(usize, Option<icefield_orc::Error>), String> {
    NOW.with(|now| now.store(0, Ordering::Relaxed));
    MOST.with(|most| most.store(0, Ordering::Relaxed));
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| read(bytes, options))).map_err(|_| "panicked".to_owned())?;
    let most = MOST.with(|most| most.load(Ordering::Relaxed));
    let allowed = bytes.len() * 16 + (64 << 20);
    if most > allowed {
        return Err(format!("asked for {most} bytes, {allowed} allowed; then: {:?}", result.1));
    }
    if start.elapsed() > PATIENCE {
        return Err(format!("took {:?}", start.elapsed()));
    }
    Ok(result)
}

/// All corrupt files, with their entries in the list of the set. A file without an entry must do no harm.
fn listed(golden: &Golden) -> BTreeMap<String, Json> {
    let folder = golden.folder.join("corrupt");
    let names = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".orc"));
    let mut files: BTreeMap<String, Json> = names.map(|name| (name, Json::Null)).collect();
    let list = json(&folder.join("list.json")).unwrap_or_default();
    let entries = list.as_array().cloned().unwrap_or_default().into_iter();
    files.extend(entries.filter_map(|entry| Some((entry["file"].as_str()?.to_owned(), entry))));
    files
}

/// Checks that a file is rejected if orc-core rejects it, unless the list leaves this to the reader, and that both read
/// the same rows. A file that orc-core reads may be rejected: all of these files are damaged, and the rows that
/// orc-core returns after the damage are not always meaningful.
fn check_corrupt(golden: &Golden, name: &str, entry: &Json) -> Result<(), Failed> {
    let bytes = Bytes::from(std::fs::read(golden.folder.join("corrupt").join(name))?);
    if let Some(length) = entry["bytes"].as_u64().filter(|length| *length != bytes.len() as u64) {
        return Err(format!("{} bytes, {length} expected", bytes.len()).into());
    }
    let (rows, error) = survive(&bytes, &ReadOptions::default())?;
    let core = &entry["orcCore"];
    if std::env::var_os("ICEFIELD_ORC_SHOW").is_some() {
        eprintln!("{name}: {rows} rows, {error:?}; orc-core {core}");
    }
    let about = entry["about"].as_str().unwrap_or_default();
    let either = about.contains("may accept") || about.contains("may be wrong");
    match (core["threw"].as_str(), core["rows"].as_u64()) {
        _ if error.is_some() => Ok(()),
        (Some(threw), _) if !either => Err(format!("read as if it were whole; orc-core: {threw}").into()),
        (None, Some(expected)) if expected != rows as u64 => Err(format!("{rows} rows, {expected} expected").into()),
        (None, Some(_)) => same_rows(golden, &bytes, core),
        _ => Ok(()),
    }
}

/// Checks the rows against the files of the set: they equal the rows of a file exactly if orc-core's digest is that of
/// its expected rows.
fn same_rows(golden: &Golden, bytes: &Bytes, core: &Json) -> Result<(), Failed> {
    let Some(digest) = core["sha256OfRows"].as_str() else { return Ok(()) };
    let reader = Reader::open(bytes.clone())?;
    let schema = reader.metadata().schema.to_string();
    let arrow = ArrowOptions { strings: StringForm::Binary, ..ArrowOptions::default() };
    let batches = super::rows::read(&reader, ReadOptions { arrow, ..ReadOptions::default() })?;
    let alike =
        |name: &String| golden.index.iter().any(|own| own["file"] == format!("{name}.orc") && own["schema"] == schema);
    for name in golden.names().filter(alike) {
        let Some(lines) = golden.expected(&name, "rows.jsonl") else { continue };
        let rows = parse(&lines)?;
        let compared = compare(reader.metadata(), &batches, &rows, 0..rows.len() as u64);
        match (hex(&Sha256::digest(&lines)) == digest, compared) {
            (true, Err(error)) => return Err(format!("not the rows of {name}: {error:?}").into()),
            (false, Ok(())) => return Err(format!("the rows are those of {name}, their digest is not {digest}").into()),
            _ => {}
        }
    }
    Ok(())
}

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, entry) in listed(golden) {
        let golden = Arc::clone(golden);
        trials.push(trial(format!("corrupt::{name}"), move || check_corrupt(&golden, &name, &entry)));
    }
    let sources: Vec<String> = golden.names().collect();
    if sources.is_empty() {
        return trials;
    }
    /// Mutations of one trial.
    const SHARE: u64 = 1000;
    for share in 0..MUTATIONS / SHARE {
        let (golden, sources) = (Arc::clone(golden), sources.clone());
        let seeds = share * SHARE..(share + 1) * SHARE;
        trials
            .push(trial(format!("mutations::{}-{}", seeds.start, seeds.end), move || mutate(&golden, &sources, seeds)));
    }
    trials
}

/// A small random number generator, with the same numbers everywhere (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn mutate(golden: &Golden, sources: &[String], seeds: std::ops::Range<u64>) -> Result<(), Failed> {
    for seed in seeds {
        let mut random = Random(seed);
        let name = &sources[random.below(sources.len())];
        let mut bytes = golden.file(name)?;
        if bytes.is_empty() {
            continue;
        }
        mutate_bytes(&mut bytes, &mut random);
        let mut options = ReadOptions { batch_size: 1 + random.below(3000), ..ReadOptions::default() };
        if seed % 3 == 0 {
            // Skipping rows uses other code than reading them.
            options.rows = Some(vec![random.below(300) as u64..400, 1200..1210 + random.below(500) as u64]);
            options.projection = Projection::All;
        }
        survive(&bytes.into(), &options).map_err(|error| format!("seed {seed}, {name}: {error}"))?;
    }
    Ok(())
}

/// Mutates bytes: flips bits, sets bytes to extremes, removes, doubles or overwrites a piece; often near the tail.
fn mutate_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let length = bytes.len();
        let near_tail = random.below(2) == 0;
        let at = if near_tail { length - 1 - random.below(length.min(1500)) } else { random.below(length) };
        match random.below(6) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => {
                let end = (at + 1 + random.below(40)).min(length);
                bytes[at..end].iter_mut().for_each(|byte| *byte = random.next() as u8);
            }
            4 if length > 200 => {
                bytes.drain(at..(at + 1 + random.below(30)).min(length));
            }
            _ => {
                let piece = bytes[at..(at + 1 + random.below(30)).min(length)].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}
