//! Translates storage properties, with the names of PyIceberg and Java, to the configuration of a store.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};

use super::connections;
use crate::error::{Error, Result};

/// PyIceberg's name of a property, with its synonyms, and the store's key.
type Names<K> = (&'static [&'static str], K);

/// The locations that may be accessed, separated by commas.
pub(super) const ALLOWED_LOCATIONS: &str = "io.allowed-locations";

const S3: &[Names<AmazonS3ConfigKey>] = &[
    (&["s3.endpoint"], AmazonS3ConfigKey::Endpoint),
    (&["s3.access-key-id", "client.access-key-id"], AmazonS3ConfigKey::AccessKeyId),
    (&["s3.secret-access-key", "client.secret-access-key"], AmazonS3ConfigKey::SecretAccessKey),
    (&["s3.session-token", "client.session-token"], AmazonS3ConfigKey::Token),
    (&["s3.region", "client.region"], AmazonS3ConfigKey::Region),
    (&["s3.role-arn", "client.role-arn"], AmazonS3ConfigKey::RoleArn),
    (&["s3.role-session-name", "client.role-session-name"], AmazonS3ConfigKey::RoleSessionName),
    (&["s3.anonymous"], AmazonS3ConfigKey::SkipSignature),
    (&["s3.force-virtual-addressing"], AmazonS3ConfigKey::VirtualHostedStyleRequest),
    (&["s3.checksum-algorithm"], AmazonS3ConfigKey::Checksum),
    (&["s3.requester-pays"], AmazonS3ConfigKey::RequestPayer),
];

const GCS: &[Names<GoogleConfigKey>] = &[
    (&["gcs.service-account-key", "gcs.credentials-json"], GoogleConfigKey::ServiceAccountKey),
    (&["gcs.service-account-path", "gcs.credential-path"], GoogleConfigKey::ServiceAccount),
    (&["gcs.service.host", "gcs.endpoint"], GoogleConfigKey::BaseUrl),
    (&["gcs.no-auth", "gcs.allow-anonymous"], GoogleConfigKey::SkipSignature),
    (&["gcs.oauth2.token"], GoogleConfigKey::BearerToken),
];

const ADLS: &[Names<AzureConfigKey>] = &[
    (&["adls.account-name", "adls.auth.shared-key.account.name"], AzureConfigKey::AccountName),
    (&["adls.account-key", "adls.auth.shared-key.account.key"], AzureConfigKey::AccessKey),
    (&["adls.sas-token"], AzureConfigKey::SasKey),
    (&["adls.tenant-id"], AzureConfigKey::AuthorityId),
    (&["adls.client-id"], AzureConfigKey::ClientId),
    (&["adls.client-secret"], AzureConfigKey::ClientSecret),
    (&["adls.token"], AzureConfigKey::Token),
    (&["adls.endpoint"], AzureConfigKey::Endpoint),
];

/// Whether another service signs each request to S3.
const SIGNED: &str = "s3.remote-signing-enabled";
const RESOLVES_REGION: &str = "s3.resolve-region";
/// Other properties that are read.
const OTHERS: &[&str] = &[
    "s3.path-style-access",
    "s3.sse.type",
    "s3.sse.key",
    "s3.server-side-encryption",
    "s3.sse-kms-key-id",
    "adls.connection-string",
    SIGNED,
    RESOLVES_REGION,
    "tls.verify",
    "io.manifest.cache-enabled",
    ALLOWED_LOCATIONS,
];
/// Prefix of the token properties for single Azure accounts.
const OF_ACCOUNT: &str = "adls.sas-token.";
/// Properties of the HTTP client, with the prefix of each kind of store.
const CLIENT: &[&str] = &["connect-timeout", "request-timeout", "proxy-uri"];

/// Whether a storage uses the property. All others, such as the password of a catalog, are dropped, because a storage
/// is sent to executors with its properties.
fn is_read(name: &str) -> bool {
    fn has<K>(table: &[Names<K>], name: &str) -> bool {
        table.iter().any(|(names, _)| names.contains(&name))
    }
    let of_client = name
        .split_once('.')
        .is_some_and(|(store, rest)| matches!(store, "s3" | "gcs" | "adls" | "http") && CLIENT.contains(&rest));
    of_client
        || has(S3, name)
        || has(GCS, name)
        || has(ADLS, name)
        || OTHERS.contains(&name)
        || name.strip_prefix(OF_ACCOUNT).is_some_and(|account| !account.is_empty())
}

/// The properties that a storage reads.
pub(super) fn kept(mut properties: BTreeMap<String, String>) -> BTreeMap<String, String> {
    properties.retain(|name, _| is_read(name));
    properties
}

