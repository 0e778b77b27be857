//! Remote stores: S3, Google Cloud Storage, Azure, web servers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3ConfigKey;
use object_store::path::Path;
use object_store::{
    CredentialProvider, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    WriteMultipart,
};

use super::credentials::{Following, Opened};
use super::{PAGE, answers, credentials, signing};
use crate::error::{Error, Result};
use crate::runtime;
use crate::storage::renewal::Renewing;
use crate::storage::{Entry, Existing, Location, Output, Pages, Scheme, Store, properties, region};

/// Objects up to this size are written with one request, larger ones in parts of this size.
const PART: usize = 8 << 20;
/// Maximum objects per delete request, for stores with bulk deletes (S3 allows 1000, Azure 256).
const DELETED_AT_ONCE: usize = 250;
/// Maximum concurrent delete requests.
const DELETIONS_AT_ONCE: usize = 8;
/// Maximum concurrent parts of one object.
const PARTS_AT_ONCE: usize = 4;

/// A remote store.
#[derive(Debug)]
pub(in crate::storage) struct Remote {
    store: Arc<dyn ObjectStore>,
}

impl Remote {
    pub(in crate::storage) fn open(
        at: &Location,
        options: &BTreeMap<String, String>,
        renewing: Option<&Arc<Renewing>>,
    ) -> Result<Self> {
        credentials::provide_cryptography();
        let built: object_store::Result<Arc<dyn ObjectStore>> = match at.scheme {
            Scheme::S3 if properties::is_signed(options)? => signed(at, options, renewing)?,
            Scheme::S3 => {
                let following = following(at, renewing, |authority, now| {
                    Ok(properties::s3(authority, now)?.build()?.credentials().clone())
                });
                let builder = properties::s3(&at.authority, options)?;
                credentials::s3(region::located(builder, &at.authority, options)?, credentials::LIMIT, following)
            }
            Scheme::Gcs => {
                let following = following(at, renewing, |authority, now| {
                    Ok(properties::gcs(authority, now)?.build()?.credentials().clone())
                });
                credentials::gcs(properties::gcs(&at.authority, options)?, credentials::LIMIT, following)
            }
            Scheme::Azure => {
                let following = following(at, renewing, |authority, now| {
                    Ok(properties::azure(authority, now)?.build()?.credentials().clone())
                });
                credentials::azure(properties::azure(&at.authority, options)?, credentials::LIMIT, following)
            }
            Scheme::Http => object_store::http::HttpBuilder::new()
                .with_url(at.authority.as_str())
                .with_client_options(properties::http(&at.authority, options)?)
                .with_http_connector(properties::Direct::new(&at.authority, options)?)
                .build()
                .map(|store| Arc::new(store) as _),
            Scheme::File | Scheme::Memory => return Err(Error::Internal(format!("{at}: not across the network"))),
        };
        let store = built.map_err(|error| Error::Storage {
            path: at.to_string(),
            operation: "open the store of",
            message: without_queries(&error.to_string()),
        })?;
        Ok(Self { store })
    }
}

/// A store of S3 whose requests another service signs.
fn signed(
    at: &Location,
    options: &BTreeMap<String, String>,
    renewing: Option<&Arc<Renewing>>,
) -> Result<object_store::Result<Arc<dyn ObjectStore>>> {
    let Some(renewing) = renewing else {
        return Err(Error::unsupported(format!(
            "{at}: s3.remote-signing-enabled is for the tables of a REST catalog, whose server signs the requests"
        )));
    };
    let builder = properties::s3(&at.authority, options)?.with_skip_signature(true);
    let builder = region::located(builder, &at.authority, options)?;
    let region = builder.get_config_value(&AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".to_owned());
    let connector = signing::Connector { signer: renewing.source().clone(), region };
    Ok(builder.with_http_connector(connector).build().map(|store| Arc::new(store) as _))
}

/// The credentials of each moment, if they are renewed: for requests of what began before a renewal, such as an upload.
fn following<C: Send + Sync + 'static>(
    at: &Location,
    renewing: Option<&Arc<Renewing>>,
    open: fn(&str, &BTreeMap<String, String>) -> Opened<C>,
) -> Option<Arc<dyn CredentialProvider<Credential = C>>> {
    let authority = at.authority.clone();
    Some(Following::of(renewing?.clone(), move |properties| open(&authority, properties)))
}

