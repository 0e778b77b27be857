//! Parses locations. Submodules decide which locations may be accessed, which folders belong to a table, and when two
//! paths are the same file.
//!
//! | form | place |
//! | --- | --- |
//! | `/a/b`, `a/b`, `file:/a/b`, `file:///a/b`, `file://localhost/a/b` | local file |
//! | `C:\a\b`, `C:/a/b`, `file:/C:/a`, `file:///C:/a`, `\\host\share\a` | local file of Windows |
//! | `memory:/a`, `memory:///a`, `memory://space/a` | memory of this process |
//! | `s3://bucket/key`, `s3a`, `s3n` | S3 |
//! | `gs://bucket/key`, `gcs` | Google Cloud Storage |
//! | `abfs://container@account.host/key`, `abfss`, `wasb`, `wasbs`, `az`, `adl` | Azure |
//! | `http://host/path`, `https` | a web server, read only |
//! | `https://host/path?X-Amz-Signature=...` | one object of a web server, read only, by a presigned URL |
//!
//! Paths are taken verbatim, including `%20` and `+`: Java form-encodes the values in partition folders, and the
//! encoded text is the name of the object. A URL with a query is different: it comes percent-encoded from the service
//! that signed it.

mod allowed;
pub(super) mod folders;
pub(super) mod place;

use std::fmt;

use crate::error::{Error, Result};

/// The kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Local files.
    File,
    /// Memory of this process.
    Memory,
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage and Data Lake Storage.
    Azure,
    /// A web server.
    Http,
}

/// A parsed location.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// The kind of store.
    pub scheme: Scheme,
    /// Bucket, container with account, or scheme, host and query; empty for local files.
    pub authority: String,
    /// Path of a local file, or key within the store without a leading `/`.
    pub key: String,
}

impl Location {
    /// Parses any of the forms above.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("the location is empty"));
        }
        if text.contains('\0') {
            return Err(Error::invalid(format!("{text:?}: a location cannot contain NUL")));
        }
        let Some((scheme, rest)) = split_scheme(text) else { return Ok(Self::file(text)) };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => Ok(Self::file(strip_file_authority(rest))),
            "memory" => {
                let (authority, key) = split_authority(rest);
                Ok(Self { scheme: Scheme::Memory, authority: authority.to_owned(), key: key.to_owned() })
            }
            "s3" | "s3a" | "s3n" => Self::bucket(Scheme::S3, text, rest),
            "gs" | "gcs" => Self::bucket(Scheme::Gcs, text, rest),
            "abfs" | "abfss" | "wasb" | "wasbs" | "az" | "adl" => Self::bucket(Scheme::Azure, text, rest),
            http @ ("http" | "https") => {
                let (place, query) = rest.find('?').map_or((rest, ""), |at| rest.split_at(at));
                let (authority, key) = split_authority(place);
                if authority.is_empty() {
                    return Err(Error::invalid(format!("{text}: a URL needs a host")));
                }
                let authority = format!("{http}://{authority}{query}");
                Ok(Self { scheme: Scheme::Http, authority, key: key.to_owned() })
            }
            other => Err(Error::unsupported(format!(
                "{}: no store for the scheme {other:?} (file, memory, s3, gs, abfs, http)",
                without_credentials(text)
            ))),
        }
    }

    /// Whether this is a URL with a query.
    pub(super) fn has_query(&self) -> bool {
        self.scheme == Scheme::Http && self.authority.contains('?')
    }

    fn file(path: &str) -> Self {
        Self { scheme: Scheme::File, authority: String::new(), key: path.to_owned() }
    }

    fn bucket(scheme: Scheme, text: &str, rest: &str) -> Result<Self> {
        let (authority, key) = split_authority(rest);
        if authority.is_empty() {
            return Err(Error::invalid(format!("{text}: a bucket or container is missing")));
        }
        Ok(Self { scheme, authority: authority.to_owned(), key: key.to_owned() })
    }
}

impl Location {
    /// The same place in one spelling: the path of a local file becomes absolute.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        if self.scheme == Scheme::File
            && let Ok(path) = std::path::absolute(&self.key)
            && let Some(path) = path.to_str()
        {
            path.clone_into(&mut self.key);
        }
        self
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::File => return f.write_str(&self.key),
            Scheme::Memory => "memory",
            Scheme::S3 => "s3",
            Scheme::Gcs => "gs",
            Scheme::Azure => "abfs",
            Scheme::Http => {
                let (host, query) =
                    self.authority.split_once('?').map_or((&*self.authority, ""), |(host, _)| (host, "?********"));
                return write!(f, "{}/{}{query}", without_credentials(host), self.key);
            }
        };
        write!(f, "{scheme}://{}/{}", self.authority, self.key)
    }
}

