//! `vectors.json`: for given values, the encoders write the same bytes as orc-core.

use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use icefield_orc::Packing;
use icefield_orc::testing::{
    BloomBuilder, BooleanWriter, ByteWriter, IntWriter, nanos_to_secondary, write_varint64, write_varint128, zigzag,
    zigzag128,
};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use super::expected::int;
use super::vectors::{Check, bloom_hash, list, of_sections, same};
use super::{Golden, hex};

/// The sections that test encoders.
const SECTIONS: &[(&str, Check)] = &[
    ("rle1", |case| integers(case, false)),
    ("rle2", |case| integers(case, true)),
    ("byteRle", byte_runs),
    ("booleanRle", booleans),
    ("varints", varints),
    ("decimalVarints", decimal_varints),
    ("timestampNanos", nanos),
    ("bloomSizes", bloom_sizes),
    ("bloomBits", bloom_bits),
];

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    of_sections(golden, "encode", SECTIONS)
}

fn bytes(case: &Json) -> Result<&str, Failed> {
    Ok(case["bytes"].as_str().ok_or("no bytes")?)
}

/// Numbers of values that are written at a time, which must not matter.
const STEPS: [usize; 5] = [1, 3, 100, 511, usize::MAX];

fn integers(case: &Json, version2: bool) -> Result<(), Failed> {
    let values = list(case);
    let signed = case["signed"].as_bool().ok_or("no sign")?;
    let packing = if case["aligned"] == true { Packing::Aligned } else { Packing::Tight };
    for step in STEPS {
        let mut writer = if version2 { IntWriter::v2(signed, packing) } else { IntWriter::v1(signed) };
        let mut out = Vec::new();
        values.chunks(step.min(values.len().max(1))).for_each(|piece| writer.write(piece, &mut out));
        writer.finish(&mut out);
        same(&bytes(case)?.to_owned(), &hex(&out))?;
        same(&0, &writer.pending())?;
    }
    Ok(())
}

fn byte_runs(case: &Json) -> Result<(), Failed> {
    let values: Vec<u8> = list(case).iter().map(|value| *value as u8).collect();
    for step in STEPS {
        let (mut writer, mut out) = (ByteWriter::default(), Vec::new());
        values.chunks(step.min(values.len().max(1))).for_each(|piece| writer.write(piece, &mut out));
        writer.finish(&mut out);
        same(&bytes(case)?.to_owned(), &hex(&out))?;
    }
    let (mut writer, mut out) = (ByteWriter::default(), Vec::new());
    values.chunk_by(|one, other| one == other).for_each(|run| writer.write_run(run[0], run.len(), &mut out));
    writer.finish(&mut out);
    same(&bytes(case)?.to_owned(), &hex(&out))
}

fn booleans(case: &Json) -> Result<(), Failed> {
    let values: Vec<bool> = case["values"].as_str().ok_or("no values")?.bytes().map(|bit| bit == b'1').collect();
    for step in STEPS {
        let (mut writer, mut out) = (BooleanWriter::default(), Vec::new());
        values.chunks(step.min(values.len().max(1))).for_each(|piece| {
            writer.write(&BooleanBuffer::from(piece), &mut out);
        });
        writer.finish(&mut out);
        same(&bytes(case)?.to_owned(), &hex(&out))?;
    }
    let (mut writer, mut out) = (BooleanWriter::default(), Vec::new());
    values.chunk_by(|one, other| one == other).for_each(|run| writer.write_run(run[0], run.len(), &mut out));
    writer.finish(&mut out);
    same(&bytes(case)?.to_owned(), &hex(&out))
}

fn varints(case: &Json) -> Result<(), Failed> {
    let value = int(&case["value"]).ok_or("no value")?;
    let mut out = Vec::new();
    if let Some(bytes) = case["unsigned"].as_str() {
        write_varint64(value as u64, &mut out);
        same(&bytes.to_owned(), &hex(&out))?;
    }
    out.clear();
    write_varint64(zigzag(value), &mut out);
    same(&case["signed"].as_str().ok_or("no bytes")?.to_owned(), &hex(&out))
}

fn decimal_varints(case: &Json) -> Result<(), Failed> {
    let mut out = Vec::new();
    write_varint128(zigzag128(case["unscaled"].as_str().ok_or("no value")?.parse()?), &mut out);
    same(&bytes(case)?.to_owned(), &hex(&out))
}

fn nanos(case: &Json) -> Result<(), Failed> {
    let nanos = case["nanos"].as_u64().ok_or("no value")? as u32;
    same(&case["stored"].as_u64().ok_or("no number")?, &nanos_to_secondary(nanos))
}

fn bloom(case: &Json) -> Result<BloomBuilder, Failed> {
    let expected = case["expected"].as_u64().ok_or("no count")?;
    Ok(BloomBuilder::new(expected, case["fpp"].as_f64().ok_or("no probability")?)?)
}

fn bloom_sizes(case: &Json) -> Result<(), Failed> {
    let filter = bloom(case)?;
    let (bits, probes) = (case["bits"].as_u64().ok_or("no bits")?, case["k"].as_u64().ok_or("no probes")?);
    same(&(bits as usize, probes as u32), &(filter.bits(), filter.probes()))
}

fn bloom_bits(case: &Json) -> Result<(), Failed> {
    let mut filter = bloom(case)?;
    filter.add(bloom_hash(case)?);
    let mut words = vec![0u64; filter.bits() / 64];
    for bit in case["bitsSet"].as_array().ok_or("no bits")?.iter().filter_map(Json::as_u64) {
        words[bit as usize / 64] |= 1 << (bit % 64);
    }
    same(&words, &filter.to_original().bitset)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    same(&Some(bytes), &filter.to_utf8().utf8bitset)?;
    filter.clear();
    same(&vec![0; words.len()], &filter.to_original().bitset)
}
