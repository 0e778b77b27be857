//! The key metadata of one file, as the Java library stores them (`StandardKeyMetadata`): a version byte and an Avro
//! record.

use super::cipher::Cipher;
use super::random_bytes;
use crate::avro::cursor::{Cursor, Fault};
use crate::avro::encode::Encoder;
use crate::{Error, Result};

/// The only version of the form.
const VERSION: u8 = 1;
/// Bytes of an AAD prefix, as the Java library makes them.
const AAD_PREFIX: usize = 16;
/// Maximum length of a key or prefix in bytes.
const MOST: u64 = 1 << 10;

/// Bytes with a key in them, which are not printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HiddenBytes(pub Vec<u8>);

impl std::fmt::Debug for HiddenBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

/// How a file is encrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMetadata {
    /// The key of the file.
    pub key: Vec<u8>,
    /// Bytes that bind the blocks of the file to it; may be empty.
    pub aad_prefix: Vec<u8>,
    /// Bytes of the file as it is stored. Files that are encrypted as a stream need it: who can change a file could cut
    /// off its last blocks.
    pub file_length: Option<u64>,
}

/// Does not print the key.
impl std::fmt::Debug for KeyMetadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMetadata").field("file_length", &self.file_length).finish_non_exhaustive()
    }
}

impl KeyMetadata {
    /// Random metadata for a new file, with a key of this length in bytes.
    ///
    /// # Errors
    /// A length that AES does not have, and a system without random bytes.
    pub fn random(key_length: usize) -> Result<Self> {
        let key = random_bytes(key_length)?;
        Cipher::new(&key)?;
        Ok(Self { key, aad_prefix: random_bytes(AAD_PREFIX)?, file_length: None })
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Another version, and bytes that are not the stored form. No message has bytes of the key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let place = "encryption key metadata";
        let Some((version, record)) = bytes.split_first() else {
            return Err(Error::corrupt(place, "they are empty"));
        };
        if *version != VERSION {
            return Err(Error::unsupported(format!(
                "{place} of version {version}: only those of the standard encryption of tables, version {VERSION}, can \
                 be read"
            )));
        }
        let mut cursor = Cursor::new(record);
        let read = |cursor: &mut Cursor<'_>| -> Result<Option<Self>, Fault> {
            let Some(key) = short(cursor)? else { return Ok(None) };
            let aad_prefix = match cursor.long()? {
                0 => Vec::new(),
                1 => match short(cursor)? {
                    Some(prefix) => prefix,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            };
            let file_length = match cursor.long()? {
                0 => None,
                1 => match u64::try_from(cursor.long()?) {
                    Ok(length) => Some(length),
                    Err(_) => return Ok(None),
                },
                _ => return Ok(None),
            };
            Ok(Some(Self { key, aad_prefix, file_length }))
        };
        let found = read(&mut cursor).map_err(|fault| Error::corrupt(place, fault.message()))?;
        let found = found.ok_or_else(|| Error::corrupt(place, "they are not an Avro record of a key"))?;
        Cipher::new(&found.key).map_err(|error| Error::corrupt(place, error.to_string()))?;
        Ok(found)
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut record = Encoder::default();
        record.bytes(&self.key);
        // The Java library does not distinguish no prefix from an empty one.
        record.long(1);
        record.bytes(&self.aad_prefix);
        match self.file_length.map(i64::try_from) {
            Some(Ok(length)) => {
                record.long(1);
                record.long(length);
            }
            _ => record.long(0),
        }
        let mut bytes = vec![VERSION];
        bytes.extend(record.into_bytes());
        bytes
    }
}

/// Bytes that are not longer than a key or a prefix can be.
fn short(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u8>>, Fault> {
    match cursor.length()? {
        length if length > MOST => Ok(None),
        length => Ok(Some(cursor.take(length)?.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_javas() {
        let key = b"0123456789012345".to_vec();
        let whole = KeyMetadata { key: key.clone(), aad_prefix: b"abcd".to_vec(), file_length: Some(300) };
        let bytes = [&[1, 32][..], &key, &[2, 8], b"abcd", &[2, 0xd8, 4]].concat();
        assert_eq!(whole.to_bytes(), bytes);
        assert_eq!(KeyMetadata::from_bytes(&bytes).unwrap(), whole);
        let without = [&[1, 32][..], &key, &[0, 0]].concat();
        let found = KeyMetadata::from_bytes(&without).unwrap();
        assert_eq!((found.aad_prefix.len(), found.file_length), (0, None));
        for cut in 0..bytes.len() - 1 {
            assert!(KeyMetadata::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for (bad, part) in [
            (vec![2, 0], "of version 2"),
            ([&[1, 30][..], &key[1..], &[0, 0]].concat(), "15 bytes"),
            ([&[1, 32][..], &key, &[4, 0]].concat(), "not an Avro record"),
            ([&[1, 32][..], &key, &[0, 2, 1]].concat(), "not an Avro record"),
            (vec![1, 0xfe, 0xff, 0xff, 0xff, 0x0f], "not an Avro record"),
            (vec![1, 0xff, 0xff, 0xff, 0xff, 0x0f], "negative"),
        ] {
            let error = KeyMetadata::from_bytes(&bad).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn keys_are_random_and_hidden() {
        let (one, other) = (KeyMetadata::random(32).unwrap(), KeyMetadata::random(32).unwrap());
        assert!(one.key != other.key && one.aad_prefix != other.aad_prefix);
        let shown = format!("{one:?} {:?}", HiddenBytes(one.to_bytes()));
        assert_eq!(shown, "KeyMetadata { file_length: None, .. } (hidden)");
        assert!(KeyMetadata::random(20).is_err());
    }
}
