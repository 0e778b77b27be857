//! Statistics files and partition statistics files ("Table Statistics", "Partition Statistics").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};

use super::EncryptedKey;
use crate::json::{self, Object, StringMap, Writer};
use crate::{Error, Result};

/// A Puffin file with statistics of one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticsFile {
    /// The snapshot.
    pub snapshot_id: i64,
    /// Location of the file.
    pub statistics_path: String,
    /// Size of the file.
    pub file_size_in_bytes: i64,
    /// Size of its footer.
    pub file_footer_size_in_bytes: i64,
    /// Descriptions of the blobs in the file.
    pub blob_metadata: Vec<BlobMetadata>,
    /// Fields of a newer writer, and optional ones that are preserved but not used (`key-metadata`).
    pub unknown: Map<String, Json>,
}

/// Description of one blob of a statistics file.
#[derive(Debug, Clone, PartialEq)]
pub struct BlobMetadata {
    /// Type of the blob (Puffin, "Blob types").
    pub blob_type: String,
    /// The snapshot that it was computed from.
    pub snapshot_id: i64,
    /// Sequence number of that snapshot.
    pub sequence_number: i64,
    /// Field ids of the columns that it describes.
    pub fields: Vec<i32>,
    /// Other properties, such as `ndv`.
    pub properties: StringMap,
}

/// A file with statistics of the partitions of one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionStatisticsFile {
    /// The snapshot.
    pub snapshot_id: i64,
    /// Location of the file.
    pub statistics_path: String,
    /// Size of the file.
    pub file_size_in_bytes: i64,
    /// Fields of a newer writer, preserved as they are.
    pub unknown: Map<String, Json>,
}

const STATISTICS_FIELDS: &[&str] =
    &["snapshot-id", "statistics-path", "file-size-in-bytes", "file-footer-size-in-bytes", "blob-metadata"];
const PARTITION_STATISTICS_FIELDS: &[&str] = &["snapshot-id", "statistics-path", "file-size-in-bytes"];

/// "Base64-encoded implementation-specific key metadata for encryption": icefield stores the id of a key.
const KEY_METADATA: &str = "key-metadata";

impl StatisticsFile {
    /// The id that the key of this file has among the keys of the table: its own name. The Java library drops the key
    /// metadata of statistics files from the metadata that it writes, and keeps the keys.
    pub fn own_key_id(&self) -> &str {
        self.statistics_path.rsplit('/').next().unwrap_or_default()
    }

    /// Says that this file is encrypted by its key among those of the table.
    pub fn set_encrypted(&mut self) {
        let named = STANDARD.encode(self.own_key_id());
        self.unknown.insert(KEY_METADATA.to_owned(), named.into());
    }

    /// The base64 text about the key of an encrypted file.
    pub fn key_metadata(&self) -> Option<&str> {
        self.unknown.get(KEY_METADATA)?.as_str()
    }

    /// The id of the key of this file, if it is encrypted.
    ///
    /// # Errors
    /// Key metadata of another library.
    pub fn key_id(&self, keys: &[EncryptedKey]) -> Result<Option<&str>> {
        let own = self.own_key_id();
        let is_there = keys.iter().any(|key| key.key_id == own);
        match self.unknown.get(KEY_METADATA) {
            Some(named) if named.as_str() != Some(&STANDARD.encode(own)) => Err(Error::unsupported(format!(
                "{}: the key metadata of this statistics file are of another library",
                self.statistics_path
            ))),
            None if !is_there => Ok(None),
            _ => Ok(Some(own)),
        }
    }

    /// Reads the JSON form.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a statistics file")?;
        Ok(Self {
            snapshot_id: object.field("snapshot-id", json::long)?,
            statistics_path: object.field("statistics-path", json::string)?,
            file_size_in_bytes: object.field("file-size-in-bytes", json::long)?,
            file_footer_size_in_bytes: object.field("file-footer-size-in-bytes", json::long)?,
            blob_metadata: object.field("blob-metadata", |value| json::list(value, BlobMetadata::from_json))?,
            unknown: object.unknown(STATISTICS_FIELDS),
        })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let blobs: Vec<Json> = self.blob_metadata.iter().map(BlobMetadata::to_json).collect();
        Writer::default()
            .put("snapshot-id", self.snapshot_id)
            .put("statistics-path", self.statistics_path.as_str())
            .put("file-size-in-bytes", self.file_size_in_bytes)
            .put("file-footer-size-in-bytes", self.file_footer_size_in_bytes)
            .put("blob-metadata", blobs)
            .put_unknown(&self.unknown)
            .finish()
    }
}

impl BlobMetadata {
    fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "blob metadata")?;
        Ok(Self {
            blob_type: object.field("type", json::string)?,
            snapshot_id: object.field("snapshot-id", json::long)?,
            sequence_number: object.field("sequence-number", json::long)?,
            fields: object.field("fields", |value| json::list(value, json::int))?,
            properties: object.nullable("properties", json::present_strings)?.unwrap_or_default(),
        })
    }

    fn to_json(&self) -> Json {
        let properties = (!self.properties.is_empty()).then(|| json::write_strings(&self.properties));
        Writer::default()
            .put("type", self.blob_type.as_str())
            .put("snapshot-id", self.snapshot_id)
            .put("sequence-number", self.sequence_number)
            .put("fields", self.fields.clone())
            .put_some("properties", properties)
            .finish()
    }
}

impl PartitionStatisticsFile {
    /// Reads the JSON form.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "a partition statistics file")?;
        Ok(Self {
            snapshot_id: object.field("snapshot-id", json::long)?,
            statistics_path: object.field("statistics-path", json::string)?,
            file_size_in_bytes: object.field("file-size-in-bytes", json::long)?,
            unknown: object.unknown(PARTITION_STATISTICS_FIELDS),
        })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        Writer::default()
            .put("snapshot-id", self.snapshot_id)
            .put("statistics-path", self.statistics_path.as_str())
            .put("file-size-in-bytes", self.file_size_in_bytes)
            .put_unknown(&self.unknown)
            .finish()
    }
}
