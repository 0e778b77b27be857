//! What each fuzz target does with its input: the decoders of `icefield-format`, one a target.
//!
//! The fuzz targets call these, and so does `crates/format/tests/fuzz_corpus.rs`, which runs them over the stored corpus and
//! over mutations of it in the ordinary tests.

use icefield_format::Limits;
use icefield_format::avro::Container;
use icefield_format::expr::Expr;
use icefield_format::manifest::{Metrics, ReadOptions, entries, list};
use icefield_format::metadata::TableMetadata;
use icefield_format::puffin::{DeletionVector, Footer, read_blob};
use icefield_format::types::Schema;

/// Takes any bytes; it may refuse them, it may not panic.
pub type Target = fn(&[u8]);

/// Every target; the corpus of each is `corpus/NAME`.
pub const ALL: &[(&str, Target)] = &[
    ("avro_header", avro_header),
    ("deletion_vector", deletion_vector),
    ("expression", expression),
    ("manifest", manifest),
    ("manifest_list", manifest_list),
    ("metadata_json", metadata_json),
    ("puffin", puffin),
    ("schema_json", schema_json),
];

/// Small enough that no input takes long.
fn limits() -> Limits {
    Limits {
        metadata_json_bytes: 1 << 20,
        block_bytes: 1 << 20,
        avro_bytes: 1 << 22,
        blob_bytes: 1 << 20,
        fields: 10_000,
        ..Limits::default()
    }
}

pub fn avro_header(data: &[u8]) {
    if let Ok(container) = Container::open(data) {
        let _ = container.schema(&limits());
        let _ = container.blocks().count();
    }
}

pub fn manifest(data: &[u8]) {
    for metrics in [Metrics::all(), Metrics::for_filter([1, 2]), Metrics::none()] {
        let _ = entries::read(data, &ReadOptions { metrics, ..ReadOptions::default() }, &limits())
            .and_then(|entries| entries.to_record_batch());
    }
}

pub fn manifest_list(data: &[u8]) {
    let _ = list::read(data, &limits()).and_then(|list| list.to_record_batch());
}

pub fn puffin(data: &[u8]) {
    if let Ok(footer) = Footer::read(data, &limits()) {
        for blob in &footer.blobs {
            let _ = read_blob(data, blob, &limits()).and_then(|blob| DeletionVector::from_bytes(&blob, &limits()));
        }
    }
}

/// What is read is written and read again.
pub fn deletion_vector(data: &[u8]) {
    reread(data);
    // No mutation finds the checksum of another bitmap, so it is put right.
    if let Some(bitmap) = data.get(8..data.len().saturating_sub(4)) {
        let length = u32::try_from(bitmap.len() + 4).unwrap_or(u32::MAX).to_be_bytes();
        let mut sealed = [&length[..], &data[4..data.len() - 4]].concat();
        sealed.extend(crc32fast::hash(&sealed[4..]).to_be_bytes());
        reread(&sealed);
    }
}

fn reread(data: &[u8]) {
    if let Ok(vector) = DeletionVector::from_bytes(data, &limits()) {
        let again = vector.to_bytes().and_then(|blob| DeletionVector::from_bytes(&blob, &Limits::default()));
        assert_eq!(again.as_ref(), Ok(&vector));
    }
}

pub fn metadata_json(data: &[u8]) {
    let _ = TableMetadata::from_json(data, &limits());
}

pub fn schema_json(data: &[u8]) {
    if let Ok(json) = serde_json::from_slice(data) {
        let _ = Schema::from_json(&json);
    }
}

/// Text and JSON; what is read is written and read again.
pub fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(expr) = Expr::parse(text) {
        let shown = expr.to_string();
        assert_eq!(Expr::parse(&shown).as_ref(), Ok(&expr), "{shown}");
    }
    let json = serde_json::from_slice(data).ok();
    if let Some(expr) = json.and_then(|json| Expr::from_json(&json).ok()) {
        let _ = expr.to_string();
        if let Ok(written) = expr.to_json() {
            assert_eq!(Expr::from_json(&written).as_ref(), Ok(&expr), "{written}");
        }
    }
}
