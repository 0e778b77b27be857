//! The region of a bucket, found by a request to S3, which refuses requests that are signed for another region.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicPtr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use object_store::ClientOptions;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpConnector, HttpRequest, HttpRequestBody};
use reqwest::Method;

use super::{connections, properties};
use crate::error::{Error, Result};
use crate::runtime::{self, Started, of_this_process};

/// Maximum time until the answer. Without one the region stays as it was.
const LIMIT: Duration = Duration::from_secs(5);
/// Time until the next request for a bucket whose region was not found.
const REFRAIN: Duration = Duration::from_secs(60);
/// In answers about a bucket, also in those that refuse.
const HEADER: &str = "x-amz-bucket-region";

/// By the URL of the bucket: the time of the request, and the region.
type Found = Mutex<HashMap<String, (Instant, Option<String>)>>;

static FOUND: AtomicPtr<Started<Found>> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the region of the bucket if neither properties nor the environment have a region or an endpoint: a server other
/// than Amazon's takes any region. With `s3.resolve-region` the request is sent always, or never.
pub(super) fn located(
    builder: AmazonS3Builder,
    bucket: &str,
    properties: &BTreeMap<String, String>,
) -> Result<AmazonS3Builder> {
    let given = builder.get_config_value(&AmazonS3ConfigKey::Region);
    let endpoint = properties::s3_endpoint(&builder);
    if !properties::resolves_region(properties)?.unwrap_or(given.is_none() && endpoint.is_none()) {
        return Ok(builder);
    }
    // The bucket becomes part of a host name.
    let sound = bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let address = address(bucket, endpoint.as_deref());
    let found = if sound { region(&address, &properties::s3_client(properties)?)? } else { None };
    let Some(region) = found else { return Ok(builder) };
    if let Some(given) = given.filter(|given| *given != region) {
        log::warn!("the bucket {bucket} is in the region {region}, not in {given}, which was given");
    }
    Ok(builder.with_region(region))
}

/// The URL of a bucket, without a region.
fn address(bucket: &str, endpoint: Option<&str>) -> String {
    match endpoint {
        Some(endpoint) => format!("{}/{bucket}", endpoint.trim_end_matches('/')),
        // Amazon's certificate is for names with one label before its own.
        None if bucket.contains('.') => format!("https://s3.amazonaws.com/{bucket}"),
        None => format!("https://{bucket}.s3.amazonaws.com"),
    }
}

fn region(url: &str, options: &ClientOptions) -> Result<Option<String>> {
    let found = of_this_process(&FOUND, || Ok(Found::default()))?;
    if let Some((asked, region)) = found.lock().unwrap_or_else(PoisonError::into_inner).get(url)
        && (region.is_some() || asked.elapsed() < REFRAIN)
    {
        return Ok(region.clone());
    }
    let region = match ask(url, options) {
        Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
        Err(error) => {
            log::debug!("the region of a bucket was not found: {error}");
            None
        }
        Ok(region) => region,
    };
    let answer = (Instant::now(), region.clone());
    found.lock().unwrap_or_else(PoisonError::into_inner).insert(url.to_owned(), answer);
    Ok(region)
}

fn ask(url: &str, options: &ClientOptions) -> Result<Option<String>> {
    let failed = |message: String| Error::Storage { path: url.to_owned(), operation: "find the region of", message };
    let client = connections::Connector.connect(options).map_err(|error| failed(error.to_string()))?;
    let mut request = HttpRequest::new(HttpRequestBody::from(bytes::Bytes::new()));
    *request.method_mut() = Method::HEAD;
    *request.uri_mut() = url.parse().map_err(|_| failed("the bucket has no URL".to_owned()))?;
    let answer = runtime::wait(async { tokio::time::timeout(LIMIT, client.execute(request)).await })?;
    let answer = answer.map_err(|_| failed("no answer in time".to_owned()))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    let region = answer.headers().get(HEADER).and_then(|region| region.to_str().ok());
    // The region becomes part of a host name.
    let sound = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    Ok(region.filter(sound).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_an_address_that_certificates_cover() {
        assert_eq!(address("wh", None), "https://wh.s3.amazonaws.com");
        assert_eq!(address("my.wh", None), "https://s3.amazonaws.com/my.wh");
        assert_eq!(address("wh", Some("http://127.0.0.1:9/")), "http://127.0.0.1:9/wh");
    }
}
