//! Limits the time for requests of credentials to other services.
//!
//! If no credentials are configured, the client asks a service of the cloud machine. Elsewhere a network may silently
//! drop that request, and the client would retry for minutes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::azure::{AzureCredential, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::{Error, ObjectStore, Result};
use rustls::crypto::{CryptoProvider, ring};

use crate::storage::renewal::{Current, Renewing};

/// Maximum time for getting credentials.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Start of the error message after a timeout.
pub(super) const TOO_LATE: &str = "no credentials came in time";

/// Names the storage in errors of renewed credentials.
const STORE: &str = "renewed credentials";

/// A credential provider with a time limit.
struct Bounded<C> {
    provider: Arc<dyn CredentialProvider<Credential = C>>,
    store: &'static str,
    limit: Duration,
}

impl<C> fmt::Debug for Bounded<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("store", &self.store).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<C: Send + Sync + 'static> CredentialProvider for Bounded<C> {
    type Credential = C;

    // The signature that the trait's `async_trait` macro generates.
    fn get_credential<'s, 'f>(&'s self) -> BoxFuture<'f, Result<Arc<C>>>
    where
        's: 'f,
        Self: 'f,
    {
        let asked = async move {
            let answer = tokio::time::timeout(self.limit, self.provider.get_credential()).await;
            answer.unwrap_or_else(|_| {
                let source = format!("{TOO_LATE}: waited for {} s", self.limit.as_secs_f32()).into();
                Err(Error::Generic { store: self.store, source })
            })
        };
        asked.boxed()
    }
}

fn bounded<C: Send + Sync + 'static>(
    provider: &Arc<dyn CredentialProvider<Credential = C>>,
    store: &'static str,
    limit: Duration,
) -> Arc<dyn CredentialProvider<Credential = C>> {
    Arc::new(Bounded { provider: Arc::clone(provider), store, limit })
}

/// What opening the credentials of some properties gives.
pub(super) type Opened<C> = std::result::Result<Shared<C>, Box<dyn std::error::Error + Send + Sync>>;
/// Credentials of a kind.
pub(super) type Shared<C> = Arc<dyn CredentialProvider<Credential = C>>;

/// Credentials that are renewed: each request asks for those of its moment.
pub(super) struct Following<C, F> {
    renewing: Arc<Renewing>,
    open: F,
    /// What was opened last, and the renewal that it is of.
    opened: Mutex<Option<(u64, Shared<C>)>>,
}

impl<C, F> fmt::Debug for Following<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following").finish_non_exhaustive()
    }
}

impl<C: Send + Sync + 'static, F> Following<C, F>
where
    F: Fn(&BTreeMap<String, String>) -> Opened<C> + Send + Sync + 'static,
{
    pub(super) fn of(renewing: Arc<Renewing>, open: F) -> Shared<C> {
        Arc::new(Self { renewing, open, opened: Mutex::new(None) })
    }

    fn opened(&self, current: &Current) -> Result<Shared<C>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((generation, found)) = &*opened
            && *generation == current.generation
        {
            return Ok(found.clone());
        }
        let made = (self.open)(&current.properties).map_err(|source| Error::Generic { store: STORE, source })?;
        let made = bounded(&made, STORE, LIMIT);
        *opened = Some((current.generation, made.clone()));
        Ok(made)
    }
}

