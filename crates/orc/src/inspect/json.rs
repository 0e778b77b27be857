//! Converts the metadata of a file to JSON, message by message.

use serde_json::{Map, Value as Json, json};

use super::report;
use crate::error::{Error, Result};
use crate::proto::{ColumnEncoding, CompressionKind, Message, Shown};
use crate::stripe::{StreamPlace, StripeDirectory};
use crate::{FileMetadata, Reader, Source};

/// The largest integer that every JSON reader holds exactly; larger ones are written as strings.
const EXACT: u64 = 1 << 53;

/// Converts a protobuf message to a JSON object of the fields that are set, with their names in the ORC definition.
///
/// Bytes become lower-case hex, enumerations the names of their values, and numbers that JSON cannot hold exactly
/// (integers beyond 2^53, NaN, infinities) become strings.
pub fn message(message: &dyn Message) -> Json {
    Json::Object(message.fields().into_iter().map(|(name, value)| (name.to_owned(), shown(value))).collect())
}

/// Converts messages to a JSON array; see [`message`].
pub fn messages<M: Message>(list: &[M]) -> Json {
    list.iter().map(|one| message(one)).collect()
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
        Shown::Bytes(bytes) => Json::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        Shown::Name(name) => json!(name),
        Shown::Message(inner) => message(inner),
        Shown::List(list) => list.into_iter().map(shown).collect(),
    }
}

/// Returns all metadata of a file as one JSON object: schema, postscript, footer and statistics, and for each stripe
/// its footer, the byte ranges of its streams and its row indexes. With `runs`, it also decompresses the streams to
/// count their chunks and runs.
///
/// Encrypted columns are described as the reader sees them: with the true values if it has their key.
///
/// # Errors
///
/// Metadata or, with `runs`, streams that cannot be decoded; errors of the source.
pub fn describe(reader: &Reader<impl Source>, runs: bool) -> Result<Json> {
    let file = reader.metadata();
    let stripes = (0..file.footer.stripes.len()).map(|stripe| describe_stripe(reader, stripe, runs));
    let mut attributes = Map::new();
    for node in file.schema.walk().into_iter().filter(|node| !node.attributes.is_empty()) {
        let own = node.attributes.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        attributes.insert(node.column.to_string(), Json::Object(own));
    }
    Ok(json!({
        "schema": file.schema.to_string(),
        "attributes": attributes,
        "length": file.length,
        "rows": file.rows(),
        "fileVersion": file.version.name(),
        "writer": file.software_version(),
        "postscript": message(&file.postscript),
        "footer": message(&file.footer),
        "statistics": messages(&file.file_statistics()?),
        "stripeStatistics": messages(&file.stripe_statistics()?),
        "stripes": stripes.collect::<Result<Vec<_>>>()?,
    }))
}

fn describe_stripe(reader: &Reader<impl Source>, stripe: usize, runs: bool) -> Result<Json> {
    let directory = reader.directory(stripe)?;
    let streams = directory.streams.iter().map(|place| describe_stream(reader, stripe, &directory, place, runs));
    let indexes = reader.row_indexes(stripe)?.into_iter();
    let indexes: Map<_, _> = indexes.map(|(column, own)| (column.to_string(), messages(&own.entry))).collect();
    Ok(json!({
        "footer": message(&directory.footer),
        "streams": streams.collect::<Result<Vec<_>>>()?,
        "rowIndex": indexes,
    }))
}

fn describe_stream(
    reader: &Reader<impl Source>,
    stripe: usize,
    directory: &StripeDirectory,
    place: &StreamPlace,
    runs: bool,
) -> Result<Json> {
    let file = reader.metadata();
    let mut described = json!({
        "column": place.column,
        "kind": place.kind.name(),
        "offset": place.range.start,
        "length": place.range.end - place.range.start,
    });
    let Some(fields) = described.as_object_mut() else { return Ok(described) };
    if let Some(variant) = place.variant {
        fields.insert("variant".to_owned(), json!(variant));
    }
    let Some(node) = file.schema.find(place.column).filter(|_| runs) else { return Ok(described) };
    let Some(bytes) = reader.stream(stripe, place)?.filter(|bytes| !bytes.is_empty()) else {
        return Ok(described);
    };
    let encodings = match place.variant.and_then(|variant| directory.footer.encryption.get(variant)) {
        Some(variant) => variant.encoding.get((place.column - first_column(file, place)) as usize),
        None => directory.footer.columns.get(place.column as usize),
    };
    let encoding = encodings.cloned().unwrap_or_else(ColumnEncoding::default);
    let within = |error: Error| error.within(&format!("stripe {stripe}"));
    let report = report(file, node, &encoding, place.kind, &bytes).map_err(within)?;
    fields.insert("plainLength".to_owned(), json!(report.plain_length));
    if let Some(values) = report.values {
        fields.insert("values".to_owned(), json!(values));
    }
    if file.compression != CompressionKind::None {
        fields.insert("chunks".to_owned(), json!(report.chunks));
        fields.insert("original".to_owned(), json!(report.original));
    }
    if !report.runs.is_empty() {
        fields.insert("runs".to_owned(), json!(report.runs));
    }
    Ok(described)
}

/// The root column of the variant that a stream belongs to.
fn first_column(file: &FileMetadata, place: &StreamPlace) -> u32 {
    let variants = file.footer.encryption.as_ref().map(|encryption| encryption.variants.as_slice());
    let variant = variants.zip(place.variant).and_then(|(variants, index)| variants.get(index));
    variant.and_then(|variant| variant.root).unwrap_or_default().min(place.column)
}
