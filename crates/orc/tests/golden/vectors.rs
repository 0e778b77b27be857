//! `vectors.json`: bytes and values of each encoding, chunks, hashes and filters, for reading.

use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::proto::{BloomFilter, CompressionKind, StreamKind};
use icefield_orc::testing::{
    BloomView, BooleanReader, ByteReader, ByteStream, Context, Decompressor, IntReader, Part, hash_bytes, hash_long,
    read_varint64, read_varint128, unzigzag, unzigzag128,
};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use super::expected::int;
use super::{Golden, hex, json, trial, unhex};

/// Checks one case.
pub type Check = fn(&Json) -> Result<(), Failed>;

/// The sections that test reading; `encode.rs` has the others.
const SECTIONS: &[(&str, Check)] = &[
    ("rle1", |case| integers(case, false)),
    ("rle2", |case| integers(case, true)),
    ("draftExamples", draft_example),
    ("byteRle", byte_runs),
    ("booleanRle", booleans),
    ("varints", varints),
    ("decimalVarints", decimal_varints),
    ("compressedChunks", chunks),
    ("murmur3of64bits", murmur),
    ("bloomBits", bloom_bits),
];

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    of_sections(golden, "vectors", SECTIONS)
}

/// One trial per case of these sections; a set may lack any of them.
pub fn of_sections(golden: &Arc<Golden>, what: &str, sections: &[(&str, Check)]) -> Vec<Trial> {
    let vectors = json(&golden.folder.join("vectors.json")).unwrap_or_default();
    let mut trials = Vec::new();
    for &(section, check) in sections {
        for (number, case) in vectors[section].as_array().cloned().unwrap_or_default().into_iter().enumerate() {
            trials.push(trial(format!("{what}::{section}::{number}"), move || check(&case)));
        }
    }
    trials
}

fn context() -> Context {
    let decompressor = Decompressor::new(CompressionKind::None).unwrap();
    Context { decompressor, batch_values: 1 << 20, dictionary_bytes: 1 << 20 }
}

fn stream(case: &Json) -> ByteStream {
    let bytes = Bytes::from(unhex(case["bytes"].as_str().unwrap_or_default()));
    ByteStream::new(0, StreamKind::Data, vec![Part { offset: 0, bytes }], 0)
}

pub fn list(case: &Json) -> Vec<i64> {
    // Unsigned values from 2^63 on have the same 64 bits as negative ones.
    let number = |value: &Json| int(value).or_else(|| Some(value.as_str()?.parse::<u64>().ok()? as i64));
    case["values"].as_array().unwrap().iter().map(|value| number(value).unwrap()).collect()
}

pub fn same<T: PartialEq + std::fmt::Debug>(expected: &T, got: &T) -> Result<(), Failed> {
    if expected == got { Ok(()) } else { Err(format!("{expected:?} expected, {got:?}").into()) }
}

fn integers(case: &Json, version2: bool) -> Result<(), Failed> {
    let expected = list(case);
    let signed = case["signed"].as_bool().unwrap_or_default();
    let mut got = Vec::new();
    IntReader::new(stream(case), signed, version2).read_vec(expected.len(), &mut got, &mut context())?;
    same(&expected, &got)?;
    // The same, with alternating reads and skips.
    let mut reader = IntReader::new(stream(case), signed, version2);
    let (mut at, mut step) = (0, 1);
    let mut context = context();
    while at < expected.len() {
        let count = step.min(expected.len() - at);
        if step % 2 == 0 {
            reader.skip(count, &mut context)?;
        } else {
            reader.read_vec(count, &mut got, &mut context)?;
            same(&expected[at..at + count].to_vec(), &got)?;
        }
        at += count;
        step += 1;
    }
    // There is no further value.
    let beyond = reader.read_vec(1, &mut got, &mut context).is_err();
    same(&true, &beyond)
}

fn draft_example(case: &Json) -> Result<(), Failed> {
    let read = match case["encoding"].as_str() {
        Some("rle1") => integers(case, false),
        Some("rle2") => integers(case, true),
        Some(other) if other.starts_with("byte") => byte_runs(case),
        Some(other) => return Err(format!("an example of {other}").into()),
        None => return Err("an example of nothing".into()),
    };
    match case["ok"].as_bool() {
        Some(false) => same(&false, &read.is_ok()),
        _ => read,
    }
}

fn byte_runs(case: &Json) -> Result<(), Failed> {
    let expected: Vec<u8> = list(case).iter().map(|value| *value as u8).collect();
    let mut got = Vec::new();
    ByteReader::new(stream(case)).read_onto(expected.len(), &mut got, &mut context())?;
    same(&expected, &got)
}

fn booleans(case: &Json) -> Result<(), Failed> {
    let expected: Vec<bool> = case["values"].as_str().ok_or("no values")?.bytes().map(|bit| bit == b'1').collect();
    for step in [1, 3, 8, 1000] {
        let mut reader = BooleanReader::new(stream(case));
        let mut got = Vec::new();
        while got.len() < expected.len() {
            got.extend(reader.read(step.min(expected.len() - got.len()), &mut context())?.iter());
        }
        same(&expected, &got)?;
    }
    let mut reader = BooleanReader::new(stream(case));
    reader.skip(expected.len() / 2, &mut context())?;
    let rest: Vec<bool> = reader.read(expected.len() - expected.len() / 2, &mut context())?.iter().collect();
    same(&expected[expected.len() / 2..].to_vec(), &rest)
}