fn first<'a>(properties: &'a BTreeMap<String, String>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| properties.get(*name)).map(String::as_str).filter(|value| !value.is_empty())
}

/// Reads a flag: Python's `True` and Java's `true`, `1`, `yes`.
fn flag(properties: &BTreeMap<String, String>, name: &str) -> Result<Option<bool>> {
    let Some(text) = properties.get(name) else { return Ok(None) };
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(Some(true)),
        "false" | "0" | "no" | "off" | "" => Ok(Some(false)),
        _ => Err(Error::invalid(format!("property {name}: expected true or false, got {text:?}"))),
    }
}

fn seconds(properties: &BTreeMap<String, String>, name: &str) -> Result<Option<Duration>> {
    let Some(text) = properties.get(name) else { return Ok(None) };
    let parsed = text.trim().parse::<f64>().ok().and_then(|value| Duration::try_from_secs_f64(value).ok());
    parsed
        .map(Some)
        .ok_or_else(|| Error::invalid(format!("property {name}: expected a number of seconds, got {text:?}")))
}

/// Timeouts and proxy: the same three properties for each kind of store.
fn client(properties: &BTreeMap<String, String>, prefix: &str) -> Result<ClientOptions> {
    let mut options = ClientOptions::new();
    if let Some(limit) = seconds(properties, &format!("{prefix}.connect-timeout"))? {
        options = options.with_connect_timeout(limit);
    }
    if let Some(limit) = seconds(properties, &format!("{prefix}.request-timeout"))? {
        options = options.with_timeout(limit);
    }
    if let Some(proxy) = properties.get(&format!("{prefix}.proxy-uri")) {
        options = options.with_proxy_url(proxy.as_str());
    }
    if flag(properties, "tls.verify")? == Some(false) {
        options = options.with_allow_invalid_certificates(true);
    }
    Ok(options)
}

/// Whether an endpoint uses plain HTTP, which is allowed only then.
fn plain(endpoint: Option<&str>) -> bool {
    endpoint.is_some_and(|url| url.starts_with("http://"))
}

/// What makes an identity: the keys that show that properties have one, and those of the environment that it replaces.
type Identity<K> = (&'static [K], &'static [K]);

const S3_KEYS: Identity<AmazonS3ConfigKey> = (
    &[AmazonS3ConfigKey::AccessKeyId],
    &[
        AmazonS3ConfigKey::AccessKeyId,
        AmazonS3ConfigKey::SecretAccessKey,
        AmazonS3ConfigKey::Token,
        AmazonS3ConfigKey::SkipSignature,
    ],
);
const GCS_KEYS: Identity<GoogleConfigKey> = (
    &[GoogleConfigKey::BearerToken, GoogleConfigKey::ServiceAccount, GoogleConfigKey::ServiceAccountKey],
    &[
        GoogleConfigKey::BearerToken,
        GoogleConfigKey::ServiceAccount,
        GoogleConfigKey::ServiceAccountKey,
        GoogleConfigKey::ApplicationCredentials,
        GoogleConfigKey::SkipSignature,
    ],
);
const ADLS_KEYS: Identity<AzureConfigKey> = (
    &[AzureConfigKey::AccessKey, AzureConfigKey::SasKey, AzureConfigKey::Token, AzureConfigKey::ClientSecret],
    &[
        AzureConfigKey::AccessKey,
        AzureConfigKey::SasKey,
        AzureConfigKey::Token,
        AzureConfigKey::ClientSecret,
        AzureConfigKey::FederatedTokenFile,
        AzureConfigKey::SkipSignature,
        AzureConfigKey::UseAzureCli,
    ],
);

/// The properties that a store has a key for.
fn given<K: Copy>(properties: &BTreeMap<String, String>, names: &[Names<K>]) -> Vec<(K, String)> {
    names.iter().filter_map(|(names, key)| Some((*key, first(properties, names)?.to_owned()))).collect()
}

/// The variables of the environment that are text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The settings of a store: those of the environment, then the given ones. An identity is never made of both: a session
/// token of the environment would be sent with keys that a catalog has vended.
fn merged<K: FromStr + PartialEq>(
    prefix: &str,
    environment: impl Iterator<Item = (String, String)>,
    given: Vec<(K, String)>,
    (shown_by, replaced): &Identity<K>,
) -> Vec<(K, String)> {
    let has_own = given.iter().any(|(key, _)| shown_by.contains(key));
    let key = |name: &str| name.starts_with(prefix).then(|| name.to_ascii_lowercase().parse::<K>().ok()).flatten();
    let inherited = environment.filter_map(|(name, value)| Some((key(&name)?, value)));
    inherited.filter(|(key, _)| !has_own || !replaced.contains(key)).chain(given).collect()
}