/// The key as written: nothing is encoded or decoded, except in a URL with a query.
fn key(at: &Location) -> Result<Path> {
    let key = if at.has_query() { Path::from_url_path(&at.key) } else { Path::parse(&at.key) };
    key.map_err(|error| Error::invalid(format!("{at}: {error}")))
}

fn failed(at: &Location, operation: &'static str) -> impl Fn(object_store::Error) -> Error {
    let (path, scheme) = (at.to_string(), at.scheme);
    move |error| match error {
        object_store::Error::NotFound { .. } => Error::NotFound { path: path.clone() },
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            Error::AlreadyExists { path: path.clone() }
        }
        other => {
            let message = without_queries(&answers::without_answer(scheme, &with_cause(&other)));
            let message = without_credentials(scheme, &message).unwrap_or(message);
            Error::Storage { path: path.clone(), operation, message }
        }
    }
}

/// The message of an error with its root cause, such as an untrusted certificate, which HTTP clients omit from their
/// messages.
fn with_cause(error: &object_store::Error) -> String {
    let message = error.to_string();
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    match causes.last().map(ToString::to_string) {
        Some(cause) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message,
    }
}

/// The hint for a store that tried to get credentials from the machine because none are configured. Cloud machines have
/// a credential service at one of these addresses; others do not.
fn without_credentials(scheme: Scheme, message: &str) -> Option<String> {
    const SERVICES: [&str; 5] = [
        "169.254.169.254",
        "169.254.170.2",
        "metadata.google.internal",
        "metadata/computeMetadata",
        "metadata/identity",
    ];
    let late = message.contains(credentials::TOO_LATE);
    if !late && !SERVICES.iter().any(|service| message.contains(service)) {
        return None;
    }
    let properties = match scheme {
        Scheme::S3 => {
            "s3.access-key-id and s3.secret-access-key (or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), \
             s3.anonymous=true for a public bucket"
        }
        Scheme::Gcs => "gcs.oauth2.token (or GOOGLE_APPLICATION_CREDENTIALS), gcs.no-auth=true for a public bucket",
        Scheme::Azure => "adls.account-key, adls.sas-token or adls.connection-string (or AZURE_STORAGE_ACCOUNT_KEY)",
        Scheme::File | Scheme::Memory | Scheme::Http => return None,
    };
    Some(match late {
        true => format!("{message}; set {properties}, or see whether this machine reaches the service that has them"),
        false => format!("no credentials: set {properties}; this machine has none of its own"),
    })
}

/// Removes the query parts of URLs in a message, which may have signatures and tokens.
fn without_queries(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut hidden = false;
    for letter in message.chars() {
        if matches!(letter, ' ' | '"' | '\'' | ')' | '\n') {
            hidden = false;
        }
        if !hidden {
            kept.push(letter);
        }
        hidden |= letter == '?';
    }
    kept
}

impl Remote {
    /// Deletes objects with one call of their store.
    async fn delete_some(&self, all: &[Location]) -> Vec<Result<()>> {
        let keys: Vec<Result<Path>> = all.iter().map(key).collect();
        let sound: Vec<_> = keys.iter().flatten().cloned().map(Ok).collect();
        let wanted = sound.len();
        let answers = self.store.delete_stream(futures::stream::iter(sound).boxed()).collect::<Vec<_>>().await;
        // Results are in the order of the keys, but a request that fails as a whole has a single result.
        let whole = answers.len() == wanted;
        let scheme = all.first().map_or(Scheme::S3, |at| at.scheme);
        let first = answers.iter().find_map(|answer| answer.as_ref().err());
        let message = first.map(|error| without_queries(&answers::without_answer(scheme, &error.to_string())));
        let mut answers = answers.into_iter();
        let outcome = |(at, key): (&Location, Result<Path>)| {
            key?;
            match answers.next() {
                Some(answer) if whole => match answer {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(failed(at, "delete")(error)),
                },
                _ => {
                    let message = message.clone().unwrap_or_else(|| "the store gave no answer".into());
                    Err(Error::Storage { path: at.to_string(), operation: "delete", message })
                }
            }
        };
        all.iter().zip(keys).map(outcome).collect()
    }
}

