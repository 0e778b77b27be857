//! The process-wide cache of decoded manifests and manifest lists, limited in bytes.
//!
//! Both are immutable files. The key of an entry consists of the location and length of the file; the properties of the
//! storage that read it, so that access rights are respected; the modification time of local files; and the values
//! inherited from the manifest list. Failures are not cached. A plan that alone exceeds the cache keeps its first part
//! and does not evict its own manifests. Column data that manifests have in common is held once (`patterns.rs`).

mod patterns;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use icefield_format::manifest::{Entries, ManifestFile, Metrics};

use self::patterns::{Patterns, SharedBuffers};
use crate::error::Result;
use crate::runtime::{self, Started};
use crate::storage::{FileRef, Identity, Storage};

/// Environment variable with the maximum size of the cache in bytes; 0 disables it.
pub const BYTES_VARIABLE: &str = "ICEFIELD_MANIFEST_CACHE_BYTES";
/// The default maximum size in bytes.
pub const DEFAULT_BYTES: usize = 256 << 20;
/// Storage property of the Java library: `false` disables the cache for reads by this storage.
pub const ENABLED_PROPERTY: &str = "io.manifest.cache-enabled";

static CACHE: AtomicPtr<Started<ManifestCache>> = AtomicPtr::new(std::ptr::null_mut());

/// The key of a cached value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    identity: Identity,
    length: i64,
    /// Of the encryption key of the file: a table that names the file must have that key.
    encryption: u64,
    /// Snapshot id, sequence number and first row id inherited from the manifest list.
    inherited: Option<(i64, i64, Option<i64>)>,
}

/// A cached value.
#[derive(Debug, Clone)]
pub enum Cached {
    /// A manifest list.
    List(Arc<Vec<ManifestFile>>),
    /// The live entries of a manifest.
    Manifest(Decoded),
}

/// The live entries of a manifest, with the metrics that plans have needed so far.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The entries.
    pub entries: Arc<Entries>,
    /// The metrics in `entries`.
    pub metrics: Metrics,
}

/// Size and hit rate of the cache, since the process started or [`ManifestCache::clear`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheInfo {
    /// Number of manifests and manifest lists.
    pub entries: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Maximum size in bytes.
    pub max_bytes: usize,
    /// Number of lookups that found their value.
    pub hits: u64,
    /// Number of lookups that found no value, or one without all needed columns.
    pub misses: u64,
}

/// The cache.
#[derive(Debug)]
pub struct ManifestCache {
    max_bytes: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
    plans: AtomicU64,
    kept: Mutex<Kept>,
    patterns: Patterns,
}

#[derive(Debug, Default)]
struct Kept {
    slots: HashMap<Arc<Key>, Slot>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, Arc<Key>>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    value: Cached,
    bytes: usize,
    used: u64,
    /// The plan that last used it.
    plan: u64,
    /// Column data shared with other entries, not included in `bytes`.
    shared: SharedBuffers,
}

impl Key {
    /// The key of a manifest list.
    pub fn of_list(storage: &Storage, list: &FileRef<'_>) -> Result<Option<Self>> {
        let encryption = list.fingerprint();
        Ok(identity(storage, list.path)?.map(|identity| Self { identity, length: -1, encryption, inherited: None }))
    }

    /// The key of a manifest.
    pub fn of_manifest(storage: &Storage, manifest: &ManifestFile) -> Result<Option<Self>> {
        let inherited = (manifest.added_snapshot_id, manifest.sequence_number, manifest.first_row_id);
        let (length, encryption) = (manifest.manifest_length, FileRef::of_manifest(manifest).fingerprint());
        let identity = identity(storage, &manifest.manifest_path)?;
        Ok(identity.map(|identity| Self { identity, length, encryption, inherited: Some(inherited) }))
    }
}

fn identity(storage: &Storage, path: &str) -> Result<Option<Identity>> {
    let off = storage.setting(ENABLED_PROPERTY).is_some_and(|text| text.trim().eq_ignore_ascii_case("false"));
    if off { Ok(None) } else { storage.identity(path) }
}

impl Cached {
    fn bytes(&self) -> usize {
        match self {
            Self::Manifest(decoded) => decoded.entries.memory(),
            Self::List(manifests) => manifests.iter().map(list_bytes).sum(),
        }
    }
}

fn list_bytes(manifest: &ManifestFile) -> usize {
    let bounds = manifest.partitions.iter().flatten().flat_map(|field| [&field.lower_bound, &field.upper_bound]);
    let bounds: usize = bounds.flatten().map(Vec::capacity).sum();
    let summaries =
        manifest.partitions.as_ref().map_or(0, Vec::capacity) * size_of::<icefield_format::manifest::FieldSummary>();
    size_of::<ManifestFile>() + manifest.manifest_path.capacity() + summaries + bounds
}

