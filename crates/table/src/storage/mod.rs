//! One door to bytes: every path of every table goes through [`Storage`].
//!
//! A path is resolved in one place ([`Storage::resolve`]): it is relocated if the table was moved, parsed by the one
//! parser ([`Location`]), and handed to the store of its scheme. Paths of metadata are taken verbatim: nothing is decoded
//! or encoded on the way ("File System Operations": the specification asks only for in-place write, seekable reads and
//! deletes).

mod leftover;
mod location;
mod properties;
mod secret;
mod store;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, OnceLock, RwLock};

use bytes::Bytes;

use crate::error::{Error, Result};
use store::{faults, local, memory, remote, traffic, unwritten};

pub use leftover::Leftover;
pub(crate) use location::folders::{Folders, Way};
pub use location::place::{Place, Places};
pub use location::{Location, Scheme};
pub use secret::{HIDDEN, Secret, is_secret, redacted, shown};
pub use store::faults::{Fault, FaultPlan};
pub use store::traffic::Traffic;
pub use store::{Entry, Existing, OpenObject, Output, Pages, Store};

/// The door. Cheap to clone; clones share their stores.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    properties: BTreeMap<String, String>,
    /// Old and new prefix, the longest old one first.
    relocate: Vec<(String, String)>,
    stores: RwLock<HashMap<(Scheme, String), Arc<dyn Store>>>,
    faults: Option<Arc<FaultPlan>>,
    /// Whether nothing is written.
    unwritten: bool,
    /// What counts reads and writes.
    traffic: Option<Arc<Traffic>>,
    /// Identifies the properties, within this process.
    rights: u64,
}

/// What identifies an immutable object without reading it: where it lies, with which properties it was reached, and
/// of a local file its size and when it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    scheme: Scheme,
    authority: String,
    key: String,
    rights: u64,
    local: Option<(u64, std::time::SystemTime)>,
}

impl Identity {
    /// Whether another object in its place would have another identity: of a local file, whether it was written long enough
    /// ago for the clock of its file system.
    pub fn is_settled(&self) -> bool {
        const TICK: std::time::Duration = std::time::Duration::from_secs(2);
        self.local.as_ref().is_none_or(|(_, written)| written.elapsed().is_ok_and(|age| age > TICK))
    }
}

impl Storage {
    /// A door with properties named as PyIceberg names them (`s3.endpoint`, `gcs.oauth2.token`, …). Others, such as those of
    /// the catalog, are dropped: whoever gets the storage does not get them.
    pub fn new(mut properties: BTreeMap<String, String>) -> Self {
        properties.retain(|name, _| properties::is_read(name));
        Self::build(properties, Vec::new(), faults::of_environment())
    }

    /// A door that sends every path below an old prefix to a new one: for tables that were moved or copied.
    ///
    /// A prefix matches at a path separator only; of several the longest wins. `/` is that of all local paths without a
    /// scheme; an empty one is refused.
    pub fn relocated(&self, mapping: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let trim = |text: String| if text.len() > 1 { text.trim_end_matches('/').to_owned() } else { text };
        let mut relocate: Vec<_> = mapping.into_iter().map(|(old, new)| (trim(old), trim(new))).collect();
        if let Some((_, new)) = relocate.iter().find(|(old, _)| old.is_empty()) {
            return Err(Error::invalid(format!("relocation to {new:?}: the old prefix is empty")));
        }
        relocate.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        Ok(Self::build(self.0.properties.clone(), relocate, self.0.faults.clone()))
    }

    /// A door whose every step is counted and may fail, for tests of what a crash leaves behind.
    #[must_use]
    pub fn with_faults(&self, faults: Arc<FaultPlan>) -> Self {
        Self::build(self.0.properties.clone(), self.0.relocate.clone(), Some(faults))
    }

    /// A door through which everything is read, and what is written goes nowhere: for what a change would write.
    #[must_use]
    pub fn unwritten(&self) -> Self {
        self.changed(true, self.0.traffic.clone())
    }

    /// A door through which all reads and writes are counted.
    #[must_use]
    pub fn counted(&self, traffic: Arc<Traffic>) -> Self {
        self.changed(self.0.unwritten, Some(traffic))
    }

