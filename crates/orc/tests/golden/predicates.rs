//! Row groups that predicates keep, and the answers of Bloom filters.
//!
//! It is right to keep more row groups than orc-core, and to keep fewer if none of the skipped rows matches. So the
//! expected groups of a set are tested against its rows: a group with a matching row must not be skipped, except for
//! known wrong answers of orc-core.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::Int64Array;
use bytes::Bytes;
use icefield_orc::StripeDirectory;
use icefield_orc::proto::{BloomFilterIndex, Message, StreamKind};
use icefield_orc::testing::{BloomView, hash_bytes, hash_long, hash_of, sections};
use icefield_orc::{Kind, Literal, Predicate, ReadOptions, Reader, StringForm, Test, TypeDescription};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use super::expected::{decimal_text, exact, float, int, timestamp};
use super::rows::parse;
use super::{Golden, trial, unhex};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in golden.names() {
        let Some(text) = golden.expected(&name, "meta.json") else { continue };
        let meta: Json = serde_json::from_str(&exact(&text)).unwrap_or_default();
        for (number, case) in meta["predicates"].as_array().cloned().unwrap_or_default().into_iter().enumerate() {
            let (golden, name) = (Arc::clone(golden), name.clone());
            trials.push(trial(format!("predicates::{name}::{number}"), move || check_predicate(&golden, &name, &case)));
        }
        for (number, case) in meta["probes"].as_array().cloned().unwrap_or_default().into_iter().enumerate() {
            let (golden, name) = (Arc::clone(golden), name.clone());
            trials.push(trial(format!("probes::{name}::{number}"), move || check_probe(&golden, &name, &case)));
        }
    }
    trials
}

fn literal(value: &Json, node: &TypeDescription) -> Option<Literal> {
    Some(match &node.kind {
        Kind::Boolean => Literal::Boolean(value.as_bool()?),
        Kind::Byte | Kind::Short | Kind::Int | Kind::Long => Literal::Long(int(value)?),
        Kind::Float => Literal::Double(f64::from(float(value)? as f32)),
        Kind::Double => Literal::Double(float(value)?),
        Kind::Date => Literal::Date(int(value)?),
        Kind::Decimal { .. } => {
            let text = decimal_text(value, 0)?;
            let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            Literal::Decimal { unscaled: text.replace('.', "").parse().ok()?, scale: scale as u8 }
        }
        Kind::Timestamp | Kind::TimestampInstant => {
            let (seconds, nanos) = timestamp(value.as_str()?)?;
            Literal::Timestamp { seconds, nanos: nanos as u32 }
        }
        _ => Literal::Text(value.as_str()?.as_bytes().to_vec()),
    })
}

fn predicate(tree: &Json, schema: &TypeDescription) -> Option<Predicate> {
    let parts = || tree["args"].as_array()?.iter().map(|part| predicate(part, schema)).collect::<Option<Vec<_>>>();
    let node = || schema.find_path(tree["column"].as_str()?);
    let values = || {
        let node = node()?;
        tree["values"].as_array()?.iter().map(|value| literal(value, node)).collect::<Option<Vec<_>>>()
    };
    let test = match tree["op"].as_str()? {
        "and" => return Some(Predicate::And(parts()?)),
        "or" => return Some(Predicate::Or(parts()?)),
        "not" => return Some(Predicate::Not(Box::new(parts()?.pop()?))),
        "=" => Test::Equals(values()?.pop()?),
        "<=>" => Test::NullSafeEquals(values()?.pop()?),
        "<" => Test::LessThan(values()?.pop()?),
        "<=" => Test::LessThanEquals(values()?.pop()?),
        "in" => Test::In(values()?),
        "between" => {
            let mut values = values()?;
            let high = values.pop()?;
            Test::Between(values.pop()?, high)
        }
        "isnull" => Test::IsNull,
        _ => return None,
    };
    Some(Predicate::Leaf(node()?.column, test))
}

/// The value of a row at the dotted path of a column; null if a struct on the path is null.
fn value<'a>(row: &'a Json, path: &str) -> &'a Json {
    match row.get(path) {
        Some(value) => value,
        None => path.split_once('.').map_or(&Json::Null, |(head, rest)| value(&row[head], rest)),
    }
}

