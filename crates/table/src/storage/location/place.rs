//! Decides when two paths are the same file, both for deleting files and for detecting files that are added twice.
//!
//! Writers spell locations differently (`file:/w/x` and `/w/x`, `s3a:` and `s3:`, `wasbs:` and `abfss:`), and a file
//! that an expired snapshot references by one name may be live by another. Places are therefore compared, not texts.
//! When in doubt, two paths count as the same place, so that no used file is deleted.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use crate::error::Result;
use crate::storage::{Location, Scheme, Storage, properties};

/// The canonical form of a location.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(String);

/// Computes the places of many paths, resolving each local folder only once.
#[derive(Debug)]
pub struct Places {
    storage: Storage,
    /// Local folders with links resolved.
    folders: RwLock<HashMap<String, String>>,
}

/// A path in parts, to compare files whose scheme or authority differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The scheme in one spelling, such as `s3` for `s3a`.
    pub(crate) scheme: String,
    /// Bucket, container or host; empty for local files.
    pub(crate) authority: String,
    /// The path without a leading slash, with links of local folders resolved.
    pub(crate) path: String,
    /// Scheme and authority as written, the scheme empty for a bare path; `None` if the path was relocated.
    pub(crate) written: Option<(String, String)>,
}

impl Places {
    /// Places of paths as this storage resolves them.
    pub fn of(storage: &Storage) -> Self {
        Self { storage: storage.clone(), folders: RwLock::default() }
    }

    /// The last component of a path. It is the same in all spellings and cheaper to compare than a place.
    pub fn name(path: &str) -> &str {
        path.rsplit(['/', '\\']).next().unwrap_or(path)
    }

    /// The place of a path. A path that cannot be resolved has a place of its own; nothing is read or deleted there.
    pub fn place(&self, path: &str) -> Place {
        let Ok(at) = self.storage.locate(path) else { return Place(format!("?{path}")) };
        Place(match at.scheme {
            Scheme::File => self.of_file(&at.key),
            Scheme::Memory => format!("memory:{}/{}", at.authority, clean(&at.key)),
            Scheme::S3 => format!("s3:{}/{}", at.authority, clean(&at.key)),
            Scheme::Gcs => format!("gs:{}/{}", at.authority, clean(&at.key)),
            Scheme::Azure => format!("abfs:{}/{}", at.authority, clean(&at.key)),
            Scheme::Http => format!("{}/{}", at.authority, clean(&at.key)),
        })
    }

    /// The parts of a path. Unlike [`Places::place`] this includes paths of schemes without a store (`hdfs:`).
    pub(crate) fn parts(&self, path: &str) -> Parts {
        let (scheme, rest) = super::split_scheme(path).unwrap_or(("", path));
        let scheme = scheme.to_ascii_lowercase();
        let (authority, key) = if scheme.is_empty() { ("", rest) } else { super::split_authority(rest) };
        let written = Some((scheme.clone(), authority.to_owned()));
        let Ok(resolved) = self.storage.resolve(path) else {
            let (scheme, authority) = (Self::scheme(&scheme).to_owned(), authority.to_owned());
            return Parts { scheme, authority, path: clean(key), written };
        };
        let written = written.filter(|_| Location::parse(path).is_ok_and(|parsed| parsed == resolved));
        let at = self.storage.normal(resolved);
        let (scheme, path) = match at.scheme {
            Scheme::File => ("file", self.of_file(&at.key)),
            Scheme::Memory => ("memory", clean(&at.key)),
            Scheme::S3 => ("s3", clean(&at.key)),
            Scheme::Gcs => ("gs", clean(&at.key)),
            Scheme::Azure => ("abfs", clean(&at.key)),
            Scheme::Http => ("http", clean(&at.key)),
        };
        Parts { scheme: scheme.to_owned(), authority: at.authority, path, written }
    }

    /// One spelling of a scheme.
    pub(crate) fn scheme(scheme: &str) -> &str {
        match scheme {
            "s3a" | "s3n" => "s3",
            "gcs" => "gs",
            "abfss" | "wasb" | "wasbs" | "az" | "adl" => "abfs",
            "https" => "http",
            "" => "file",
            other => other,
        }
    }

    fn of_file(&self, path: &str) -> String {
        let (folder, name) = path.rsplit_once(separator).unwrap_or(("", path));
        match name {
            // Such a path names a folder, which files of a table do not.
            "" | "." | ".." => self.folder(path),
            _ => folded(format!("{}/{name}", self.folder(folder))),
        }
    }

    fn folder(&self, folder: &str) -> String {
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
        known.unwrap_or_else(|| {
            let found = real(folder);
            let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
            folders.entry(folder.to_owned()).or_insert(found).clone()
        })
    }
}

impl Storage {
    /// The location of a path in one spelling, except for links and repeated slashes: local paths are absolute; hosts,
    /// buckets and accounts are written as their stores compare them.
    pub(crate) fn locate(&self, path: &str) -> Result<Location> {
        self.resolve(path).map(|at| self.normal(at))
    }

