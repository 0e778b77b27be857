//! Credentials that expire: a storage gets new ones before they do, in the middle of a long scan or write too.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

use super::properties;
use crate::clock::now_ms;
use crate::error::{Error, Result};

/// How long to wait after a renewal before another one, in milliseconds.
const PAUSE_MS: i64 = 10_000;
/// The same for credentials with a short life.
const SHORTEST_PAUSE_MS: i64 = 500;

/// Where a storage gets new credentials, such as a catalog service.
pub trait Renewal: Any + fmt::Debug + Send + Sync {
    /// Returns other properties of the storage. Never called twice at a time.
    ///
    /// # Errors
    /// Why there are none. The storage goes on with those that it has, and asks again after a pause.
    fn renew(&self) -> Result<Renewed>;

    /// Signs a request to S3, for a storage with the property `s3.remote-signing-enabled`; called by any number of threads.
    ///
    /// # Errors
    /// Why it is not signed. The request is not sent.
    fn sign(&self, request: &SignRequest) -> Result<Signed> {
        Err(Error::unsupported(format!("signing {}: the credentials of this storage come from no signer", request.uri)))
    }
}

/// A request to S3 that is to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignRequest {
    /// The method, in capitals.
    pub method: String,
    /// The region of the bucket.
    pub region: String,
    /// The whole URL.
    pub uri: String,
    /// The headers, in the order of the request.
    pub headers: Vec<(String, String)>,
    /// The body of a request that deletes objects, which the signer checks; `None` for all other requests.
    pub body: Option<String>,
}

/// A signed request. It may have secrets for some minutes.
#[derive(Clone, PartialEq, Eq)]
pub struct Signed {
    /// The URL that the request is sent to.
    pub uri: String,
    /// The headers to add.
    pub headers: Vec<(String, String)>,
    /// Whether the same request may be sent again with the same signature.
    pub is_reusable: bool,
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed").field("is_reusable", &self.is_reusable).finish_non_exhaustive()
    }
}

/// Properties of a storage whose credentials expire.
#[derive(Clone, Default)]
pub struct Renewed {
    /// The properties, named as in [`Storage::new`](super::Storage::new).
    pub properties: BTreeMap<String, String>,
    /// When to ask for others, in milliseconds from the epoch; `None` if the credentials do not expire.
    pub due_ms: Option<i64>,
    /// When the credentials expire. From then on requests wait for a renewal by another thread.
    pub expires_ms: Option<i64>,
}

impl fmt::Debug for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed")
            .field("due_ms", &self.due_ms)
            .field("expires_ms", &self.expires_ms)
            .finish_non_exhaustive()
    }
}

/// The credentials in use, shared by all variants of a storage.
pub(super) struct Renewing {
    source: Arc<dyn Renewal>,
    current: RwLock<Current>,
    /// Held during a renewal.
    busy: Mutex<()>,
}

#[derive(Clone)]
pub(super) struct Current {
    pub(super) properties: Arc<BTreeMap<String, String>>,
    /// Incremented by each renewal: stores that were opened before it are opened again.
    pub(super) generation: u64,
    due_ms: Option<i64>,
    expires_ms: Option<i64>,
}

impl Renewing {
    pub(super) fn new(source: Arc<dyn Renewal>, first: Renewed) -> Self {
        let Renewed { properties, due_ms, expires_ms } = first;
        let current = RwLock::new(Current { properties: Arc::new(properties), generation: 0, due_ms, expires_ms });
        Self { source, current, busy: Mutex::new(()) }
    }

    pub(super) fn source(&self) -> &Arc<dyn Renewal> {
        &self.source
    }

