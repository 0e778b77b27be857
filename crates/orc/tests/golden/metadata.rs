//! Compares the metadata of every file: postscript, footer, statistics, stripe footers, row indexes, filters, streams
//! with their runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::StripeDirectory;
use icefield_orc::inspect;
use icefield_orc::proto::{BloomFilterIndex, Message, StreamKind};
use icefield_orc::testing::sections;
use icefield_orc::{FileMetadata, Limits, Reader, WriterId, WriterVersion};
use libtest_mimic::{Failed, Trial};
use serde_json::{Map, Value as Json, json};

use super::encrypted::path_of;
use super::{Golden, hex, trial};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let one = |name: String| {
        let golden = Arc::clone(golden);
        trial(format!("metadata::{name}"), move || check_file(&golden, &name))
    };
    golden.names().map(one).collect()
}

/// Compares two values, and names the first difference. Fields that are not expected must be absent.
fn same(place: &str, expected: &Json, got: &Json) -> Result<(), Failed> {
    match (expected, got) {
        (Json::Object(expected), Json::Object(got)) => {
            for (key, value) in expected {
                same(&format!("{place}.{key}"), value, got.get(key).unwrap_or(&Json::Null))?;
            }
            match got.keys().find(|key| !expected.contains_key(*key)) {
                Some(key) => Err(format!("{place}.{key}: not expected: {}", got[key]).into()),
                None => Ok(()),
            }
        }
        (Json::Array(expected), Json::Array(got)) if expected.len() == got.len() => {
            let pairs = expected.iter().zip(got).enumerate();
            pairs.into_iter().try_for_each(|(at, (expected, got))| same(&format!("{place}[{at}]"), expected, got))
        }
        _ if expected == got || number(expected).is_some_and(|expected| Some(expected) == number(got)) => Ok(()),
        _ => Err(format!("{place}: {expected} expected, {got}").into()),
    }
}

/// The bits of a float, so that -0.0 and 0.0 differ.
fn number(value: &Json) -> Option<u64> {
    value.as_f64().filter(|_| value.is_f64()).map(f64::to_bits)
}

fn check_file(golden: &Golden, name: &str) -> Result<(), Failed> {
    let bytes = Bytes::from(golden.file(name)?);
    let reader = Reader::open(bytes.clone())?;
    let file = reader.metadata();
    check_index(golden, name, &reader)?;
    let Some(text) = golden.expected(name, "meta.json") else { return Ok(()) };
    let expected: Json = serde_json::from_str(&text)?;
    if bytes.is_empty() {
        same("length", &expected["length"], &json!(file.length))?;
        same("schema", &expected["schema"], &json!(file.schema.to_string()))?;
        return same("rows", &expected["rows"], &json!(file.rows()));
    }
    let shown = inspect::describe(&reader, true)?;
    check_tail(&expected, file, &shown)?;
    if let Some(statistics) = expected.get("statisticsWithKeys") {
        let with_keys = Reader::open_with(bytes.clone(), Limits::default(), golden.keys(false))?;
        let own = with_keys.metadata().file_statistics()?;
        same("statisticsWithKeys", statistics, &inspect::messages(&own))?;
    }
    let stripes = expected["stripes"].as_array().ok_or("no stripes")?;
    same("stripes", &json!(stripes.len()), &json!(file.footer.stripes.len()))?;
    for (index, expected) in stripes.iter().enumerate() {
        let place = format!("stripes[{index}]");
        // The expected indexes are those of a reader with all keys, everything else that of a reader without keys.
        let with_keys = Reader::open_with(bytes.clone(), Limits::default(), golden.keys(false))?;
        let indexes = with_keys.row_indexes(index)?.into_iter();
        let indexes = indexes.map(|(column, own)| (column.to_string(), inspect::messages(&own.entry)));
        let listed = expected.get("rowIndex").cloned().unwrap_or_else(|| json!({}));
        same(&format!("{place}.rowIndex"), &listed, &Json::Object(indexes.collect()))?;
        check_stripe(&place, expected, file, index, &bytes)?;
        let shown = &shown["stripes"][index];
        same(&format!("{place}.footer"), &expected["footer"], &shown["footer"])?;
        check_streams(&place, expected, shown)?;
    }
    Ok(())
}

