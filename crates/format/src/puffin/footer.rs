//! Reads the footer and the blobs of a Puffin file (Puffin spec, "Footer structure", "Footer Payload", "Compression
//! codecs").

use std::borrow::Cow;
use std::io::Read;

use serde_json::{Map, Value as Json};

use super::{BlobCodec, MAGIC};
use crate::limits::{Budget, MEMORY_VARIABLE};
use crate::{Error, Limits, Result};

/// Bytes at the end of a file that give the length of the footer: payload size, flags, magic number.
pub const TAIL_BYTES: usize = 12;
/// Flag of a footer whose payload is an LZ4 frame.
const COMPRESSED: u8 = 1;
const PLACE: &str = "Puffin footer";

/// The footer of a Puffin file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footer {
    /// The blobs, in footer order.
    pub blobs: Vec<BlobMetadata>,
    /// Properties of the file, such as `created-by`.
    pub properties: Vec<(String, String)>,
}

/// Description of a blob in the footer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobMetadata {
    /// Type of the blob.
    pub ty: String,
    /// Field ids of the columns that it describes.
    pub fields: Vec<i32>,
    /// The snapshot that it was computed from; -1 if inherited.
    pub snapshot_id: i64,
    /// Sequence number of that snapshot; -1 if inherited.
    pub sequence_number: i64,
    /// Offset in the file.
    pub offset: u64,
    /// Stored length.
    pub length: u64,
    /// Name of the compression codec.
    pub compression_codec: Option<String>,
    /// Properties of the blob.
    pub properties: Vec<(String, String)>,
}

impl Footer {
    /// Reads the footer from a complete file.
    pub fn read(file: &[u8], limits: &Limits) -> Result<Self> {
        Self::from_end(file, file.len() as u64, limits)
    }

    /// Returns the length of the footer, given the last [`TAIL_BYTES`] of a file of `file_length` bytes.
    pub fn length(tail: &[u8], file_length: u64) -> Result<u64> {
        let at = file_length.saturating_sub(TAIL_BYTES as u64);
        let wrong = |message: &str| Error::corrupt_at(PLACE, at, message);
        let tail: &[u8; TAIL_BYTES] =
            tail.last_chunk().ok_or_else(|| wrong("the file is too short for a Puffin file"))?;
        let [a, b, c, d, flags @ .., e, f, g, h] = *tail;
        if [e, f, g, h] != MAGIC {
            return Err(wrong("the last four bytes are not Puffin's magic"));
        }
        if flags[0] & !COMPRESSED != 0 || flags[1..] != [0; 3] {
            return Err(wrong("unknown flags are set"));
        }
        let payload = u64::from(u32::from_le_bytes([a, b, c, d]));
        let length = payload + TAIL_BYTES as u64 + MAGIC.len() as u64;
        // The magic number at the start of the file comes before the footer.
        if length.saturating_add(MAGIC.len() as u64) > file_length {
            return Err(wrong(&format!("a footer of {length} bytes does not fit a file of {file_length}")));
        }
        Ok(length)
    }

    /// Reads the footer from the last bytes of a file of `file_length` bytes; [`Footer::length`] returns how many are
    /// needed.
    pub fn from_end(end: &[u8], file_length: u64, limits: &Limits) -> Result<Self> {
        let length = Self::length(end, file_length)?;
        let at = file_length - length;
        let wrong = |message: &str| Error::corrupt_at(PLACE, at, message);
        let start = usize::try_from(length).ok().and_then(|length| end.len().checked_sub(length));
        let footer = start.and_then(|start| end.get(start..)).ok_or_else(|| wrong("expected all of its bytes"))?;
        let payload = footer.strip_prefix(&MAGIC).ok_or_else(|| wrong("it does not begin with Puffin's magic"))?;
        let (payload, tail) = payload.split_last_chunk::<TAIL_BYTES>().ok_or_else(|| wrong("it is too short"))?;
        let codec = if tail[4] & COMPRESSED == 0 { BlobCodec::None } else { BlobCodec::Lz4 };
        let mut budget = limits.budget(payload.len());
        let payload = decompress(codec, payload, limits.metadata_json_bytes, &mut budget, PLACE, at)?;
        let json = crate::json::parse_within(&payload, &mut budget);
        Self::from_json(&json.map_err(|error| error.within(&format!("{PLACE} at byte {at} ")))?)
    }

    /// Reads the payload (Puffin spec, "FileMetadata").
    fn from_json(json: &Json) -> Result<Self> {
        let blobs = json.get("blobs").and_then(Json::as_array);
        let blobs = blobs.ok_or_else(|| Error::corrupt(PLACE, "it has no list of blobs"))?;
        let blob = |(index, blob)| {
            BlobMetadata::from_json(blob).map_err(|error| error.within(&format!("{PLACE} /blobs/{index}")))
        };
        let blobs = blobs.iter().enumerate().map(blob).collect::<Result<_>>()?;
        Ok(Self { blobs, properties: properties(json).map_err(|error| error.within(PLACE))? })
    }

    /// Writes the payload.
    pub(super) fn to_json(&self) -> Json {
        let mut members = Map::new();
        members.insert("blobs".into(), self.blobs.iter().map(BlobMetadata::to_json).collect());
        insert_properties(&mut members, &self.properties);
        Json::Object(members)
    }

