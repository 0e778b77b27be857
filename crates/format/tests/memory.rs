//! The memory for hostile input, measured in the allocator: whatever manifests and manifest lists claim, reading them
//! takes no more than the limits allow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use icefield_format::avro::{Codec, Compression, ContainerWriter, Encoder};
use icefield_format::manifest::{Metrics, ReadOptions, entries, list};
use icefield_format::{Error, Limits, Result};

/// Counts the bytes that each thread has allocated, and its peak.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that is ending no longer has thread-local cells.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
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
        // Both blocks exist while the bytes are moved.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The result, and the peak of allocated bytes, not counting those allocated before.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let made = work();
    (made, (PEAK.get() - before).unsigned_abs())
}

const LIMITS: Limits = Limits {
    metadata_json_bytes: 1 << 20,
    block_bytes: 1 << 20,
    block_ratio: 1 << 12,
    avro_bytes: 4 << 20,
    decoded_bytes: 4 << 20,
    depth: 128,
    type_depth: 40,
    fields: 1000,
    blob_bytes: 1 << 20,
    least_memory: 1 << 26,
    memory_ratio: 128,
    most_memory: 1 << 31,
    operation_memory: 1 << 31,
};
/// The memory that [`LIMITS`] allow in total: decompressed and decoded, and twice the latter while a column grows.
const MOST: usize = 48 << 20;

#[track_caller]
fn is_bounded<T: std::fmt::Debug>(what: &str, input: usize, read: impl FnOnce() -> Result<T>) -> Result<T> {
    let (outcome, peak) = peak_of(read);
    assert!(peak < MOST + 100 * input, "{what}: {input} bytes took {peak}");
    if let Err(error) = &outcome {
        assert!(matches!(error, Error::Corrupt(_) | Error::Unsupported(_)), "{what}: {error:?}");
    }
    outcome
}

#[track_caller]
fn manifest(what: &str, bytes: &[u8]) -> Result<usize> {
    let options = ReadOptions { metrics: Metrics::all(), ..ReadOptions::default() };
    is_bounded(what, bytes.len(), || entries::read(bytes, &options, &LIMITS).map(|entries| entries.len()))
}

const SYNC: [u8; 16] = *b"0123456789abcdef";
const CODECS: [Codec; 4] = [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard];

/// A file with `record` repeated `times` times, in blocks.
fn repeated(schema: &str, codec: Codec, record: &[u8], times: usize) -> Vec<u8> {
    let none: &[(&str, &str)] = &[];
    let mut file = ContainerWriter::new(schema, none, Compression { codec, level: None }, SYNC).unwrap();
    for _ in 0..times {
        file.record(|out| {
            out.raw(record);
            Ok(())
        })
        .unwrap();
    }
    file.finish().unwrap()
}

/// The schema of manifest entries with this partition and these additional fields.
fn entry(partition: &str, more: &str) -> String {
    format!(
        r#"{{"type":"record","name":"manifest_entry","fields":[
        {{"name":"status","type":"int","field-id":0}},
        {{"name":"data_file","field-id":2,"type":{{"type":"record","name":"r2","fields":[
            {{"name":"file_path","type":"string","field-id":100}},
            {{"name":"file_format","type":"string","field-id":101}},
            {{"name":"partition","type":{{"type":"record","name":"r102","fields":[{partition}]}},"field-id":102}},
            {{"name":"record_count","type":"long","field-id":103}},
            {{"name":"file_size_in_bytes","type":"long","field-id":104}}{more}]}}}}]}}"#
    )
}

/// The bytes before and after the partition: status, path, format; counts.
const HEAD: [u8; 3] = [0, 0, 0];
const COUNTS: [u8; 2] = [2, 2];

#[test]
fn entries_of_few_bytes_end_at_the_limit() {
    for codec in CODECS {
        let few = repeated(&entry("", ""), codec, &[&HEAD[..], &COUNTS].concat(), 2000);
        assert_eq!(manifest("few", &few), Ok(2000));
        let many = repeated(&entry("", ""), codec, &[&HEAD[..], &COUNTS].concat(), 400_000);
        let error = manifest("many", &many).unwrap_err().to_string();
        assert!(error.contains("needs more than") && error.contains("entry"), "{error}");
    }
}

#[test]
fn partition_values_that_take_no_bytes_end_at_the_limit() {
    let field = |number: usize| format!(r#"{{"name":"f{number}","type":["null","int"],"field-id":{}}}"#, 1000 + number);
    let partition: Vec<String> = (0..200).map(field).collect();
    let record = [&HEAD[..], &[0; 200], &COUNTS].concat();
    let error = manifest("wide", &repeated(&entry(&partition.join(","), ""), Codec::Zstandard, &record, 10_000));
    assert!(error.unwrap_err().to_string().contains("needs more than"));
}

#[test]
fn lists_and_maps_of_few_bytes_end_at_the_limit() {
    let list = r#",{"name":"split_offsets","field-id":132,"type":{"type":"array","items":"long"}}"#;
    let map = r#",{"name":"value_counts","field-id":109,"type":{"type":"array","items":{"type":"record","name":"k","fields":[
        {"name":"key","type":"int","field-id":119},{"name":"value","type":"long","field-id":120}]}}}"#;
    for (what, more, item) in [("list", list, &[2][..]), ("map", map, &[2, 2])] {
        let record = |count: usize| {
            let mut items = Encoder::default();
            items.long(count as i64);
            [&HEAD[..], &COUNTS, &items.into_bytes(), &item.repeat(count), &[0]].concat()
        };
        let read = |count, times| manifest(what, &repeated(&entry("", more), Codec::Zstandard, &record(count), times));
        assert_eq!(read(1000, 1), Ok(1));
        // An entry cannot have more of them than the maximum number of fields of a schema.
        assert!(read(1001, 1).unwrap_err().to_string().contains("exceeds what is left"));
        let error = read(1000, 4000).unwrap_err().to_string();
        // The size is checked only from time to time, or the limit of the file is reached first.
        assert!(error.contains("more than"), "{what}: {error}");
    }
}

