//! Access to files: every read and write of every table goes through [`Storage`].
//!
//! [`Storage::resolve`] resolves a path: it applies the relocation of moved tables, parses the path ([`Location`]), and
//! selects the store for its scheme. Paths in metadata are used verbatim; nothing is decoded or encoded ("File System
//! Operations": the specification requires only in-place writes, seekable reads and deletes).

mod connections;
mod encryption;
mod leftover;
mod location;
mod properties;
mod region;
mod renewal;
mod secret;
mod store;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use icefield_format::manifest::ManifestFile;

use crate::error::{Error, Result};
use renewal::Renewing;
use store::{encrypted, faults, local, memory, remote, traffic, unwritten};

pub(crate) use encryption::FileKey;
pub use encryption::{FileRef, KeyManagement, Keyring};
pub use leftover::Leftover;
pub(crate) use location::folders::{Folders, Way};
pub(crate) use location::place::Parts;
pub use location::place::{Place, Places};
pub use location::{Location, Scheme};
pub use renewal::{Renewal, Renewed, SignRequest, Signed};
pub use secret::{HIDDEN, Secret, is_secret, redacted, shown};
pub use store::faults::{Fault, FaultPlan};
pub use store::traffic::Traffic;
pub use store::{Entry, Existing, OpenObject, Output, Pages, Store};

/// Access to all stores. Clones are cheap and share the stores.
#[derive(Clone)]
pub struct Storage {
    inner: Arc<Inner>,
    /// The keys of encrypted tables.
    keyring: Option<Arc<Keyring>>,
    /// The key of the one encrypted file that is read or written.
    file: Option<Arc<FileKey>>,
}

struct Inner {
    /// The properties; those of `renewing`, if there is one, replace them.
    properties: Arc<BTreeMap<String, String>>,
    /// Credentials that expire.
    renewing: Option<Arc<Renewing>>,
    /// Old and new prefixes, longest old prefix first.
    relocate: Vec<(String, String)>,
    /// Storages with other credentials, by the prefix of what they are for, longest prefix first.
    prefixed: Arc<Vec<(String, Storage)>>,
    /// The stores of this storage itself, and of each of `prefixed` by its number; shared by storages that differ in
    /// what they do around a request only.
    stores: Arc<RwLock<HashMap<Option<usize>, Opened>>>,
    faults: Option<Arc<FaultPlan>>,
    /// Whether writes are discarded.
    unwritten: bool,
    /// Counters of reads and writes.
    traffic: Option<Arc<Traffic>>,
    /// Identifies the properties within this process.
    rights: u64,
}

/// The stores that a process opened with some credentials, by scheme and authority.
#[derive(Default)]
struct Opened {
    process: u32,
    generation: u64,
    stores: HashMap<(Scheme, String), Arc<dyn Store>>,
}

impl Opened {
    fn is_of(&self, process: u32, generation: u64) -> bool {
        self.process == process && self.generation == generation
    }
}

/// Identifies an immutable object without reading it: by its location, the properties used to access it, and the size
/// and modification time of a local file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    scheme: Scheme,
    authority: String,
    key: String,
    rights: u64,
    /// What decrypts the object, so that nothing decrypted is found without the key.
    keys: (u64, u64),
    local: Option<(u64, std::time::SystemTime)>,
}

impl Identity {
    /// Whether replacing the object would change its identity. For a local file this requires that it was written long
    /// enough ago for the time resolution of its file system.
    pub fn is_settled(&self) -> bool {
        const TICK: std::time::Duration = std::time::Duration::from_secs(2);
        self.local.as_ref().is_none_or(|(_, written)| written.elapsed().is_ok_and(|age| age > TICK))
    }
}

impl Storage {
    /// A storage with properties named as in PyIceberg (`s3.endpoint`, `gcs.oauth2.token`, …). Other properties, such
    /// as those of the catalog, are dropped, so that they do not leak with the storage.
    pub fn new(properties: BTreeMap<String, String>) -> Self {
        Self::build(properties::kept(properties), None, Vec::new(), faults::of_environment())
    }

