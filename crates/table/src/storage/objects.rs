//! Reads, writes, lists and deletes objects by their paths in metadata.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use icefield_format::manifest::ManifestFile;

use super::store::local;
use super::{Entry, Existing, FileRef, Location, OpenObject, Output, Pages, Scheme, Storage};
use crate::error::{Error, Result};

impl Storage {
    /// Reads a whole object.
    pub fn read(&self, path: &str) -> Result<Bytes> {
        self.read_at_most(path, usize::MAX)
    }

    /// Reads a whole object; one longer than `most` is rejected before it is read.
    pub fn read_at_most(&self, path: &str, most: usize) -> Result<Bytes> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.read(&at, u64::try_from(most).unwrap_or(u64::MAX)))
    }

    /// Reads a whole manifest, whose length must be the one in the manifest list.
    pub fn read_manifest(&self, manifest: &ManifestFile) -> Result<Bytes> {
        let (path, length) = (&*manifest.manifest_path, manifest.manifest_length);
        let wrong =
            |found: u64| Error::corrupt_file(path, format!("has {found} bytes where its manifest list says {length}"));
        let most = usize::try_from(length)
            .map_err(|_| Error::corrupt_file(path, format!("its manifest list says that it has {length} bytes")))?;
        let file = FileRef { path, size: most as u64, key: manifest.key_metadata.as_deref() };
        let (storage, plain) = self.decrypting(&file)?;
        if file.key.is_some() {
            return storage.read(path);
        }
        match self.read_at_most(path, most) {
            Ok(bytes) if bytes.len() as u64 == plain => Ok(bytes),
            Ok(bytes) => Err(wrong(bytes.len() as u64)),
            Err(Error::TooLong { length, .. }) => Err(wrong(length)),
            Err(error) => Err(error),
        }
    }

    /// Whether reads wait for the network.
    pub fn is_remote(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|at| !matches!(at.scheme, Scheme::File | Scheme::Memory))
    }

    /// The size of an object in bytes.
    pub fn size(&self, path: &str) -> Result<u64> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.size(&at))
    }

    /// Whether a path is a link of the file system, whatever it leads to.
    pub(crate) fn is_link(&self, path: &str) -> bool {
        let at = self.resolve(path).ok().filter(|at| at.scheme == Scheme::File);
        at.is_some_and(|at| std::fs::symlink_metadata(&at.key).is_ok_and(|found| found.is_symlink()))
    }

    /// The kind of a local path that is not a regular file, such as a directory; `None` if it does not exist.
    pub(crate) fn other_than_file(&self, path: &str) -> Option<&'static str> {
        let at = self.resolve(path).ok().filter(|at| at.scheme == Scheme::File)?;
        local::other_than_file(at.key.as_ref())
    }

    /// Whether an object exists.
    pub fn exists(&self, path: &str) -> Result<bool> {
        let found = self.size(path).map(|_| true);
        found.or_else(|error| matches!(error, Error::NotFound { .. }).then_some(false).ok_or(error))
    }

    /// Reads one range of bytes.
    pub fn range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let mut found = self.ranges(path, std::slice::from_ref(&range))?;
        found.pop().ok_or_else(|| Error::Internal(format!("{path}: no bytes for a range")))
    }

    /// Reads several ranges of bytes; adjacent ones are fetched together where that saves requests.
    pub fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let at = self.resolve(path)?;
        let found = named(path, self.store(&at)?.ranges(&at, ranges))?;
        let whole = found.len() == ranges.len()
            && found.iter().zip(ranges).all(|(bytes, range)| bytes.len() as u64 == range.end - range.start);
        if !whole {
            return Err(Error::corrupt_file(path, "shorter than its metadata says"));
        }
        Ok(found)
    }

    /// Opens an object for reading by ranges; `None` if every range would be a request of its own.
    pub fn open(&self, path: &str) -> Result<Option<Arc<dyn OpenObject>>> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.open(&at))
    }

    /// Writes an object durably in one call.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>, existing: Existing) -> Result<()> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.put(&at, bytes.into(), existing))
    }

    /// Starts writing an object in pieces.
    pub fn output(&self, path: &str) -> Result<Box<dyn Output>> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.output(&at))
    }

    /// Deletes an object; a missing one is not an error.
    pub fn delete(&self, path: &str) -> Result<()> {
        let at = self.resolve(path)?;
        named(path, self.store(&at)?.delete(&at))
    }

    /// Deletes objects concurrently, with as few requests as their store allows; returns the errors in the order of the
    /// paths. A missing object is not an error, and an error does not stop the other deletions.
    pub fn delete_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Error> {
        let mut failed: Vec<(usize, Error)> = Vec::new();
        let mut of_stores: HashMap<_, (Vec<usize>, Vec<Location>)> = HashMap::new();
        for (number, path) in paths.iter().enumerate() {
            match self.resolve(path.as_ref()) {
                Ok(at) if self.permit(&at).is_err() => {
                    failed.extend(self.permit(&at).err().map(|error| (number, error)))
                }
                Ok(at) => {
                    let (numbers, all) =
                        of_stores.entry((self.scope(&at), at.scheme, at.authority.clone())).or_default();
                    numbers.push(number);
                    all.push(at);
                }
                Err(error) => failed.push((number, error)),
            }
        }
        for (numbers, all) in of_stores.into_values() {
            let Some(first) = all.first() else { continue };
            let done = match self.store(first) {
                Ok(store) => store.delete_all(&all),
                // Opening the store failed. It is tried again for each path, so that each gets an error of its own.
                Err(_) => all.iter().map(|at| self.store(at).map(drop)).collect(),
            };
            let outcomes = numbers.into_iter().zip(done);
            failed.extend(outcomes.filter_map(|(number, done)| Some((number, done.err()?))));
        }
        failed.sort_by_key(|(number, _)| *number);
        let name = |(number, error): (usize, Error)| match paths.get(number) {
            Some(path) => renamed(path.as_ref(), error),
            None => error,
        };
        failed.into_iter().map(name).collect()
    }

    /// Lists all objects below a folder, sorted by path: all pages of [`Storage::pages`].
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for page in self.pages(prefix)? {
            entries.append(&mut page?);
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Lists all objects below a folder in pages, in the order of the store. The returned paths begin with `prefix`,
    /// even if it was relocated. A failed listing ends with its error.
    pub fn pages(&self, prefix: &str) -> Result<Pages> {
        let prefix = prefix.trim_end_matches('/').to_owned();
        let at = self.resolve(&format!("{prefix}/"))?;
        let pages = named(&prefix, self.store(&at)?.pages(&at))?;
        Ok(Box::new(pages.map(move |page| {
            let mut page = named(&prefix, page)?;
            // What does not begin with the prefix is a marker object of the folder itself.
            page.retain_mut(|entry| {
                let path = entry.path.strip_prefix(&at.key).map(|rest| format!("{prefix}/{rest}"));
                path.map(|path| entry.path = path).is_some()
            });
            Ok(page)
        })))
    }
}

/// Replaces the resolved path in an error by the one that the caller used.
fn named<T>(path: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| renamed(path, error))
}

/// The error with another path.
fn renamed(path: &str, error: Error) -> Error {
    match error {
        Error::TooLong { length, most, .. } => Error::TooLong { path: path.to_owned(), length, most },
        Error::NotFound { .. } => Error::NotFound { path: path.to_owned() },
        Error::AlreadyExists { .. } => Error::AlreadyExists { path: path.to_owned() },
        Error::Storage { operation, message, .. } => Error::Storage { path: path.to_owned(), operation, message },
        Error::Format(error) => Error::Format(error.in_file(path)),
        other => other,
    }
}
