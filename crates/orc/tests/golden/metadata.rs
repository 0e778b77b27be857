//! Metadata of every file: postscript, footer, statistics, stripe footers, row indexes, filters, streams with their runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::inspect;
use icefield_orc::proto::{BloomFilterIndex, ColumnEncoding, CompressionKind, Message, Shown, StreamKind};
use icefield_orc::stripe::{StreamPlace, StripeDirectory, sections};
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

/// The largest number that JSON's readers hold exactly.
const EXACT: u64 = 1 << 53;

/// A message in the form of the fixtures.
fn message(message: &dyn Message) -> Json {
    Json::Object(message.fields().into_iter().map(|(name, value)| (name.to_owned(), shown(value))).collect())
}

fn shown(value: Shown<'_>) -> Json {
    match value {
        Shown::Unsigned(number) if number > EXACT => json!(number.to_string()),
        Shown::Unsigned(number) => json!(number),
        Shown::Signed(number) if number.unsigned_abs() > EXACT => json!(number.to_string()),
        Shown::Signed(number) => json!(number),
        Shown::Double(number) if number.is_nan() => json!("NaN"),
        Shown::Double(number) if number.is_infinite() => json!(if number > 0.0 { "Infinity" } else { "-Infinity" }),
        Shown::Double(number) => json!(number),
        Shown::Bool(flag) => json!(flag),
        Shown::Text(text) => json!(text),
        Shown::Bytes(bytes) => json!(hex(bytes)),
        Shown::Name(name) => json!(name),
        Shown::Message(inner) => message(inner),
        Shown::List(list) => list.into_iter().map(shown).collect(),
    }
}

/// Compares, and names the first place that differs. Fields that the set's maker leaves out are none of ours either.
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

/// Floats by their bits: -0.0 is not 0.0.
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
    check_tail(&expected, file)?;
    if let Some(statistics) = expected.get("statisticsWithKeys") {
        let with_keys = Reader::open_with(bytes.clone(), Limits::default(), golden.keys(false))?;
        let own = with_keys.metadata().file_statistics()?;
        same("statisticsWithKeys", statistics, &own.iter().map(|own| message(own)).collect())?;
    }
    let stripes = expected["stripes"].as_array().ok_or("no stripes")?;
    same("stripes", &json!(stripes.len()), &json!(file.footer.stripes.len()))?;
    for (index, expected) in stripes.iter().enumerate() {
        let place = format!("stripes[{index}]");
        // Indexes are expected as a reader with all keys sees them, the rest as one without.
        let with_keys = Reader::open_with(bytes.clone(), Limits::default(), golden.keys(false))?;
        let indexes = with_keys.row_indexes(index)?.into_iter();
        let indexes =
            indexes.map(|(column, own)| (column.to_string(), own.entry.iter().map(|entry| message(entry)).collect()));
        let listed = expected.get("rowIndex").cloned().unwrap_or_else(|| json!({}));
        same(&format!("{place}.rowIndex"), &listed, &Json::Object(indexes.collect()))?;
        check_stripe(&place, expected, file, index, &bytes)?;
    }
    Ok(())
}

/// What the list of all files says of one.
fn check_index(golden: &Golden, name: &str, reader: &Reader<Bytes>) -> Result<(), Failed> {
    use sha2::{Digest, Sha256};
    let file_name = Json::from(format!("{name}.orc"));
    let Some(listed) = golden.index.iter().find(|entry| entry["file"] == file_name) else { return Ok(()) };
    let check = |key: &str, got: Json| listed.get(key).map_or(Ok(()), |expected| same(key, expected, &got));
    let file = reader.metadata();
    check("sha256", hex(&Sha256::digest(reader.source())).into())?;
    check("rows", file.rows().into())?;
    let schema = &file.schema;
    // The set's maker cuts names at a backtick; a file without a byte has no schema.
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
    // The writer is told for people, but where that names a version, it is the one in the file.
    if let (Some(writer), Some(version)) = (listed["writer"].as_str(), &file.footer.software_version)
        && writer.contains(|letter: char| letter.is_ascii_digit())
        && !writer.contains(version.as_str())
    {
        return Err(format!("writer: {writer:?} expected, {version:?}").into());
    }
    check_encryption(listed, file)
}

/// Which columns are encrypted with which key, and which masks others see: `key:column,column;...` and
/// `mask,parameter:column;...`. `about`, `notes` and `zone` (of the machine, where no column needs one) are for people.
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

/// Names of groups and their members, whatever their order.
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
    // Columns that no mask is named for are made null, too.
    if key == "masks" {
        let named = wanted.get("nullify").cloned().unwrap_or_default();
        found.entry("nullify".to_owned()).and_modify(|own| own.retain(|column| named.contains(column)));
        found.retain(|_, own| !own.is_empty());
    }
    if wanted == found { Ok(()) } else { Err(format!("{key}: {wanted:?} expected, {found:?}").into()) }
}