/// Evaluates a predicate on a row, naively; `None` is null.
fn truth(tree: &Json, row: &Json, schema: &TypeDescription) -> Option<bool> {
    let parts = || tree["args"].as_array().unwrap().iter().map(|part| truth(part, row, schema));
    match tree["op"].as_str().unwrap() {
        "and" => {
            return parts()
                .try_fold(true, |all, part| part.map(|part| all && part))
                .or(parts().any(|part| part == Some(false)).then_some(false));
        }
        "or" => {
            return parts()
                .try_fold(false, |any, part| part.map(|part| any || part))
                .or(parts().any(|part| part == Some(true)).then_some(true));
        }
        "not" => return parts().next().flatten().map(|part| !part),
        _ => {}
    }
    let path = tree["column"].as_str().unwrap();
    let node = schema.find_path(path).unwrap();
    let own = value(row, path);
    let cut = |literal: Literal| match (literal, &node.kind) {
        (Literal::Text(bytes), Kind::Char { .. }) => {
            Literal::Text(String::from_utf8(bytes).unwrap().trim_end_matches(' ').as_bytes().to_vec())
        }
        (other, _) => other,
    };
    let op = tree["op"].as_str().unwrap();
    if op == "isnull" {
        return Some(own.is_null());
    }
    let own = if own.is_null() { None } else { literal(own, node).map(cut) };
    let Some(own) = own else { return (op == "<=>").then_some(false) };
    let values: Vec<_> =
        tree["values"].as_array().unwrap().iter().filter_map(|value| literal(value, node)).map(cut).collect();
    let order = |value: &Literal| own.compare(value);
    Some(match op {
        "=" | "<=>" | "in" => values.iter().any(|value| order(value).is_some_and(|order| order.is_eq())),
        "<" => order(&values[0]).is_some_and(|order| order.is_lt()),
        "<=" => order(&values[0]).is_some_and(|order| order.is_le()),
        _ => {
            order(&values[0]).is_some_and(|order| order.is_ge()) && order(&values[1]).is_some_and(|order| order.is_le())
        }
    })
}

fn check_predicate(golden: &Golden, name: &str, case: &Json) -> Result<(), Failed> {
    let bytes = Bytes::from(golden.file(name)?);
    let reader = Reader::open_with(bytes, icefield_orc::Limits::default(), golden.keys(false))?;
    let schema = &reader.metadata().schema;
    let tree = &case["predicate"];
    let predicate = predicate(tree, schema).ok_or_else(|| format!("cannot read {tree}"))?;
    let mut options =
        ReadOptions { predicate: Some(predicate), row_numbers: Some("\u{1}row".into()), ..ReadOptions::default() };
    options.arrow.strings = StringForm::Binary;
    let mut kept = BTreeSet::new();
    for batch in reader.batches(options)? {
        let batch = batch?;
        let numbers = batch.columns().last().and_then(|column| column.as_any().downcast_ref::<Int64Array>());
        kept.extend(numbers.ok_or("no row numbers")?.values().iter().copied());
    }
    let rows = parse(&golden.expected(name, "rows.jsonl").ok_or("no rows")?)?;
    let lost = rows
        .iter()
        .enumerate()
        .find(|(number, row)| !kept.contains(&(*number as i64)) && truth(tree, row, schema) == Some(true));
    if let Some((number, row)) = lost {
        return Err(format!("{tree} drops row {number}, which matches: {row}").into());
    }
    check_types(tree, schema)?;
    let matching: BTreeSet<i64> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| truth(tree, row, schema) == Some(true))
        .map(|(number, _)| number as i64)
        .collect();
    check_kept(&reader, case, &matching)
}

/// The leaves of a predicate.
fn leaves(tree: &Json) -> Vec<&Json> {
    match tree["args"].as_array() {
        Some(parts) => parts.iter().flat_map(leaves).collect(),
        None => vec![tree],
    }
}

/// Checks that a leaf has the type that Hive gives to its column; nested columns have no type of their own.
fn check_types(tree: &Json, schema: &TypeDescription) -> Result<(), Failed> {
    for leaf in leaves(tree) {
        let path = leaf["column"].as_str().ok_or("no column")?;
        let node = schema.find_path(path).ok_or("no such column")?;
        let expected = match &node.kind {
            Kind::Boolean => "BOOLEAN",
            Kind::Byte | Kind::Short | Kind::Int | Kind::Long => "LONG",
            Kind::Float | Kind::Double => "FLOAT",
            Kind::Date => "DATE",
            Kind::Decimal { .. } => "DECIMAL",
            Kind::Timestamp | Kind::TimestampInstant => "TIMESTAMP",
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => "STRING",
            _ => continue,
        };
        let free = leaf["op"] == "isnull";
        if leaf["type"] != expected && !free {
            return Err(format!("{leaf}: the type {expected} expected").into());
        }
    }
    Ok(())
}

/// Whether orc-core is known to skip groups with matching rows: for zeros and NaN, padded text, and children of null
/// structs (README of the fixtures, "Metadata").
fn answers_wrongly(tree: &Json, schema: &TypeDescription) -> bool {
    leaves(tree).into_iter().any(|leaf| {
        let path = leaf["column"].as_str().unwrap_or_default();
        let kind = schema.find_path(path).map(|node| &node.kind);
        path.contains('.') || matches!(kind, Some(Kind::Float | Kind::Double | Kind::Char { .. }))
    })
}