    /// The credentials to use now. The thread that finds them due renews them; others go on with the old ones, unless
    /// these have expired.
    pub(super) fn current(&self) -> Current {
        let known = self.known();
        let Some(due_ms) = known.due_ms else { return known };
        let now = now_ms();
        if now < due_ms {
            return known;
        }
        let _busy = match self.busy.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) if known.expires_ms.is_some_and(|end| now < end) => return known,
            Err(_) => self.busy.lock().unwrap_or_else(PoisonError::into_inner),
        };
        // Another thread may have renewed them while this one waited.
        let known = self.known();
        if known.due_ms != Some(due_ms) {
            return known;
        }
        let next = match self.source.renew() {
            // Credentials that are due at once, by this machine's clock, would be renewed at each request.
            Ok(Renewed { properties: given, due_ms, expires_ms }) => Current {
                properties: Arc::new(properties::kept(given)),
                generation: known.generation + 1,
                due_ms: due_ms.map(|due_ms| due_ms.max(now_ms().saturating_add(pause_ms(expires_ms)))),
                expires_ms,
            },
            Err(error) => {
                log::warn!("the credentials of the storage cannot be renewed: {error}");
                Current { due_ms: Some(now_ms().saturating_add(PAUSE_MS)), ..known }
            }
        };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next.clone();
        next
    }

    fn known(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The least time until credentials that were renewed now are renewed again: half of their life, if that is short.
fn pause_ms(expires_ms: Option<i64>) -> i64 {
    let left = expires_ms.map_or(i64::MAX, |end| end.saturating_sub(now_ms()));
    if left <= 0 { PAUSE_MS } else { (left / 2).clamp(SHORTEST_PAUSE_MS, PAUSE_MS) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::set_for_thread;
    use crate::storage::Storage;

    /// Gives keys with their number, each valid for 100 s and due after 90; or fails.
    #[derive(Debug, Default)]
    struct Server {
        asked: AtomicUsize,
        fails: bool,
    }

    fn keys(number: usize, until: i64) -> Renewed {
        let number = number.to_string();
        // With a region, because without one Amazon is requested for it.
        let of_s3 = [("s3.access-key-id", &*number), ("s3.secret-access-key", "s"), ("s3.region", "us-east-1")];
        let all = of_s3.into_iter().chain([("token", "of the catalog")]);
        Renewed {
            properties: all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            due_ms: Some((until - 10) * 1000),
            expires_ms: Some(until * 1000),
        }
    }

    impl Renewal for Server {
        fn renew(&self) -> Result<Renewed> {
            let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            if self.fails {
                return Err(Error::invalid("no more"));
            }
            Ok(keys(number, now_ms() / 1000 + 100))
        }
    }

    /// A storage at the second 0, and its server.
    fn opened(fails: bool) -> (Storage, Arc<Server>) {
        let server = Arc::new(Server { fails, ..Server::default() });
        (Storage::renewed_by(server.clone(), keys(0, 100)), server)
    }

    fn used(storage: &Storage) -> String {
        storage.properties()["s3.access-key-id"].clone()
    }

    #[test]
    fn credentials_are_renewed_once_when_they_are_due() {
        let (storage, server) = opened(false);
        let variants = [storage.clone(), storage.unwritten(), storage.relocated([]).unwrap()];
        for (now, key) in [(0, "0"), (89, "0"), (90, "1"), (179, "1"), (180, "2")] {
            set_for_thread(Some(now * 1000));
            for variant in &variants {
                assert_eq!(used(variant), key, "at {now} s");
                assert!(!variant.properties().contains_key("token"));
            }
        }
        assert_eq!(server.asked.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_failed_renewal_is_tried_again_after_a_pause() {
        let (storage, server) = opened(true);
        for (now, asked) in [(0, 0), (90, 1), (99, 1), (100, 2), (109, 2), (110, 3)] {
            set_for_thread(Some(now * 1000));
            assert_eq!(used(&storage), "0");
            assert_eq!(server.asked.load(Ordering::SeqCst), asked, "at {now} s");
        }
    }

    #[test]
    fn credentials_with_a_short_life_are_renewed_within_it() {
        set_for_thread(Some(1_000_000));
        for (left, pause) in [(2000, 1000), (12_000, 6000), (3_600_000, PAUSE_MS), (10, 500), (0, PAUSE_MS)] {
            assert_eq!(pause_ms(Some(1_000_000 + left)), pause, "{left}");
        }
        assert_eq!((pause_ms(None), pause_ms(Some(-5))), (PAUSE_MS, PAUSE_MS));
    }

    #[test]
    fn stores_are_opened_again_with_the_new_credentials() {
        let (storage, _) = opened(false);
        let store = || storage.store(&storage.resolve("s3://bucket/key").unwrap()).unwrap();
        set_for_thread(Some(0));
        let first = store();
        assert!(Arc::ptr_eq(&first, &store()));
        set_for_thread(Some(95_000));
        let second = store();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &store()));
        // What differs around a request only is not opened again.
        let variant = storage.relocated([]).unwrap();
        assert!(Arc::ptr_eq(&second, &variant.store(&variant.resolve("s3://bucket/other").unwrap()).unwrap()));
    }

    #[test]
    fn the_longest_prefix_has_the_credentials_and_renews_them_alone() {
        let (base, server) = opened(false);
        let of = |name: &str, value: &str| Storage::new([(name.to_owned(), value.to_owned())].into());
        let (renewed, other) = opened(false);
        let storage = base.with_prefixes([
            ("s3a://other/".to_owned(), of("s3.access-key-id", "all of other")),
            ("s3://other/b/".to_owned(), renewed),
            ("gs".to_owned(), of("gcs.oauth2.token", "of google")),
        ]);
        let key = |path: &str| {
            let inner = storage.credentials(storage.scope(&storage.resolve(path).unwrap()));
            let properties = inner.renewing.as_ref().map_or(inner.properties.clone(), |all| all.current().properties);
            properties.iter().find(|(name, _)| name.contains("key-id") || name.contains("token")).unwrap().1.clone()
        };
        set_for_thread(Some(0));
        for (path, expected) in [
            ("s3://bucket/k", "0"),
            ("s3://other/k", "all of other"),
            ("s3a://other/b", "all of other"),
            ("s3n://other/b/k", "0"),
            ("gs://bucket/k", "of google"),
        ] {
            assert_eq!(key(path), expected, "{path}");
        }
        let stores =
            || ["s3://bucket/k", "s3://other/b/k"].map(|at| storage.store(&storage.resolve(at).unwrap()).unwrap());
        let [first, second] = stores();
        set_for_thread(Some(95_000));
        assert_eq!((key("s3://other/b/k"), server.asked.load(Ordering::SeqCst)), ("1".to_owned(), 0));
        assert_eq!(other.asked.load(Ordering::SeqCst), 1);
        assert_eq!((key("s3://bucket/k"), server.asked.load(Ordering::SeqCst)), ("1".to_owned(), 1));
        let [third, fourth] = stores();
        assert!(!Arc::ptr_eq(&first, &third) && !Arc::ptr_eq(&second, &fourth));
        // Variants keep them.
        for variant in [storage.unwritten(), storage.relocated([]).unwrap()] {
            assert_eq!(variant.prefixes().len(), 3);
        }
    }
}