    /// A storage whose credentials expire: `source` renews them before a request when they are due.
    pub fn renewed_by(source: Arc<dyn Renewal>, mut first: Renewed) -> Self {
        first.properties = properties::kept(first.properties);
        let properties = first.properties.clone();
        let renewing = Arc::new(Renewing::new(source, first));
        Self::build(properties, Some(renewing), Vec::new(), faults::of_environment())
    }

    /// A storage that replaces prefixes of paths: for tables that were moved or copied.
    ///
    /// A prefix matches only at a path separator; the longest match wins. `/` matches all local paths without a scheme;
    /// an empty prefix is rejected.
    pub fn relocated(&self, mapping: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let trim = |text: String| if text.len() > 1 { text.trim_end_matches('/').to_owned() } else { text };
        let mut relocate: Vec<_> = mapping.into_iter().map(|(old, new)| (trim(old), trim(new))).collect();
        if let Some((_, new)) = relocate.iter().find(|(old, _)| old.is_empty()) {
            return Err(Error::invalid(format!("relocation to {new:?}: the old prefix is empty")));
        }
        relocate.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        let inner = self.rebuilt(relocate, self.inner.faults.clone());
        Ok(Self { inner, ..self.clone() })
    }

    /// A storage that counts every step and may fail at one: for tests of crashes.
    #[must_use]
    pub fn with_faults(&self, faults: Arc<FaultPlan>) -> Self {
        let inner = self.rebuilt(self.inner.relocate.clone(), Some(faults));
        Self { inner, ..self.clone() }
    }

    /// A storage that can also read and write encrypted tables: with the service that has their keys.
    #[must_use]
    pub fn with_keys(&self, service: Arc<dyn KeyManagement>) -> Self {
        Self { keyring: Some(Arc::new(Keyring::new(service))), ..self.clone() }
    }

    /// A storage that can read manifest lists by keys that another process has decrypted: key metadata by the ids in
    /// the snapshots.
    #[must_use]
    pub fn with_list_keys(&self, given: HashMap<String, Vec<u8>>) -> Self {
        Self { keyring: Some(Arc::new(Keyring::given(given))), ..self.clone() }
    }

    /// The keys of encrypted tables.
    pub fn keyring(&self) -> Option<&Arc<Keyring>> {
        self.keyring.as_ref()
    }

    /// A storage for one encrypted file: all reads and writes are of its decrypted bytes.
    #[must_use]
    pub(crate) fn for_file(&self, key: FileKey) -> Self {
        Self { file: Some(Arc::new(key)), ..self.clone() }
    }

    /// The key of the one file that this storage is for.
    pub(crate) fn file_key(&self) -> Option<&FileKey> {
        self.file.as_deref()
    }

    /// A storage for a file that is encrypted as a stream, if it has a key, and the length of the decrypted file.
    ///
    /// # Errors
    /// Key metadata that cannot be read; the error names the file.
    pub fn decrypting(&self, file: &FileRef<'_>) -> Result<(Self, u64)> {
        match FileKey::of_stream(file)? {
            None => Ok((self.clone(), file.size)),
            Some((key, length)) => Ok((self.for_file(key), length)),
        }
    }

    /// A storage that discards all writes: to find out what a change would write.
    #[must_use]
    pub fn unwritten(&self) -> Self {
        self.changed(true, self.inner.traffic.clone())
    }

    /// A storage that counts reads and writes.
    #[must_use]
    pub fn counted(&self, traffic: Arc<Traffic>) -> Self {
        self.changed(self.inner.unwritten, Some(traffic))
    }