/// Compares a file with its entry in the list of all files.
fn check_index(golden: &Golden, name: &str, reader: &Reader<Bytes>) -> Result<(), Failed> {
    use sha2::{Digest, Sha256};
    let file_name = Json::from(format!("{name}.orc"));
    let Some(listed) = golden.index.iter().find(|entry| entry["file"] == file_name) else { return Ok(()) };
    let check = |key: &str, got: Json| listed.get(key).map_or(Ok(()), |expected| same(key, expected, &got));
    let file = reader.metadata();
    check("sha256", hex(&Sha256::digest(reader.source())).into())?;
    check("rows", file.rows().into())?;
    let schema = &file.schema;
    // The maker of the set truncates names at a backtick; a file without any bytes has no schema.
    if !reader.source().is_empty() && !schema.walk().iter().any(|node| node.names.iter().any(|name| name.contains('`')))
    {
        check("schema", schema.to_string().into())?;
    }
    let meta = golden.expected(name, "meta.json").and_then(|text| serde_json::from_str::<Json>(&text).ok());
    if let Some(meta) = meta {
        for key in ["predicates", "probes"] {
            check(key, meta[key].as_array().map_or(0, Vec::len).into())?;
        }
    }
    // The writer is described for people, but a version in it must be that of the file.
    if let (Some(writer), Some(version)) = (listed["writer"].as_str(), &file.footer.software_version)
        && writer.contains(|letter: char| letter.is_ascii_digit())
        && !writer.contains(version.as_str())
    {
        return Err(format!("writer: {writer:?} expected, {version:?}").into());
    }
    check_encryption(listed, file)
}

/// Compares the keys and masks of encrypted columns: `key:column,column;...` and `mask,parameter:column;...`. `about`,
/// `notes` and `zone` (that of the machine, if no column needs one) are for people.
fn check_encryption(listed: &Json, file: &FileMetadata) -> Result<(), Failed> {
    let Some(encryption) = &file.footer.encryption else {
        return same("encrypt", &Json::Null, listed.get("encrypt").unwrap_or(&Json::Null));
    };
    let names = |columns: &[u32]| -> Vec<String> {
        columns.iter().filter_map(|column| path_of(&file.schema, *column)).collect()
    };
    let keys = encryption.key.iter().enumerate().map(|(at, key)| {
        let own = encryption.variants.iter().filter(|variant| variant.key.unwrap_or(0) as usize == at);
        let roots: Vec<u32> = own.filter_map(|variant| variant.root).collect();
        (key.key_name.clone().unwrap_or_default(), names(&roots))
    });
    same_groups("encrypt", listed, keys.collect())?;
    let masks = encryption.mask.iter().map(|mask| {
        let parameters = mask.mask_parameters.iter().map(|parameter| format!(",`{parameter}`"));
        (
            format!("{}{}", mask.name.as_deref().unwrap_or_default(), parameters.collect::<String>()),
            names(&mask.columns),
        )
    });
    same_groups("masks", listed, masks.collect())
}

/// Compares names of groups and their members, in any order.
fn same_groups(key: &str, listed: &Json, found: BTreeMap<String, Vec<String>>) -> Result<(), Failed> {
    if listed[key].is_null() {
        return Ok(());
    }
    let text = listed[key].as_str().ok_or_else(|| format!("{key}: {} is no text", listed[key]))?;
    let sorted = |mut members: Vec<String>| {
        members.sort();
        members
    };
    let wanted: Option<BTreeMap<String, Vec<String>>> = text
        .split(';')
        .map(|group| group.rsplit_once(':'))
        .map(|group| group.map(|(name, own)| (name.to_owned(), sorted(own.split(',').map(str::to_owned).collect()))))
        .collect();
    let wanted = wanted.ok_or_else(|| format!("{key}: {text:?} is no list of groups"))?;
    let mut found: BTreeMap<_, _> = found.into_iter().map(|(name, members)| (name, sorted(members))).collect();
    // Columns without a mask are null, too.
    if key == "masks" {
        let named = wanted.get("nullify").cloned().unwrap_or_default();
        found.entry("nullify".to_owned()).and_modify(|own| own.retain(|column| named.contains(column)));
        found.retain(|_, own| !own.is_empty());
    }
    if wanted == found { Ok(()) } else { Err(format!("{key}: {wanted:?} expected, {found:?}").into()) }
}

