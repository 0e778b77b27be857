//! Damaged and malicious manifests give typed errors, no panics, and take no excessive memory.

use icefield_format::avro::{Codec, Compression, Container, ContainerWriter};
use icefield_format::manifest::{ManifestContent, ManifestFile, Metrics, ReadOptions, entries, list};
use icefield_format::{Error, Limits, Result};

use crate::manifests::made;

fn read(bytes: &[u8], limits: &Limits) -> Result<usize> {
    let options = ReadOptions { metrics: Metrics::all(), ..ReadOptions::default() };
    let read = entries::read(bytes, &options, limits).map(|entries| entries.len());
    // The same bytes as a manifest list have the wrong schema, so they are always an error, and never a panic.
    assert!(list::read(bytes, limits).is_err());
    read
}

fn manifest(codec: Codec) -> Vec<u8> {
    made::write(2, ManifestContent::Data, codec, &made::plain_entries(150)).unwrap().0
}

/// Pseudo-random numbers, the same in each run.
fn noise(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (z >> 31)
}

const CODECS: [Codec; 4] = [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard];

#[test]
fn every_cut_is_refused() {
    for codec in CODECS {
        let whole = manifest(codec);
        assert_eq!(read(&whole, &Limits::default()), Ok(150));
        // The file has one block, so every cut is in the header or in the block.
        for cut in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
            let outcome = read(&whole[..cut], &Limits::default());
            let headless = cut > 0 && matches!(outcome, Ok(0));
            assert!(matches!(outcome, Err(Error::Corrupt(_))) || headless, "{codec:?} cut at {cut}: {outcome:?}");
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    for codec in CODECS {
        let whole = manifest(codec);
        for seed in 0..400 {
            let mut damaged = whole.clone();
            let at = noise(seed) as usize % damaged.len();
            damaged[at] ^= 1 << (noise(seed + 1000) % 8);
            if let Err(error) = read(&damaged, &Limits::default()) {
                assert!(matches!(error, Error::Corrupt(_) | Error::Unsupported(_)), "{error:?}");
            }
        }
    }
}

/// A file with this schema, and one block of `count` records with these bytes.
fn container(schema: &str, count: i64, data: &[u8]) -> Vec<u8> {
    let none = Compression { codec: Codec::Null, level: None };
    let mut file = ContainerWriter::new(schema, &[], none, made::SYNC).unwrap().finish().unwrap();
    let mut head = icefield_format::avro::Encoder::default();
    head.long(count);
    head.bytes(data);
    head.raw(&made::SYNC);
    file.extend(head.into_bytes());
    file
}

const ENTRY: &str = r#"{"type":"record","name":"manifest_entry","fields":[
    {"name":"status","type":"int","field-id":0},
    {"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[
        {"name":"file_path","type":"string","field-id":100},
        {"name":"file_format","type":"string","field-id":101},
        {"name":"partition","type":{"type":"record","name":"r102","fields":[]},"field-id":102},
        {"name":"record_count","type":"long","field-id":103},
        {"name":"file_size_in_bytes","type":"long","field-id":104},
        {"name":"extra","type":{"type":"array","items":"null"}},
        {"name":"value_counts","field-id":109,"type":["null",{"type":"array","items":{"type":"record","name":"k","fields":[
            {"name":"key","type":"int","field-id":119},{"name":"value","type":"long","field-id":120}]}}]}]}}]}"#;

#[test]
fn counts_and_lengths_beyond_the_input_are_refused() {
    // Status, path, format, counts; then the array of nulls and the map.
    let head = [0u8, 2, b'a', 2, b'b', 2, 2];
    let huge = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let entry = |rest: &[&[u8]]| [&head[..], &rest.concat()].concat();
    for (what, count, data, good) in [
        ("plain", 1, entry(&[&[0], &[0]]), true),
        ("a map in a block with its size", 1, entry(&[&[0], &[2, 1, 4, 2, 2, 0]]), true),
        ("2^62 nulls take no bytes and no time", 1, entry(&[&huge, &[0], &[0]]), true),
        ("2^62 pairs", 1, entry(&[&[0], &[2], &huge]), false),
        ("a block of negative size", 1, entry(&[&[1, 1], &[0]]), false),
        ("more entries than bytes", 1 << 60, entry(&[&[0], &[0]]), false),
        ("an entry too many", 2, entry(&[&[0], &[0]]), false),
        ("bytes after the last entry", 1, entry(&[&[0], &[0], &[0]]), false),
        ("a negative number of entries", -1, entry(&[&[0], &[0]]), false),
        ("a branch that is not there", 1, entry(&[&[0], &[6]]), false),
        ("a status that is not there", 1, [&[8], &entry(&[&[0], &[0]])[1..]].concat(), false),
        ("a path of negative length", 1, vec![0, 1, 2, b'b', 2, 2, 0, 0], false),
        ("a path beyond the end", 1, [&[0], &huge[..]].concat(), false),
    ] {
        let outcome = read(&container(ENTRY, count, &data), &Limits::default());
        assert_eq!(outcome.is_ok(), good, "{what}: {outcome:?}");
        assert!(good || matches!(outcome, Err(Error::Corrupt(_))), "{what}: {outcome:?}");
    }
}