    /// A storage that reaches locations with these prefixes by the credentials of other storages; the longest prefix
    /// wins. A prefix is text: `s3://bucket/t` is also one of `s3://bucket/t2`, and `s3` is one of all of S3.
    #[must_use]
    pub fn with_prefixes(&self, given: impl IntoIterator<Item = (String, Self)>) -> Self {
        let plain = |prefix: String| match prefix.split_once("://") {
            Some(("s3a" | "s3n", rest)) => format!("s3://{rest}"),
            Some(("gcs", rest)) => format!("gs://{rest}"),
            Some(("abfss" | "wasb" | "wasbs", rest)) => format!("abfs://{rest}"),
            Some(_) => prefix,
            None => format!("{prefix}:"),
        };
        let mut prefixed: Vec<_> = given.into_iter().map(|(prefix, storage)| (plain(prefix), storage)).collect();
        prefixed.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let rights = prefixed.iter().map(|(prefix, storage)| (prefix, storage.inner.rights)).collect::<Vec<_>>();
        let rights = keys_of_process().hash_one((self.inner.rights, rights));
        let inner = Inner { prefixed: Arc::new(prefixed), rights, stores: Arc::default(), ..self.copied() };
        Self { inner: Arc::new(inner), ..self.clone() }
    }

    /// Storages with other credentials, by their prefixes, longest prefix first.
    pub fn prefixes(&self) -> &[(String, Self)] {
        &self.inner.prefixed
    }

    fn changed(&self, unwritten: bool, traffic: Option<Arc<Traffic>>) -> Self {
        Self { inner: Arc::new(Inner { unwritten, traffic, ..self.copied() }), ..self.clone() }
    }

    fn rebuilt(&self, relocate: Vec<(String, String)>, faults: Option<Arc<FaultPlan>>) -> Arc<Inner> {
        Arc::new(Inner { relocate, faults, unwritten: false, traffic: None, ..self.copied() })
    }

    /// The same, with the same open stores.
    fn copied(&self) -> Inner {
        let Inner { properties, renewing, relocate, prefixed, stores, faults, unwritten, traffic, rights } =
            &*self.inner;
        Inner {
            properties: properties.clone(),
            renewing: renewing.clone(),
            relocate: relocate.clone(),
            prefixed: prefixed.clone(),
            stores: stores.clone(),
            faults: faults.clone(),
            unwritten: *unwritten,
            traffic: traffic.clone(),
            rights: *rights,
        }
    }

    fn build(
        properties: BTreeMap<String, String>,
        renewing: Option<Arc<Renewing>>,
        relocate: Vec<(String, String)>,
        faults: Option<Arc<FaultPlan>>,
    ) -> Self {
        let rights = keys_of_process().hash_one(&properties);
        let (properties, stores, prefixed) = (Arc::new(properties), Arc::default(), Arc::default());
        let (unwritten, traffic) = (false, None);
        let inner = Inner { properties, renewing, relocate, prefixed, stores, faults, unwritten, traffic, rights };
        Self { inner: Arc::new(inner), keyring: None, file: None }
    }

    /// The properties that the storage uses now. Some may be secrets, which the caller must protect (see
    /// [`is_secret`]).
    pub fn properties(&self) -> Arc<BTreeMap<String, String>> {
        match &self.inner.renewing {
            Some(renewing) => renewing.current().properties,
            None => self.inner.properties.clone(),
        }
    }

