//! Requests to S3 that a catalog service signs, because only it has the keys ("Remote signing" of the REST protocol).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use reqwest::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};

use crate::error::{Error, Result};
use crate::storage::connections;
use crate::storage::renewal::{Renewal, SignRequest, Signed};

/// How long a signature is used again, where the signer allows that; as in Java.
const KEPT: Duration = Duration::from_secs(30);
/// Maximum number of kept signatures.
const MOST_KEPT: usize = 100;

/// Connects to S3 through a signer.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) signer: Arc<dyn Renewal>,
    pub(super) region: String,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = connections::Connector.connect(options)?;
        let (signer, region) = (self.signer.clone(), self.region.clone());
        Ok(HttpClient::new(Signing { client, signer, region, kept: Mutex::default() }))
    }
}

/// Has each request signed before it is sent; a repeated one is signed again.
struct Signing {
    client: HttpClient,
    signer: Arc<dyn Renewal>,
    region: String,
    /// Signatures by method and URL, with the time until which they are used.
    kept: Mutex<HashMap<(String, String), (Instant, Signed)>>,
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing").field("region", &self.region).finish_non_exhaustive()
    }
}

impl HttpService for Signing {
    // The signature that the trait's `async_trait` macro generates.
    fn call<'s, 'f>(&'s self, mut request: HttpRequest) -> BoxFuture<'f, Result<HttpResponse, HttpError>>
    where
        's: 'f,
        Self: 'f,
    {
        async move {
            let signed = self.signed(&request).await.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            apply(&mut request, signed).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            self.client.execute(request).await
        }
        .boxed()
    }
}

impl Signing {
    async fn signed(&self, request: &HttpRequest) -> Result<Signed> {
        let method = request.method().as_str().to_owned();
        let uri = request.uri().to_string();
        let reads = matches!(method.as_str(), "GET" | "HEAD");
        let key = (method, uri);
        if reads && let Some(found) = self.known(&key) {
            return Ok(found);
        }
        let asked = asked(request, &key, &self.region);
        let signer = self.signer.clone();
        // The signer waits for the network, or for Python.
        let answer = tokio::task::spawn_blocking(move || signer.sign(&asked)).await;
        let signed = answer.map_err(|error| Error::Internal(format!("the signer of {}: {error}", key.1)))??;
        if reads && signed.is_reusable {
            self.keep(key, &signed);
        }
        Ok(signed)
    }

    fn known(&self, key: &(String, String)) -> Option<Signed> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|(until, _)| Instant::now() < *until).map(|(_, signed)| signed.clone())
    }

    fn keep(&self, key: (String, String), signed: &Signed) {
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.retain(|_, (until, _)| now < *until);
        }
        if kept.len() < MOST_KEPT {
            kept.insert(key, (now + KEPT, signed.clone()));
        }
    }
}

fn asked(request: &HttpRequest, (method, uri): &(String, String), region: &str) -> SignRequest {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut headers: Vec<_> = request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    if !request.headers().contains_key(HOST)
        && let Some(host) = request.uri().authority()
    {
        headers.push((HOST.to_string(), host.to_string()));
    }
    // `POST /bucket?delete`: the signer has to see which objects are to be deleted.
    let query = request.uri().query().unwrap_or_default();
    let deletes = method == "POST" && query.split('&').any(|part| part == "delete" || part == "delete=");
    let body = request.body().as_bytes().filter(|_| deletes);
    let body = body.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    SignRequest { method: method.clone(), region: region.to_owned(), uri: uri.clone(), headers, body }
}

/// Sends the request where the signer says, with its headers. Headers that the request has stay, as in Java: a kept
/// signature was made for a request with another `Range`, which is not signed.
fn apply(request: &mut HttpRequest, signed: Signed) -> Result<()> {
    const OF_CONNECTION: [HeaderName; 4] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION];
    let invalid = |what: &str| Error::invalid(format!("the signer of requests to S3 answered with an invalid {what}"));
    let before = request.uri().scheme_str().map(str::to_owned);
    *request.uri_mut() = signed.uri.parse().map_err(|_| invalid("uri"))?;
    match (before.as_deref(), request.uri().scheme_str()) {
        (_, Some("https")) | (Some("http"), Some("http")) => {}
        _ => return Err(invalid("uri: it is not encrypted, or no URL")),
    }
    let mut added = HeaderMap::new();
    for (name, value) in signed.headers {
        let name: HeaderName = name.parse().map_err(|_| invalid("name of a header"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| invalid(&format!("header {name}")))?;
        value.set_sensitive(true);
        let of_answer = name == "cache-control";
        if !of_answer && !OF_CONNECTION.contains(&name) && !request.headers().contains_key(&name) {
            added.append(name, value);
        }
    }
    request.headers_mut().extend(added);
    Ok(())
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;

    use super::*;

    fn request(method: &str, uri: &str, body: &str) -> HttpRequest {
        let mut made = HttpRequest::new(HttpRequestBody::from(body.to_owned()));
        *made.method_mut() = method.parse().unwrap();
        *made.uri_mut() = uri.parse().unwrap();
        made.headers_mut().insert("range", "bytes=0-1".parse().unwrap());
        made
    }

    fn signed(uri: &str, headers: &[(&str, &str)]) -> Signed {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Signed { uri: uri.to_owned(), headers, is_reusable: true }
    }

    #[test]
    fn only_deletions_of_objects_show_their_body() {
        for (method, uri, shown) in [
            ("POST", "http://h/b?delete", true),
            ("POST", "http://h/b?delete=&x=1", true),
            ("POST", "http://h/b/k?uploads", false),
            ("PUT", "http://h/b/delete", false),
        ] {
            let key = (method.to_owned(), uri.to_owned());
            let found = asked(&request(method, uri, "<Delete/>"), &key, "eu-west-1");
            assert_eq!(found.body.as_deref(), shown.then_some("<Delete/>"), "{method} {uri}");
            assert!(found.headers.contains(&("host".into(), "h".into())), "{found:?}");
        }
    }

    #[test]
    fn headers_of_the_request_stay() {
        let mut made = request("GET", "http://h/b/k", "");
        let given =
            [("Authorization", "AWS4"), ("Range", "bytes=9-9"), ("Cache-Control", "private"), ("host", "other")];
        apply(&mut made, signed("http://h/b/k?signed", &given)).unwrap();
        let mut names: Vec<_> = made.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "range"]);
        assert_eq!(made.headers()["range"], "bytes=0-1");
        assert_eq!(made.uri().to_string(), "http://h/b/k?signed");
        assert!(!format!("{made:?}").contains("AWS4"), "{made:?}");
    }

    #[test]
    fn answers_that_cannot_be_sent_are_refused() {
        for (uri, headers) in [
            ("http://h/k", vec![]),
            ("/k", vec![]),
            ("not a uri", vec![]),
            ("https://h/k", vec![("a b", "x")]),
            ("https://h/k", vec![("a", "x\ny")]),
        ] {
            let error = apply(&mut request("GET", "https://h/k", ""), signed(uri, &headers)).unwrap_err().to_string();
            assert!(error.contains("the signer of requests to S3"), "{error}");
        }
    }
}