/// What orc-core calls the writer's version (docs/orc-pitfalls.md, "Writer ids and versions").
fn writer_version(file: &FileMetadata) -> String {
    let (writer, version) = (file.writer(), file.writer_version());
    match writer {
        WriterId::JAVA if version <= WriterVersion::ORC_14 => version.to_string(),
        WriterId(1..=5) if version == WriterVersion::ORC_135 => format!("{writer}_ORIGINAL"),
        _ => "FUTURE".to_owned(),
    }
}

fn check_tail(expected: &Json, file: &FileMetadata) -> Result<(), Failed> {
    same("length", &expected["length"], &json!(file.length))?;
    same("rows", &expected["rows"], &json!(file.rows()))?;
    same("fileVersion", &expected["fileVersion"], &json!(file.version.name()))?;
    same("writerVersion", &expected["writerVersion"], &json!(writer_version(file)))?;
    // The set's maker cuts names at a backtick.
    if !file.schema.walk().iter().any(|node| node.names.iter().any(|name| name.contains('`'))) {
        same("schema", &expected["schema"], &json!(file.schema.to_string()))?;
    }
    same("postscript", &expected["postscript"], &message(&file.postscript))?;
    same("footer", &expected["footer"], &message(&file.footer))?;
    let statistics = file.stripe_statistics()?;
    same("stripeStatistics", &expected["stripeStatistics"], &statistics.iter().map(|own| message(own)).collect())?;
    let mut attributes = Map::new();
    for node in file.schema.walk().into_iter().filter(|node| !node.attributes.is_empty()) {
        let own = node.attributes.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        attributes.insert(node.column.to_string(), Json::Object(own));
    }
    let wanted = expected.get("attributes").cloned().unwrap_or_else(|| json!({}));
    same("attributes", &wanted, &Json::Object(attributes))
}

fn check_stripe(place: &str, expected: &Json, file: &FileMetadata, index: usize, bytes: &Bytes) -> Result<(), Failed> {
    let stripe = &file.footer.stripes[index];
    let slice = |range: &std::ops::Range<u64>| bytes.slice(range.start as usize..range.end as usize);
    let [_, _, footer] = sections(stripe, file.length)?;
    let directory = StripeDirectory::read(file, stripe, &slice(&footer))?;
    same(&format!("{place}.footer"), &expected["footer"], &message(&directory.footer))?;
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
    check_streams(place, expected, file, &directory, bytes)
}

fn plain(file: &FileMetadata, bytes: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut decompressor = icefield_orc::compress::Decompressor::new(file.compression)?;
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

/// Filters of columns that the set lists: orc-core shows those of the columns it asked for.
fn same_filters(place: &str, expected: &Json, got: &Json) -> Result<(), Failed> {
    for (column, own) in expected.as_object().ok_or("no filters")? {
        let kind = own["kind"].as_str().unwrap_or_default();
        same(&format!("{place}.{column}"), own, &got[format!("{column} {kind}")])?;
    }
    Ok(())
}

fn check_streams(
    place: &str,
    expected: &Json,
    file: &FileMetadata,
    directory: &StripeDirectory,
    bytes: &Bytes,
) -> Result<(), Failed> {
    let listed = expected["streams"].as_array().ok_or("no streams")?;
    let mut own = directory.streams.iter().filter(|stream| stream.variant.is_none());
    for (at, wanted) in listed.iter().enumerate() {
        if wanted["kind"].as_str().is_some_and(|kind| kind.starts_with("ENCRYPTED")) {
            continue;
        }
        let stream = own.next().ok_or("too few streams")?;
        same(&format!("{place}.streams[{at}]"), wanted, &report(file, directory, stream, bytes)?)?;
    }
    if own.next().is_some() { Err("too many streams".into()) } else { Ok(()) }
}

fn report(
    file: &FileMetadata,
    directory: &StripeDirectory,
    stream: &StreamPlace,
    bytes: &Bytes,
) -> Result<Json, Failed> {
    let node = file.schema.find(stream.column).ok_or("a stream of no column")?;
    let encoding =
        directory.footer.columns.get(stream.column as usize).cloned().unwrap_or_else(ColumnEncoding::default);
    let content = bytes.slice(stream.range.start as usize..stream.range.end as usize);
    let report = inspect::report(file, node, &encoding, stream.kind, &content)?;
    let mut shown = json!({
        "column": stream.column, "kind": stream.kind.name(), "offset": stream.range.start,
        "length": stream.range.end - stream.range.start,
    });
    if content.is_empty() {
        return Ok(shown);
    }
    shown["plainLength"] = json!(report.plain_length);
    if file.compression != CompressionKind::None {
        shown["chunks"] = json!(report.chunks);
        shown["original"] = json!(report.original);
    }
    if !report.runs.is_empty() {
        shown["runs"] = json!(report.runs);
    }
    Ok(shown)
}