    /// Returns a property of the file.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl BlobMetadata {
    fn from_json(json: &Json) -> Result<Self> {
        let missing = |key: &str| Error::corrupt(format!("/{key}"), "missing or of the wrong type");
        let number = |key: &str| json.get(key).and_then(Json::as_i64).ok_or_else(|| missing(key));
        let size = |key: &str| json.get(key).and_then(Json::as_u64).ok_or_else(|| missing(key));
        let fields = json.get("fields").and_then(Json::as_array).ok_or_else(|| missing("fields"))?;
        let field = |id: &Json| id.as_i64().and_then(|id| i32::try_from(id).ok()).ok_or_else(|| missing("fields"));
        let codec = match json.get("compression-codec") {
            None | Some(Json::Null) => None,
            Some(Json::String(name)) => Some(name.clone()),
            Some(_) => return Err(missing("compression-codec")),
        };
        Ok(Self {
            ty: json.get("type").and_then(Json::as_str).ok_or_else(|| missing("type"))?.to_owned(),
            fields: fields.iter().map(field).collect::<Result<_>>()?,
            snapshot_id: number("snapshot-id")?,
            sequence_number: number("sequence-number")?,
            offset: size("offset")?,
            length: size("length")?,
            compression_codec: codec,
            properties: properties(json)?,
        })
    }

    fn to_json(&self) -> Json {
        let mut members = Map::new();
        members.insert("type".into(), self.ty.as_str().into());
        members.insert("fields".into(), self.fields.as_slice().into());
        members.insert("snapshot-id".into(), self.snapshot_id.into());
        members.insert("sequence-number".into(), self.sequence_number.into());
        members.insert("offset".into(), self.offset.into());
        members.insert("length".into(), self.length.into());
        if let Some(codec) = &self.compression_codec {
            members.insert("compression-codec".into(), codec.as_str().into());
        }
        insert_properties(&mut members, &self.properties);
        Json::Object(members)
    }

    /// Returns a property of the blob.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

fn properties(json: &Json) -> Result<Vec<(String, String)>> {
    let wrong = || Error::corrupt("/properties", "not an object of texts");
    let object = match json.get("properties") {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(json) => json.as_object().ok_or_else(wrong)?,
    };
    object.iter().map(|(key, value)| Ok((key.clone(), value.as_str().ok_or_else(wrong)?.to_owned()))).collect()
}

fn insert_properties(members: &mut Map<String, Json>, properties: &[(String, String)]) {
    if !properties.is_empty() {
        let pairs = properties.iter().map(|(key, value)| (key.clone(), Json::String(value.clone())));
        members.insert("properties".into(), Json::Object(pairs.collect()));
    }
}

/// Returns the decompressed bytes of a blob in a complete file. All blobs that are in memory at the same time must
/// share the file's budget (`limits.budget(file.len())`), since several may refer to the same bytes.
pub fn read_blob<'a>(
    file: &'a [u8],
    blob: &BlobMetadata,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Cow<'a, [u8]>> {
    let start = usize::try_from(blob.offset).ok();
    let end = blob.offset.checked_add(blob.length).and_then(|end| usize::try_from(end).ok());
    let stored = start.zip(end).and_then(|(start, end)| file.get(start..end));
    let stored = stored.ok_or_else(|| {
        let message = format!("a {} of {} bytes does not fit a file of {}", blob.ty, blob.length, file.len());
        Error::corrupt_at("Puffin blob", blob.offset, message)
    })?;
    let codec = BlobCodec::from_name(blob.compression_codec.as_deref())?;
    decompress(codec, stored, limits.blob_bytes, budget, "Puffin blob", blob.offset)
}

/// Decompresses up to `most` bytes, limited by the budget, and charges them to it.
fn decompress<'a>(
    codec: BlobCodec,
    stored: &'a [u8],
    most: usize,
    budget: &mut Budget,
    place: &str,
    offset: u64,
) -> Result<Cow<'a, [u8]>> {
    let mut out = Vec::new();
    // One byte over the limit shows that the content is too long.
    let bound = (most.min(budget.growing()) as u64).saturating_add(1);
    let outcome = match codec {
        BlobCodec::None => return Ok(Cow::Borrowed(stored)),
        BlobCodec::Lz4 => lz4_flex::frame::FrameDecoder::new(stored).take(bound).read_to_end(&mut out),
        BlobCodec::Zstd => zstd::stream::read::Decoder::with_buffer(stored)
            .and_then(|decoder| decoder.take(bound).read_to_end(&mut out)),
    };
    outcome.map_err(|error| Error::corrupt_at(place, offset, format!("cannot be decompressed: {error}")))?;
    if out.len() > most {
        let message = format!(
            "decompresses to more than {most} bytes; if you trust the file, raise this limit with {MEMORY_VARIABLE}=BYTES"
        );
        return Err(Error::corrupt_at(place, offset, message));
    }
    budget.charge_grown(out.len()).map_err(|error| error.within(&format!("{place} at byte {offset}")))?;
    Ok(Cow::Owned(out))
}