/// Configures an S3 store: from the environment, overridden by properties.
pub(super) fn s3(bucket: &str, properties: &BTreeMap<String, String>) -> Result<AmazonS3Builder> {
    let options = s3_client(properties)?;
    let mut settings = merged("AWS_", environment(), given(properties, S3), &S3_KEYS);
    if first(properties, &["s3.endpoint"]).is_some() {
        // The store would prefer `AWS_ENDPOINT_URL_S3` to the property.
        settings.retain(|(key, _)| *key != AmazonS3ConfigKey::S3Endpoint);
    }
    let builder = settings.into_iter().fold(AmazonS3Builder::new(), |made, (key, value)| made.with_config(key, value));
    let builder = builder.with_client_options(options).with_http_connector(connections::Connector);
    let mut builder = builder.with_bucket_name(bucket);
    for (key, value) in encryption(properties)? {
        let key = key.parse::<AmazonS3ConfigKey>().map_err(|error| Error::Internal(error.to_string()))?;
        builder = builder.with_config(key, value);
    }
    if let Some(path_style) = flag(properties, "s3.path-style-access")? {
        builder = builder.with_virtual_hosted_style_request(!path_style);
    }
    Ok(builder)
}

/// HTTP client options for S3.
pub(super) fn s3_client(properties: &BTreeMap<String, String>) -> Result<ClientOptions> {
    let endpoint = first(properties, &["s3.endpoint"]);
    Ok(client(properties, "s3")?.with_allow_http(plain(endpoint) || plain(env_endpoint().as_deref())))
}

/// The server of the store, if it is not Amazon's.
pub(super) fn s3_endpoint(builder: &AmazonS3Builder) -> Option<String> {
    [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint].iter().find_map(|key| builder.get_config_value(key))
}

/// Whether a request finds the region of a bucket: always, never, or without the property where no region is given.
pub(super) fn resolves_region(properties: &BTreeMap<String, String>) -> Result<Option<bool>> {
    flag(properties, RESOLVES_REGION)
}

/// Whether another service signs each request to S3.
pub(super) fn is_signed(properties: &BTreeMap<String, String>) -> Result<bool> {
    Ok(flag(properties, SIGNED)? == Some(true))
}

