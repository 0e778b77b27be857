//! Column encryption ("Column Encryption"): keys, initialization vectors, AES/CTR.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use aes::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

use crate::error::{Error, Result};
use crate::proto::{EncryptionAlgorithm, KeyProviderKind, StreamKind};

/// The name of a master key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName {
    /// The name in the key store.
    pub name: String,
    /// The version in the key store.
    pub version: u32,
    /// The cipher.
    pub algorithm: EncryptionAlgorithm,
}

/// Unwraps local keys: the keys that encrypt the columns, themselves encrypted (wrapped) by a master key.
pub trait KeyProvider: Debug + Send + Sync {
    /// Returns the local key, unwrapped by a master key, or `None` if the caller may not use the master key; the column
    /// is then read masked.
    ///
    /// # Errors
    ///
    /// Any error of the key store; [`Error::external`] passes it through the reader.
    fn local_key(&self, key: &KeyName, wrapped: &[u8]) -> Result<Option<Vec<u8>>>;
}

/// Master keys in memory, compatible with orc-core's `InMemoryKeystore`.
#[derive(Default, Clone)]
pub struct MemoryKeys {
    keys: Vec<(KeyName, Vec<u8>)>,
}

impl Debug for MemoryKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(key, _)| key)).finish()
    }
}

impl MemoryKeys {
    /// Adds a master key. Its material is padded with zeros or truncated to the length of the cipher's keys.
    ///
    /// # Errors
    ///
    /// An unknown cipher.
    pub fn add(&mut self, key: KeyName, material: &[u8]) -> Result<()> {
        let mut material = material.to_vec();
        material.resize(key_length(key.algorithm)?, 0);
        self.keys.push((key, material));
        Ok(())
    }
}

impl KeyProvider for MemoryKeys {
    fn local_key(&self, key: &KeyName, wrapped: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some((_, master)) = self.keys.iter().find(|(known, _)| known == key) else { return Ok(None) };
        unwrap_key(key.algorithm, master, wrapped).map(Some)
    }
}

/// A provider that calls a function.
pub struct CallbackKeys<F>(pub F);

impl<F> Debug for CallbackKeys<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallbackKeys")
    }
}

impl<F: Fn(&KeyName, &[u8]) -> Result<Option<Vec<u8>>> + Send + Sync> KeyProvider for CallbackKeys<F> {
    fn local_key(&self, key: &KeyName, wrapped: &[u8]) -> Result<Option<Vec<u8>>> {
        (self.0)(key, wrapped)
    }
}

/// Unwraps a local key as Hadoop does: with AES/CTR, and the first 16 bytes of the wrapped key as initialization
/// vector.
pub(crate) fn unwrap_key(algorithm: EncryptionAlgorithm, master: &[u8], wrapped: &[u8]) -> Result<Vec<u8>> {
    let vector =
        wrapped.first_chunk::<16>().ok_or_else(|| Error::corrupt("encryption", "a wrapped key is too short"))?;
    let mut key = wrapped.to_vec();
    apply(algorithm, master, vector, 0, &mut key)?;
    Ok(key)
}

/// The key length of a cipher in bytes.
pub(crate) fn key_length(algorithm: EncryptionAlgorithm) -> Result<usize> {
    match algorithm {
        EncryptionAlgorithm::AesCtr128 => Ok(16),
        EncryptionAlgorithm::AesCtr256 => Ok(32),
        other => Err(Error::unsupported(format!("unsupported cipher {other}"))),
    }
}

/// A local key and its cipher.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LocalKey {
    /// The cipher.
    pub algorithm: EncryptionAlgorithm,
    key: Vec<u8>,
}

impl Debug for LocalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalKey({})", self.algorithm)
    }
}

impl LocalKey {
    /// A key; a short one is padded with zeros to the cipher's length, and a longer one is an error.
    pub(crate) fn new(algorithm: EncryptionAlgorithm, mut key: Vec<u8>) -> Result<Self> {
        let wanted = key_length(algorithm)?;
        if key.len() > wanted {
            return Err(Error::invalid(format!("a local key of {} bytes is too long for {algorithm}", key.len())));
        }
        key.resize(wanted, 0);
        Ok(Self { algorithm, key })
    }