    /// A property that no renewal changes.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.inner.properties.get(name).map(String::as_str)
    }

    /// What renews the credentials; `None` if they do not expire.
    pub fn renewal(&self) -> Option<&Arc<dyn Renewal>> {
        self.inner.renewing.as_deref().map(Renewing::source)
    }

    /// The prefix replacements, longest old prefix first.
    pub fn relocation(&self) -> &[(String, String)] {
        &self.inner.relocate
    }

    /// Resolves a path in metadata to its actual location. No other function does this.
    pub fn resolve(&self, path: &str) -> Result<Location> {
        // `/` is itself a separator, so the stem is empty.
        let stem = |prefix: &'_ String| if prefix == "/" { 0 } else { prefix.len() };
        for (old, new) in &self.inner.relocate {
            let (old, new) = (old.get(..stem(old)).unwrap_or(old), new.get(..stem(new)).unwrap_or(new));
            if let Some(rest) = path.strip_prefix(old)
                && (rest.starts_with('/') || (rest.is_empty() && !old.is_empty()))
            {
                return Location::parse(&format!("{new}{rest}"));
            }
        }
        Location::parse(path)
    }

    /// Reads a whole object.
    pub fn read(&self, path: &str) -> Result<Bytes> {
        self.read_at_most(path, usize::MAX)
    }

    /// Reads a whole object; one longer than `most` is rejected before it is read.
    pub fn read_at_most(&self, path: &str, most: usize) -> Result<Bytes> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.read(&at, u64::try_from(most).unwrap_or(u64::MAX)))
    }

    /// Reads a whole manifest, whose length must be the one in the manifest list.
    pub fn read_manifest(&self, manifest: &ManifestFile) -> Result<Bytes> {
        let (path, length) = (&*manifest.manifest_path, manifest.manifest_length);
        let wrong =
            |found: u64| Error::corrupt_file(path, format!("has {found} bytes where its manifest list says {length}"));
        let most = usize::try_from(length)
            .map_err(|_| Error::corrupt_file(path, format!("its manifest list says that it has {length} bytes")))?;
        let file = FileRef { path, size: most as u64, key: manifest.key_metadata.as_deref() };
        let (storage, plain) = self.decrypting(&file)?;
        if file.key.is_some() {
            return storage.read(path);
        }
        match self.read_at_most(path, most) {
            Ok(bytes) if bytes.len() as u64 == plain => Ok(bytes),
            Ok(bytes) => Err(wrong(bytes.len() as u64)),
            Err(Error::TooLong { length, .. }) => Err(wrong(length)),
            Err(error) => Err(error),
        }
    }

    /// The identity of an object that is never changed in place. `None` if it is unknown (`memory:`), or if every step
    /// is counted.
    pub fn identity(&self, path: &str) -> Result<Option<Identity>> {
        let at = self.resolve(path)?;
        if self.inner.faults.is_some() || at.scheme == Scheme::Memory || self.permit(&at).is_err() {
            return Ok(None);
        }
        let written = |about: &std::fs::Metadata| about.modified().ok().map(|time| (about.len(), time));
        let local = match at.scheme {
            Scheme::File => match std::fs::metadata(&at.key).ok().as_ref().and_then(written) {
                None => return Ok(None),
                known => known,
            },
            _ => None,
        };
        let keys = (
            self.keyring.as_ref().map_or(0, |keyring| keyring.id()),
            self.file.as_ref().map_or(0, |key| key.fingerprint()),
        );
        let rights = self.inner.rights;
        Ok(Some(Identity { scheme: at.scheme, authority: at.authority, key: at.key, rights, keys, local }))
    }

    /// Whether reads wait for the network.
    pub fn is_remote(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|at| !matches!(at.scheme, Scheme::File | Scheme::Memory))
    }

    /// The size of an object in bytes.
    pub fn size(&self, path: &str) -> Result<u64> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.size(&at))
    }

    /// Whether a path is a link of the file system, whatever it leads to.
    pub(crate) fn is_link(&self, path: &str) -> bool {
        let at = self.resolve(path).ok().filter(|at| at.scheme == Scheme::File);
        at.is_some_and(|at| std::fs::symlink_metadata(&at.key).is_ok_and(|found| found.is_symlink()))
    }

    /// The kind of a local path that is not a regular file, such as a directory; `None` if it does not exist.
    pub(crate) fn other_than_file(&self, path: &str) -> Option<&'static str> {
        let at = self.resolve(path).ok().filter(|at| at.scheme == Scheme::File)?;
        local::other_than_file(at.key.as_ref())
    }

    /// Whether an object exists.
    pub fn exists(&self, path: &str) -> Result<bool> {
        let found = self.size(path).map(|_| true);
        found.or_else(|error| matches!(error, Error::NotFound { .. }).then_some(false).ok_or(error))
    }

    /// Reads one range of bytes.
    pub fn range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let mut found = self.ranges(path, std::slice::from_ref(&range))?;
        found.pop().ok_or_else(|| Error::Internal(format!("{path}: no bytes for a range")))
    }

    /// Reads several ranges of bytes; adjacent ones are fetched together where that saves requests.
    pub fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let at = self.resolve(path)?;
        let found = named(path, self.store(&at)?.ranges(&at, ranges))?;
        let whole = found.len() == ranges.len()
            && found.iter().zip(ranges).all(|(bytes, range)| bytes.len() as u64 == range.end - range.start);
        if !whole {
            return Err(Error::corrupt_file(path, "shorter than its metadata says"));
        }
        Ok(found)
    }

    /// Opens an object for reading by ranges; `None` if every range would be a request of its own.
    pub fn open(&self, path: &str) -> Result<Option<Arc<dyn OpenObject>>> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.open(&at))
    }

    /// Writes an object durably in one call.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>, existing: Existing) -> Result<()> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.put(&at, bytes.into(), existing))
    }

    /// Starts writing an object in pieces.
    pub fn output(&self, path: &str) -> Result<Box<dyn Output>> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.output(&at))
    }

    /// Deletes an object; a missing one is not an error.
    pub fn delete(&self, path: &str) -> Result<()> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.delete(&at))
    }

    /// Deletes objects concurrently, with as few requests as their store allows; returns the errors in the order of the
    /// paths. A missing object is not an error, and an error does not stop the other deletions.
    pub fn delete_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Error> {
        let mut failed: Vec<(usize, Error)> = Vec::new();
        let mut of_stores: HashMap<_, (Vec<usize>, Vec<Location>)> = HashMap::new();
        for (number, path) in paths.iter().enumerate() {
            match self.resolve(path.as_ref()) {
                Ok(at) if self.permit(&at).is_err() => {
                    failed.extend(self.permit(&at).err().map(|error| (number, error)))
                }
                Ok(at) => {
                    let (numbers, all) =
                        of_stores.entry((self.scope(&at), at.scheme, at.authority.clone())).or_default();
                    numbers.push(number);
                    all.push(at);
                }
                Err(error) => failed.push((number, error)),
            }
        }
        for (numbers, all) in of_stores.into_values() {
            let Some(first) = all.first() else { continue };
            let done = match self.store(first) {
                Ok(store) => store.delete_all(&all),
                // Opening the store failed. It is tried again for each path, so that each gets an error of its own.
                Err(_) => all.iter().map(|at| self.store(at).map(drop)).collect(),
            };
            let outcomes = numbers.into_iter().zip(done);
            failed.extend(outcomes.filter_map(|(number, done)| Some((number, done.err()?))));
        }
        failed.sort_by_key(|(number, _)| *number);
        let name = |(number, error): (usize, Error)| match paths.get(number) {
            Some(path) => renamed(path.as_ref(), error),
            None => error,
        };
        failed.into_iter().map(name).collect()
    }

    /// Lists all objects below a folder, sorted by path: all pages of [`Storage::pages`].
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for page in self.pages(prefix)? {
            entries.append(&mut page?);
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Lists all objects below a folder in pages, in the order of the store. The returned paths begin with `prefix`,
    /// even if it was relocated. A failed listing ends with its error.
    pub fn pages(&self, prefix: &str) -> Result<Pages> {
        let prefix = prefix.trim_end_matches('/').to_owned();
        let at = self.resolve(&format!("{prefix}/"))?;
        let pages = named(&prefix, self.store(&at)?.pages(&at))?;
        Ok(Box::new(pages.map(move |page| {
            let mut page = named(&prefix, page)?;
            // What does not begin with the prefix is a marker object of the folder itself.
            page.retain_mut(|entry| {
                let path = entry.path.strip_prefix(&at.key).map(|rest| format!("{prefix}/{rest}"));
                path.map(|path| entry.path = path).is_some()
            });
            Ok(page)
        })))
    }

    /// The number of the storage whose credentials a location needs; `None` for this one.
    fn scope(&self, at: &Location) -> Option<usize> {
        if self.inner.prefixed.is_empty() {
            return None;
        }
        let location = at.to_string();
        self.inner.prefixed.iter().position(|(prefix, _)| location.starts_with(prefix))
    }

    /// What has the credentials of a scope.
    fn credentials(&self, scope: Option<usize>) -> &Inner {
        scope.and_then(|scope| self.inner.prefixed.get(scope)).map_or(&*self.inner, |(_, storage)| &*storage.inner)
    }

    /// The store of a location; for an encrypted file, one that decrypts.
    fn store(&self, at: &Location) -> Result<Arc<dyn Store>> {
        let mut store = self.stored(at)?;
        if let Some(plan) = &self.inner.faults {
            store = faults::wrap(store, plan.clone());
        }
        if self.inner.unwritten {
            store = unwritten::wrap(store);
        }
        if let Some(traffic) = &self.inner.traffic {
            store = traffic::wrap(store, traffic.clone());
        }
        Ok(match &self.file {
            Some(key) => encrypted::wrap(store, key.clone()),
            None => store,
        })
    }

    fn stored(&self, at: &Location) -> Result<Arc<dyn Store>> {
        self.permit(at)?;
        let key = (at.scheme, at.authority.clone());
        let scope = self.scope(at);
        let Inner { properties, renewing, .. } = self.credentials(scope);
        let renewed = match at.scheme {
            Scheme::File | Scheme::Memory => None,
            _ => renewing.as_ref().map(|renewing| renewing.current()),
        };
        let (process, generation) = (std::process::id(), renewed.as_ref().map_or(0, |current| current.generation));
        let properties = renewed.as_ref().map_or(properties, |current| &current.properties);
        {
            let stores = self.inner.stores.read().unwrap_or_else(PoisonError::into_inner);
            let opened = stores.get(&scope).filter(|opened| opened.is_of(process, generation));
            if let Some(store) = opened.and_then(|opened| opened.stores.get(&key)) {
                return Ok(store.clone());
            }
        }
        let store: Arc<dyn Store> = match at.scheme {
            Scheme::File => Arc::new(local::Local),
            Scheme::Memory => Arc::new(memory::Memory),
            _ => Arc::new(remote::Remote::open(at, properties, renewing.as_ref())?),
        };
        let mut stores = self.inner.stores.write().unwrap_or_else(PoisonError::into_inner);
        let opened = stores.entry(scope).or_default();
        if opened.process != process || opened.generation < generation {
            let before = std::mem::replace(opened, Opened { process, generation, stores: HashMap::new() });
            if before.process != process {
                // To close the connections of the parent would also take them from its event loop.
                std::mem::forget(before);
            }
        }
        Ok(match opened.is_of(process, generation) {
            true => opened.stores.entry(key).or_insert(store).clone(),
            // Another thread has renewed the credentials meanwhile.
            false => store,
        })
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.inner.properties.iter().map(|(name, value)| (name.as_str(), shown(name, value)));
        f.debug_struct("Storage")
            .field("properties", &shown.collect::<BTreeMap<_, _>>())
            .field("relocate", &self.inner.relocate)
            .field("prefixes", &self.inner.prefixed.iter().map(|(prefix, _)| prefix).collect::<Vec<_>>())
            .field("has_keys", &self.keyring.is_some())
            .finish_non_exhaustive()
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self::new(BTreeMap::new())
    }
}

/// Random keys of hashes, the same in the whole process.
fn keys_of_process() -> &'static RandomState {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new)
}

/// Replaces the resolved path in an error by the one that the caller used.
fn named<T>(path: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| renamed(path, error))
}

/// The error with another path.
fn renamed(path: &str, error: Error) -> Error {
    match error {
        Error::TooLong { length, most, .. } => Error::TooLong { path: path.to_owned(), length, most },
        Error::NotFound { .. } => Error::NotFound { path: path.to_owned() },
        Error::AlreadyExists { .. } => Error::AlreadyExists { path: path.to_owned() },
        Error::Storage { operation, message, .. } => Error::Storage { path: path.to_owned(), operation, message },
        Error::Format(error) => Error::Format(error.in_file(path)),
        other => other,
    }
}