impl<C: Send + Sync + 'static, F> CredentialProvider for Following<C, F>
where
    F: Fn(&BTreeMap<String, String>) -> Opened<C> + Send + Sync + 'static,
{
    type Credential = C;

    // The signature that the trait's `async_trait` macro generates.
    fn get_credential<'s, 'f>(&'s self) -> BoxFuture<'f, Result<Arc<C>>>
    where
        's: 'f,
        Self: 'f,
    {
        async move {
            let renewing = self.renewing.clone();
            // A renewal waits for the network, or for Python.
            let current = tokio::task::spawn_blocking(move || renewing.current()).await;
            let current = current.map_err(|error| Error::Generic { store: STORE, source: error.into() })?;
            self.opened(&current)?.get_credential().await
        }
        .boxed()
    }
}

/// Builds an S3 store.
pub(super) fn s3(
    builder: AmazonS3Builder,
    limit: Duration,
    renewed: Option<Shared<AwsCredential>>,
) -> Result<Arc<dyn ObjectStore>> {
    let found = match renewed {
        Some(renewed) => renewed,
        None => bounded(builder.clone().build()?.credentials(), "S3", limit),
    };
    Ok(Arc::new(builder.with_credentials(found).build()?))
}

/// Builds a Google Cloud Storage store.
pub(super) fn gcs(
    builder: GoogleCloudStorageBuilder,
    limit: Duration,
    renewed: Option<Shared<GcpCredential>>,
) -> Result<Arc<dyn ObjectStore>> {
    let found = match renewed {
        Some(renewed) => renewed,
        None => bounded(builder.clone().build()?.credentials(), "GCS", limit),
    };
    Ok(Arc::new(builder.with_credentials(found).build()?))
}

/// Builds an Azure store.
pub(super) fn azure(
    builder: MicrosoftAzureBuilder,
    limit: Duration,
    renewed: Option<Shared<AzureCredential>>,
) -> Result<Arc<dyn ObjectStore>> {
    let found = match renewed {
        Some(renewed) => renewed,
        None => bounded(builder.clone().build()?.credentials(), "MicrosoftAzure", limit),
    };
    Ok(Arc::new(builder.with_credentials(found).build()?))
}

/// Installs the process-wide cryptography provider, which HTTP clients require even if they do not use TLS.
pub(super) fn provide_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Fails if another thread was faster.
        let _ = ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use object_store::ObjectStoreExt;
    use object_store::path::Path;

    use super::*;
    use crate::runtime;
    use crate::storage::{Renewal, Renewed};

    /// The service accepts the connection and never responds.
    #[test]
    fn a_service_that_never_answers_is_not_waited_for() {
        provide_cryptography();
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let limit = Duration::from_millis(300);
        let amazon = AmazonS3Builder::new().with_bucket_name("b").with_metadata_endpoint(&url);
        let microsoft = MicrosoftAzureBuilder::new().with_account("a").with_container_name("c").with_msi_endpoint(&url);
        for store in [s3(amazon, limit, None).unwrap(), azure(microsoft, limit, None).unwrap()] {
            let began = Instant::now();
            let error = runtime::wait(store.get(&Path::from("key"))).unwrap().unwrap_err().to_string();
            assert!(error.contains(TOO_LATE), "{error}");
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        }
    }

    #[test]
    fn credentials_that_are_set_are_used() {
        provide_cryptography();
        let builder = AmazonS3Builder::new().with_bucket_name("b").with_access_key_id("k").with_secret_access_key("s");
        let plain = builder.clone().build().unwrap();
        let provider = bounded(plain.credentials(), "S3", LIMIT);
        let found = runtime::wait(provider.get_credential()).unwrap().unwrap();
        assert_eq!((found.key_id.as_str(), found.secret_key.as_str()), ("k", "s"));
        s3(builder, LIMIT, None).unwrap();
    }

    /// Gives keys with their number.
    #[derive(Debug, Default)]
    struct Server(std::sync::atomic::AtomicUsize);

    impl Renewal for Server {
        fn renew(&self) -> crate::error::Result<Renewed> {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            Ok(keys(number, None))
        }
    }

    fn keys(number: usize, due_ms: Option<i64>) -> Renewed {
        let all = [("s3.access-key-id", format!("key {number}")), ("s3.secret-access-key", "s".to_owned())];
        let properties = all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Renewed { properties, due_ms, expires_ms: due_ms }
    }

    #[test]
    fn requests_after_a_renewal_have_its_keys() {
        provide_cryptography();
        let later = crate::clock::now_ms() + 200;
        let renewing = Arc::new(Renewing::new(Arc::new(Server::default()), keys(0, Some(later))));
        let provider =
            Following::of(renewing, |now| Ok(crate::storage::properties::s3("b", now)?.build()?.credentials().clone()));
        let used = || runtime::wait(provider.get_credential()).unwrap().unwrap().key_id.clone();
        assert_eq!(used(), "key 0");
        while crate::clock::now_ms() < later {
            std::thread::yield_now();
        }
        assert_eq!((used(), used()), ("key 1".to_owned(), "key 1".to_owned()));
    }
}
