//! Encryption keys of table metadata ("Encryption Keys"): their JSON. What encrypts them: `encryption/keys.rs`.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde_json::Value as Json;

use crate::json::{self, Object, StringMap, Writer};
use crate::{Error, Result};

/// A key that encrypts other keys, or the key metadata of manifest lists.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedKey {
    /// Id by which snapshots and other keys refer to it.
    pub key_id: String,
    /// The key and its metadata, both encrypted.
    pub encrypted_key_metadata: Vec<u8>,
    /// Id of the key that encrypts this one.
    pub encrypted_by_id: Option<String>,
    /// Other properties.
    pub properties: StringMap,
}

/// Does not print key material, not even encrypted.
impl std::fmt::Debug for EncryptedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncryptedKey")
            .field("key_id", &self.key_id)
            .field("encrypted_by_id", &self.encrypted_by_id)
            .finish_non_exhaustive()
    }
}

/// Accepts base64 with or without padding, as Java's decoder does.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl EncryptedKey {
    /// Reads the JSON form.
    pub fn from_json(value: &Json) -> Result<Self> {
        let object = Object::new(value, "an encryption key")?;
        Ok(Self {
            key_id: object.field("key-id", json::string)?,
            encrypted_key_metadata: object.field("encrypted-key-metadata", read_base64)?,
            encrypted_by_id: object.nullable("encrypted-by-id", json::string)?,
            properties: object.nullable("properties", json::present_strings)?.unwrap_or_default(),
        })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let properties = (!self.properties.is_empty()).then(|| json::write_strings(&self.properties));
        Writer::default()
            .put("key-id", self.key_id.as_str())
            .put("encrypted-key-metadata", STANDARD.encode(&self.encrypted_key_metadata))
            .put_some("encrypted-by-id", self.encrypted_by_id.as_deref())
            .put_some("properties", properties)
            .finish()
    }
}

fn read_base64(value: &Json) -> Result<Vec<u8>> {
    let text = json::string(value)?;
    DECODER.decode(text).map_err(|error| Error::corrupt("", format!("not base64: {error}")))
}