impl ManifestCache {
    /// The cache of this process.
    pub fn shared() -> Result<&'static Self> {
        runtime::of_this_process(&CACHE, || {
            let asked = std::env::var(BYTES_VARIABLE).ok().and_then(|text| text.trim().parse().ok());
            Ok(Self::new(asked.unwrap_or(DEFAULT_BYTES)))
        })
    }

    /// An empty cache with this maximum size in bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes: AtomicUsize::new(max_bytes),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            plans: AtomicU64::new(0),
            kept: Mutex::default(),
            patterns: Patterns::default(),
        }
    }

    /// Whether the cache is enabled.
    pub fn is_on(&self) -> bool {
        self.max_bytes.load(Ordering::Relaxed) > 0
    }

    /// Sets the maximum size, and evicts entries beyond it.
    pub fn resize(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        let mut kept = self.kept();
        while self.bytes(&kept) > max_bytes && self.drop_oldest(&mut kept) {}
    }

    /// Removes all entries and resets the counters.
    pub fn clear(&self) {
        let mut kept = self.kept();
        while self.drop_oldest(&mut kept) {}
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    fn bytes(&self, kept: &Kept) -> usize {
        kept.bytes.saturating_add(self.patterns.bytes())
    }

    fn drop_oldest(&self, kept: &mut Kept) -> bool {
        let dropped = kept.drop_oldest();
        dropped.iter().for_each(|slot| self.patterns.release(&slot.shared));
        dropped.is_some()
    }

    /// Returns the size and the counters.
    pub fn info(&self) -> CacheInfo {
        let kept = self.kept();
        CacheInfo {
            entries: kept.slots.len(),
            bytes: self.bytes(&kept),
            max_bytes: self.max_bytes.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Returns the number of a new plan.
    pub(crate) fn start_plan(&self) -> u64 {
        self.plans.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Looks up a key; `suffices` decides whether the value has all that is needed.
    pub(crate) fn get<T>(&self, key: &Key, plan: u64, suffices: impl FnOnce(Cached) -> Option<T>) -> Option<T> {
        let found = self.kept().touch(key, plan);
        // Called without the lock, since it inspects columns.
        let found = found.and_then(suffices);
        if found.is_some() { &self.hits } else { &self.misses }.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The cached metrics of a manifest.
    pub(crate) fn metrics(&self, key: &Key) -> Option<Metrics> {
        match &self.kept().slots.get(key)?.value {
            Cached::Manifest(decoded) => Some(decoded.metrics.clone()),
            Cached::List(_) => None,
        }
    }

    /// Caches a manifest list, replacing an earlier value, if there is room without evicting entries of the same plan.
    pub(crate) fn insert_list(&self, key: Key, plan: u64, list: Arc<Vec<ManifestFile>>) {
        self.insert(key, plan, Cached::List(list), SharedBuffers::default());
    }

    /// Caches the entries of a manifest under the same condition; returns them as cached, with shared column data.
    pub(crate) fn insert_manifest(
        &self,
        key: Key,
        plan: u64,
        entries: Entries,
        metrics: Metrics,
    ) -> Result<Arc<Entries>> {
        let mut shared = SharedBuffers::default();
        let made = entries.map_columns(|column| self.patterns.share(column, &mut shared));
        let entries = match made {
            Ok(made) => Arc::new(made),
            Err(error) => {
                self.patterns.release(&shared);
                return Err(error.into());
            }
        };
        self.insert(key, plan, Cached::Manifest(Decoded { entries: entries.clone(), metrics }), shared);
        Ok(entries)
    }

    fn insert(&self, key: Key, plan: u64, value: Cached, shared: SharedBuffers) {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let own = value.bytes().saturating_sub(shared.bytes);
        let bytes = own + shared.memory() + size_of::<Slot>() + 2 * size_of::<Key>();
        if bytes > max_bytes {
            return self.patterns.release(&shared);
        }
        let mut kept = self.kept();
        kept.remove(&key).iter().for_each(|slot| self.patterns.release(&slot.shared));
        while self.bytes(&kept).saturating_add(bytes) > max_bytes {
            let own = kept.oldest().is_none_or(|slot| slot.plan == plan);
            if own || !self.drop_oldest(&mut kept) {
                self.patterns.release(&shared);
                return;
            }
        }
        kept.insert(key, Slot { value, bytes, used: 0, plan, shared });
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn touch(&mut self, key: &Key, plan: u64) -> Option<Cached> {
        self.clock += 1;
        let (key, _) = self.slots.get_key_value(key)?;
        let key = key.clone();
        let slot = self.slots.get_mut(&key)?;
        self.order.remove(&slot.used);
        (slot.used, slot.plan) = (self.clock, plan);
        self.order.insert(self.clock, key);
        Some(slot.value.clone())
    }

    fn insert(&mut self, key: Key, slot: Slot) {
        self.clock += 1;
        let key = Arc::new(key);
        self.bytes += slot.bytes;
        self.order.insert(self.clock, key.clone());
        self.slots.insert(key, Slot { used: self.clock, ..slot });
    }

    fn remove(&mut self, key: &Key) -> Option<Slot> {
        let slot = self.slots.remove(key)?;
        self.order.remove(&slot.used);
        self.bytes -= slot.bytes;
        Some(slot)
    }

    fn oldest(&self) -> Option<&Slot> {
        let (_, key) = self.order.first_key_value()?;
        self.slots.get(key)
    }

    fn drop_oldest(&mut self) -> Option<Slot> {
        let (_, key) = self.order.first_key_value()?;
        let key = key.clone();
        self.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64) -> Key {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.avro");
        std::fs::write(&path, b"x").unwrap();
        let storage = Storage::default();
        let identity = storage.identity(path.to_str().unwrap()).unwrap().unwrap();
        Key { identity, length: number, encryption: 0, inherited: None }
    }

    fn list(manifests: usize) -> Arc<Vec<ManifestFile>> {
        Arc::new(vec![ManifestFile::default(); manifests])
    }

    /// Size in the cache of a list with this many manifests.
    fn cost(manifests: usize) -> usize {
        Cached::List(list(manifests)).bytes() + size_of::<Slot>() + 2 * size_of::<Key>()
    }

    fn has(cache: &ManifestCache, key: &Key, plan: u64) -> bool {
        cache.get(key, plan, Some).is_some()
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let keys: Vec<Key> = (0..3).map(key).collect();
        let one = cost(10);
        let cache = ManifestCache::new(2 * one);
        cache.insert_list(keys[0].clone(), 1, list(10));
        cache.insert_list(keys[1].clone(), 1, list(10));
        assert!(has(&cache, &keys[0], 2));
        cache.insert_list(keys[2].clone(), 3, list(10));
        assert!(has(&cache, &keys[0], 3) && has(&cache, &keys[2], 3));
        assert!(!has(&cache, &keys[1], 3));
        let info = cache.info();
        assert_eq!((info.entries, info.bytes, info.hits, info.misses), (2, 2 * one, 3, 1));
        cache.resize(one);
        assert_eq!(cache.info().entries, 1);
        cache.clear();
        assert_eq!(cache.info(), CacheInfo { max_bytes: one, ..CacheInfo::default() });
    }

    #[test]
    fn a_plan_does_not_push_out_its_own() {
        let keys: Vec<Key> = (0..9).map(key).collect();
        let one = cost(10);
        let cache = ManifestCache::new(3 * one);
        keys.iter().for_each(|key| cache.insert_list(key.clone(), 7, list(10)));
        assert!(keys.iter().take(3).all(|key| has(&cache, key, 8)), "the first ones stay");
        assert!(!has(&cache, &keys[3], 8));
    }

    #[test]
    fn nothing_beyond_the_bound_is_kept() {
        let cache = ManifestCache::new(100);
        cache.insert_list(key(0), 1, list(10));
        assert_eq!(cache.info().entries, 0);
        assert!(!ManifestCache::new(0).is_on());
    }

    #[test]
    fn a_value_that_does_not_suffice_is_a_miss() {
        let cache = ManifestCache::new(1 << 20);
        cache.insert_list(key(0), 1, list(1));
        assert!(cache.get(&key(0), 1, |_| None::<()>).is_none());
        assert_eq!(cache.info().hits, 0);
    }

    #[test]
    fn a_file_written_anew_and_other_rights_are_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.avro");
        let path = path.to_str().unwrap();
        std::fs::write(path, b"one").unwrap();
        let storage = Storage::default();
        let first = Key::of_list(&storage, &FileRef::plain(path, 0)).unwrap();
        assert_eq!(first, Key::of_list(&storage, &FileRef::plain(path, 0)).unwrap());
        let other = |name: &str, value: &str| {
            Key::of_list(&Storage::new([(name.to_owned(), value.to_owned())].into()), &FileRef::plain(path, 0)).unwrap()
        };
        assert_ne!(first, other("s3.access-key-id", "another"));
        assert_eq!(other(ENABLED_PROPERTY, "False"), None);
        // A table with another key for the file, or none, must decrypt it itself.
        let by = |key: &[u8]| Key::of_list(&storage, &FileRef { key: Some(key), ..FileRef::plain(path, 0) }).unwrap();
        assert!(by(b"one") == by(b"one") && by(b"one") != by(b"two") && by(b"one") != first);
        let manifest = |key_metadata| {
            let manifest_path = path.to_owned();
            Key::of_manifest(&storage, &ManifestFile { manifest_path, key_metadata, ..ManifestFile::default() })
                .unwrap()
        };
        assert_ne!(manifest(None), manifest(Some(b"one".to_vec())));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(later).unwrap();
        assert_ne!(first, Key::of_list(&storage, &FileRef::plain(path, 0)).unwrap());
        assert_eq!(Key::of_list(&storage, &FileRef::plain("memory://a/b", 0)).unwrap(), None);
        std::fs::remove_file(path).unwrap();
        assert_eq!(
            Key::of_list(&storage, &FileRef::plain(path, 0)).unwrap(),
            None,
            "reading it shows that it is missing"
        );
    }
}