impl Store for Remote {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        let key = key(at)?;
        let failed = failed(at, "read");
        let too_long = |size| super::too_long(&at.to_string(), size, most);
        runtime::wait(async {
            let found = self.store.get(&key).await.map_err(&failed)?;
            if found.meta.size > most {
                return Err(too_long(found.meta.size));
            }
            // A server may send more bytes than announced.
            let mut stream = found.into_stream();
            let (mut pieces, mut length) = (Vec::new(), 0u64);
            while let Some(piece) = stream.try_next().await.map_err(&failed)? {
                length = length.saturating_add(piece.len() as u64);
                if length > most {
                    return Err(too_long(length));
                }
                pieces.push(piece);
            }
            Ok(match pieces.len() {
                1 => pieces.swap_remove(0),
                _ => Bytes::from(pieces.concat()),
            })
        })?
    }

    fn size(&self, at: &Location) -> Result<u64> {
        let key = key(at)?;
        let size = async {
            match self.store.head(&key).await {
                // A presigned URL may allow getting the object but not requesting its size, so request its first byte.
                Err(error) if at.has_query() && !matches!(error, object_store::Error::NotFound { .. }) => {
                    let first = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
                    self.store.get_opts(&key, first).await.map(|found| found.meta.size).map_err(|_| error)
                }
                about => about.map(|about| about.size),
            }
        };
        runtime::wait(size)?.map_err(failed(at, "read"))
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let key = key(at)?;
        runtime::wait(self.store.get_ranges(&key, ranges))?.map_err(failed(at, "read"))
    }

    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()> {
        let key = key(at)?;
        let mode = match existing {
            Existing::Replace => PutMode::Overwrite,
            Existing::Refuse => PutMode::Create,
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let sent = runtime::wait(self.store.put_opts(&key, PutPayload::from_bytes(bytes), options))?;
        sent.map(|_| ()).map_err(failed(at, "write"))
    }

    fn output(&self, at: &Location) -> Result<Box<dyn Output>> {
        let key = key(at)?;
        Ok(Box::new(Upload { store: self.store.clone(), at: at.clone(), key, small: Vec::new(), held: 0, parts: None }))
    }

    fn delete(&self, at: &Location) -> Result<()> {
        let key = key(at)?;
        match runtime::wait(self.store.delete(&key))? {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(failed(at, "delete")(error)),
        }
    }

    fn delete_all(&self, all: &[Location]) -> Vec<Result<()>> {
        let requests = futures::stream::iter(all.chunks(DELETED_AT_ONCE)).map(|some| self.delete_some(some));
        match runtime::wait(requests.buffered(DELETIONS_AT_ONCE).concat()) {
            Ok(done) => done,
            Err(_) => all.iter().map(|at| self.delete(at)).collect(),
        }
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        let objects = self.store.list(Some(&key(prefix)?));
        Ok(Box::new(Listing { objects: Some(objects), prefix: prefix.clone() }))
    }
}

/// A listing that requests the next objects when the current page is used up.
struct Listing {
    /// `None` after the last page or an error.
    objects: Option<BoxStream<'static, object_store::Result<ObjectMeta>>>,
    prefix: Location,
}