    /// Encrypts or decrypts bytes in place, which is the same operation in CTR mode; `offset` is that of the first byte
    /// in the stream.
    pub(crate) fn apply(
        &self,
        column: u32,
        kind: StreamKind,
        stripe: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<()> {
        apply(self.algorithm, &self.key, &vector(column, kind, stripe), offset, bytes)
    }
}

/// The initialization vector of a stream: column (3 bytes), kind (2), stripe (3), and a counter from 0.
fn vector(column: u32, kind: StreamKind, stripe: u64) -> [u8; 16] {
    let [_, c0, c1, c2] = column.to_be_bytes();
    let [_, _, k0, k1] = kind.number().to_be_bytes();
    let [_, _, _, _, _, s0, s1, s2] = stripe.to_be_bytes();
    [c0, c1, c2, k0, k1, s0, s1, s2, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn apply(algorithm: EncryptionAlgorithm, key: &[u8], vector: &[u8; 16], offset: u64, bytes: &mut [u8]) -> Result<()> {
    let wrong = |_| Error::invalid(format!("a key of {} bytes is invalid for {algorithm}", key.len()));
    match algorithm {
        EncryptionAlgorithm::AesCtr128 => {
            run(ctr::Ctr128BE::<aes::Aes128>::new_from_slices(key, vector).map_err(wrong)?, offset, bytes)
        }
        EncryptionAlgorithm::AesCtr256 => {
            run(ctr::Ctr128BE::<aes::Aes256>::new_from_slices(key, vector).map_err(wrong)?, offset, bytes)
        }
        other => Err(Error::unsupported(format!("unsupported cipher {other}"))),
    }
}

fn run(mut cipher: impl StreamCipher + StreamCipherSeek, offset: u64, bytes: &mut [u8]) -> Result<()> {
    let exhausted = || Error::limit("an encrypted stream is too long for the counter of the cipher");
    cipher.try_seek(offset).map_err(|_| exhausted())?;
    cipher.try_apply_keystream(bytes).map_err(|_| exhausted())
}

/// A new local key, plain and wrapped by its master key.
#[derive(Clone)]
pub struct NewKey {
    /// The key itself.
    pub plain: Vec<u8>,
    /// The wrapped key, which is stored in the file.
    pub wrapped: Vec<u8>,
}

impl Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewKey")
    }
}

/// Creates local keys for a writer, in addition to unwrapping them for a reader.
pub trait KeyMaker: KeyProvider {
    /// Returns the newest version of a master key.
    ///
    /// # Errors
    ///
    /// An unknown key, or one that may not be used; any other error of the key store.
    fn current_key(&self, name: &str) -> Result<KeyName>;
    /// Creates a local key under a master key.
    ///
    /// # Errors
    ///
    /// As [`KeyMaker::current_key`].
    fn new_local_key(&self, key: &KeyName) -> Result<NewKey>;
    /// The kind of key store, to be named in the footer.
    fn kind(&self) -> KeyProviderKind {
        KeyProviderKind::Hadoop
    }
}

impl KeyMaker for MemoryKeys {
    fn current_key(&self, name: &str) -> Result<KeyName> {
        let known = self.keys.iter().map(|(key, _)| key).filter(|key| key.name == name);
        let newest = known.max_by_key(|key| key.version);
        newest.cloned().ok_or_else(|| Error::invalid(format!("unknown master key {name}")))
    }

    /// Generates a random wrapped key and unwraps it to get the plain key.
    fn new_local_key(&self, key: &KeyName) -> Result<NewKey> {
        let mut wrapped = vec![0; key_length(key.algorithm)?];
        getrandom::fill(&mut wrapped).map_err(|error| Error::io(format!("cannot get random bytes: {error}")))?;
        let plain = self.local_key(key, &wrapped)?;
        let plain = plain
            .ok_or_else(|| Error::invalid(format!("unknown master key {} of version {}", key.name, key.version)))?;
        Ok(NewKey { plain, wrapped })
    }
}

/// Creates local keys by calling a function, for example one that calls a key server.
///
/// The function takes the name of a master key, and returns its newest version and a new local key under it. It is
/// called once for each encrypted column. A local key of 16 bytes means AES-128, one of 32 bytes AES-256.
pub struct CallbackMaker<F> {
    make: F,
    /// Keys that were created to learn the version of the master key, and are not used yet.
    ready: Mutex<Vec<(KeyName, NewKey)>>,
}

impl<F> Debug for CallbackMaker<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallbackMaker")
    }
}

impl<F: Fn(&str) -> Result<(u32, NewKey)> + Send + Sync> CallbackMaker<F> {
    /// Creates keys by calling this function.
    pub fn new(make: F) -> Self {
        Self { make, ready: Mutex::default() }
    }

    fn ask(&self, name: &str) -> Result<(KeyName, NewKey)> {
        let (version, made) = (self.make)(name)?;
        let algorithm = match made.plain.len() {
            16 => EncryptionAlgorithm::AesCtr128,
            32 => EncryptionAlgorithm::AesCtr256,
            other => {
                return Err(Error::invalid(format!("a local key under {name} has {other} bytes: expected 16 or 32")));
            }
        };
        if made.wrapped.is_empty() {
            return Err(Error::invalid(format!("a local key under {name} has no wrapped form")));
        }
        Ok((KeyName { name: name.to_owned(), version, algorithm }, made))
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, Vec<(KeyName, NewKey)>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fn(&str) -> Result<(u32, NewKey)> + Send + Sync> KeyProvider for CallbackMaker<F> {
    /// Always returns `None`, because a writer unwraps no keys.
    fn local_key(&self, _: &KeyName, _: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

impl<F: Fn(&str) -> Result<(u32, NewKey)> + Send + Sync> KeyMaker for CallbackMaker<F> {
    fn current_key(&self, name: &str) -> Result<KeyName> {
        let (key, made) = self.ask(name)?;
        self.ready().push((key.clone(), made));
        Ok(key)
    }

    fn new_local_key(&self, key: &KeyName) -> Result<NewKey> {
        let mut ready = self.ready();
        if let Some(place) = ready.iter().position(|(known, _)| known == key) {
            return Ok(ready.swap_remove(place).1);
        }
        drop(ready);
        let (now, made) = self.ask(&key.name)?;
        // A file can have only one version and one cipher of each master key.
        if now != *key {
            return Err(Error::invalid(format!("master key {} changed while the file was being created", key.name)));
        }
        Ok(made)
    }
}
