//! Limits the time for requests of credentials to other services.
//!
//! If no credentials are configured, the client asks a service of the cloud machine. Elsewhere a network may silently
//! drop that request, and the client would retry for minutes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::CredentialProvider;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{Error, ObjectStore, Result};
use rustls::crypto::{CryptoProvider, ring};

/// Maximum time for getting credentials.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Start of the error message after a timeout.
pub(super) const TOO_LATE: &str = "no credentials came in time";

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

/// Builds an S3 store.
pub(super) fn s3(builder: AmazonS3Builder, limit: Duration) -> Result<Arc<dyn ObjectStore>> {
    let found = bounded(builder.clone().build()?.credentials(), "S3", limit);
    Ok(Arc::new(builder.with_credentials(found).build()?))
}

/// Builds a Google Cloud Storage store.
pub(super) fn gcs(builder: GoogleCloudStorageBuilder, limit: Duration) -> Result<Arc<dyn ObjectStore>> {
    let found = bounded(builder.clone().build()?.credentials(), "GCS", limit);
    Ok(Arc::new(builder.with_credentials(found).build()?))
}

/// Builds an Azure store.
pub(super) fn azure(builder: MicrosoftAzureBuilder, limit: Duration) -> Result<Arc<dyn ObjectStore>> {
    let found = bounded(builder.clone().build()?.credentials(), "MicrosoftAzure", limit);
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

    /// The service accepts the connection and never responds.
    #[test]
    fn a_service_that_never_answers_is_not_waited_for() {
        provide_cryptography();
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let limit = Duration::from_millis(300);
        let amazon = AmazonS3Builder::new().with_bucket_name("b").with_metadata_endpoint(&url);
        let microsoft = MicrosoftAzureBuilder::new().with_account("a").with_container_name("c").with_msi_endpoint(&url);
        for store in [s3(amazon, limit).unwrap(), azure(microsoft, limit).unwrap()] {
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
        s3(builder, LIMIT).unwrap();
    }
}