impl Iterator for Listing {
    type Item = Result<Vec<Entry>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut objects = self.objects.take()?;
        let found = runtime::wait(objects.by_ref().take(PAGE).try_collect::<Vec<_>>());
        let page = match found.and_then(|found| found.map_err(failed(&self.prefix, "list"))) {
            Ok(page) => page,
            Err(error) => return Some(Err(error)),
        };
        if page.len() == PAGE {
            self.objects = Some(objects);
        }
        if page.is_empty() {
            return None;
        }
        // Tools mark folders of S3 and GCS by an empty object `folder/`; object_store drops the slash.
        let is_marker =
            |about: &ObjectMeta| about.size == 0 && about.location.filename().is_none_or(|name| !name.contains('.'));
        let page: Vec<ObjectMeta> = page.into_iter().filter(|about| !is_marker(about)).collect();
        let entry = |about: ObjectMeta| Entry {
            path: about.location.to_string(),
            size: about.size,
            modified_ms: Some(about.last_modified.timestamp_millis()),
        };
        Some(Ok(page.into_iter().map(entry).collect()))
    }
}

/// An object being written: buffered while it is small, then sent in parts.
struct Upload {
    store: Arc<dyn ObjectStore>,
    at: Location,
    key: Path,
    small: Vec<Bytes>,
    held: usize,
    parts: Option<WriteMultipart>,
}

impl Upload {
    fn send(&mut self, bytes: Bytes) -> Result<()> {
        let Some(parts) = &mut self.parts else { return Err(Error::Internal("an upload without parts".into())) };
        runtime::wait(async {
            parts.wait_for_capacity(PARTS_AT_ONCE).await?;
            parts.put(bytes);
            Ok(())
        })?
        .map_err(failed(&self.at, "write"))
    }
}

impl Output for Upload {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        if self.parts.is_some() {
            return self.send(bytes);
        }
        self.held += bytes.len();
        self.small.push(bytes);
        if self.held <= PART {
            return Ok(());
        }
        let upload = runtime::wait(self.store.put_multipart(&self.key))?.map_err(failed(&self.at, "write"))?;
        self.parts = Some(WriteMultipart::new_with_chunk_size(upload, PART));
        std::mem::take(&mut self.small).into_iter().try_for_each(|bytes| self.send(bytes))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { store, at, key, small, parts, .. } = *self;
        let sent = runtime::wait(async {
            match parts {
                Some(parts) => parts.finish().await,
                None => store.put(&key, small.into_iter().collect()).await,
            }
        })?;
        sent.map(|_| ()).map_err(failed(&at, "write"))
    }

    fn abort(self: Box<Self>) {
        if let Some(parts) = self.parts {
            // If even this fails, nothing is left to do: the store expires incomplete uploads.
            let _ = runtime::wait(parts.abort());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scheme, without_credentials, without_queries};

    #[test]
    fn queries_are_hidden() {
        let shown = without_queries("error for url (https://a.net/c/k?sv=1&sig=canary): timed out");
        assert_eq!(shown, "error for url (https://a.net/c/k?): timed out");
    }

    #[test]
    fn machines_without_credentials_say_which_to_set() {
        let asked = "Error performing PUT http://169.254.169.254/latest/api/token in 3 s";
        let message = without_credentials(Scheme::S3, asked).unwrap();
        assert!(message.contains("s3.access-key-id") && message.contains("AWS_SECRET_ACCESS_KEY"), "{message}");
        let message = without_credentials(Scheme::Gcs, "http://metadata.google.internal/computeMetadata/v1").unwrap();
        assert!(message.contains("gcs.oauth2.token"), "{message}");
        let message = without_credentials(Scheme::Azure, "http://169.254.169.254/metadata/identity").unwrap();
        assert!(message.contains("adls.account-key"), "{message}");
        let late = format!("Generic S3 error: {}: waited for 10 s", super::credentials::TOO_LATE);
        let message = without_credentials(Scheme::S3, &late).unwrap();
        assert!(message.contains("waited for 10 s; set s3.access-key-id"), "{message}");
        assert_eq!(without_credentials(Scheme::S3, "Error performing GET https://bucket.s3.amazonaws.com/key"), None);
    }
}