fn varints(case: &Json) -> Result<(), Failed> {
    let value = int(&case["value"]).ok_or("no value")?;
    if let Some(bytes) = case["unsigned"].as_str() {
        let (got, length) = read_varint64(&unhex(bytes)).ok_or("cut off")?;
        same(&(value as u64, bytes.len() / 2), &(got, length))?;
    }
    let bytes = case["signed"].as_str().ok_or("no bytes")?;
    let (got, length) = read_varint64(&unhex(bytes)).ok_or("cut off")?;
    same(&(value, bytes.len() / 2), &(unzigzag(got), length))
}

fn decimal_varints(case: &Json) -> Result<(), Failed> {
    let value: i128 = case["unscaled"].as_str().ok_or("no value")?.parse()?;
    let bytes = unhex(case["bytes"].as_str().ok_or("no bytes")?);
    let (got, length) = read_varint128(&bytes).ok_or("cut off")?;
    same(&(value, bytes.len()), &(unzigzag128(got), length))
}

fn chunks(case: &Json) -> Result<(), Failed> {
    let kind = (0..7).map(CompressionKind::from_number).find(|kind| Some(kind.name()) == case["kind"].as_str());
    let mut decompressor = Decompressor::new(kind.ok_or("an unknown codec")?)?;
    let block = case["chunkSize"].as_u64().ok_or("no size")? as usize;
    let bytes = unhex(case["bytes"].as_str().ok_or("no bytes")?);
    let plain = decompressor.inflate_all(&bytes, block, 1 << 24)?;
    same(&case["plain"].as_str().ok_or("no plain bytes")?.to_owned(), &hex(&plain))?;
    // All chunks except the last have the maximum length.
    let (mut rest, mut left) = (bytes.as_slice(), plain.len());
    while let [low, middle, high, ..] = rest {
        let length = (usize::from(*low) >> 1) + (usize::from(*middle) << 7) + (usize::from(*high) << 15);
        let (chunk, after) = rest.split_at_checked(3 + length).ok_or("a chunk is cut off")?;
        let one = decompressor.inflate_all(chunk, block, 1 << 24)?;
        same(&block.min(left), &one.len())?;
        (rest, left) = (after, left - one.len());
    }
    // The same as a stream, which decompresses one chunk at a time.
    let mut context = Context { decompressor, batch_values: 0, dictionary_bytes: 0 };
    let parts = vec![Part { offset: 0, bytes: bytes.into() }];
    let mut stream = ByteStream::new(0, StreamKind::Data, parts, block);
    let mut read = Vec::new();
    stream.read_onto(plain.len(), &mut read, &mut context)?;
    same(&plain, &read)?;
    same(&true, &stream.is_finished(&mut context)?)
}

fn murmur(case: &Json) -> Result<(), Failed> {
    let bytes = unhex(case["bytes"].as_str().ok_or("no bytes")?);
    if let Some(text) = case["text"].as_str() {
        same(&text.as_bytes(), &bytes.as_slice())?;
    }
    let hash = hash_bytes(&bytes);
    same(&int(&case["hash"]).ok_or("no hash")?, &(hash as i64))
}

/// The hash of a value of `bloomBits`.
pub fn bloom_hash(case: &Json) -> Result<u64, Failed> {
    let value = &case["value"];
    Ok(match case["as"].as_str() {
        Some("long") => hash_long(int(value).ok_or("no number")?),
        Some("double") => {
            let number = value.as_str().and_then(|text| text.parse().ok()).or_else(|| super::expected::float(value));
            hash_long(number.map(f64::to_bits).ok_or("no number")? as i64)
        }
        Some("string") => hash_bytes(value.as_str().ok_or("no text")?.as_bytes()),
        Some("bytes" | "binary") => hash_bytes(&unhex(value.as_str().ok_or("no bytes")?)),
        other => return Err(format!("a value as {other:?}").into()),
    })
}

fn bloom_bits(case: &Json) -> Result<(), Failed> {
    let hash = bloom_hash(case)?;
    let set: Vec<u64> = case["bitsSet"].as_array().ok_or("no bits")?.iter().filter_map(Json::as_u64).collect();
    let (bits, probes) = sizes(case);
    let mut words = vec![0u64; bits / 64];
    set.iter().for_each(|bit| words[*bit as usize / 64] |= 1 << (bit % 64));
    let filter = BloomFilter { num_hash_functions: Some(probes), bitset: words.clone(), utf8bitset: None };
    same(&true, &BloomView::new(&filter).may_contain(hash))?;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let filter = BloomFilter { num_hash_functions: Some(probes), bitset: Vec::new(), utf8bitset: Some(bytes) };
    same(&true, &BloomView::new(&filter).may_contain(hash))?;
    // Every set bit is needed: without any of them the answer is no.
    for bit in set {
        let mut words = words.clone();
        words[bit as usize / 64] &= !(1 << (bit % 64));
        let filter = BloomFilter { num_hash_functions: Some(probes), bitset: words, utf8bitset: None };
        same(&false, &BloomView::new(&filter).may_contain(hash))?;
    }
    Ok(())
}

/// The bits and probes of a filter for a number of values (docs/orc-pitfalls.md, "Bloom filters").
fn sizes(case: &Json) -> (usize, u32) {
    let expected = case["expected"].as_f64().unwrap_or(1.0);
    let probability = case["fpp"].as_f64().unwrap_or(0.05);
    let ln2 = std::f64::consts::LN_2;
    let optimal = (-expected * probability.ln() / (ln2 * ln2)) as usize;
    let bits = optimal + (64 - optimal % 64);
    (bits, ((bits as f64 / expected * ln2).round() as u32).max(1))
}