    pub(super) fn normal(&self, at: Location) -> Location {
        let mut at = at.normalized();
        at.authority = match at.scheme {
            Scheme::File | Scheme::Memory => at.authority,
            Scheme::S3 | Scheme::Gcs => at.authority.to_ascii_lowercase(),
            Scheme::Azure => self.container(&at.authority),
            Scheme::Http => host(&at.authority),
        };
        at
    }

    /// `container@account`, with the account from the location or else from the properties.
    fn container(&self, authority: &str) -> String {
        let (container, account) = match authority.split_once('@') {
            Some((container, host)) => (container, host.split('.').next().unwrap_or(host).to_owned()),
            None => (authority, properties::azure_account(authority, &self.properties()).unwrap_or_default()),
        };
        format!("{container}@{account}").to_ascii_lowercase()
    }
}

/// Scheme and host of a web server, without user, query and default port.
fn host(authority: &str) -> String {
    let authority = authority.split_once('?').map_or(authority, |(place, _)| place);
    let Some((scheme, host)) = authority.split_once("://") else { return authority.to_ascii_lowercase() };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let port = if scheme == "http" { ":80" } else { ":443" };
    format!("{scheme}://{}", host.strip_suffix(port).unwrap_or(&host))
}

fn separator(letter: char) -> bool {
    letter == '/' || (cfg!(windows) && letter == '\\')
}

/// The folder with links resolved, if it exists.
fn real(folder: &str) -> String {
    // The parent folder of `/x` is the root.
    let asked = if folder.is_empty() { Path::new("/") } else { Path::new(folder) };
    match std::fs::canonicalize(asked) {
        Ok(found) => clean(&found.to_string_lossy()),
        Err(_) => clean(folder),
    }
}

/// The key without empty components, `.` and `..`.
fn clean(key: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for step in key.split(separator) {
        match step {
            "" | "." => {}
            ".." => drop(kept.pop()),
            step => kept.push(step),
        }
    }
    kept.join("/")
}

/// Lower-cases local names where file systems usually ignore case.
fn folded(path: String) -> String {
    if cfg!(any(windows, target_os = "macos")) { path.to_lowercase() } else { path }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn same(storage: &Storage, one: &str, other: &str) -> bool {
        let places = Places::of(storage);
        places.place(one) == places.place(other)
    }

    #[test]
    fn spellings_of_one_file() {
        let account = BTreeMap::from([("adls.account-name".to_owned(), "acc".to_owned())]);
        let storage = Storage::new(account);
        let kinds: &[&[&str]] = &[
            &[
                "/w/t/x",
                "file:/w/t/x",
                "file:///w/t/x",
                "FILE:///w/t/x",
                "file://localhost/w/t/x",
                "//w/t/x",
                "/w//t/x",
                "/w/./t/x",
                "/w/u/../t/x",
                "file:///w/t/./x",
            ],
            &["/w/t/X"],
            &["/w/t/x%20y", "file:///w/t/x%20y"],
            &["/w/t/x y"],
            &["/w/t/x+y"],
            &["s3://b/t/x", "s3a://b/t/x", "s3n://b/t/x", "S3://b/t/x", "s3://B/t/x", "s3://b//t/x", "s3a://b/t/./x"],
            &["s3://b/t/X"],
            &["s3://b/t/x%20y"],
            &["s3://c/t/x"],
            &["gs://b/t/x", "gcs://b/t/x", "gs://B/t//x"],
            &[
                "abfss://c@acc.dfs.core.windows.net/t/x",
                "abfs://c@acc.dfs.core.windows.net/t/x",
                "wasb://c@acc.blob.core.windows.net/t/x",
                "wasbs://c@ACC.blob.core.windows.net/t/x",
                "az://c/t/x",
                "abfs://c/t/x",
            ],
            &["abfss://c@other.dfs.core.windows.net/t/x"],
            &["memory:/t/x", "memory:///t/x"],
            &["memory://t/x"],
            &[
                "https://host/t/x",
                "https://HOST:443/t/x",
                "https://me:word@host/t/x",
                "https://host/t/x?sig=1",
                "https://host/t/x?sig=2",
            ],
            &["https://host:8443/t/x"],
            &["hdfs://host/w/t/x"],
        ];
        for (number, kind) in kinds.iter().enumerate() {
            for (other_number, other) in kinds.iter().enumerate() {
                for (one, two) in kind.iter().flat_map(|one| other.iter().map(move |two| (one, two))) {
                    assert_eq!(same(&storage, one, two), number == other_number, "{one} and {two}");
                }
            }
        }
    }

    #[test]
    fn what_was_moved_is_where_it_lies_now() {
        let storage = Storage::default().relocated([("s3://old/t".to_owned(), "/w/t".to_owned())]).unwrap();
        assert!(same(&storage, "s3://old/t/x", "file:///w/t/x"));
        assert!(!same(&storage, "s3a://old/t/x", "file:///w/t/x"));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir_all(folder.path().join("real/in")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
        let storage = Storage::default();
        assert!(same(&storage, &path("real/in/x"), &path("link/in/x")));
        // After a link, `..` leads to the parent of its target, not of the link.
        std::os::unix::fs::symlink(folder.path().join("real/in"), folder.path().join("deep")).unwrap();
        assert!(same(&storage, &path("deep/../x"), &path("real/x")));
        assert!(!same(&storage, &path("deep/../x"), &path("x")));
    }
}
