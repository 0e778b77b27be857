//! HTTP clients with their pools of connections: a process has one for all stores with the same settings,
//! whatever their credentials are. A thousand tables, each with credentials of its own, share their connections.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicPtr;
use std::sync::{Mutex, PoisonError};

use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
use object_store::{ClientOptions, Error, Result};

use crate::runtime::{Started, of_this_process};

/// More settings than a process has; beyond it, clients are made again.
const MOST: usize = 64;
/// What a client reads of the environment when it is made.
const ENVIRONMENT: [&str; 10] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

type Clients = Mutex<HashMap<(String, Vec<Option<std::ffi::OsString>>), HttpClient>>;

/// By their settings. The connections of a parent are not those of its child.
static CLIENTS: AtomicPtr<Started<Clients>> = AtomicPtr::new(std::ptr::null_mut());

/// Connects stores through the clients that they share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        shared(options, || ReqwestConnector::default().connect(options))
    }
}

/// Returns the client with these settings; `make` creates it the first time.
pub(super) fn shared(settings: &impl fmt::Debug, make: impl FnOnce() -> Result<HttpClient>) -> Result<HttpClient> {
    let internal = |error: crate::error::Error| Error::Generic { store: "HTTP", source: error.into() };
    let clients = of_this_process(&CLIENTS, || Ok(Clients::default())).map_err(internal)?;
    let key = (format!("{settings:?}"), ENVIRONMENT.iter().map(std::env::var_os).collect());
    let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = clients.get(&key) {
        return Ok(found.clone());
    }
    let made = make()?;
    if clients.len() >= MOST {
        clients.clear();
    }
    clients.insert(key, made.clone());
    Ok(made)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::storage::Storage;

    /// A server that has every object, and counts connections.
    fn server() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
                        let head = "HTTP/1.1 200 OK\r\nlast-modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
                        stream.write_all(format!("{head}content-length: 2\r\n\r\nok").as_bytes()).unwrap();
                    }
                });
            }
        });
        (url, count)
    }

    fn storage(endpoint: &str, more: &[(&str, &str)]) -> Storage {
        let all = [("s3.endpoint", endpoint), ("s3.region", "r"), ("s3.secret-access-key", "s")];
        let all = all.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Storage::new(all.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn storages_with_other_keys_share_connections() {
        let (url, count) = server();
        for number in 0..20 {
            let storage = storage(&url, &[("s3.access-key-id", &format!("key {number}"))]);
            assert_eq!(storage.read(&format!("s3://bucket{number}/key")).unwrap(), "ok");
        }
        // One, and another where a request begins before the last one has given its own back.
        let shared = count.load(Ordering::SeqCst);
        assert!((1..=4).contains(&shared), "{shared} connections for 20 storages");
        // Others are not used where connections have other settings.
        let patient = storage(&url, &[("s3.access-key-id", "k"), ("s3.request-timeout", "77")]);
        assert_eq!(patient.read("s3://bucket/key").unwrap(), "ok");
        assert_eq!(count.load(Ordering::SeqCst), shared + 1);
    }
}
