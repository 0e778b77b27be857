//! Keys of encrypted files: as manifests refer to them, and from the service that has the keys of tables.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use icefield_format::encryption::{Blocks, KeyMetadata, keys};
use icefield_format::manifest::{DataFile, ManifestFile};
use icefield_format::metadata::EncryptedKey;

use crate::error::{Error, Result};

/// How long a decrypted key encryption key is kept, as in the Java library.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// A file as manifests and manifest lists refer to it.
#[derive(Clone, Copy)]
pub struct FileRef<'a> {
    /// Location.
    pub path: &'a str,
    /// Bytes of the stored file.
    pub size: u64,
    /// Its encryption key metadata; `None` if it is not encrypted.
    pub key: Option<&'a [u8]>,
}

impl<'a> FileRef<'a> {
    /// A file that is not encrypted.
    pub fn plain(path: &'a str, size: u64) -> Self {
        Self { path, size, key: None }
    }

    /// A manifest, by its entry in a manifest list.
    pub fn of_manifest(manifest: &'a ManifestFile) -> Self {
        let size = u64::try_from(manifest.manifest_length).unwrap_or(0);
        Self { path: &manifest.manifest_path, size, key: manifest.key_metadata.as_deref() }
    }

    /// A data or delete file, by its entry in a manifest.
    pub fn of_file(file: &'a DataFile) -> Self {
        let size = u64::try_from(file.file_size_in_bytes).unwrap_or(0);
        Self { path: &file.file_path, size, key: file.key_metadata.as_deref() }
    }

    /// Distinguishes the file, as it is decrypted by this key, in this process.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.key)
    }

    /// How the file is encrypted.
    ///
    /// # Errors
    /// Key metadata that cannot be read; the error names the file.
    pub fn key_metadata(&self) -> Result<Option<KeyMetadata>> {
        let Some(bytes) = self.key else { return Ok(None) };
        let read = KeyMetadata::from_bytes(bytes);
        read.map(Some).map_err(|error| Error::corrupt_file(self.path, error.to_string()))
    }
}

/// Does not print the key.
impl fmt::Debug for FileRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_encrypted = self.key.is_some();
        let mut shown = f.debug_struct("FileRef");
        shown.field("path", &self.path).field("size", &self.size).field("is_encrypted", &is_encrypted).finish()
    }
}

/// A hash that others cannot compute, and that no key can be found by.
pub(crate) fn fingerprint(value: &impl std::hash::Hash) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(value)
}

/// The key of the one file that a storage is for.
pub(crate) enum FileKey {
    /// The whole file is encrypted as a stream of blocks, and is being read.
    Stream(Blocks, Recent),
    /// The same, being written.
    NewStream(KeyMetadata),
    /// The file has the encryption of its format, Parquet: its stored bytes are read and written.
    OfFormat(KeyMetadata),
}

/// Prints neither the key nor what was decrypted.
impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream(..) => "FileKey::Stream",
            Self::NewStream(_) => "FileKey::NewStream",
            Self::OfFormat(_) => "FileKey::OfFormat",
        })
    }
}

/// The block that was decrypted last: readers often ask for neighbouring ranges.
pub(crate) type Recent = Mutex<Option<(u64, bytes::Bytes)>>;

impl FileKey {
    /// The key of a stream, and its decrypted length.
    pub(super) fn of_stream(file: &FileRef<'_>) -> Result<Option<(Self, u64)>> {
        let Some(mut metadata) = file.key_metadata()? else { return Ok(None) };
        // The manifest is as trustworthy as the key in it.
        metadata.file_length.get_or_insert(file.size);
        let blocks = Blocks::of(&metadata).map_err(|error| Error::corrupt_file(file.path, error.to_string()))?;
        let length = blocks.plain_length();
        Ok(Some((Self::Stream(blocks, Recent::default()), length)))
    }

    /// Distinguishes the file, as it is decrypted by this key, in caches of this process.
    pub(super) fn fingerprint(&self) -> u64 {
        match self {
            // Only footers are cached, and those are of Parquet.
            Self::Stream(..) | Self::NewStream(_) => u64::MAX,
            Self::OfFormat(metadata) => fingerprint(&(&metadata.key, &metadata.aad_prefix)),
        }
    }
}

/// A key management service: encrypts and decrypts keys by keys that never leave it (`encryption.kms-type`,
/// `encryption.kms-impl`).
pub trait KeyManagement: fmt::Debug + Send + Sync {
    /// Encrypts a key by one of the service.
    ///
    /// # Errors
    /// A service that cannot be reached, or refuses.
    fn wrap(&self, key: &[u8], wrapping_key_id: &str) -> Result<Vec<u8>>;