const LIST: &str = r#"{"type":"record","name":"manifest_file","fields":[
    {"name":"manifest_path","type":"string","field-id":500},{"name":"manifest_length","type":"long","field-id":501},
    {"name":"partition_spec_id","type":"int","field-id":502},{"name":"added_snapshot_id","type":"long","field-id":503},
    {"name":"partitions","field-id":507,"type":["null",{"type":"array","items":{"type":"record","name":"r508","fields":[
        {"name":"contains_null","type":"boolean","field-id":509}]}}]}]}"#;

#[test]
fn lists_of_manifests_end_at_the_limit() {
    let read = |what: &str, bytes: &[u8]| {
        is_bounded(what, bytes.len(), || list::read(bytes, &LIMITS).map(|l| l.manifests.len()))
    };
    let none = [0u8, 2, 0, 2, 0];
    for codec in CODECS {
        assert_eq!(read("few", &repeated(LIST, codec, &none, 1000)), Ok(1000));
        let error = read("many", &repeated(LIST, codec, &none, 100_000)).unwrap_err().to_string();
        assert!(error.contains("needs more than"), "{error}");
        let mut count = Encoder::default();
        count.long(500_000);
        let wide = [&[0u8, 2, 0, 2, 2][..], &count.into_bytes(), &[1; 500_000], &[0]].concat();
        let error = read("wide", &repeated(LIST, codec, &wide, 1)).unwrap_err().to_string();
        // With a high compression ratio, this is detected first.
        assert!(error.contains("exceeds what is left") || error.contains("more than"), "{error}");
        assert!(codec != Codec::Null || error.contains("partitions"), "{error}");
    }
}

/// A file with one block of exactly these bytes.
fn block(codec: &str, schema: &str, count: i64, data: &[u8]) -> Vec<u8> {
    let mut out = Encoder::default();
    out.raw(b"Obj\x01");
    out.long(2);
    for (key, value) in [("avro.schema", schema), ("avro.codec", codec)] {
        out.bytes(key.as_bytes());
        out.bytes(value.as_bytes());
    }
    out.long(0);
    out.raw(&SYNC);
    out.long(count);
    out.bytes(data);
    out.raw(&SYNC);
    out.into_bytes()
}

#[test]
fn sizes_that_frames_claim_are_not_believed() {
    let schema = entry("", "");
    // A zstd frame that claims 2^62 bytes, one with a window of 2 GiB, a snappy block of 2^32 - 1 bytes, stored
    // deflate.
    let zstd = |descriptor: u8, rest: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd, descriptor][..], rest, &[1, 0, 0]].concat();
    let claims = [
        ("zstandard", zstd(0xe0, &[0, 0, 0, 0, 0, 0, 0, 0x40])),
        ("zstandard", zstd(0x00, &[0xa8])),
        ("snappy", [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0; 40]].concat()),
        ("deflate", vec![1, 0xff, 0xff, 0, 0, 7]),
        ("null", vec![]),
    ];
    for (codec, data) in claims {
        for count in [0, 1, i64::from(i32::MAX), i64::MAX, -1, i64::MIN] {
            let file = block(codec, &schema, count, &data);
            let outcome = manifest(codec, &file);
            assert!(outcome.is_err() || (count == 0 && outcome == Ok(0)), "{codec} {count}: {outcome:?}");
            let _ = is_bounded(codec, file.len(), || list::read(&file, &LIMITS));
        }
    }
}

#[test]
fn bombs_end_at_the_limit() {
    for codec in [Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
        for megabytes in [2, 64] {
            let bomb = repeated(&entry("", ""), codec, &vec![0; megabytes << 20], 1);
            let error = manifest("bomb", &bomb).unwrap_err().to_string();
            assert!(error.contains("decompresses to more than"), "{codec:?}: {error}");
        }
    }
}

#[test]
fn schemas_that_grow_when_they_are_read_are_bounded() {
    let mut wide = r#"{"type":"record","name":"r0","fields":[{"name":"a","type":"int"}]}"#.to_owned();
    for depth in 1..40 {
        let before = depth - 1;
        wide = format!(
            r#"{{"type":"record","name":"r{depth}","fields":[{{"name":"a","type":{wide}}},{{"name":"b","type":"r{before}"}}]}}"#
        );
    }
    let recursive = r#"{"type":"record","name":"r","fields":[{"name":"a","type":["null","r"]}]}"#.to_owned();
    let many = format!(
        r#"{{"type":"record","name":"r","fields":[{}]}}"#,
        (0..20_000).map(|n| format!(r#"{{"name":"f{n}","type":"null"}}"#)).collect::<Vec<_>>().join(",")
    );
    let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(9_000), "}".repeat(9_000));
    for schema in [wide, recursive, many, deep] {
        let file = block("null", &schema, 1, &[0]);
        assert!(manifest("schema", &file).is_err());
        assert!(is_bounded("schema", file.len(), || list::read(&file, &LIMITS)).is_err());
    }
}