/// Checks the groups that orc-core keeps, given as a flag per row group of each stripe: with Bloom filters no more than
/// without, and every group with a matching row.
fn check_kept(reader: &Reader<Bytes>, case: &Json, matching: &BTreeSet<i64>) -> Result<(), Failed> {
    let stripes = &reader.metadata().footer.stripes;
    let stride = reader.metadata().row_index_stride().map_or(u64::MAX, u64::from);
    let wrongly = answers_wrongly(&case["predicate"], &reader.metadata().schema);
    for key in ["kept", "keptWithoutBloom"] {
        let Some(listed) = case[key].as_array() else { continue };
        if listed.len() != stripes.len() {
            return Err(format!("{key} of {} stripes, there are {}", listed.len(), stripes.len()).into());
        }
        let mut first = 0;
        for (index, (stripe, flags)) in stripes.iter().zip(listed).enumerate() {
            let rows = stripe.number_of_rows.unwrap_or(0);
            let flags = flags.as_str().unwrap_or_default();
            if flags.len() as u64 != rows.div_ceil(stride) || flags.contains(|flag| flag != '0' && flag != '1') {
                return Err(format!("{key} of stripe {index}: {flags:?} for {rows} rows").into());
            }
            let without = case["keptWithoutBloom"][index].as_str().unwrap_or(flags).bytes();
            if key == "kept" && flags.bytes().zip(without).any(|(with, without)| with > without) {
                return Err(format!("stripe {index}: filters keep what statistics drop").into());
            }
            for (group, _) in flags.bytes().enumerate().filter(|(_, flag)| *flag == b'0' && !wrongly) {
                let start = first + group as u64 * stride;
                let end = start.saturating_add(stride).min(first + rows);
                if let Some(row) = matching.range(start as i64..end as i64).next() {
                    return Err(
                        format!("{key}: group {group} of stripe {index} is dropped, and row {row} matches").into()
                    );
                }
            }
            first += rows;
        }
    }
    Ok(())
}

fn check_probe(golden: &Golden, name: &str, case: &Json) -> Result<(), Failed> {
    let bytes = Bytes::from(golden.file(name)?);
    let reader = Reader::open(bytes.clone())?;
    let file = reader.metadata();
    let node = file.schema.find_path(case["column"].as_str().ok_or("no column")?).ok_or("no such column")?;
    let hash = probe_hash(case, node, file.version).ok_or_else(|| format!("cannot hash {case}"))?;
    let answers = case["mightContain"].as_array().ok_or("no answers")?;
    if answers.len() != file.footer.stripes.len() {
        return Err(format!("answers of {} stripes, there are {}", answers.len(), file.footer.stripes.len()).into());
    }
    for (stripe, expected) in file.footer.stripes.iter().zip(answers) {
        let [_, _, footer] = sections(stripe, file.length)?;
        let slice = |range: &std::ops::Range<u64>| bytes.slice(range.start as usize..range.end as usize);
        let directory = StripeDirectory::read(file, stripe, &slice(&footer))?;
        let mut streams =
            directory.streams.iter().filter(|stream| stream.column == node.column && stream.variant.is_none());
        let utf8 = streams.clone().find(|stream| stream.kind == StreamKind::BloomFilterUtf8);
        let stream =
            utf8.or_else(|| streams.find(|stream| stream.kind == StreamKind::BloomFilter)).ok_or("no filter")?;
        let mut decompressor = icefield_orc::testing::Decompressor::new(file.compression)?;
        let block = file.postscript.compression_block_size.unwrap_or(256 << 10) as usize;
        let plain = decompressor.inflate_all(&slice(&stream.range), block, 1 << 28)?;
        let filters = BloomFilterIndex::decode(&plain)?;
        let answer: String = filters
            .bloom_filter
            .iter()
            .map(|filter| if BloomView::new(filter).may_contain(hash) { '1' } else { '0' })
            .collect();
        if Some(answer.as_str()) != expected.as_str() {
            return Err(format!("{expected} expected, {answer}").into());
        }
    }
    Ok(())
}

/// The hash of a probe, by its name; some probes have raw values that are not literals of the column's type.
fn probe_hash(case: &Json, node: &TypeDescription, version: icefield_orc::FileVersion) -> Option<u64> {
    let value = &case["value"];
    Some(match case["as"].as_str()? {
        "long" => hash_long(int(value)?),
        "double" => hash_long(float(value)?.to_bits() as i64),
        "string" => hash_bytes(value.as_str()?.as_bytes()),
        "bytes" | "binary" => hash_bytes(&unhex(value.as_str()?)),
        _ => hash_of(&literal(value, node)?, &node.kind, version)?,
    })
}
