//! Access to files: every read and write of every table goes through [`Storage`].
//!
//! [`Storage::resolve`] resolves a path: it applies the relocation of moved tables, parses the path ([`Location`]), and
//! selects the store for its scheme. Paths in metadata are used verbatim; nothing is decoded or encoded ("File System
//! Operations": the specification requires only in-place writes, seekable reads and deletes).

mod connections;
mod encryption;
mod identity;
mod leftover;
mod location;
mod objects;
mod properties;
mod region;
mod renewal;
mod secret;
mod store;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::error::{Error, Result};
use renewal::Renewing;
use store::{encrypted, faults, local, memory, remote, traffic, unwritten};

pub(crate) use encryption::FileKey;
pub use encryption::{FileRef, KeyManagement, Keyring};
pub use identity::Identity;
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