/// Server-side encryption of S3, by the store's configuration keys: Java's `s3.sse.*`, or PyIceberg's names.
fn encryption(properties: &BTreeMap<String, String>) -> Result<Vec<(&'static str, &str)>> {
    let own = |name| first(properties, &[name]);
    let (kind, key) = match own("s3.sse.type") {
        None => (own("s3.server-side-encryption"), own("s3.sse-kms-key-id")),
        Some("none") => (None, None),
        Some("s3") => (Some("AES256"), None),
        Some("kms") => (Some("aws:kms"), own("s3.sse.key")),
        Some("dsse-kms") => (Some("aws:kms:dsse"), own("s3.sse.key")),
        Some(other) => {
            return Err(Error::unsupported(format!(
                "the property s3.sse.type={other}: expected none, s3, kms, dsse-kms"
            )));
        }
    };
    let pairs = [("aws_server_side_encryption", kind), ("aws_sse_kms_key_id", key)];
    Ok(pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

fn env_endpoint() -> Option<String> {
    ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].iter().find_map(|name| std::env::var(name).ok())
}

/// Configures a Google Cloud Storage store.
pub(super) fn gcs(bucket: &str, properties: &BTreeMap<String, String>) -> Result<GoogleCloudStorageBuilder> {
    let host = first(properties, &["gcs.service.host", "gcs.endpoint"]);
    let options = client(properties, "gcs")?.with_allow_http(plain(host));
    // The store reads this variable too.
    let account = std::env::var("SERVICE_ACCOUNT").ok().map(|path| ("GOOGLE_SERVICE_ACCOUNT".to_owned(), path));
    let variables = account.into_iter().chain(environment());
    let settings = merged("GOOGLE_", variables, given(properties, GCS), &GCS_KEYS);
    let builder = GoogleCloudStorageBuilder::new();
    let builder = settings.into_iter().fold(builder, |made, (key, value)| made.with_config(key, value));
    let builder = builder.with_client_options(options).with_http_connector(connections::Connector);
    Ok(builder.with_bucket_name(bucket))
}

/// Configures an Azure store. The account comes from the location (`container@account.dfs.core.windows.net`), otherwise
/// from a property.
pub(super) fn azure(authority: &str, properties: &BTreeMap<String, String>) -> Result<MicrosoftAzureBuilder> {
    let (container, host) = authority.split_once('@').map_or((authority, None), |(c, host)| (c, Some(host)));
    let endpoint = first(properties, &["adls.endpoint"]);
    let connection = connection_string(properties);
    let spoken = connection.iter().find_map(|(name, value)| (name == "BlobEndpoint").then_some(value.as_str()));
    let options = client(properties, "adls")?.with_allow_http(plain(endpoint) || plain(spoken));
    let mut own: Vec<(AzureConfigKey, String)> = Vec::new();
    for (name, value) in connection {
        let key = match name.as_str() {
            "AccountName" => AzureConfigKey::AccountName,
            "AccountKey" => AzureConfigKey::AccessKey,
            "BlobEndpoint" => AzureConfigKey::Endpoint,
            "SharedAccessSignature" => AzureConfigKey::SasKey,
            _ => continue,
        };
        own.push((key, value));
    }
    own.extend(given(properties, ADLS));
    if let Some(host) = host {
        let account = host.split('.').next().unwrap_or(host);
        // Catalogs vend a token for each account, under its name or its full host.
        let names = [format!("adls.sas-token.{host}"), format!("adls.sas-token.{account}")];
        let token = names.iter().find_map(|name| properties.get(name));
        own.extend(token.map(|token| (AzureConfigKey::SasKey, token.clone())));
    }
    let settings = merged("AZURE_", environment(), own, &ADLS_KEYS);
    let builder = MicrosoftAzureBuilder::new();
    let mut builder = settings.into_iter().fold(builder, |made, (key, value)| made.with_config(key, value));
    if let Ok(endpoint) = std::env::var("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    let builder = builder.with_client_options(options).with_http_connector(connections::Connector);
    let builder = builder.with_container_name(container);
    let Some(host) = host else { return Ok(builder) };
    let account = host.split('.').next().unwrap_or(host);
    let fabric = host.ends_with(".fabric.microsoft.com");
    Ok(builder.with_account(account).with_use_fabric_endpoint(fabric))
}

fn connection_string(properties: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let Some(text) = first(properties, &["adls.connection-string"]) else { return Vec::new() };
    let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// The account for a container whose location does not have one.
pub(super) fn azure_account(container: &str, properties: &BTreeMap<String, String>) -> Option<String> {
    azure(container, properties).ok()?.get_config_value(&AzureConfigKey::AccountName)
}

/// HTTP client options for a web server.
pub(super) fn http(url: &str, properties: &BTreeMap<String, String>) -> Result<ClientOptions> {
    Ok(client(properties, "http")?.with_allow_http(plain(Some(url))))
}

/// An HTTP client that follows no redirects: these could lead into the reader's internal network.
#[derive(Debug)]
pub(super) struct Direct {
    connect_timeout: Duration,
    request_timeout: Duration,
    proxy: Option<String>,
    any_certificate: bool,
    plain: bool,
}

impl Direct {
    pub(super) fn new(url: &str, properties: &BTreeMap<String, String>) -> Result<Self> {
        Ok(Self {
            // The same defaults as the clients of other stores.
            connect_timeout: seconds(properties, "http.connect-timeout")?.unwrap_or(Duration::from_secs(5)),
            request_timeout: seconds(properties, "http.request-timeout")?.unwrap_or(Duration::from_secs(30)),
            proxy: first(properties, &["http.proxy-uri"]).map(str::to_owned),
            any_certificate: flag(properties, "tls.verify")? == Some(false),
            plain: plain(Some(url)),
        })
    }

    fn client(&self) -> reqwest::Result<reqwest::Client> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("icefield/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            .timeout(self.request_timeout)
            .https_only(!self.plain)
            .danger_accept_invalid_certs(self.any_certificate);
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy)?);
        }
        builder.build()
    }
}

