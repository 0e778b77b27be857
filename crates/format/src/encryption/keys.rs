//! The keys in a table's metadata ("Encryption Keys"), as the Java library makes them (`StandardEncryptionManager`):
//! *key encryption keys*, encrypted by the table's key, and the key metadata of manifest lists, encrypted by a key
//! encryption key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::cipher::Cipher;
use super::{KeyMetadata, random, random_bytes};
use crate::metadata::{EncryptedKey, StringMap};
use crate::{Error, Result};

/// Property of a key encryption key: when it was made, in milliseconds since the epoch. What it encrypts is bound to
/// this time, so a changed time is detected.
pub const KEY_TIMESTAMP: &str = "KEY_TIMESTAMP";
/// How long a key encryption key encrypts: two years (NIST SP 800-57, part 1, section 5.3.6.7).
pub const LIFESPAN_MS: i64 = 730 * 24 * 60 * 60 * 1000;

/// How far ahead the clock of another writer may be: a key of a later time would encrypt for longer than the lifespan.
const FUTURE_MS: i64 = 24 * 60 * 60 * 1000;

/// A new id of a key.
///
/// # Errors
/// A system without random bytes.
pub fn new_id() -> Result<String> {
    Ok(STANDARD.encode(random::<16>()?))
}

/// A new key of this length in bytes.
///
/// # Errors
/// A length that AES does not have, and a system without random bytes.
pub fn new_key(length: usize) -> Result<Vec<u8>> {
    let key = random_bytes(length)?;
    Cipher::new(&key)?;
    Ok(key)
}

/// The key encryption key that encrypts at this time: the first one of the table's key that is neither too old nor of the
/// future.
pub fn in_use<'k>(keys: &'k [EncryptedKey], table_key: &str, now_ms: i64) -> Option<&'k EncryptedKey> {
    keys.iter().find(|key| {
        key.encrypted_by_id.as_deref() == Some(table_key)
            && made_at(key)
                .and_then(|made| made.parse::<i64>().ok())
                .is_some_and(|made| (-FUTURE_MS..LIFESPAN_MS).contains(&now_ms.saturating_sub(made)))
    })
}

/// A new key encryption key, which the table's key has encrypted as `wrapped`.
///
/// # Errors
/// A system without random bytes.
pub fn new_encryption_key(wrapped: Vec<u8>, table_key: &str, now_ms: i64) -> Result<EncryptedKey> {
    Ok(EncryptedKey {
        key_id: new_id()?,
        encrypted_key_metadata: wrapped,
        encrypted_by_id: Some(table_key.to_owned()),
        properties: StringMap::from_iter([(KEY_TIMESTAMP.to_owned(), now_ms.to_string())]),
    })
}

/// Encrypts the key metadata of a manifest list by a key encryption key, `by`, whose bytes are `key`.
///
/// # Errors
/// A key encryption key without its time, or that is not one of AES.
pub fn seal(metadata: &KeyMetadata, by: &EncryptedKey, key: &[u8]) -> Result<EncryptedKey> {
    let mut sealed = Vec::new();
    Cipher::new(key)?.encrypt(&metadata.to_bytes(), timestamp(by)?.as_bytes(), &mut sealed)?;
    Ok(EncryptedKey {
        key_id: new_id()?,
        encrypted_key_metadata: sealed,
        encrypted_by_id: Some(by.key_id.clone()),
        properties: StringMap::new(),
    })
}

/// Decrypts the key metadata of a manifest list.
///
/// # Errors
/// A key encryption key without its time, or with another time or other bytes than it was sealed by.
pub fn open(sealed: &EncryptedKey, by: &EncryptedKey, key: &[u8]) -> Result<KeyMetadata> {
    let mut plain = Vec::new();
    let opened = Cipher::new(key)?.decrypt(&sealed.encrypted_key_metadata, timestamp(by)?.as_bytes(), &mut plain);
    opened.map_err(|_| {
        let message =
            format!("it cannot be decrypted by the key encryption key {}: one of the two was changed", by.key_id);
        Error::corrupt(format!("encryption key {}", sealed.key_id), message)
    })?;
    KeyMetadata::from_bytes(&plain).map_err(|error| error.within(&format!("encryption key {}: ", sealed.key_id)))
}

/// The key of a manifest list, and the key encryption key that encrypts it: of the metadata's keys, by the id in the
/// snapshot.
///
/// # Errors
/// A key that the metadata lack.
pub fn of_snapshot<'k>(keys: &'k [EncryptedKey], key_id: &str) -> Result<(&'k EncryptedKey, &'k EncryptedKey)> {
    let find = |id: &str| keys.iter().find(|key| key.key_id == id);
    let missing = |id: &str| Error::corrupt("/encryption-keys", format!("the key {id} is not among them: it was lost"));
    let sealed = find(key_id).ok_or_else(|| missing(key_id))?;
    let by = sealed.encrypted_by_id.as_deref().unwrap_or_default();
    Ok((sealed, find(by).ok_or_else(|| missing(by))?))
}

fn made_at(key: &EncryptedKey) -> Option<&str> {
    key.properties.get(KEY_TIMESTAMP).map(String::as_str)
}

fn timestamp(key: &EncryptedKey) -> Result<&str> {
    made_at(key).ok_or_else(|| {
        Error::corrupt(format!("encryption key {}", key.key_id), format!("it lacks the property {KEY_TIMESTAMP}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_keys_are_bound_to_the_time_of_their_key() {
        let metadata = KeyMetadata { file_length: Some(99), ..KeyMetadata::random(16).unwrap() };
        let (key, other) = (new_key(16).unwrap(), new_key(16).unwrap());
        let by = new_encryption_key(b"wrapped".to_vec(), "table", 1_000).unwrap();
        let sealed = seal(&metadata, &by, &key).unwrap();
        assert_eq!(open(&sealed, &by, &key).unwrap(), metadata);
        assert!(open(&sealed, &by, &other).unwrap_err().to_string().contains(&sealed.key_id));
        let mut younger = by.clone();
        younger.properties.insert(KEY_TIMESTAMP.to_owned(), "2000".to_owned());
        assert!(open(&sealed, &younger, &key).is_err());
        younger.properties.clear();
        assert!(open(&sealed, &younger, &key).unwrap_err().to_string().contains(KEY_TIMESTAMP));
        let keys = [by.clone(), sealed.clone()];
        assert_eq!(of_snapshot(&keys, &sealed.key_id).unwrap(), (&sealed, &by));
        for lost in [&keys[..1], &keys[1..]] {
            assert!(of_snapshot(lost, &sealed.key_id).unwrap_err().to_string().contains("it was lost"));
        }
    }

    #[test]
    fn a_key_encrypts_for_two_years_and_only_for_its_table() {
        let of = |by: &str, made: i64| new_encryption_key(Vec::new(), by, made).unwrap();
        let keys = [of("other", 0), of("table", 0), of("table", LIFESPAN_MS)];
        for (now, expected) in [(0, 1), (LIFESPAN_MS - 1, 1), (LIFESPAN_MS, 2), (2 * LIFESPAN_MS - 1, 2)] {
            assert_eq!(in_use(&keys, "table", now), Some(&keys[expected]), "{now}");
        }
        assert_eq!(in_use(&keys, "table", 2 * LIFESPAN_MS), None);
        assert_eq!(in_use(&keys, "new", 0), None);
    }
}
