//! What each fuzz target does with its input: the decoders of `icefield-format`, one a target.
//!
//! The fuzz targets call these, and so does `crates/format/tests/fuzz_corpus.rs`, which runs them over the stored corpus and
//! over mutations of it in the ordinary tests.

use icefield_format::Limits;
use icefield_format::avro::Container;
use icefield_format::expr::Expr;
use icefield_format::manifest::{Metrics, ReadOptions, entries, list};
use icefield_format::metadata::{MetadataCodec, TableMetadata, compress};
use icefield_format::puffin::{DeletionVector, Footer, read_blob};
use icefield_format::types::Schema;
use icefield_format::value::variant::{self, Path, Tree, Variant};

/// Takes any bytes; it may refuse them, it may not panic.
pub type Target = fn(&[u8]);

/// Every target; the corpus of each is `corpus/NAME`.
pub const ALL: &[(&str, Target)] = &[
    ("avro_header", avro_header),
    ("deletion_vector", deletion_vector),
    ("expression", expression),
    ("manifest", manifest),
    ("manifest_list", manifest_list),
    ("metadata_gzip", metadata_gzip),
    ("metadata_json", metadata_json),
    ("puffin", puffin),
    ("puffin_codecs", puffin_codecs),
    ("schema_json", schema_json),
    ("variant", variant),
];

/// Small enough that no input takes long.
fn limits() -> Limits {
    Limits {
        metadata_json_bytes: 1 << 20,
        block_bytes: 1 << 20,
        avro_bytes: 1 << 22,
        blob_bytes: 1 << 20,
        fields: 10_000,
        least_memory: 1 << 25,
        most_memory: 1 << 27,
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
        let mut budget = limits().budget(data.len());
        for blob in &footer.blobs {
            let blob = read_blob(data, blob, &limits(), &mut budget);
            let _ = blob.and_then(|blob| DeletionVector::from_bytes(&blob, &limits()));
        }
    }
}

/// The first byte names a codec, the others are what is stored with it: as the payload of a footer, and as a blob that two
/// entries of a footer name.
pub fn puffin_codecs(data: &[u8]) {
    let Some((codec, stored)) = data.split_first() else { return };
    let magic = b"PFA1";
    let file = |body: &[u8], payload: &[u8], flags: u8| {
        let length = (payload.len() as u32).to_le_bytes();
        [magic, body, magic, payload, &length, &[flags, 0, 0, 0], magic].concat()
    };
    puffin(&file(b"", stored, codec & 1));
    let codec = [None, Some("lz4"), Some("zstd"), Some("snappy")][usize::from(codec % 4)];
    let blob = serde_json::json!({
        "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4,
        "length": stored.len(), "compression-codec": codec,
    });
    puffin(&file(stored, serde_json::json!({"blobs": [blob, blob]}).to_string().as_bytes(), 0));
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

/// What is read is written and read again, and is the same.
pub fn metadata_json(data: &[u8]) {
    if let Ok(metadata) = TableMetadata::from_json(data, &limits()) {
        let again = TableMetadata::from_json(metadata.to_json().as_bytes(), &Limits::default());
        assert_eq!(again.as_ref(), Ok(&metadata));
    }
}

/// Compressed text: as it is, and text that is compressed here, for no mutation finds the checksum of another.
pub fn metadata_gzip(data: &[u8]) {
    let _ = TableMetadata::from_json(data, &limits());
    if let Some(file) = std::str::from_utf8(data).ok().and_then(|text| compress(text, MetadataCodec::Gzip).ok()) {
        let read = TableMetadata::from_json(&file, &limits());
        assert_eq!(read, TableMetadata::from_json(data, &limits()), "compressed as it is without");
    }
}

pub fn schema_json(data: &[u8]) {
    if let Ok(json) = serde_json::from_slice(data) {
        let _ = Schema::from_json(&json);
    }
}

/// The first byte is the length of the metadata. A value that is sound is written and read again, and has the same texts.
pub fn variant(data: &[u8]) {
    let Some((length, rest)) = data.split_first() else { return };
    let (metadata, value) = rest.split_at(rest.len().min(usize::from(*length)));
    let Ok(variant) = Variant::new(metadata, value) else { return };
    let sound = variant.check();
    let (text, tree) = (variant::json::to_json(&variant), Tree::read(variant));
    assert!(sound.is_ok() || (text.is_err() && tree.is_err()), "{sound:?}");
    for path in ["$", "$.a", "$.a.b[1]"] {
        let _ = Path::parse(path).unwrap().find(variant).map(|found| found.map(|found| found.exact().map(<[u8]>::len)));
    }
    if let Ok(tree) = tree {
        let (metadata, value) = tree.encode().unwrap();
        let again = Variant::new(&metadata, &value).unwrap();
        assert_eq!(format!("{:?}", Tree::read(again).unwrap()), format!("{tree:?}"));
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