    /// Decrypts what [`KeyManagement::wrap`] returned.
    ///
    /// # Errors
    /// A service that cannot be reached, or refuses.
    fn unwrap(&self, wrapped: &[u8], wrapping_key_id: &str) -> Result<Vec<u8>>;
}

/// Decrypted keys and when they were decrypted, by their encrypted form.
type Unwrapped = HashMap<Vec<u8>, (Vec<u8>, Instant)>;

/// The keys of tables: a key management service, and the key encryption keys that it has decrypted.
pub struct Keyring {
    service: Arc<dyn KeyManagement>,
    id: u64,
    unwrapped: Mutex<Unwrapped>,
    /// Stored forms of key metadata that another process has decrypted, by the ids of the keys.
    given: HashMap<String, Vec<u8>>,
}

/// The service of a process that has only keys that were given to it.
#[derive(Debug)]
struct NoService;

impl KeyManagement for NoService {
    fn wrap(&self, _: &[u8], wrapping_key_id: &str) -> Result<Vec<u8>> {
        Err(only_given(wrapping_key_id))
    }

    fn unwrap(&self, _: &[u8], wrapping_key_id: &str) -> Result<Vec<u8>> {
        Err(only_given(wrapping_key_id))
    }
}

fn only_given(key_id: &str) -> Error {
    Error::unsupported(format!(
        "this process has the keys of some manifest lists, and not the key {key_id} of the table: load the table by a \
         catalog with the property encryption.kms-type or encryption.kms-impl"
    ))
}

/// Does not print keys.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Keyring {
    pub(super) fn new(service: Arc<dyn KeyManagement>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { service, id, unwrapped: Mutex::default(), given: HashMap::new() }
    }

    /// Keys that another process has decrypted, and no service.
    pub(super) fn given(given: HashMap<String, Vec<u8>>) -> Self {
        Self { given, ..Self::new(Arc::new(NoService)) }
    }

    /// Distinguishes the service in caches of this process.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The key metadata of a manifest list, by the id in its snapshot, or of another file that the metadata name.
    ///
    /// # Errors
    /// A key that the metadata lack, that the service does not decrypt, or that was changed.
    pub fn of_snapshot(&self, all: &[EncryptedKey], key_id: &str) -> Result<KeyMetadata> {
        if let Some(given) = self.given.get(key_id) {
            return Ok(KeyMetadata::from_bytes(given)?);
        }
        let (sealed, by) = keys::of_snapshot(all, key_id)?;
        Ok(keys::open(sealed, by, &self.unwrapped(by)?)?)
    }

    /// Encrypts the key metadata of a new manifest list: returns the keys that the table's metadata must have; the
    /// last one is that of the manifest list.
    ///
    /// # Errors
    /// A service that does not encrypt or decrypt a key.
    pub fn seal(
        &self,
        metadata: &KeyMetadata,
        all: &[EncryptedKey],
        table_key: &str,
        now_ms: i64,
    ) -> Result<Vec<EncryptedKey>> {
        if let Some(by) = keys::in_use(all, table_key, now_ms) {
            return Ok(vec![keys::seal(metadata, by, &self.unwrapped(by)?)?]);
        }
        let key = keys::new_key(metadata.key.len())?;
        let wrapped = self.service.wrap(&key, table_key)?;
        // Anyone who reads the metadata would have the key, or no one could decrypt it.
        if wrapped.is_empty() || wrapped.windows(key.len().max(1)).any(|part| part == key) {
            return Err(Error::invalid(format!(
                "encryption.key-id={table_key}: the key management service did not encrypt a key: nothing is written"
            )));
        }
        let by = keys::new_encryption_key(wrapped, table_key, now_ms)?;
        let sealed = keys::seal(metadata, &by, &key)?;
        self.keep(&by, key);
        Ok(vec![by, sealed])
    }

    /// A key encryption key, decrypted by the key of the table that encrypted it.
    fn unwrapped(&self, by: &EncryptedKey) -> Result<Vec<u8>> {
        let known = self.state().get(&by.encrypted_key_metadata).cloned();
        if let Some((key, _)) = known.filter(|(_, since)| since.elapsed() < KEPT) {
            return Ok(key);
        }
        let table_key = by.encrypted_by_id.as_deref().unwrap_or_default();
        // Not under the lock: it may be a request.
        let key = self.service.unwrap(&by.encrypted_key_metadata, table_key)?;
        self.keep(by, key.clone());
        Ok(key)
    }

    fn keep(&self, by: &EncryptedKey, key: Vec<u8>) {
        self.state().insert(by.encrypted_key_metadata.clone(), (key, Instant::now()));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Unwrapped> {
        self.unwrapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