impl HttpConnector for Direct {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        connections::shared(self, || {
            let client = self.client();
            client
                .map(HttpClient::new)
                .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn names_of_pyiceberg() {
        let builder = s3(
            "bucket",
            &map(&[
                ("s3.endpoint", "http://127.0.0.1:9000"),
                ("s3.access-key-id", "key"),
                ("client.secret-access-key", "canary"),
                ("s3.region", "eu-north-1"),
                ("s3.path-style-access", "True"),
                ("write.parquet.unknown", "1"),
            ]),
        )
        .unwrap();
        let get = |key| builder.get_config_value(&key);
        assert_eq!(get(AmazonS3ConfigKey::Endpoint).as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(get(AmazonS3ConfigKey::SecretAccessKey).as_deref(), Some("canary"));
        assert_eq!(get(AmazonS3ConfigKey::Region).as_deref(), Some("eu-north-1"));
        assert_eq!(get(AmazonS3ConfigKey::VirtualHostedStyleRequest).as_deref(), Some("false"));
    }

    #[test]
    fn identities_are_not_mixed() {
        fn of<K: FromStr + PartialEq + Copy>(
            prefix: &str,
            names: &[Names<K>],
            keys: &Identity<K>,
            environment: &[(&str, &str)],
            properties: &[(&str, &str)],
        ) -> Vec<String> {
            let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let made = merged(prefix, environment, given(&map(properties), names), keys);
            made.into_iter().map(|(_, value)| value).collect()
        }
        let s3 = |given: &[(&str, &str)]| {
            let variables = [
                ("AWS_ACCESS_KEY_ID", "env"),
                ("AWS_SECRET_ACCESS_KEY", "env"),
                ("AWS_SESSION_TOKEN", "env"),
                ("AWS_REGION", "region"),
                ("OTHER", "x"),
            ];
            of("AWS_", S3, &S3_KEYS, &variables, given)
        };
        assert_eq!(s3(&[]), ["env", "env", "env", "region"]);
        assert_eq!(s3(&[("s3.endpoint", "there")]), ["env", "env", "env", "region", "there"]);
        assert_eq!(s3(&[("s3.access-key-id", "k"), ("s3.secret-access-key", "s")]), ["region", "k", "s"]);
        assert_eq!(s3(&[("client.access-key-id", "k"), ("client.session-token", "t")]), ["region", "k", "t"]);
        let gcs = |given: &[(&str, &str)]| {
            let variables = [("GOOGLE_SERVICE_ACCOUNT_KEY", "env"), ("GOOGLE_BUCKET", "b")];
            of("GOOGLE_", GCS, &GCS_KEYS, &variables, given)
        };
        assert_eq!(gcs(&[("gcs.endpoint", "there")]), ["env", "b", "there"]);
        assert_eq!(gcs(&[("gcs.oauth2.token", "t")]), ["b", "t"]);
        let adls = |given: &[(&str, &str)]| {
            let variables = [("AZURE_STORAGE_ACCOUNT_KEY", "env"), ("AZURE_CLIENT_ID", "client")];
            of("AZURE_", ADLS, &ADLS_KEYS, &variables, given)
        };
        assert_eq!(adls(&[("adls.tenant-id", "t")]), ["env", "client", "t"]);
        assert_eq!(adls(&[("adls.sas-token", "t")]), ["client", "t"]);
    }

    #[test]
    fn what_s3_is_to_encrypt() {
        let key = ("aws_sse_kms_key_id", "k");
        for (given, expected) in [
            (vec![], vec![]),
            (vec![("s3.sse.type", "none"), ("s3.sse.key", "k")], vec![]),
            (vec![("s3.sse.type", "s3")], vec![("aws_server_side_encryption", "AES256")]),
            (vec![("s3.sse.type", "kms"), ("s3.sse.key", "k")], vec![("aws_server_side_encryption", "aws:kms"), key]),
            (
                vec![("s3.server-side-encryption", "aws:kms"), ("s3.sse-kms-key-id", "k")],
                vec![("aws_server_side_encryption", "aws:kms"), key],
            ),
        ] {
            assert_eq!(encryption(&map(&given)).unwrap(), expected, "{given:?}");
            s3("bucket", &map(&given)).unwrap();
        }
        let error = s3("bucket", &map(&[("s3.sse.type", "custom")])).unwrap_err().to_string();
        assert!(error.contains("s3.sse.type=custom"), "{error}");
    }

    #[test]
    fn azure_accounts() {
        let vended = map(&[("adls.sas-token.acc.dfs.core.windows.net", "sv=1&sig=canary")]);
        let builder = azure("files@acc.dfs.core.windows.net", &vended).unwrap();
        assert_eq!(builder.get_config_value(&AzureConfigKey::AccountName).as_deref(), Some("acc"));
        assert_eq!(builder.get_config_value(&AzureConfigKey::ContainerName).as_deref(), Some("files"));
        assert!(builder.get_config_value(&AzureConfigKey::SasKey).is_some());
        let text = "AccountName=dev;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:10000/dev";
        let builder = azure("files", &map(&[("adls.connection-string", text)])).unwrap();
        assert_eq!(builder.get_config_value(&AzureConfigKey::AccountName).as_deref(), Some("dev"));
    }

    #[test]
    fn bad_values_name_the_property() {
        let error = s3("b", &map(&[("s3.connect-timeout", "soon")])).unwrap_err().to_string();
        assert!(error.contains("s3.connect-timeout"), "{error}");
    }
}