#[test]
fn required_fields_must_have_values() {
    let optional = ENTRY
        .replace(r#""type":"string","field-id":100"#, r#""type":["null","string"],"field-id":100"#)
        .replace(r#""type":"long","field-id":103"#, r#""type":["null","long"],"field-id":103"#);
    // Status, path, format, counts, nulls, map.
    assert_eq!(read(&container(&optional, 1, &[0, 2, 2, b'a', 2, b'b', 2, 2, 2, 0, 0]), &Limits::default()), Ok(1));
    for (field, data) in
        [("file_path", vec![0, 0, 2, b'b', 2, 2, 2, 0, 0]), ("record_count", vec![0, 2, 2, b'a', 2, b'b', 0, 2, 0, 0])]
    {
        let error = read(&container(&optional, 1, &data), &Limits::default()).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    let absent = ENTRY.replace(r#""type":"long","field-id":103"#, r#""type":"null","field-id":103"#);
    let error = read(&container(&absent, 1, &[0, 2, b'a', 2, b'b', 2, 0, 0]), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("field record_count: expected a number, found null"), "{error}");
    let missing = ENTRY.replace(r#""field-id":103"#, r#""field-id":1103"#);
    let error = read(&container(&missing, 1, &[]), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("required field record_count (id 103) is missing"), "{error}");
}

#[test]
fn schemas_that_cannot_be_are_refused() {
    let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(100_000), "}".repeat(100_000));
    // Each record contains the previous one twice, so a short text has 2^60 fields.
    let mut wide = r#"{"type":"record","name":"r0","fields":[{"name":"a","type":"int"}]}"#.to_owned();
    for depth in 1..60 {
        let before = depth - 1;
        wide = format!(
            r#"{{"type":"record","name":"r{depth}","fields":[{{"name":"a","type":{wide}}},{{"name":"b","type":"r{before}"}}]}}"#
        );
    }
    let recursive = r#"{"type":"record","name":"r","fields":[{"name":"a","type":["null","r"]}]}"#;
    let unknown = r#"{"type":"record","name":"r","fields":[{"name":"a","type":"quaternion"}]}"#;
    for schema in
        [deep.as_str(), &wide, recursive, unknown, "\"int\"", "{}", "[", "3", r#"{"type":"record","name":"r"}"#]
    {
        let outcome = read(&container(schema, 1, &[0]), &Limits::default());
        let is_refused = match &outcome {
            // Valid JSON with more levels than allowed.
            Err(Error::Unsupported(_)) => schema == deep || schema == wide,
            other => matches!(other, Err(Error::Corrupt(_))),
        };
        assert!(is_refused, "{}: {outcome:?}", &schema[..schema.len().min(60)]);
    }
}

#[test]
fn bombs_end_at_the_limit() {
    let limits = Limits { block_bytes: 1 << 20, avro_bytes: 1 << 20, ..Limits::default() };
    for codec in [Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
        let none: &[(&str, &str)] = &[];
        let mut bomb = ContainerWriter::new(ENTRY, none, Compression { codec, level: None }, made::SYNC).unwrap();
        bomb.record(|out| {
            out.raw(&vec![0; 8 << 20]);
            Ok(())
        })
        .unwrap();
        let outcome = read(&bomb.finish().unwrap(), &limits);
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("decompresses to more than"), "{codec:?}: {message}");
        // Many blocks, each within its own limit, exceed the limit of the file together.
        let many = made::write(2, ManifestContent::Data, codec, &made::plain_entries(6_000)).unwrap().0;
        assert!(read(&many, &limits).unwrap_err().to_string().contains("decompresses to more than"), "{codec:?}");
        assert_eq!(read(&many, &Limits::default()), Ok(6_000));
    }
}

#[test]
fn blocks_that_are_not_of_their_codec_are_corrupt() {
    for name in ["bzip2", "xz", "middle-out"] {
        let file = container(ENTRY, 1, b"no stream of any codec");
        let at = file.windows(4).position(|window| window == b"null").unwrap();
        // The codec is after the schema; replace its length and its name.
        let at =
            file[at + 4..].windows(5).position(|window| window == b"\x08null").map_or(at - 1, |next| at + 4 + next);
        let length = [u8::try_from(name.len()).unwrap() * 2];
        let changed = [&file[..at], &length, name.as_bytes(), &file[at + 5..]].concat();
        let error = read(&changed, &Limits::default()).unwrap_err();
        let place = if name == "middle-out" { "avro.codec: unknown codec \"middle-out\"" } else { "Avro block" };
        assert!(error.to_string().contains(place), "{name}: {error}");
    }
}

#[test]
fn a_manifest_cut_between_blocks_is_detected() {
    for codec in CODECS {
        let entries = made::plain_entries(3000);
        let (whole, described) = made::write(2, ManifestContent::Data, codec, &entries).unwrap();
        let container = Container::open(&whole).unwrap();
        let first = container.blocks().next().unwrap().unwrap();
        let end = usize::try_from(first.offset).unwrap() + first.data.len() + made::SYNC.len();
        assert!(end < whole.len(), "more than one block is needed");
        let options = ReadOptions { inherit: Some(&described), ..ReadOptions::default() };
        assert_eq!(entries::read(&whole, &options, &Limits::default()).unwrap().len(), 3000);
        let error = entries::read(&whole[..end], &options, &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("but its manifest list says 3000"), "{error}");
        // Without counts, as in some lists of version 1, nothing can be detected.
        let described = ManifestFile { added_files_count: None, ..described };
        let options = ReadOptions { inherit: Some(&described), ..ReadOptions::default() };
        assert!(entries::read(&whole[..end], &options, &Limits::default()).is_ok());
    }
}