/// The version of the writer as named by orc-core (docs/orc-pitfalls.md, "Writer ids and versions").
fn writer_version(file: &FileMetadata) -> String {
    let (writer, version) = (file.writer(), file.writer_version());
    match writer {
        WriterId::JAVA if version <= WriterVersion::ORC_14 => version.to_string(),
        WriterId(1..=5) if version == WriterVersion::ORC_135 => format!("{writer}_ORIGINAL"),
        _ => "FUTURE".to_owned(),
    }
}

fn check_tail(expected: &Json, file: &FileMetadata, shown: &Json) -> Result<(), Failed> {
    for key in ["length", "rows", "fileVersion", "postscript", "footer", "stripeStatistics"] {
        same(key, &expected[key], &shown[key])?;
    }
    same("writerVersion", &expected["writerVersion"], &json!(writer_version(file)))?;
    // The maker of the set truncates names at a backtick.
    if !file.schema.walk().iter().any(|node| node.names.iter().any(|name| name.contains('`'))) {
        same("schema", &expected["schema"], &shown["schema"])?;
    }
    same("attributes", expected.get("attributes").unwrap_or(&json!({})), &shown["attributes"])
}

fn check_stripe(place: &str, expected: &Json, file: &FileMetadata, index: usize, bytes: &Bytes) -> Result<(), Failed> {
    let stripe = &file.footer.stripes[index];
    let slice = |range: &std::ops::Range<u64>| bytes.slice(range.start as usize..range.end as usize);
    let [_, _, footer] = sections(stripe, file.length)?;
    let directory = StripeDirectory::read(file, stripe, &slice(&footer))?;
    let mut blooms = Map::new();
    for stream in directory.streams.iter().filter(|stream| stream.variant.is_none()) {
        let content = plain(file, &slice(&stream.range))?;
        let column = stream.column.to_string();
        match stream.kind {
            StreamKind::BloomFilter | StreamKind::BloomFilterUtf8 => {
                let index = BloomFilterIndex::decode(&content)?;
                blooms.insert(format!("{column} {}", stream.kind.name()), filters(stream.kind, &index));
            }
            _ => {}
        }
    }
    if expected.get("bloom").is_some() {
        same_filters(&format!("{place}.bloom"), &expected["bloom"], &Json::Object(blooms))?;
    }
    Ok(())
}

fn plain(file: &FileMetadata, bytes: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut decompressor = icefield_orc::testing::Decompressor::new(file.compression)?;
    let block = file.postscript.compression_block_size.unwrap_or(256 << 10) as usize;
    Ok(decompressor.inflate_all(bytes, block, 1 << 28)?)
}

fn filters(kind: StreamKind, index: &BloomFilterIndex) -> Json {
    use sha2::Digest;
    let own = index.bloom_filter.iter().map(|filter| {
        let words = filter.bitset.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let bits = filter.utf8bitset.clone().unwrap_or(words);
        json!({"k": filter.num_hash_functions, "bytes": bits.len(), "sha256": hex(&sha2::Sha256::digest(&bits))})
    });
    json!({"kind": kind.name(), "filters": own.collect::<Json>()})
}

/// Compares the Bloom filters of the columns that the set lists: orc-core shows only those of requested columns.
fn same_filters(place: &str, expected: &Json, got: &Json) -> Result<(), Failed> {
    for (column, own) in expected.as_object().ok_or("no filters")? {
        let kind = own["kind"].as_str().unwrap_or_default();
        same(&format!("{place}.{column}"), own, &got[format!("{column} {kind}")])?;
    }
    Ok(())
}

/// Compares the streams that a reader without keys sees.
fn check_streams(place: &str, expected: &Json, shown: &Json) -> Result<(), Failed> {
    let listed = expected["streams"].as_array().ok_or("no streams")?;
    let mut own = shown["streams"].as_array().ok_or("no streams")?.iter().filter(|own| own.get("variant").is_none());
    for (at, wanted) in listed.iter().enumerate() {
        if wanted["kind"].as_str().is_some_and(|kind| kind.starts_with("ENCRYPTED")) {
            continue;
        }
        let stream = own.next().ok_or("too few streams")?;
        let mut stream = stream.clone();
        // The set does not count the values.
        stream.as_object_mut().ok_or("a stream is no object")?.remove("values");
        same(&format!("{place}.streams[{at}]"), wanted, &stream)?;
    }
    if own.next().is_some() { Err("too many streams".into()) } else { Ok(()) }
}