/// Splits off the scheme; `None` for a bare path. One letter before the colon is a drive, not a scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut letters = scheme.chars();
    let plausible = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    // A colon in the first component of a relative path marks a scheme only if a slash follows.
    (plausible && scheme.len() > 1 && rest.starts_with('/')).then_some((scheme, rest))
}

/// The path of a `file:` location, without authority, and without the slash before a drive.
fn strip_file_authority(rest: &str) -> &str {
    let path = match rest.strip_prefix("//") {
        Some(after) if after.starts_with('/') => after,
        Some(after) => after.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest),
        None => rest,
    };
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [b'/', letter, b':', ..] if letter.is_ascii_alphabetic());
    if drive { path.get(1..).unwrap_or(path) } else { path }
}

/// Splits `//authority/key`, `/key` or `///key` into authority and key.
fn split_authority(rest: &str) -> (&str, &str) {
    let Some(after) = rest.strip_prefix("//") else { return ("", rest.trim_start_matches('/')) };
    after.split_once('/').unwrap_or((after, ""))
}

/// Removes `user:password@` from a URL.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let table: &[(&str, Scheme, &str, &str)] = &[
            ("/a/b", Scheme::File, "", "/a/b"),
            ("a/b c%20d+e", Scheme::File, "", "a/b c%20d+e"),
            ("part=x:y/f", Scheme::File, "", "part=x:y/f"),
            ("time:5/f", Scheme::File, "", "time:5/f"),
            ("file:/a/b", Scheme::File, "", "/a/b"),
            ("file:///a/b%20c", Scheme::File, "", "/a/b%20c"),
            ("FILE:///a", Scheme::File, "", "/a"),
            ("file://localhost/a", Scheme::File, "", "/a"),
            ("file://server/share/a", Scheme::File, "", "//server/share/a"),
            ("file:///C:/x y", Scheme::File, "", "C:/x y"),
            ("file:/C:/x", Scheme::File, "", "C:/x"),
            (r"C:\x\y", Scheme::File, "", r"C:\x\y"),
            ("c:/x", Scheme::File, "", "c:/x"),
            (r"\\host\share\x", Scheme::File, "", r"\\host\share\x"),
            ("~/x", Scheme::File, "", "~/x"),
            ("memory:/a/b", Scheme::Memory, "", "a/b"),
            ("memory:///a", Scheme::Memory, "", "a"),
            ("memory://space/a", Scheme::Memory, "space", "a"),
            ("s3://bucket/a%20b/c+d", Scheme::S3, "bucket", "a%20b/c+d"),
            ("s3a://bucket", Scheme::S3, "bucket", ""),
            ("s3n://bucket/k#x?y", Scheme::S3, "bucket", "k#x?y"),
            ("gs://b/k", Scheme::Gcs, "b", "k"),
            ("gcs://b/k", Scheme::Gcs, "b", "k"),
            ("abfs://c@acc.dfs.core.windows.net/k", Scheme::Azure, "c@acc.dfs.core.windows.net", "k"),
            ("abfss://c@acc.dfs.core.windows.net/k", Scheme::Azure, "c@acc.dfs.core.windows.net", "k"),
            ("wasbs://c@acc.blob.core.windows.net/k", Scheme::Azure, "c@acc.blob.core.windows.net", "k"),
            ("az://c/k", Scheme::Azure, "c", "k"),
            ("https://host:8080/a/b", Scheme::Http, "https://host:8080", "a/b"),
            ("https://host/a%20b?sig=x/y?z", Scheme::Http, "https://host?sig=x/y?z", "a%20b"),
        ];
        for (text, scheme, authority, key) in table {
            let found = Location::parse(text).unwrap();
            assert_eq!((found.scheme, &*found.authority, &*found.key), (*scheme, *authority, *key), "{text}");
        }
    }

    #[test]
    fn signatures_are_not_shown() {
        let shown = Location::parse("https://user:word@host:1/a/b.orc?sig=word").unwrap().to_string();
        assert_eq!(shown, "https://host:1/a/b.orc?********");
    }

    #[test]
    fn refused() {
        for text in
            ["", "s3:///key", "gs://", "ftp://host/x", "hdfs://user:word@host/x", "http:///x", "http://?x/y", "a\0b"]
        {
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(!error.contains("word"), "{error}");
        }
    }
}