    fn changed(&self, unwritten: bool, traffic: Option<Arc<Traffic>>) -> Self {
        let Inner { properties, relocate, faults, rights, .. } = &*self.0;
        let (properties, relocate, faults) = (properties.clone(), relocate.clone(), faults.clone());
        let (stores, rights) = (RwLock::default(), *rights);
        Self(Arc::new(Inner { properties, relocate, stores, faults, unwritten, traffic, rights }))
    }

    fn build(
        properties: BTreeMap<String, String>,
        relocate: Vec<(String, String)>,
        faults: Option<Arc<FaultPlan>>,
    ) -> Self {
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        let rights = KEYS.get_or_init(RandomState::new).hash_one(&properties);
        let stores = RwLock::default();
        Self(Arc::new(Inner { properties, relocate, stores, faults, unwritten: false, traffic: None, rights }))
    }

    /// Those properties it was opened with that it reads; secrets among them are the caller's to guard (see [`is_secret`]).
    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.0.properties
    }

    /// The relocation in force, the longest old prefix first.
    pub fn relocation(&self) -> &[(String, String)] {
        &self.0.relocate
    }

    /// Where a path of metadata really lies. The only function that turns a path into a place.
    pub fn resolve(&self, path: &str) -> Result<Location> {
        // The root is its own separator.
        let stem = |prefix: &'_ String| if prefix == "/" { 0 } else { prefix.len() };
        for (old, new) in &self.0.relocate {
            let (old, new) = (old.get(..stem(old)).unwrap_or(old), new.get(..stem(new)).unwrap_or(new));
            if let Some(rest) = path.strip_prefix(old)
                && (rest.starts_with('/') || (rest.is_empty() && !old.is_empty()))
            {
                return Location::parse(&format!("{new}{rest}"));
            }
        }
        Location::parse(path)
    }

    /// The whole object.
    pub fn read(&self, path: &str) -> Result<Bytes> {
        self.read_at_most(path, usize::MAX)
    }

    /// The whole object, which is refused before it is read where it is longer than `most`.
    pub fn read_at_most(&self, path: &str, most: usize) -> Result<Bytes> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.read(&at, u64::try_from(most).unwrap_or(u64::MAX)))
    }

    /// The whole object, which has the length that the table's metadata name.
    pub fn read_listed(&self, path: &str, length: i64) -> Result<Bytes> {
        let wrong =
            |found: u64| Error::corrupt_file(path, format!("has {found} bytes where its manifest list says {length}"));
        let most = usize::try_from(length)
            .map_err(|_| Error::corrupt_file(path, format!("its manifest list says that it has {length} bytes")))?;
        match self.read_at_most(path, most) {
            Ok(bytes) if bytes.len() == most => Ok(bytes),
            Ok(bytes) => Err(wrong(bytes.len() as u64)),
            Err(Error::TooLong { length, .. }) => Err(wrong(length)),
            Err(error) => Err(error),
        }
    }

    /// The identity of an object that is never changed in place; none where that is unknown (`memory:`), or where every
    /// step is counted.
    pub fn identity(&self, path: &str) -> Result<Option<Identity>> {
        let at = self.resolve(path)?;
        if self.0.faults.is_some() || at.scheme == Scheme::Memory || self.permit(&at).is_err() {
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
        Ok(Some(Identity { scheme: at.scheme, authority: at.authority, key: at.key, rights: self.0.rights, local }))
    }

    /// Whether reading an object waits for the network.
    pub fn is_remote(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|at| !matches!(at.scheme, Scheme::File | Scheme::Memory))
    }

    /// Size in bytes.
    pub fn size(&self, path: &str) -> Result<u64> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.size(&at))
    }

    /// Whether there is an object.
    pub fn exists(&self, path: &str) -> Result<bool> {
        match self.size(path) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// One range of bytes.
    pub fn range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let mut found = self.ranges(path, std::slice::from_ref(&range))?;
        found.pop().ok_or_else(|| Error::Internal(format!("{path}: no bytes for a range")))
    }

    /// Several ranges of bytes; neighbours are fetched together where that saves requests.
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

    /// The object, open for reading range by range; `None` where every range is a request.
    pub fn open(&self, path: &str) -> Result<Option<Arc<dyn OpenObject>>> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.open(&at))
    }

    /// Writes an object in one go, durably.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>, existing: Existing) -> Result<()> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.put(&at, bytes.into(), existing))
    }

    /// Starts an object that is written piece by piece.
    pub fn output(&self, path: &str) -> Result<Box<dyn Output>> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.output(&at))
    }

    /// Deletes an object; one that is not there is no error.
    pub fn delete(&self, path: &str) -> Result<()> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.delete(&at))
    }

    /// Deletes objects, side by side, in as few requests as their store takes: the errors, in the order of the paths. One
    /// that is not there is no error, and an error keeps no other object from being deleted.
    pub fn delete_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Error> {
        let mut failed: Vec<(usize, Error)> = Vec::new();
        let mut of_stores: HashMap<(Scheme, String), (Vec<usize>, Vec<Location>)> = HashMap::new();
        for (number, path) in paths.iter().enumerate() {
            match self.resolve(path.as_ref()) {
                Ok(at) if self.permit(&at).is_err() => {
                    failed.extend(self.permit(&at).err().map(|error| (number, error)))
                }
                Ok(at) => {
                    let (numbers, all) = of_stores.entry((at.scheme, at.authority.clone())).or_default();
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
                // The next one says it anew: an error is of one path.
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

    /// Everything below a folder, sorted by path: all pages of [`Storage::pages`].
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for page in self.pages(prefix)? {
            entries.append(&mut page?);
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Everything below a folder, page by page, in the order of its store; the paths begin as `prefix` does, whatever it was
    /// relocated to. A listing that fails ends with its error.
    pub fn pages(&self, prefix: &str) -> Result<Pages> {
        let prefix = prefix.trim_end_matches('/').to_owned();
        let at = self.resolve(&format!("{prefix}/"))?;
        let pages = named(&prefix, self.store(&at)?.pages(&at))?;
        Ok(Box::new(pages.map(move |page| {
            let mut page = named(&prefix, page)?;
            for entry in &mut page {
                if let Some(rest) = entry.path.strip_prefix(&at.key) {
                    entry.path = format!("{prefix}/{rest}");
                }
            }
            Ok(page)
        })))
    }

    fn store(&self, at: &Location) -> Result<Arc<dyn Store>> {
        self.permit(at)?;
        let key = (at.scheme, at.authority.clone());
        let known = self.0.stores.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(&key).cloned();
        if let Some(store) = known {
            return Ok(store);
        }
        let mut store: Arc<dyn Store> = match at.scheme {
            Scheme::File => Arc::new(local::Local),
            Scheme::Memory => Arc::new(memory::Memory),
            _ => Arc::new(remote::Remote::open(at, &self.0.properties)?),
        };
        if let Some(plan) = &self.0.faults {
            store = faults::wrap(store, plan.clone());
        }
        if self.0.unwritten {
            store = unwritten::wrap(store);
        }
        if let Some(traffic) = &self.0.traffic {
            store = traffic::wrap(store, traffic.clone());
        }
        let mut stores = self.0.stores.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(stores.entry(key).or_insert(store).clone())
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.properties.iter().map(|(name, value)| (name.as_str(), shown(name, value)));
        f.debug_struct("Storage")
            .field("properties", &shown.collect::<BTreeMap<_, _>>())
            .field("relocate", &self.0.relocate)
            .finish_non_exhaustive()
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self::new(BTreeMap::new())
    }
}

/// The same result, its error naming the path that the caller used and not the one it was resolved to.
fn named<T>(path: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| renamed(path, error))
}

/// The error of an object that is longer than whoever reads it takes.
fn renamed(path: &str, error: Error) -> Error {
    match error {
        Error::TooLong { length, most, .. } => Error::TooLong { path: path.to_owned(), length, most },
        Error::NotFound { .. } => Error::NotFound { path: path.to_owned() },
        Error::AlreadyExists { .. } => Error::AlreadyExists { path: path.to_owned() },
        Error::Storage { operation, message, .. } => Error::Storage { path: path.to_owned(), operation, message },
        other => other,
    }
}
